"""What a schedule did to job completion times, utilisation, fragmentation and fairness.

Pure functions: tables of a run in, figures and tables out. ``docs/reference/metrics.md`` has every formula.
"""

from analysim.metrics.groups import by_duration, by_partition, by_size, by_tenant
from analysim.metrics.summary import compare_summaries, summarise
from analysim.metrics.timeline import make_timeline

__all__ = [
    "by_duration",
    "by_partition",
    "by_size",
    "by_tenant",
    "compare_summaries",
    "make_timeline",
    "summarise",
]
