"""Which column of a file is which column of the schema: the same name, or what the user says."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from analysim.errors import TraceError
from analysim.spelling import suggest
from analysim.traces.schema import BY_NAME, COLUMNS

_OTHER_NAMES = {
    "job_id": ("id", "jobid", "job", "job_name"),
    "submit_time": (
        "timestamp",
        "arrival_s",
        "arrival_time",
        "arrival",
        "submitted_time",
        "submitted",
        "submit",
    ),
    "duration": ("service_sec", "service_time", "run_time", "runtime", "run_time_s", "elapsed", "duration_s"),
    "num_gpus": ("gpu_num", "num_gpu", "gpu_count", "gpus", "ngpus", "n_gpus", "num_gpus_requested"),
}
"""Names that other traces use: suggested in messages, never assumed."""


def map_columns(path: str, header: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Pair schema names with the file's own names: ``columns`` first, then equal names.

    Raises ``TraceError`` for a name that the schema or the file lacks, and when submit_time, duration or
    num_gpus is not there.
    """
    for name, own in columns.items():
        if name not in BY_NAME:
            raise TraceError(
                f"--column {name}={own}: the schema has no column {name!r}.", suggest(name, BY_NAME, 30)
            )
        if own not in header:
            raise TraceError(
                f"--column {name}={own}: {path} has no column {own!r}.", suggest(own, header, 30)
            )
    mapped = {name: name for name in BY_NAME if name in header}
    mapped.update(columns)
    missing = [column.name for column in COLUMNS if column.required and column.name not in mapped]
    if missing:
        raise TraceError(*_missing(path, header, missing, set(mapped.values())))
    return mapped


def _missing(path: str, header: list[str], missing: list[str], taken: set[str]) -> tuple[str, str]:
    what = f"{path} has no column {', '.join(missing)}; it has {', '.join(header)}."
    free = [name for name in header if name not in taken]
    flags = []
    for name in missing:
        match = _closest(name, free)
        flags.append(f"--column {name}={match or 'YOUR_COLUMN'}")
        free = [each for each in free if each != match]
    return what, f"Name your own: {' '.join(flags)}"


def _closest(name: str, header: list[str]) -> str:
    lowered = {own.lower().replace(" ", "_"): own for own in reversed(header)}
    for other in (name, *_OTHER_NAMES.get(name, ())):
        if other in lowered:
            return lowered[other]
    close = get_close_matches(name, lowered, n=1)
    return lowered[close[0]] if close else ""


def ignored_note(header: list[str], mapped: Mapping[str, str]) -> list[str]:
    """Say which columns of the file are not used, in one line, with what they may have been meant for."""
    used = set(mapped.values())
    unused = [name for name in header if name not in used]
    if not unused:
        return []
    free = [name for name in BY_NAME if name not in mapped]
    told = []
    for name in unused:
        close = get_close_matches(name.lower(), free, n=1, cutoff=0.8)
        told.append(f"{name} (did you mean {close[0]}?)" if close else name)
    one = len(unused) == 1
    return [f"Column{' ' if one else 's '}{', '.join(told)} {'is' if one else 'are'} not used."]
