"""Which formats there are, and which of them a file is in."""

from __future__ import annotations

from pathlib import Path

from analysim.errors import TraceError, UserError
from analysim.spelling import suggest
from analysim.traces.readers import (
    acme,
    chronus,
    gavel,
    helios,
    kubernetes,
    muri,
    openb,
    pai,
    philly,
    slurm,
    slurm_json,
    spot,
    supercloud,
    swf,
    tiresias,
)
from analysim.traces.readers.format import Format, take_sample
from analysim.traces.readers.not_jobs import describe_other
from analysim.traces.readers.tables import has_columns
from analysim.traces.schema import COLUMNS

FORMATS: tuple[Format, ...] = (
    acme.CONVERTED,
    acme.FORMAT,
    chronus.FORMAT,
    gavel.FORMAT,
    helios.DERIVED,
    helios.FORMAT,
    kubernetes.FORMAT,
    muri.FORMAT,
    openb.FORMAT,
    openb.YAML,
    pai.FORMAT,
    philly.DERIVED,
    philly.FORMAT,
    slurm.FORMAT,
    slurm_json.FORMAT,
    spot.FORMAT,
    supercloud.FORMAT,
    swf.FORMAT,
    tiresias.FORMAT,
)
"""All formats but our own schema, which is what a file in none of them is read as."""

OWN_FORMATS = ("csv", "parquet")
"""Names of our own schema as text and as Parquet."""

_OWN_COLUMNS = [column.name for column in COLUMNS if column.required or column.kind == "id"]
_JSON = ("kubernetes", "philly", "slurm-json")


def title_of(name: str) -> str:
    """Say what the format called ``name`` is."""
    return next((each.title for each in FORMATS if each.name == name), "a table in the schema of AnalySIM")


def find_format(path: Path, name: str | None = None) -> Format | None:
    """Return the format called ``name``, or the one that a file's content shows; None for our own schema,
    whose columns come first: other formats know theirs by some of them.

    Raises ``UserError`` for an unknown name, ``TraceError`` for a file that two formats claim or that holds no
    jobs but nodes, quotas or switches.
    """
    if name in OWN_FORMATS:
        return None
    if name is not None:
        by_name = {each.name: each for each in FORMATS}
        if name not in by_name:
            raise UserError(f"There is no trace format {name!r}.", suggest(name, [*OWN_FORMATS, *by_name], 40))
        return by_name[name]
    if not path.is_file():
        return None
    sample = take_sample(path)
    if has_columns(sample.header, *_OWN_COLUMNS):
        return None
    found = [each for each in FORMATS if each.recognises(sample)]
    other = describe_other(sample) if not found else None
    if other is not None:
        what, remedy = other
        raise TraceError(f"{path} is {what}.", remedy.replace("FILE", str(path)))
    if len(found) > 1:
        names = " and ".join(each.name for each in found)
        raise TraceError(f"{path} could be {names}.", f"Say which with --trace-format {found[0].name}.")
    if not found and sample.begins_json:
        names = ", ".join(_JSON)
        raise TraceError(f"{path} is JSON, but in no format that is known by it.", f"See that it is whole ({names}).")
    return found[0] if found else None
