"""Placement alone: jobs arrive, never leave and are tried once each; how much of the cluster do they come to hold?

The "inflation" experiment of Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 6, on any trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.cluster.capacity import Capacity
from analysim.cluster.partitions import PartitionTree
from analysim.cluster.topology import Topology
from analysim.cluster.watched import WatchedCapacity
from analysim.config.cluster import ClusterConfig
from analysim.config.run import RunConfig
from analysim.engine.admission import Admission
from analysim.errors import UserError
from analysim.jobs import Job, Workload
from analysim.plan.search import find_place
from analysim.policy.board import UNLIMITED
from analysim.policy.fragmentation import Fragmentation, typical_pods
from analysim.policy.placement import Placer
from analysim.policy.placers import PLACERS
from analysim.report.placing import draw_placing
from analysim.run.csv_table import write_csv
from analysim.run.folder import FIGURES, write_json
from analysim.traces.generation import Streams
from analysim.units import GPU_MILLI

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DEFAULT_LOAD = 1.3
"""GPUs asked for in all, to the GPUs of the cluster, as in the original experiment."""

MOST_LOAD = 100.0
"""A larger load is a slip of the pen, and would clone jobs until memory is full."""

LOADS = (80, 90, 100, 130)
"""Arrived loads, in per cent, at which results are told."""

PLACING_FILE, CURVES_FILE = "placing.json", "curves.csv"
"""What stands in the folder of an experiment, beside its figures."""

COLUMNS = (
    "placement",
    "seed",
    "arrived_load_percent",
    "allocated_percent",
    "fragmented_percent_of_capacity",
    "fragmentation_ratio",
)
"""Columns of the table of curves."""


@dataclass(frozen=True)
class Course:
    """One run: after each arrival the thousandths of GPUs that came, are held, and are fragmented.

    ``fragmented`` are thousandths too; ``failed`` jobs fitted nowhere; ``seconds`` is wall time.
    """

    placement: str
    seed: int
    arrived: Integers
    allocated: Integers
    fragmented: Floats
    capacity: int
    failed: int
    seconds: float = field(compare=False)

    @property
    def jobs(self) -> int:
        """How many jobs came."""
        return len(self.arrived)

    def curve(self) -> pd.DataFrame:
        """Average over the jobs whose arrived load rounds to the same whole per cent: the columns of ``COLUMNS``."""
        idle = self.capacity - self.allocated
        ratio = np.divide(self.fragmented, idle, out=np.full(self.jobs, np.nan), where=idle > 0)
        table = pd.DataFrame(
            {
                "arrived_load_percent": (200 * self.arrived + self.capacity) // (2 * self.capacity),
                "allocated_percent": self.allocated * 100 / self.capacity,
                "fragmented_percent_of_capacity": self.fragmented * 100 / self.capacity,
                "fragmentation_ratio": ratio,
            }
        )
        means = table.groupby("arrived_load_percent", sort=True).mean().reset_index()
        return means.assign(placement=self.placement, seed=self.seed)[list(COLUMNS)]


def check_load(load: float | None) -> None:
    """Raise ``UserError`` for a load that is not above 0, or absurdly high."""
    if load is not None and not 0 < load <= MOST_LOAD:
        raise UserError(f"The load is {load:g}.", f"Give one above 0, up to {MOST_LOAD:g}, such as 1.3.")


class Experiment:
    """A workload on a cluster, ready to be placed by any strategy with any seed.

    ``frame`` has the canonical columns of a trace. ``load`` is what arrives in all, to the cluster's GPUs; None: the
    jobs come as they stand in the trace, each once. Quotas do not bind; node sets of partitions do. Raises
    ``UserError`` where the cluster has no GPUs, the jobs ask for none, or the load is absurd.
    """

    def __init__(self, frame: pd.DataFrame, cluster: ClusterConfig, load: float | None = DEFAULT_LOAD) -> None:
        self.topology = Topology(cluster)
        self.capacity = self.topology.gpus * GPU_MILLI
        self.load = load
        self.asked: Integers = frame["gpu_milli"].to_numpy(np.int64)
        check_load(load)
        if not self.capacity:
            raise UserError(f"The cluster {cluster.name!r} has no GPUs to place jobs on.", "Name another --topology.")
        if not self.asked.any():
            raise UserError("No job of the trace asks for a GPU.", "Name a trace with GPU jobs.")
        config = RunConfig(trace="placing", unknown_partition="root")
        self.workload = Admission(self.topology, PartitionTree(self.topology), True, config).admit(frame)
        self.fragmentation = Fragmentation(self.topology, typical_pods(self.topology, self.workload))

    def arrivals(self, seed: int) -> Integers:
        """Give the rows of the trace in the order in which they arrive.

        All are shuffled; then random ones come again, until the next would pass the load. Of a workload above the
        load as many random jobs are left out as brings it down to that.
        """
        count = len(self.asked)
        if self.load is None:
            return np.arange(count)
        streams = Streams(seed)
        rows: Integers = streams("order of arrivals").permutation(count)
        limit = round(self.load * self.capacity)
        arrived = np.cumsum(self.asked[rows])
        if arrived[-1] > limit:
            return rows[: int(np.searchsorted(arrived, limit, side="right"))]
        drawn, left, draw = [rows], limit - int(arrived[-1]), streams("clones")
        while True:
            more = draw.integers(0, count, count)
            comes = np.cumsum(self.asked[more])
            if comes[-1] > left:
                drawn.append(more[: int(np.searchsorted(comes, left, side="right"))])
                return np.concatenate(drawn)
            drawn.append(more)
            left -= int(comes[-1])

    def run(self, placement: str, seed: int) -> Course:
        """Place the arrivals of a seed with a strategy, by its name.

        Raises ``UserError`` where the first job alone would pass the load, so that nobody comes.
        """
        began = time.perf_counter()
        rows = self.arrivals(seed)
        if self.load is not None and not len(rows):
            raise UserError(
                f"No job arrives at a load of {self.load:g} with seed {seed}: the first to come would pass it.",
                "Give a higher --load, a larger cluster, or --no-inflate.",
            )
        placer = PLACERS[placement](seed)
        placer.begin(self.topology, self.workload)
        board = _Course(self, WatchedCapacity(self.topology) if placer.watches else Capacity(self.topology))
        failed = board.place_all(placer, rows)
        return Course(
            placement,
            seed,
            np.cumsum(self.asked[rows]),
            np.array(board.allocated, np.int64),
            np.array(board.fragmented, np.float64) / max(self.fragmentation.total, 1),
            self.capacity,
            failed,
            time.perf_counter() - began,
        )


class _Course:
    """A run under way: what is held and fragmented after each arrival."""

    def __init__(self, experiment: Experiment, capacity: Capacity) -> None:
        self._workload = experiment.workload
        self._measure = experiment.fragmentation
        self._capacity = capacity
        self._of_node = [self._fragmented(node) for node in range(experiment.topology.size)]
        self.allocated: list[int] = []
        self.fragmented: list[int] = []

    def place_all(self, placer: Placer, rows: Integers) -> int:
        """Place jobs one after another and return how many fitted nowhere."""
        arrivals = self._arrivals(rows)
        demands, numbers = self._workload.demands, self._workload.demand_of[rows].tolist()
        held, lost, failed = 0, sum(self._of_node), 0
        hopeless = {-1}  # nothing is ever freed: what does not fit now never will
        for rank, number in enumerate(numbers):
            found = None
            if number not in hopeless:
                demand = demands[number].relaxed or demands[number]  # nobody waits for what it prefers
                found = find_place(self._capacity, Job(rank, 0, 0, demand, arrivals), placer, demand.options)
            if found is None:
                hopeless.add(number)
                failed += 1
            else:
                self._capacity.take(found[0], demand)
                held += demand.gpu_milli
                for node, _ in found[0]:
                    if node >= 0:
                        now = self._fragmented(node)
                        lost += now - self._of_node[node]
                        self._of_node[node] = now
            self.allocated.append(held)
            self.fragmented.append(lost)
        return failed

    def _arrivals(self, rows: Integers) -> Workload:
        """The jobs as they arrive, with ids of their own: a clone is another job."""
        frame = self._workload.frame.take(rows).reset_index(drop=True)
        return Workload(frame.assign(job_id=np.arange(len(rows))))

    def _fragmented(self, node: int) -> int:
        capacity, topology = self._capacity, self._capacity.topology
        cpu = capacity.cpu_milli[node] if topology.cpu_milli[node] >= 0 else UNLIMITED
        return self._measure.of_node(topology.gpu_type[node], cpu, capacity.free[node], capacity.partial[node].values())


def run_all(
    experiment: Experiment,
    placements: Sequence[str],
    seeds: Sequence[int],
    tell: Callable[[Course], None] | None = None,
) -> list[Course]:
    """Run every strategy with every seed; ``tell`` hears of each run when it is done."""
    courses = []
    for placement in placements:
        for seed in seeds:
            course = experiment.run(placement, seed)
            courses.append(course)
            if tell is not None:
                tell(course)
    return courses


def curves_of(courses: Sequence[Course]) -> pd.DataFrame:
    """Put the curves of several runs into one table with the columns ``COLUMNS``."""
    return pd.concat([course.curve() for course in courses], ignore_index=True)


def fill(curves: pd.DataFrame) -> pd.DataFrame:
    """Give every run a row for each whole per cent up to its last: where no job came, what was before holds on."""
    filled = []
    for _, curve in curves.groupby(["placement", "seed"], sort=False):
        values = curve.set_index("arrived_load_percent")[list(COLUMNS[3:])]
        whole = values.reindex(range(int(values.index.max()) + 1)).ffill().rename_axis("arrived_load_percent")
        who = {name: curve[name].iloc[0] for name in COLUMNS[:2]}
        filled.append(whole.reset_index().assign(**who)[list(COLUMNS)])
    return pd.concat(filled, ignore_index=True)


def shown_loads(curves: pd.DataFrame) -> list[int]:
    """Choose the loads (per cent) at which results are told: ``LOADS`` as far as they are reached, and the last."""
    last = int(curves.groupby(["placement", "seed"])["arrived_load_percent"].max().min())
    return [load for load in LOADS if load < last] + [last]


def summarise(courses: Sequence[Course]) -> list[dict[str, Any]]:
    """Average over the seeds of each placement: figures by load (per cent, as text), jobs that came and failed."""
    curves = curves_of(courses)
    loads = shown_loads(curves)
    filled = fill(curves)
    results = []
    for placement in dict.fromkeys(course.placement for course in courses):
        own = [course for course in courses if course.placement == placement]
        means = filled[filled["placement"] == placement].groupby("arrived_load_percent")[list(COLUMNS[3:])].mean()
        figures = {
            name: {str(load): None if np.isnan(value) else float(value) for load, value in means[name][loads].items()}
            for name in COLUMNS[3:]
        }
        results.append(
            {
                "placement": placement,
                "seeds": [course.seed for course in own],
                "jobs": sum(course.jobs for course in own) / len(own),
                "failed": sum(course.failed for course in own) / len(own),
                **figures,
            }
        )
    return results


def save(
    courses: Sequence[Course], facts: Mapping[str, Any], folder: Path, *, figures: bool
) -> None:
    """Write the record ``placing.json`` (``facts`` and results), ``curves.csv`` and the figure into a folder.

    Raises ``OSError`` or ``RunFolderError`` where the disk refuses.
    """
    curves = curves_of(courses)
    write_json({**facts, "results": summarise(courses)}, folder / PLACING_FILE)
    write_csv(curves, folder / CURVES_FILE)
    if figures:
        title = f"{facts['trace']} on {facts['topology']}"
        draw_placing(fill(curves), title, folder / FIGURES, _caption(courses, facts))


def _caption(courses: Sequence[Course], facts: Mapping[str, Any]) -> str:
    seeds = len({course.seed for course in courses})
    gpus = courses[0].capacity // GPU_MILLI
    order = "in the order of the trace" if facts["load"] is None else "in random order"
    text = f"{gpus:,} GPUs. Jobs arrive {order}, are tried once each and never leave."
    return text + (f" Mean of {seeds} seeds; bands: one standard deviation to each side." if seeds > 1 else "")
