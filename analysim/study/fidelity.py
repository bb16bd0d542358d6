"""How near a simulation comes to what its trace recorded, and where the record does not fit the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.cluster.partitions import PartitionTree
from analysim.cluster.topology import Topology
from analysim.config.cluster import ClusterConfig
from analysim.errors import TraceError, UserError
from analysim.metrics.agreement import Busy, Spans, kolmogorov_smirnov, quantiles_s, wasserstein_s
from analysim.metrics.integers import NEVER, REJECTED, Integers, Record, to_microseconds
from analysim.metrics.job_figures import mean_s
from analysim.run.folder import FIDELITY_FIGURE, FIDELITY_FILE, FIGURES, write_json
from analysim.run.inputs import Inputs
from analysim.study.oversubscription import gpus_of, over_nodes, over_partitions, peak_of, share_of_time_above
from analysim.study.runs import Run, caption
from analysim.units import MICROSECONDS, format_seconds

LONG_WAIT_S = 600.0
"""Recorded waits are long when their median or their mean is above this."""

IDLE_SHARE = 0.5
"""A simulated cluster is mostly idle when it is busy to less than this share, by time and GPU."""

LISTED = 10
"""Late jobs of a replay that are listed one by one."""

_LATE, _ELSEWHERE = "late: ", "elsewhere"


@dataclass(frozen=True)
class Fidelity:
    """A comparison with the record: ``report`` as ``--json`` prints it, the rest for its figure.

    Waits are in microseconds, of the compared jobs: those with GPUs, a recorded and a simulated start.
    """

    report: dict[str, Any]
    recorded_wait_us: Integers
    simulated_wait_us: Integers
    busy: Busy
    gpus: int


def check_recorded(inputs: Inputs) -> None:
    """Raise ``TraceError`` where no job with GPUs has a recorded start, ``UserError`` where its times were scaled."""
    if inputs.config.load is not None:
        raise UserError("fidelity compares with recorded times, and load changes them.", "Leave the load as it is.")
    frame = inputs.trace.frame
    if not ((frame["recorded_start_us"] >= 0) & (frame["gpu_milli"] > 0)).any():
        raise TraceError(
            f"{inputs.trace.path} has no recorded starts of jobs with GPUs to compare with.",
            "Name the column that has them with --column start_time=OWN.",
        )


def assess(run: Run) -> Fidelity:
    """Compare a run with the recorded starts of its trace."""
    jobs = _Jobs(run)
    topology = Topology(ClusterConfig.model_validate(run.record["topology"]["cluster"]))
    tree = PartitionTree(topology)
    everybody = np.flatnonzero(jobs.recorded)
    whole, busy = _compare(jobs, everybody, topology.gpus)
    report: dict[str, Any] = {
        "policy": run.policy,
        "knowledge": run.record["policy"]["knowledge"],
        "trace": run.trace,
        "topology": run.record["topology"]["name"],
        **whole,
        "without_recorded_start": int((jobs.with_gpus & ~jobs.recorded).sum()),
        "partitions": list(_partitions(jobs, tree)),
        "replay": _replay(run, jobs, tree) if run.record["policy"]["knowledge"] == "record" else None,
    }
    report["warnings"] = list(_warnings(report))
    compared = np.flatnonzero(jobs.compared)
    return Fidelity(report, jobs.recorded_wait[compared], jobs.simulated_wait[compared], busy, topology.gpus)


class _Jobs:
    """The jobs of a run in integers, with what was recorded and what was simulated of each."""

    def __init__(self, run: Run) -> None:
        table = run.jobs
        record = Record.of(run.tables)
        submit = record.jobs.submit_us
        recorded, first = (to_microseconds(table[f"{name}_time_s"]) for name in ("recorded_start", "first_start"))
        self.table = table
        self.with_gpus = record.jobs.gpus > 0
        self.recorded = (recorded != NEVER) & self.with_gpus
        self.rejected = record.jobs.state == REJECTED
        self.early = self.recorded & (recorded < submit)  # also those that ran before the window began
        self.started = self.recorded & (first != NEVER)
        self.compared = self.started & ~self.early
        self.recorded_wait, self.simulated_wait = recorded - submit, first - submit
        self.recorded_start, self.first_start = recorded, first
        self.leaves = table["leaf"].astype(str).to_numpy(object)
        begun = np.maximum(recorded, submit)
        # A share of a GPU counts as one that is busy.
        self.spans = Spans(begun, begun + record.jobs.duration_us, -(-record.jobs.gpus // record.parts))
        self.rows = record.rows
        self.held = Spans(record.rows.start_us, record.rows.end_us, -(-record.rows.gpus // record.parts))


def _compare(jobs: _Jobs, ranks: Integers, gpus: int) -> tuple[dict[str, Any], Busy]:
    """Compare waits and busy GPUs of jobs with a recorded start; ``gpus`` are those that they share.

    Rejected jobs hold no GPUs on either side: the simulated cluster cannot run them.
    """
    compared = ranks[jobs.compared[ranks]]
    waits = {"recorded": jobs.recorded_wait[compared], "simulated": jobs.simulated_wait[compared]}
    spans, recorded = jobs.spans.chosen(ranks), jobs.spans.chosen(ranks[~jobs.rejected[ranks]])
    ours = np.zeros(len(jobs.table), bool)
    ours[ranks] = True
    held = jobs.held.chosen(np.flatnonzero(ours[jobs.rows.job]))
    busy = Busy.of(recorded, held, int(spans.start_us.min()), int(spans.end_us.max()))
    mean_recorded, mean_simulated = busy.means
    difference = busy.mean_absolute_difference
    figures = {
        "jobs": len(compared),
        "without_start": int((~jobs.started[ranks]).sum()),
        "rejected": int(jobs.rejected[ranks].sum()),
        "started_before_submission": int(jobs.early[ranks].sum()),
        "wait_quantiles_s": {name: quantiles_s(values) for name, values in waits.items()},
        "mean_wait_s": {name: mean_s(values) for name, values in waits.items()},
        "ks": kolmogorov_smirnov(*waits.values()),
        "wasserstein_s": wasserstein_s(*waits.values()),
        "gpus": gpus,
        "busy_gpus": {"recorded": mean_recorded, "simulated": mean_simulated},
        "busy_gpus_mae": difference,
        "busy_share_mae": difference / gpus if difference is not None and gpus else None,
    }
    return figures, busy


def _partitions(jobs: _Jobs, tree: PartitionTree) -> Iterator[dict[str, Any]]:
    """Compare the jobs of each leaf; nothing where there are no partitions."""
    for leaf in tree.all if tree.has_partitions else ():
        ranks = np.flatnonzero(jobs.recorded & (jobs.leaves == leaf.full_name))
        if len(ranks):
            yield {"partition": leaf.full_name, **_compare(jobs, ranks, gpus_of(leaf, tree.topology))[0]}


def _replay(run: Run, jobs: _Jobs, tree: PartitionTree) -> dict[str, Any]:
    """Say where a replay could not do what was done."""
    notes = run.tables.notes
    names = notes["name"].astype(str)
    ranks = notes["value"].to_numpy(np.int64)
    reasons = np.full(len(jobs.table), "", object)
    late = names.str.startswith(_LATE).to_numpy()
    reasons[ranks[late]] = names[late].str.removeprefix(_LATE)
    delay = np.where(jobs.compared, jobs.first_start - jobs.recorded_start, 0)
    delayed = np.flatnonzero(delay > 0)
    reasons[delayed] = np.where(reasons[delayed] == "", "other", reasons[delayed])
    every = np.flatnonzero(jobs.recorded)
    spans = jobs.spans.chosen(every)
    peak, time_s = peak_of(spans)
    gpus = tree.topology.gpus
    return {
        "late": len(delayed),
        "never_started": int((jobs.recorded & ~jobs.started).sum()),
        "on_other_nodes": int((names == _ELSEWHERE).sum()),
        "by_reason": {str(reason): int(count) for reason, count in pd.Series(reasons[delayed]).value_counts().items()},
        "mean_delay_s": mean_s(delay[delayed]),
        "max_delay_s": float(delay[delayed].max()) / MICROSECONDS if len(delayed) else None,
        "first_late": [_late_job(jobs, rank, delay, reasons) for rank in _first(jobs, delayed)],
        "peak": {"gpus": gpus, "busy": peak, "time_s": time_s, "share_of_time_above": share_of_time_above(spans, gpus)},
        "partitions_over": list(over_partitions(spans, jobs.leaves[every], tree)) if tree.has_partitions else [],
        "nodes": over_nodes(spans, jobs.table["recorded_node"].astype(object).iloc[every], tree.topology),
    }


def _first(jobs: _Jobs, delayed: Integers) -> list[int]:
    order: list[int] = delayed[np.argsort(jobs.recorded_start[delayed], kind="stable")].tolist()
    return order[:LISTED]


def _late_job(jobs: _Jobs, rank: int, delay: Integers, reasons: npt.NDArray[Any]) -> dict[str, Any]:
    job_id = jobs.table["job_id"].iloc[rank]
    return {
        "job_id": int(job_id) if isinstance(job_id, (int, np.integer)) else str(job_id),
        "num_gpus": int(jobs.spans.gpus[rank]),
        "recorded_start_s": float(jobs.recorded_start[rank]) / MICROSECONDS,
        "delay_s": float(delay[rank]) / MICROSECONDS,
        "reason": str(reasons[rank]),
    }


def _warnings(report: dict[str, Any]) -> Iterator[str]:
    """Say what makes the comparison doubtful."""
    median, mean = report["wait_quantiles_s"]["recorded"]["p50"], report["mean_wait_s"]["recorded"]
    busy, gpus = report["busy_gpus"]["simulated"], report["gpus"]
    if mean is not None and max(median, mean) > LONG_WAIT_S and busy is not None and busy < IDLE_SHARE * gpus:
        yield (
            f"recorded waits are long (median {format_seconds(median)}, mean {format_seconds(mean)}) while the "
            f"simulated cluster is busy to {busy / gpus:.0%} only: the trace may be a part of the load, or the "
            "real cluster smaller or bound by rules that the topology lacks"
        )
    if report["without_start"]:
        rejected = f", {report['rejected']:,} of them rejected: busy GPUs leave these out" if report["rejected"] else ""
        yield f"{report['without_start']:,} jobs with a recorded start have none in the simulation{rejected}"


def write(fidelity: Fidelity, run: Run, folder: Path, *, figures: bool) -> None:
    """Write ``fidelity.json``, and its figure, into the folder of a run in the making."""
    write_json(fidelity.report, folder / FIDELITY_FILE)
    if figures:
        from analysim.report import draw_fidelity

        waits = (fidelity.recorded_wait_us / MICROSECONDS, fidelity.simulated_wait_us / MICROSECONDS)
        title = f"{run.policy}, {run.trace} on {run.record['topology']['name']}"
        draw_fidelity(
            run.label, waits, fidelity.busy, fidelity.gpus, title, folder / FIGURES, FIDELITY_FIGURE, caption(run)
        )
