"""GPUs per virtual cluster and day of SenseTime's Helios (cluster_gpu_number.csv): quotas that change in time.

https://github.com/S-Lab-System-Group/HeliosData
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from analysim.clusters.importing.found import Found, FoundNode, FoundPartition, QuotaEvent
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source
from analysim.clusters.importing.tables import Row, read_rows
from analysim.config.nodes import MAX_NAMES

GPUS_PER_NODE = 8
"""GPUs of a node of Helios; all quotas are multiples of it."""

DAY_S = 86_400


def recognises(source: Source) -> bool:
    """Whether the header is a date, virtual clusters, and their total."""
    return len(source.header) > 2 and (source.header[0], source.header[-1]) == ("date", "total")


def read(sources: Sequence[Source]) -> Found:
    """Read one cluster's quotas: the first day's are guarantees, each later change an event at that day's start.

    A virtual cluster uses its own GPUs only (it borrows none). There are as many nodes as the largest day needs.
    Raises ``ConfigError`` for a second file, dates that do not rise, and totals that are not the sum.
    """
    if len(sources) > 1:
        raise sources[1].error(None, "a second cluster's quotas.", "Import one cluster at a time.")
    source = sources[0]
    names = source.header[1:-1]
    if len(set(names)) < len(names):
        raise source.error(1, "a virtual cluster has two columns.", "Keep one of them.")
    rows = read_rows(source, source.header)
    days = [_date(row) for row in rows]
    partitions = [FoundPartition(name, borrow=0) for name in names]
    standing = [-1] * len(names)
    largest = 0
    for row, day, before in zip(rows, days, [None, *days], strict=False):
        if before is not None and day <= before:
            raise source.error(row.line, f"{day} does not come after the line before.", "Sort the lines by date.")
        quotas = [row.whole(name) for name in names]
        if sum(quotas) != row.whole("total"):
            raise source.error(
                row.line, f"the quotas sum to {sum(quotas)}, total is {row.cells['total']}.", "Correct the line."
            )
        largest = max(largest, sum(quotas))
        time_s = (day - days[0]).days * DAY_S
        for partition, held, quota in zip(partitions, standing, quotas, strict=True):
            if held < 0:
                partition.guarantee = quota
            elif quota != held:
                partition.events.append(QuotaEvent(time_s, guarantee=quota, borrow=0))
        standing = quotas
    found = Found(partitions=partitions, source="GPUs per virtual cluster and day of SenseTime Helios (SC'21)")
    found.nodes = _nodes(source, largest)
    found.notes = _notes(partitions, days, largest, len(found.nodes))
    return found


def _nodes(source: Source, gpus: int) -> list[FoundNode]:
    count = -(-gpus // GPUS_PER_NODE)
    if not 1 <= count <= MAX_NAMES:
        raise source.error(None, f"{gpus:,} GPUs at most on any day.", "Check the quotas.")
    return [FoundNode(f"node{index:03d}", gpus=GPUS_PER_NODE) for index in range(count)]


def _date(row: Row) -> date:
    text = row.text("date")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise row.source.error(row.line, f"{text!r} is no date.", "Write 2020-04-01.") from None


def _notes(partitions: Sequence[FoundPartition], days: Sequence[date], largest: int, nodes: int) -> list[str]:
    events = sum(len(each.events) for each in partitions)
    times = {event.time_s for each in partitions for event in each.events}
    never = [each.name for each in partitions if not each.guarantee and not any(e.guarantee for e in each.events)]
    notes = [
        f"{len(partitions)} virtual clusters on {len(days)} days; {events} changes of quota on {len(times)} days",
        f"time 0 of the quotas is {days[0]}: simulate a trace that begins on that day, or shift the changes' times",
        f"assumed: {nodes} nodes of {GPUS_PER_NODE} GPUs, enough for the day with the most quota ({largest:,} GPUs);"
        " the file has quotas, no machines",
        "a virtual cluster borrows nothing (borrow: 0), as in Helios; delete that key to let it",
    ]
    if never:
        notes.append(f"{len(never)} virtual clusters never have GPUs, their jobs are rejected: {', '.join(never)}")
    return notes


IMPORTER = Importer(
    "helios-quota", "Helios' cluster_gpu_number.csv (date, a column a virtual cluster, total)", recognises, read
)
