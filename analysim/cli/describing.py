"""What ``analysim trace describe`` prints: the figures of a trace as tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysim.cli.figures import NOTHING, show_share
from analysim.cli.talk import print_table
from analysim.units import format_number, format_seconds

if TYPE_CHECKING:
    from analysim.traces import Trace

_APART = ("set_aside", "repaired", "priorities", "sizes", "durations", "arrivals", "statuses", "top_tenants")
"""Figures that are tables of their own, or told on stderr."""

_OF_GPUS = ("cpu_jobs", "gpu_hours", "mean_gpus", "median_gpus", "max_gpus", "demand")
_MOST_STATUSES = 12


def print_description(facts: Mapping[str, Any]) -> None:
    """Write the figures of a trace to stdout, the plain ones first."""
    print_table(list(_plain(facts)), header=False)
    if facts["sizes"]:
        print()
        print_table([["GPUs", "jobs", "share of jobs", "of GPU-time"], *map(_size, facts["sizes"])])
    _print_durations(facts["durations"])
    _print_arrivals(facts["arrivals"])
    if facts["top_tenants"]:
        print()
        head = ["tenants with most GPU-time", "jobs", "share of jobs", "GPU-hours", "of GPU-time"]
        print_table([head, *map(_tenant, facts["top_tenants"])])
    if facts["statuses"]:
        print()
        statuses = list(facts["statuses"].items())
        rows = [[status, f"{count:,}"] for status, count in statuses[:_MOST_STATUSES]]
        rest = sum(count for _, count in statuses[_MOST_STATUSES:])
        rows += [[f"({len(statuses) - _MOST_STATUSES} others)", f"{rest:,}"]] if rest else []
        print_table([["recorded status", "jobs"], *rows])


def print_rows(trace: Trace) -> None:
    """Write which rows of the file were set aside and repaired to stdout."""
    table = trace.account.table()
    columns = (table[name].tolist() for name in ("what", "reason", "first_row", "last_row"))
    rows = [[what, reason, f"{first:,}", f"{last:,}"] for what, reason, first, last in zip(*columns, strict=True)]
    print()
    if rows:
        print_table([["what", "reason", "first row", "last row"], *rows], left=2)
    else:
        print("no row was set aside or repaired")


def _plain(facts: Mapping[str, Any]) -> list[list[str]]:
    rows: list[list[str]] = []
    for key, value in facts.items():
        if key in _APART or (key == "lacks" and not value):
            continue
        if isinstance(value, Mapping):
            rows += [[f"{key}.{name}", show(name, each)] for name, each in value.items()]
        elif value is None and facts["lacks"] and key in _OF_GPUS:
            rows.append([key, "not told"])
        else:
            rows.append([key, show(key, value)])
    return rows


def show(key: str, value: object) -> str:
    """Write a figure by what its key says it is: seconds, a share, a number or text."""
    if value is None:
        return NOTHING
    if isinstance(value, (int, float)):
        write = format_seconds if key.endswith("_s") else show_share if key.endswith("_share") else format_number
        return write(value)
    return str(value)


def _size(row: Mapping[str, Any]) -> list[str]:
    return [row["gpus"], f"{row['jobs']:,}", show_share(row["jobs_share"]), show_share(row["gpu_time_share"])]


def _tenant(row: Mapping[str, Any]) -> list[str]:
    keys = ("jobs", "jobs_share", "gpu_hours", "gpu_time_share")
    return [row["tenant"], *(show(key, row[key]) for key in keys)]


def _print_durations(durations: Mapping[str, Any]) -> None:
    told = {name: row for name, row in durations.items() if row}
    if told:
        names = {"by_jobs": "by jobs", "by_gpu_time": "by GPU-time"}
        first = next(iter(told.values()))
        print()
        head = ["run time", *(key.removesuffix("_s") for key in first)]
        print_table([head, *([names[name], *map(format_seconds, row.values())] for name, row in told.items())])


def _print_arrivals(arrivals: Mapping[str, Any]) -> None:
    print(f"\njobs submitted by hour and by day ({arrivals['clock']})")
    hours: Sequence[int] = arrivals["by_hour"]
    print_table(
        [
            ["from hour", *(str(hour) for hour in range(0, 24, 2))],
            ["jobs", *(f"{hours[hour] + hours[hour + 1]:,}" for hour in range(0, 24, 2))],
        ]
    )
    print_table([["day", *arrivals["by_weekday"]], ["jobs", *(f"{n:,}" for n in arrivals["by_weekday"].values())]])
