"""Runs of one trace side by side: each figure against the first run, job by job and by job size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from analysim.errors import RunFolderError, UserError
from analysim.metrics import by_size, compare_summaries
from analysim.run.csv_table import write_csv
from analysim.run.folder import FIGURES, make_parents, remove_empty
from analysim.study.runs import Run, caption


def compare(runs: Sequence[Run | Path | str]) -> pd.DataFrame:
    """Put finished runs, or their folders, side by side: a row a run, each figure also against the first.

    Behind each figure stands ``<figure>_ratio``; ``paired.*`` compare job by job with the first run, see
    ``pair_jobs``. Raises ``UserError`` unless the runs are of the same jobs, ``RunFolderError`` for a folder
    that is no finished run.
    """
    finished = [run if isinstance(run, Run) else Run.read(run) for run in runs]
    check_same_jobs(finished)
    named = zip(labels(finished), finished, strict=True)
    table = compare_summaries([{"run": label, **run.summary} for label, run in named])
    pairs = pd.DataFrame([pair_jobs(finished[0], run) for run in finished])
    return table.join(pairs.astype(float).add_prefix("paired."))


def check_same_jobs(runs: Sequence[Run]) -> None:
    """Raise ``UserError`` unless all runs are of the same jobs: one trace, one window, one load."""
    if not runs:
        raise UserError("There are no runs to compare.", "Name policies, or run folders.")
    for run in runs[1:]:
        difference = next(
            (name for name in _workload(runs[0]) if _workload(run)[name] != _workload(runs[0])[name]), None
        )
        if difference:
            raise UserError(
                f"{run.folder or run.label} and {runs[0].folder or runs[0].label} are not of the same jobs:"
                f" their {difference} differs.",
                "Compare runs of one trace, window and load.",
            )


def _workload(run: Run) -> dict[str, Any]:
    config = run.record["config"]
    return {"trace": run.record["trace"]["sha256"], "window": config["window"], "load": config["load"]}


def pair_jobs(first: Run, other: Run) -> dict[str, float | None]:
    """Compare the JCT of each job that completed with GPUs in both runs.

    ``faster`` and ``slower`` are shares of these jobs, ``median_ratio`` the median of JCT over the first
    run's JCT; None where there is nothing to compare. Jobs at JCT 0 in the first run have no ratio.
    """
    columns = ["job_id", "jct_s"]
    sides = [
        run.jobs.loc[(run.jobs["state"] == "completed") & (run.jobs["num_gpus"] > 0), columns]
        for run in (first, other)
    ]
    pairs = sides[0].merge(sides[1], on="job_id", suffixes=("_first", "_other"))
    if pairs.empty:
        return {"faster": None, "slower": None, "median_ratio": None}
    before, after = pairs["jct_s_first"], pairs["jct_s_other"]
    ratio = (after[before > 0] / before[before > 0]).median()
    return {
        "faster": float((after < before).mean()),
        "slower": float((after > before).mean()),
        "median_ratio": None if pd.isna(ratio) else float(ratio),
    }


def size_table(runs: Sequence[Run]) -> dict[str, pd.DataFrame]:
    """Give each run's figures by GPU-size class, by label."""
    return {label: by_size(run.tables, run.measure) for label, run in zip(labels(runs), runs, strict=True)}


def labels(runs: Sequence[Run]) -> list[str]:
    """Name each run: policy and knowledge, and the folder too where one policy was run more than once."""
    names = [run.label for run in runs]
    return [
        name
        if names.count(name) == 1 or run.folder is None
        else f"{run.folder.name} ({run.record['policy']['knowledge']})"
        for name, run in zip(names, runs, strict=True)
    ]


def check_folder(target: Path, *, force: bool) -> None:
    """Raise ``RunFolderError`` when ``target`` is there and holds something, unless ``force``."""
    if not force and target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise RunFolderError(
            f"{target} already exists.", "Choose another --out, or write into it with --force."
        )


@contextmanager
def new_folder(target: Path, *, force: bool) -> Iterator[None]:
    """Make the folder of a comparison, which is to hold a run folder for each run; removed if it stays empty.

    Raises ``RunFolderError`` as ``check_folder`` does, and when it cannot be made.
    """
    check_folder(target, force=force)
    try:
        made = make_parents(target / FIGURES)
    except OSError as error:
        message = f"Cannot make the folder {target}: {error.strerror}."
        raise RunFolderError(message, "Choose another --out.") from error
    try:
        yield
    finally:
        remove_empty(made)


def save(runs: Sequence[Run], folder: Path, *, figures: bool) -> None:
    """Write ``comparison.csv``, ``comparison_by_size.csv`` and the comparison figures into ``folder``.

    Raises ``RunFolderError`` when they cannot be written.
    """
    sizes = pd.concat(size_table(runs), names=["run"]).reset_index(level="run")
    try:
        write_csv(compare(runs), folder / "comparison.csv")
        write_csv(sizes, folder / "comparison_by_size.csv")
    except OSError as error:
        raise RunFolderError(
            f"Cannot write into {folder}: {error.strerror}.", "Choose another --out."
        ) from error
    if figures:
        draw(runs, folder / FIGURES)


def draw(runs: Sequence[Run], out: Path) -> list[Path]:
    """Draw the comparison figures into ``out`` and return their paths."""
    from analysim.report import draw_comparison

    named = zip(labels(runs), runs, strict=True)
    return draw_comparison(
        [(label, run.tables, run.record["metrics"]) for label, run in named], out, caption(*runs)
    )
