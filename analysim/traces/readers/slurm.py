"""The accounting of Slurm as ``sacct --parsable`` or ``--parsable2`` writes it, with any choice of columns.

https://slurm.schedmd.com/sacct.html. The rules are those of ``docs/reference/formats/slurm.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analysim.errors import TraceError
from analysim.traces.log import Log
from analysim.traces.readers.amounts import Integers
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.slurm_cells import RESOURCES, Cells
from analysim.traces.readers.slurm_jobs import compute_all, fold
from analysim.traces.readers.slurm_lines import Layout, read_blocks, read_layout
from analysim.traces.readers.slurm_values import read_job
from analysim.traces.streams import open_text

Block = tuple[list[str], Sequence[int]]

LACKS = "AllocTRES or ReqTRES (sacct --format=...)"
EXPORT = (
    "Export with sacct --allusers --parsable2 --format=JobID,User,Account,Partition,QOS,State,Submit,Eligible,Start,"
    "End,ElapsedRaw,Timelimit,NNodes,AllocTRES,ReqTRES,NodeList."
)
_LENT = ("alloctres", "allocgres", "nodelist")
"""Columns in which the steps of a job tell what the job itself does not."""

_UNTOLD = ("", "None assigned", "Unknown")
STEP = "a step, folded into its job"
_HEADER = 1 << 16


def _recognises(sample: Sample) -> bool:
    """A first line of names between ``|``: JobID, and Submit, Start, State or Elapsed."""
    return bool(sample.lines) and read_layout(sample.lines[0]) is not None


def _read(path: Path, options: ReadOptions) -> Log:
    with open_text(path) as text:
        line, header = 1, text.readline(_HEADER)
        while header.isspace():
            line, header = line + 1, text.readline(_HEADER)
        header = header.rstrip("\n")
        layout = read_layout(header)
        if layout is None:
            raise TraceError(f"{path} does not begin with the names of sacct's columns.", EXPORT)
        _check_columns(path, layout)
        reader = _Reader(path, header, layout, options)
        for lines, numbers in _whole_jobs(read_blocks(path, text, layout, line + 1), layout):
            reader.read(lines, numbers)
    if not reader.cells.records.grown:
        raise TraceError(f"{path} has no jobs: only its header{' and steps' * bool(reader.rows)}.", EXPORT)
    return reader.finish()


def _check_columns(path: Path, layout: Layout) -> None:
    for names in (("Submit", "Start"), ("End", "Elapsed", "ElapsedRaw")):
        if layout.place(*map(str.lower, names)) is None:
            raise TraceError(f"{path} has no column {' or '.join(names)}.", EXPORT)


def _whole_jobs(blocks: Iterator[Block], layout: Layout) -> Iterator[Block]:
    """Go on to the next block with the last job of each, so that its steps come with it."""
    kept: list[str] = []
    kept_numbers: list[int] = []
    for lines, numbers in blocks:
        lines, numbers = kept + lines, [*kept_numbers, *numbers]
        last = next((at for at in range(len(lines) - 1, 0, -1) if "." not in _id_of(lines[at], layout)), 0)
        kept, kept_numbers = lines[last:], numbers[last:]
        if last:
            yield lines[:last], numbers[:last]
    if kept:
        yield kept, kept_numbers


def _id_of(line: str, layout: Layout) -> str:
    return line.split("|", layout.id_place + 1)[layout.id_place]


class _Reader:
    """Turns blocks of lines into compact columns."""

    def __init__(self, path: Path, header: str, layout: Layout, options: ReadOptions) -> None:
        self.layout = layout
        self.header = header.split("|")[layout.id_place]
        self.rows = 0
        self.cells = Cells(path, layout, options)
        self.account = self.cells.records.account
        self.lent = [place for name in _LENT if (place := layout.place(name)) is not None]
        self.steps: list[Integers] = []  # rows of steps
        self.strays: list[tuple[int, str]] = []  # rows and jobs of steps that do not follow their job

    def read(self, lines: list[str], numbers: Sequence[int]) -> None:
        """Read a block of records, which begins with a job unless that has been read long before."""
        ids = self._ids(lines)
        headers = [at for at, each in enumerate(ids) if each == self.header] if self.header in ids else []
        of_job = np.fromiter(("." not in each for each in ids), bool, len(ids))
        of_job[headers] = False
        rows = np.arange(self.rows + 1, self.rows + len(lines) + 1)
        self.rows += len(lines)
        places = np.flatnonzero(of_job).tolist()
        # One split of all lines takes half the time of one for each, and leaves no lists to be collected.
        fields = "|".join([lines[at] for at in places]).split("|") if places else []
        self._fold_steps(lines, ids, of_job, rows, fields)
        if places:
            self.cells.add(fields, rows[places], [numbers[at] for at in places])

    def _ids(self, lines: list[str]) -> list[str]:
        if self.layout.id_place == 0:
            return [line[: line.index("|")] for line in lines]
        return [_id_of(line, self.layout) for line in lines]

    def _fold_steps(
        self, lines: list[str], ids: list[str], of_job: npt.NDArray[np.bool_], rows: Integers, fields: list[str]
    ) -> None:
        """Leave steps out, but for what they tell and their job does not."""
        jobs = np.flatnonzero(of_job).tolist()
        others = np.flatnonzero(~of_job)
        owners = (np.cumsum(of_job) - 1)[others].tolist()
        own: list[int] = []
        borrowers: set[int] = set()
        headers: list[int] = []
        width = self.layout.separators + 1
        for at, owner in zip(others.tolist(), owners, strict=True):
            job = ids[at].partition(".")[0]
            if job == self.header:
                headers.append(at)
            elif owner < 0 or ids[jobs[owner]] != job:
                self.strays.append((int(rows[at]), job))
            else:
                own.append(at)
                told = [fields[owner * width + place] not in _UNTOLD for place in self.lent]
                if not all(told) or owner in borrowers:
                    borrowers.add(owner)
                    self._lend(fields, owner * width, lines[at].split("|"))
        self.steps.append(rows[own])
        self.account.put_aside("the header again", rows[headers])

    def _lend(self, fields: list[str], job: int, step: list[str]) -> None:
        """Fill what is not told; ``.extern`` has all that the job has, ``.batch`` its first node only."""
        whole = step[self.layout.id_place].endswith(".extern")
        for place in self.lent:
            if fields[job + place] in _UNTOLD or (whole and step[place] not in _UNTOLD):
                fields[job + place] = step[place]

    def finish(self) -> Log:
        """Fold what was read into jobs."""
        self.account.rows = self.rows
        self.account.put_aside(STEP, np.concatenate(self.steps))
        self._enter_strays()
        lacks = "" if any(name in self.layout.names for name in RESOURCES) else LACKS
        return fold(self.cells.finish(), lacks)

    def _enter_strays(self) -> None:
        """Steps that stand elsewhere than behind their job belong to it if it is in the file at all."""
        if not self.strays:
            return
        rows = np.array([row for row, _ in self.strays])
        jobs = compute_all(lambda job: (read_job(job) or (-1,))[0], [job for _, job in self.strays])
        known = np.isin(jobs, self.cells.records.grown["number"].whole())
        self.account.put_aside(STEP, rows[known])
        self.account.put_aside("a step whose job is not in the log", rows[~known])


FORMAT = Format("slurm-sacct", "Slurm accounting (sacct --parsable2)", _recognises, _read)
