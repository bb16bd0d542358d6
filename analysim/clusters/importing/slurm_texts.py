"""The notations of Slurm: key=value records, GRES and TRES, host lists, times, and tables between bars."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from analysim.clusters.importing.found import Tally
from analysim.clusters.importing.sources import Source
from analysim.config.nodes import expand_names
from analysim.errors import ConfigError

_PAIR = re.compile(r"(?:^|(?<=\s))([A-Za-z_][\w:/]*)=")
_OUTSIDE = re.compile(r",(?![^(\[]*[)\]])")
_SLICE = re.compile(r"(?:^|[_:.-])\d+g\.\d+gb", re.IGNORECASE)
_COUNT = re.compile(r"([0-9]+)([KkMmGg]?)")
_DAYS = re.compile(r"(?:([0-9]+)-)?([0-9]+)(?::([0-9]+))?(?::([0-9]+))?")
_NONE = ("", "(null)", "none", "n/a", "unlimited", "infinite", "unknown")


@dataclass(frozen=True)
class Record:
    """A record of key=value pairs, or a row of a table; keys are in lower case."""

    source: Source
    line: int
    values: Mapping[str, str] = field(default_factory=dict)

    def get(self, *keys: str) -> str:
        """The first of these values that says something; empty where none does."""
        for key in keys:
            value = self.values.get(key, "")
            if value.lower() not in _NONE:
                return value
        return ""

    def number(self, key: str) -> float | None:
        """A value as a number, without what sinfo appends (``250+``). Raises ``ConfigError``."""
        text = self.get(key).rstrip("+")
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 0 <= value < 1e15:
            raise self.error(f"{key} is {text!r}, no number.")
        return value

    def whole(self, key: str) -> int | None:
        """A value as a whole number. Raises ``ConfigError``."""
        value = self.number(key)
        return None if value is None else int(value)

    def names(self, *keys: str) -> list[str]:
        """Names of a host list. Raises ``ConfigError``."""
        text = self.get(*keys)
        if not text:
            return []
        try:
            return expand_names(text)
        except ConfigError as error:
            raise self.error(error.message.removesuffix(".") + ".") from None

    def error(self, problem: str) -> ConfigError:
        """Make the error that names the file and the line where this record begins."""
        return self.source.error(self.line, problem, "Correct the file, or make it again.")


def pairs(text: str) -> dict[str, str]:
    """Take ``Key=value`` pairs apart; a value goes to the next key, and of a key that comes twice the first counts."""
    found: dict[str, str] = {}
    matches = list(_PAIR.finditer(text))
    for index, match in enumerate(matches):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        found.setdefault(match[1].lower(), text[match.end() : end].strip().strip('"'))
    return found


def shown_records(source: Source) -> Iterator[Record]:
    """Records of ``scontrol show``: each begins at a line's start, further lines are indented."""
    start, parts = 0, list[str]()
    for number, line in [*source.numbered(), (0, "")]:
        if line[:1].isspace() and line.strip() and parts:
            parts.append(line)
            continue
        if parts:
            yield Record(source, start, pairs(" ".join(parts)))
        start, parts = number, [line] if line.strip() else []


def configured_records(source: Source) -> Iterator[Record]:
    """Lines of a configuration file: comments taken off, lines that end in a backslash joined."""
    start, held = 0, ""
    for number, line in [*source.numbered(), (0, "")]:
        text = line.split("#", 1)[0].rstrip()
        start = start if held else number
        if text.endswith("\\"):
            held += text[:-1] + " "
            continue
        if (held + text).strip():
            yield Record(source, start, pairs(held + text))
        held = ""


def bar_records(source: Source) -> Iterator[Record]:
    """Rows of ``sacctmgr -P`` (or ``-p``). Raises ``ConfigError`` for a row with another number of fields."""
    keys: list[str] = []
    for number, line in source.numbered():
        if not line.strip():
            continue
        fields = [each.strip() for each in line.rstrip("\n").split("|")]
        if not keys:
            keys = [each.lower().replace(" ", "") for each in fields]
            continue
        if len(fields) != len(keys):
            raise source.error(
                number, f"{len(fields)} fields, the header has {len(keys)}.", "Is the file whole? Was -P given?"
            )
        yield Record(source, number, dict(zip(keys, fields, strict=True)))


def read_gres(text: str, tally: Tally) -> dict[str, int]:
    """GPUs by type in ``gpu:a100:8(S:0-1),gpu:2``; the empty type is a GPU without one. Other GRES are counted."""
    gpus: dict[str, int] = {}
    for item in _OUTSIDE.split(text):
        parts = [part for part in item.split("(")[0].strip().split(":") if part != "no_consume"]
        if parts[0].lower() in _NONE:
            continue
        count = _COUNT.fullmatch(parts[-1]) if len(parts) > 1 else None
        name = ":".join(parts[1:-1] if count else parts[1:])
        if parts[0] != "gpu":
            tally.add("nodes offer other GRES than GPUs, left out", parts[0])
        elif _SLICE.search(name):
            tally.add("entries of MIG slices, which are no whole GPUs, left out", name)
        else:
            gpus[name] = gpus.get(name, 0) + (int(count[1]) if count else 1)
    return gpus


def read_tres(text: str) -> dict[str, str]:
    """TRES by name in ``cpu=32,mem=500G,gres/gpu=4,gres/gpu:a100=4``."""
    items = (item.partition("=") for item in text.split(",") if "=" in item)
    return {name.strip().lower(): value.strip() for name, _, value in items}


def tres_gpus(record: Record, key: str) -> tuple[int | None, dict[str, int], list[str]]:
    """GPUs that a TRES limit names: in all, by type, and the names of what else it limits. Raises ``ConfigError``."""
    total, by_type, others = None, dict[str, int](), list[str]()
    for name, value in read_tres(record.get(key)).items():
        if name != "gres/gpu" and not name.startswith("gres/gpu:"):
            others.append(name)
            continue
        if not value.isdecimal():
            raise record.error(f"{key} has {name}={value}, no number of GPUs.")
        if name == "gres/gpu":
            total = int(value)
        else:
            by_type[name.partition(":")[2]] = int(value)
    return total, by_type, others


def is_slice(name: str) -> bool:
    """Whether a GPU type is the name of a MIG profile, such as ``a100_1g.10gb``."""
    return bool(_SLICE.search(name))


def read_time(record: Record, key: str) -> int | None:
    """A time limit in seconds: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S; None where unlimited.

    Raises ``ConfigError``.
    """
    text = record.get(key)
    if not text:
        return None
    match = _DAYS.fullmatch(text)
    if not match:
        raise record.error(f"{key} is {text!r}, no time limit.")
    days, *rest = match.groups()
    given = [int(each) for each in rest if each is not None]
    if days is not None:
        hours, minutes, seconds = [*given, 0, 0][:3]
    elif len(given) == 1:
        hours, minutes, seconds = 0, given[0], 0
    else:
        hours, minutes, seconds = [0, *given][-3:]
    return int(days or 0) * 86_400 + hours * 3_600 + minutes * 60 + seconds
