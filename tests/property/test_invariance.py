"""What must not change a schedule: passing over shapes, the order of rows, useless what-ifs, hashing, the unit of time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysim.config.cluster import ClusterConfig, Costs
from analysim.policy import Order, Plan, Policy
from analysim.tables import RunTables
from tests.builders import ROOT, SECOND, run, same_tables, shipped
from tests.property.cases import PLACEMENTS, clusters, traces
from tests.property.chaos import Chaos

pytestmark = pytest.mark.slow

CHARGED = Costs(checkpoint_s=1, restart_s=2, checkpoint_interval_s=3)

POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo": ("fifo", {}),
    "fifo, skip": ("fifo", {"skip": True}),
    "sjf": ("sjf", {}),
    "sjf, skip": ("sjf", {"skip": True}),
    "srtf": ("srtf", {"factor": 1.2, "minimum_run": 1}),
    "preempt": ("preempt", {"thresholds": [4, 20], "minimum_run": 1, "promote": 2, "patience": 15, "look_every": 1}),
    "migrate": ("migrate", {"worth": 0.5, "look_every": 1}),
    "afs": ("afs", {"interval": 1, "minimum_run": 1}),
    "optimus": ("optimus", {"interval": 0, "minimum_run": 1, "powers": True}),
    "defragment": ("defragment", {"every": 2, "look_every": 1, "rest": 3, "worth_per_node": 60, "moves_per_hour": 6}),
    "easy": ("easy", {}),
    "conservative": ("conservative", {}),
    "conservative, depth": ("conservative", {"depth": 2}),
    "srsf": ("srsf", {"factor": 1.2, "minimum_run": 1}),
    "lsf": ("lsf", {}),
    "las": ("las", {"thresholds": [12, 24], "minimum_run": 1, "promote": 2}),
    "gittins": ("gittins", {"thresholds": [12, 24], "minimum_run": 1, "promote": 2}),
    "gittins, learning": ("gittins", {"minimum_run": 1, "completions": 3, "levels": 4, "window": 12}),
    "lottery": ("lottery", {"tickets": "priority"}),
    "lottery, skip": ("lottery", {"skip": True}),
    "deadline": ("deadline", {"margin": 1}),
    "deadline, waiting": ("deadline", {"preemptive": False}),
    "gandiva": ("gandiva", {"quantum": 1, "swaps": 3, "worth": 0.5, "look_every": 1}),
    "gandiva, by checkpoint": ("gandiva", {"quantum": 4, "share": 2, "mode": "checkpoint", "look_every": 1}),
    "themis": ("themis", {"lease": 4, "fairness": 0.5, "asked": 3}),
}
"""Ours, with options of the size of the random traces' times; thresholds that all numbers of GPUs in them divide."""


class Backfill(Policy):
    """The most important that fit, largest first among those; now and then room is made in the middle of a walk."""

    name = "backfill"
    largest = Order(lambda job: -job.gpus)
    important = Order(lambda job: -job.priority)

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending_by(self.important):
            if not plan.start(job):
                victims = plan.room(job, by=self.important, above=-job.priority, settled=SECOND)
                if victims and not plan.replace(victims, job):
                    plan.skip(job)
        for job in plan.pending_by(self.largest).fitting():
            plan.start(job)


def made(name: str) -> Policy:
    """A policy with its options by a name of ``POLICIES``, or ``backfill``."""
    if name == "backfill":
        return Backfill()
    file, options = POLICIES[name]
    return shipped(file)(options)


def without_blocked(tables: RunTables) -> RunTables:
    """Leave out why jobs did not start: what is passed over is not asked."""
    kept = tables.decisions[tables.decisions["action"] != "blocked"].reset_index(drop=True)
    return RunTables(**{**vars(tables), "decisions": kept})


@pytest.mark.parametrize("name", [*POLICIES, "backfill"])
@given(rows=traces(most=25, elastic=True), cluster=clusters(), placement=PLACEMENTS)
def test_passing_over_shapes_changes_nothing(
    name: str, rows: pd.DataFrame, cluster: ClusterConfig, placement: str
) -> None:
    left, right = (
        run(rows, cluster, made(name), skip_shapes=skipping, placement=placement, costs=CHARGED)
        for skipping in (True, False)
    )
    assert same_tables(without_blocked(left.tables), without_blocked(right.tables)) == []


@given(
    rows=traces(requests=True, elastic=True),
    cluster=clusters(),
    seed=st.integers(0, 2**32),
    placement=PLACEMENTS,
)
def test_useless_what_ifs_change_nothing(rows: pd.DataFrame, cluster: ClusterConfig, seed: int, placement: str) -> None:
    left, right = (
        run(rows, cluster, Chaos({"seed": seed, "useless": useless}), placement=placement, costs=CHARGED)
        for useless in (False, True)
    )
    assert same_tables(without_blocked(left.tables), without_blocked(right.tables)) == []


# -- the unit of time ------------------------------------------------------------------------------------------

TIMES = (
    *("submit_us", "duration_us", "estimate_us", "cancel_us", "checkpoint_us", "restart_us", "deadline_us"),
    "topology_wait_us",
)
TIME_OPTIONS = (
    *("minimum_run", "patience", "thresholds", "look_every", "margin", "interval", "every", "rest"),
    *("worth_per_node", "quantum", "lease"),
)


def doubled_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Twice as late and as long; -1 stays absent."""
    return rows.assign(**{name: rows[name].where(rows[name] < 0, 2 * rows[name]) for name in TIMES})


def doubled_cluster(cluster: ClusterConfig) -> ClusterConfig:
    """Quota changes and time limits twice as late; a model's microseconds are written back as seconds."""

    def rewrite(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                key: 2 * each / SECOND if key in ("time", "time_limit") and each is not None else rewrite(each)
                for key, each in value.items()
            }
        return [rewrite(each) for each in value] if isinstance(value, list) else value

    return ClusterConfig.model_validate(rewrite(cluster.model_dump(exclude_unset=True)))


