"""One run: its inputs, its execution and the folder that keeps it."""
