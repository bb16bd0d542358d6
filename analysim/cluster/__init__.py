"""The physical tree, the logical partitions and the free-capacity index."""
