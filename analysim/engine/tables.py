"""From the ledger's integers to the tables of a run, at the edges in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.jobs import NOWHERE, Workload
from analysim.ledger import format_mask
from analysim.plan.blocked import REASONS
from analysim.tables import DECISIONS, RUN, SEGMENT_KINDS, STATES, SUSPEND, RunTables
from analysim.units import GPU_MILLI, MICROSECONDS, SPEED_ONE

if TYPE_CHECKING:
    from analysim.engine.simulation import Simulation

Integers = npt.NDArray[np.int64]


def build_tables(simulation: Simulation) -> RunTables:
    """Make every table of the run but the timeline, which is computed from the others."""
    jobs = _jobs(simulation)
    return RunTables(
        jobs=jobs,
        segments=_segments(simulation),
        capacity=_capacity(simulation),
        decisions=_decisions(simulation),
        timeline=pd.DataFrame(),
        rejected=_rejected(simulation, jobs),
        notes=_notes(simulation),
    )


def _seconds(values: Integers, absent: int | None = None) -> npt.NDArray[np.float64]:
    """Microseconds to seconds; ``absent`` becomes NaN."""
    result: npt.NDArray[np.float64] = values / MICROSECONDS
    if absent is not None:
        result[values == absent] = np.nan
    return result


def _labels(codes: Integers, names: list[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype=object))


def _jobs(simulation: Simulation) -> pd.DataFrame:
    workload = simulation.workload
    frame = workload.frame
    count = workload.count
    ends = _ends(simulation)
    rank = ends[:, 0]
    state = np.full(count, STATES.index("rejected"), np.int64)
    first = np.full(count, -1, np.int64)
    end = np.full(count, -1, np.int64)
    waited, preemptions, migrations = (np.zeros(count, np.int64) for _ in range(3))
    for column, target in enumerate((first, end, state, waited, preemptions, migrations), start=1):
        target[rank] = ends[:, column]
    submit = workload.submit_us
    finished = (state == STATES.index("completed")) | (state == STATES.index("killed"))
    jct = np.where(finished, end - submit, -1)
    held = _held(simulation, state, end, submit, waited)
    table = {
        "job_id": frame["job_id"].to_numpy(),
        "submit_time_s": _seconds(submit),
        "first_start_time_s": _seconds(first, -1),
        "end_time_s": _seconds(end, -1),
        "num_gpus": _whole(frame["gpu_milli"].to_numpy(np.int64)),
        "tenant": frame["tenant"].to_numpy(),
        "partition": frame["partition"].to_numpy(),
        "state": _labels(state, list(STATES)),
        "wait_s": np.where(first >= 0, (first - submit) / MICROSECONDS, np.nan),
        "total_wait_s": _seconds(waited),
        "jct_s": _seconds(jct, -1),
        "preemptions": preemptions,
        "migrations": migrations,
        "resizes": _resizes(simulation),
        "held_s": _seconds(held),
        **_given(workload, frame),
    }
    return pd.DataFrame(table)


def _resizes(simulation: Simulation) -> Integers:
    """How often each job was given another number of GPUs while it ran."""
    counts = np.zeros(simulation.workload.count, np.int64)
    for rank, count in simulation.resizes.items():
        counts[rank] = count
    return counts


def _ends(simulation: Simulation) -> Integers:
    """How every admitted job ended, plain ones spelt out."""
    ledger = simulation.ledger
    rows = ledger.plain.array()
    first_of_gang = np.concatenate([[True], rows[1:, 0] != rows[:-1, 0]])[: len(rows)]
    rank, start, end, _, _ = rows[first_of_gang].T
    nothing = np.zeros(len(rank), np.int64)
    code = np.full(len(rank), STATES.index("completed"), np.int64)
    waited = start - simulation.workload.submit_us[rank]
    plain = np.column_stack([rank, start, end, code, waited, nothing, nothing])
    return np.concatenate([ledger.ends.array(), plain])


def _held(simulation: Simulation, state: Integers, end: Integers, submit: Integers, waited: Integers) -> Integers:
    """Time for which a job held its GPUs: its life less its waits."""
    stop = np.where(state == STATES.index("unfinished"), simulation.finished_us, end)
    alive = (state != STATES.index("rejected")) & (submit < stop)
    return np.where(alive, stop - submit - waited, 0)


def _whole(gpu_milli: Integers) -> npt.NDArray[Any]:
    """GPUs as whole numbers where all are whole."""
    if (gpu_milli % GPU_MILLI == 0).all():
        return gpu_milli // GPU_MILLI
    return gpu_milli / GPU_MILLI


def _given(workload: Workload, frame: pd.DataFrame) -> dict[str, Any]:
    """The columns that the trace gave, in seconds and whole units."""

    def optional(name: str) -> npt.NDArray[np.float64]:
        return _seconds(frame[name].to_numpy(np.int64), -1)

    return {
        "leaf": _labels(workload.leaf_of, workload.leaf_names),
        "duration_s": _seconds(workload.duration_us),
        "gpus_per_node": frame["gpus_per_node"].to_numpy(np.int64),
        "gpu_type": frame["gpu_type"].to_numpy(),
        "cpus": frame["cpu_milli"].to_numpy(np.int64) / 1_000,
        "memory_gb": frame["memory_mb"].to_numpy(np.int64) / 1_024,
        "user": frame["user"].to_numpy(),
        "priority": frame["priority"].to_numpy(np.int64),
        "preemptible": frame["preemptible"].to_numpy(bool),
        "estimated_duration_s": optional("estimate_us"),
        "cancel_time_s": optional("cancel_us"),
        "checkpoint_s": optional("checkpoint_us"),
        "restart_s": optional("restart_us"),
        "status": frame["status"].to_numpy(),
        "model": frame["model"].to_numpy(),
        "deadline_s": optional("deadline_us"),
        "min_gpus": frame["min_gpus"].to_numpy(np.int64),
        "max_gpus": frame["max_gpus"].to_numpy(np.int64),
        "throughput": frame["throughput"].to_numpy(),
        "recorded_start_time_s": optional("recorded_start_us"),
        "recorded_end_time_s": optional("recorded_end_us"),
        "recorded_node": frame["recorded_node"].to_numpy(),
    }


def _segment_rows(simulation: Simulation) -> Integers:
    """All segments by (end, start, rank), plain ones spelt out."""
    ledger = simulation.ledger
    rank, start, end, node, mask = ledger.plain.array().T
    same = np.ones(len(rank), np.int64)
    plain = np.column_stack([rank, start, end, node, mask, same * RUN, same * SPEED_ONE, end - start])
    rows = np.concatenate([ledger.segments.array(), plain])
    return rows[np.lexsort((rows[:, 3], rows[:, 0], rows[:, 1], rows[:, 2]))]


def _segments(simulation: Simulation) -> pd.DataFrame:
    ledger = simulation.ledger
    rows = _segment_rows(simulation)
    rank, start, end, node, mask, kind, speed, progress = rows.T
    demand = simulation.workload.demand_of[rank]
    masks = ledger.mask_list()
    gpus_of = np.array([number.bit_count() for number in masks] + [0], np.int64)
    taken = np.where(kind == SUSPEND, 0, gpus_of[mask])
    demands = simulation.workload.demands
    cpu_of = np.array([each.cpu_milli for each in demands] + [0], np.int64)
    memory_of = np.array([each.memory_mb for each in demands] + [0], np.int64)
    whole = np.array([each.gpus == 0 for each in demands] + [False], bool)
    share = np.where(whole[demand], 1, taken) * (node != NOWHERE)
    milli_of = np.array([each.share for each in demands] + [GPU_MILLI], np.int64)
    names = [each.name for each in simulation.topology.nodes]
    return pd.DataFrame(
        {
            "job_id": simulation.workload.frame["job_id"].to_numpy()[rank],
            "start_s": _seconds(start),
            "end_s": _seconds(end),
            "node": _labels(np.where(node == NOWHERE, len(names), node), [*names, ""]),
            "gpus": _whole(taken * milli_of[demand]),
            "gpu_ids": _labels(mask, [format_mask(number) for number in masks]),
            "kind": _labels(kind, list(SEGMENT_KINDS)),
            "speed": speed / SPEED_ONE,
            "progress_s": _seconds(progress),
            "cpus": cpu_of[demand] * share / 1_000,
            "memory_gb": memory_of[demand] * share / 1_024,
        }
    )


def _capacity(simulation: Simulation) -> pd.DataFrame:
    nodes = simulation.topology.nodes
    return pd.DataFrame(
        {
            "time_s": np.full(len(nodes), simulation.start_us / MICROSECONDS),
            "node": [node.name for node in nodes],
            "node_type": [node.type_name for node in nodes],
            "gpu_type": [(node.type.gpu_type or "gpu") if node.type.gpus else "" for node in nodes],
            "rack": [node.rack for node in nodes],
            "pod": [node.pod for node in nodes],
            "gpus": np.array([node.type.gpus for node in nodes], np.int64),
            "cpus": np.array([node.type.cpus for node in nodes], float),
            "memory_gb": np.array([node.type.memory_gb for node in nodes], float),
        }
    )


def _decisions(simulation: Simulation) -> pd.DataFrame:
    """All decisions by (time, rank); first starts come from how the jobs ended."""
    rows = simulation.ledger.decisions.array()
    ends = _ends(simulation)
    reserved = rows[rows[:, 2] == DECISIONS.index("reserve")]
    reserved_from = np.full(simulation.workload.count, np.iinfo(np.int64).max)
    np.minimum.at(reserved_from, reserved[:, 1], reserved[:, 0])
    began = ends[(ends[:, 1] >= 0) & (ends[:, 1] < reserved_from[ends[:, 0]])]
    start = np.full(len(began), DECISIONS.index("start"), np.int64)
    rows = np.concatenate([rows, np.column_stack([began[:, 1], began[:, 0], start, -np.ones_like(start)])])
    time, rank, action, reason = rows[np.lexsort((rows[:, 1], rows[:, 0]))].T
    table = pd.DataFrame(
        {
            "time_s": _seconds(time),
            "job_id": simulation.workload.frame["job_id"].to_numpy()[rank],
            "action": _labels(action, list(DECISIONS)),
            "reason": _labels(np.where(reason < 0, len(REASONS), reason), [*REASONS, ""]),
            "detail": "",
        }
    )
    changes = simulation.ledger.quota_changes
    if not changes:
        return table
    quota = pd.DataFrame(
        {
            "time_s": [time / MICROSECONDS for time, _ in changes],
            "job_id": "",
            "action": "quota",
            "reason": "",
            "detail": [name for _, name in changes],
        }
    )
    both = pd.concat([quota.astype(object), table.astype(object)], ignore_index=True)
    return both.sort_values("time_s", kind="stable", ignore_index=True)


def _rejected(simulation: Simulation, jobs: pd.DataFrame) -> pd.DataFrame:
    rejections = simulation.workload.rejections
    ranks = sorted(rejections)
    columns = ["job_id", "submit_time_s", "num_gpus", "partition", "tenant"]
    table = jobs.iloc[ranks][columns].reset_index(drop=True)
    table["reason"] = [rejections[rank] for rank in ranks]
    return table


def _notes(simulation: Simulation) -> pd.DataFrame:
    notes = simulation.ledger.notes
    return pd.DataFrame(
        {
            "time_s": np.array([time / MICROSECONDS for time, _, _ in notes], float),
            "name": [name for _, name, _ in notes],
            "value": np.array([value for _, _, value in notes], float),
        }
    )
