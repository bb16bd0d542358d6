"""Which figures a run and a comparison consist of, and under which names they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from analysim.report.bars import draw_tenants
from analysim.report.comparison import ComparedRun, draw_bars, draw_over_time, draw_size_classes, run_curves
from analysim.report.distributions import draw_distribution, size_curves
from analysim.report.measured import headline_jobs
from analysim.report.occupancy import draw_occupancy
from analysim.report.style import paper_style, save_figure, short_names
from analysim.report.timelines import draw_fragmentation, draw_queue, draw_utilisation
from analysim.tables import RunTables


def draw_run(
    tables: RunTables, summary: Mapping[str, Any], title: str, out: Path, caption: str = ""
) -> list[Path]:
    """Draw the figures of one run into the folder ``out``, each as PNG and SVG, and return their paths.

    jct_cdf, wait_cdf, utilisation, queue, fragmentation, tenants, occupancy. ``tables.timeline`` must be
    filled. ``title`` names the run behind the heading of each figure, ``caption`` stands below it: what a
    reader must know, such as an inferred cluster or what the policy knows. Raises ``RunFolderError`` where a
    file cannot be written.
    """
    jobs = headline_jobs(tables, summary)
    jct, wait = (partial(draw_distribution, size_curves(jobs, name), name) for name in ("jct_s", "wait_s"))
    figures = {
        "jct_cdf": ("Job completion time by job size", jct),
        "wait_cdf": ("Wait by job size", wait),
        "utilisation": ("Utilisation", partial(draw_utilisation, tables, summary)),
        "queue": ("Queue", partial(draw_queue, tables, summary)),
        "fragmentation": ("Fragmentation", partial(draw_fragmentation, tables, summary)),
        "tenants": ("Tenants", partial(draw_tenants, tables, summary)),
        "occupancy": ("Occupancy of nodes", partial(draw_occupancy, tables)),
    }
    return _write(figures, title, Path(out), caption)


def draw_comparison(
    runs: Sequence[tuple[str, RunTables, Mapping[str, Any]]], out: Path, caption: str = ""
) -> list[Path]:
    """Draw runs, as (label, tables, summary), side by side into the folder ``out`` and return the paths.

    comparison, comparison_jct_cdf, comparison_wait_cdf, comparison_utilisation, comparison_queue and
    comparison_sizes, each as PNG and SVG. Ratios are to the first run; without runs nothing is drawn. Raises
    ``RunFolderError``.
    """
    if not runs:
        return []
    names = short_names([label for label, _, _ in runs])
    compared = [ComparedRun(name, *run[1:]) for name, run in zip(names, runs, strict=True)]
    jct, wait = (partial(draw_distribution, run_curves(compared, name), name) for name in ("jct_s", "wait_s"))
    held = {"gpus_held": "GPUs held / up", "gpus_productive": "useful work / GPUs up"}
    queue = {"jobs_pending": "jobs waiting", "gpus_pending": "GPUs they ask for"}
    figures = {
        "comparison": ("Comparison", partial(draw_bars, compared)),
        "comparison_jct_cdf": ("Job completion time", jct),
        "comparison_wait_cdf": ("Wait", wait),
        "comparison_utilisation": ("Utilisation", partial(draw_over_time, compared, held, True)),
        "comparison_queue": ("Queue", partial(draw_over_time, compared, queue, False)),
        "comparison_sizes": ("Job completion time by job size", partial(draw_size_classes, compared)),
    }
    title = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return _write(figures, title, Path(out), caption)


def _write(
    figures: Mapping[str, tuple[str, Callable[[str, str], Figure]]], title: str, out: Path, caption: str
) -> list[Path]:
    paths: list[Path] = []
    with paper_style():
        for name, (heading, draw) in figures.items():
            paths += save_figure(draw(f"{heading}: {title}" if title else heading, caption), out, name)
    return paths
