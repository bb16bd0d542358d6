"""Readers of the formats that people already have, one module each."""

from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.registry import FORMATS, find_format, title_of

__all__ = ["FORMATS", "Format", "ReadOptions", "Sample", "find_format", "title_of"]
