"""The command line: ``analysim simulate``, ``compare``, ``plot``, ``rerun``, and the shelves."""

from analysim.cli.application import main

__all__ = ["main"]
