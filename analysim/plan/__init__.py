"""What a policy sees and writes: state, placement queries, decisions and what-if."""