def doubled_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that are times, twice as long."""
    return {
        name: ([2 * each for each in value] if isinstance(value, list) else 2 * value)
        if name in TIME_OPTIONS
        else value
        for name, value in options.items()
    }


def twice(tables: RunTables) -> RunTables:
    """Every time of a run, doubled."""
    changed: dict[str, Any] = {}
    for name, table in vars(tables).items():
        columns = [column for column in table.columns if column.endswith("_s")]
        changed[name] = table.assign(**{column: 2 * table[column] for column in columns})
    return RunTables(**changed)


ROUNDED = ("gittins", "gittins, learning")
"""Policies that cut at services which the GPUs of a job do not divide: a rounded microsecond is not doubled."""


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ROUNDED])
@given(rows=traces(requests=True), cluster=clusters(speeds=False), placement=PLACEMENTS)
def test_twice_the_time_in_everything_is_twice_the_time(
    name: str, rows: pd.DataFrame, cluster: ClusterConfig, placement: str
) -> None:
    file, options = POLICIES[name]
    if file == "conservative":  # it promises whole GPUs only
        rows = rows.assign(gpu_milli=-(-rows["gpu_milli"] // 1000) * 1000)
    once = run(rows, cluster, shipped(file)(options), placement=placement, costs=CHARGED)
    costs = Costs(checkpoint_s=2, restart_s=4, checkpoint_interval_s=6)
    slow = shipped(file)(doubled_options(options))
    double = run(doubled_rows(rows), doubled_cluster(cluster), slow, placement=placement, costs=costs)
    assert same_tables(twice(once.tables), double.tables) == []


@given(rows=traces(requests=True), cluster=clusters(speeds=False), seed=st.integers(0, 2**32))
def test_twice_the_time_for_whatever_a_policy_does(rows: pd.DataFrame, cluster: ClusterConfig, seed: int) -> None:
    once = run(rows, cluster, Chaos({"seed": seed}), costs=CHARGED)
    costs = Costs(checkpoint_s=2, restart_s=4, checkpoint_interval_s=6)
    slow = Chaos({"seed": seed, "unit_us": SECOND})
    double = run(doubled_rows(rows), doubled_cluster(cluster), slow, costs=costs)
    assert same_tables(twice(once.tables), double.tables) == []


# -- rows and hashes -------------------------------------------------------------------------------------------


def written(rows: pd.DataFrame, order: list[int], path: Path) -> pd.DataFrame:
    """A trace written to a file with its rows in another order, and read."""
    from analysim.traces import read_trace

    table = pd.DataFrame(
        {
            "job_id": rows["job_id"],
            "submit_time": rows["submit_us"] / SECOND,
            "duration": rows["duration_us"] / SECOND,
            "num_gpus": rows["gpu_milli"] // 1000,
            "priority": rows["priority"],
            "tenant": rows["tenant"],
        }
    )
    table.iloc[order].to_csv(path, index=False)
    return read_trace(path).frame


@pytest.mark.parametrize(
    "name", ["fifo", "srtf", "preempt", "migrate", "defragment", "srsf", "las", "gittins, learning", "lottery"]
)
def test_the_order_of_rows_changes_nothing(name: str, tmp_path: Path) -> None:
    rows, cluster = example(seed=3)
    order = list(range(len(rows)))
    straight = written(rows, order, tmp_path / "a.csv")
    Random(1).shuffle(order)
    shuffled = written(rows, order, tmp_path / "b.csv")
    left, right = (run(each, cluster, made(name), costs=CHARGED) for each in (straight, shuffled))
    assert same_tables(left.tables, right.tables) == []
    assert len(left.tables.segments) >= len(rows)


def example(seed: int, jobs: int = 60) -> tuple[pd.DataFrame, ClusterConfig]:
    """A trace with many ties on a cluster of two racks, the same for the same seed."""
    from tests.builders import cluster, job, trace

    dice = Random(seed)
    rows = [
        job(
            f"job{number}",
            dice.randint(0, 15),
            dice.randint(0, 12),
            dice.choice([1, 1, 2, 4, 6]),
            priority=dice.randint(0, 2),
            tenant=dice.choice(["x", "y", "z"]),
            preemptible=dice.random() < 0.8,
            estimate=dice.randint(1, 15),
            deadline=dice.randint(20, 60),
        )
        for number in range(jobs)
    ]
    return trace(*rows), cluster({"n": {"gpus": 4, "gpu_type": "V100"}}, {"a": [("n", 2)], "b": [("n", 2)]})


def print_digest() -> None:
    """Print a hash of everything that the policies decide; run in a process of its own."""
    import hashlib

    rows, cluster = example(seed=5)
    digest = hashlib.sha256()
    for name in [*POLICIES, "backfill"]:
        for placement in ("pack", "random"):
            tables = run(rows, cluster, made(name), placement=placement, costs=CHARGED, check=False).tables
            for table in ("jobs", "segments", "decisions", "notes"):
                digest.update(getattr(tables, table).to_csv(index=False).encode())
    digest.update(run(rows, cluster, Chaos({"seed": 1}), check=False).tables.segments.to_csv().encode())
    print(digest.hexdigest())


def test_two_hash_seeds_give_the_same_bytes() -> None:
    script = "from tests.property.test_invariance import print_digest; print_digest()"
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1 and len(digests.pop().strip()) == 64
