"""Backfilling against textbook versions written down anew, and its promises: nobody starts later than first promised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysim.config.cluster import Costs
from analysim.policy import Order, Plan
from tests.builders import SECOND, cluster, flat_cluster, job, run, shipped, trace

pytestmark = pytest.mark.slow

EXAMPLES = settings(max_examples=100, deadline=None)
SHAPES = {
    "single": flat_cluster(10, 1),
    "pairs": flat_cluster(5, 2),
    "nodes": flat_cluster(3, 4),
    "racks": cluster({"n": {"gpus": 2}}, {"x": [("n", 3)], "y": [("n", 2)]}),
    "sizes": cluster({"a": {"gpus": 4, "gpu_type": "A"}, "b": {"gpus": 2, "gpu_type": "A"}}, {"x": [("a", 2), ("b", 2)]}),
    "types": cluster({"a": {"gpus": 4, "gpu_type": "A"}, "b": {"gpus": 2, "gpu_type": "B"}}, {"x": [("a", 2), ("b", 2)]}),
    "cpus": cluster({"n": {"gpus": 4, "cpus": 8}}, {"x": [("n", 3)]}),
}
QUOTAS: list[list[dict[str, Any]]] = [
    [],
    [{"name": "p", "limit": 5}, {"name": "q"}],
    [{"name": "p", "guarantee": 4, "borrow": 2}, {"name": "q", "guarantee": 4, "lend": 2}],
    [{"name": "p", "limits": {"user": {"gpus": 4, "jobs": 2}}}, {"name": "q"}],
]


@st.composite
def jobs(draw: st.DrawFn, exact: bool) -> list[dict[str, Any]]:
    """Up to 25 jobs; run times are the estimates, or at most the estimates."""
    found = []
    for number in range(draw(st.integers(1, 25))):
        estimate = draw(st.integers(1, 30))
        duration = estimate if exact else draw(st.integers(0, estimate))
        row = job(number, draw(st.integers(0, 40)), duration, draw(st.integers(1, 8)), estimate=estimate)
        row["partition"] = draw(st.sampled_from(["p", "q"]))
        row["gpu_type"] = draw(st.sampled_from(["", "", "A", "B", "A|B", "B|A"]))
        row["cpus"] = draw(st.sampled_from([0, 0, 4, 12]))
        row["user"] = draw(st.sampled_from(["u", "v"]))
        if row["gpu_milli"] % 2000 == 0 and draw(st.integers(0, 3)) == 0:
            row["gpus_per_node"] = 2
        row["cpu_milli"] = row.pop("cpus") * 1000
        found.append(row)
    return found


class WatchedEasy(shipped("easy")):  # type: ignore[misc]  # a class of a file
    """EASY that writes down what it first promised to each head."""

    name = "watched-easy"
    ending = Order(lambda each, plan: plan.ends(each))

    def begin(self, plan: Plan) -> None:
        self.first: dict[int, int] = {}
        make = plan.shadow

        def shadow(each: Any, **given: Any) -> Any:
            made = make(each, **given)
            self.first.setdefault(each.id, made.time)
            return made

        plan.shadow = shadow  # type: ignore[method-assign]


class WatchedConservative(shipped("conservative")):  # type: ignore[misc]  # a class of a file
    """Conservative backfilling that writes down what it first promised to each job."""

    name = "watched-conservative"

    def begin(self, plan: Plan) -> None:
        self.first: dict[int, int] = {}

    def schedule(self, plan: Plan) -> None:
        super().schedule(plan)
        calendar = plan.calendar(self.options.resolution, self.options.window)
        for each in [*plan.books.waiting.values(), *plan.books.fresh]:
            begin = calendar.promised(each)
            if begin is not None:
                assert begin > plan.now
                self.first.setdefault(each.id, begin)
                assert begin <= self.first[each.id]


@pytest.mark.parametrize("policy", [WatchedEasy, WatchedConservative])
@EXAMPLES
@given(
    rows=jobs(exact=False),
    shape=st.sampled_from(sorted(SHAPES)),
    placement=st.sampled_from(["any", "pack", "first", "spread", "random", "rack"]),
    quotas=st.sampled_from(QUOTAS),
    start_s=st.sampled_from([0, 3]),
    depth=st.sampled_from([None, 1, 3]),
    resolution=st.sampled_from([0, 7]),
)
def test_nobody_starts_later_than_first_promised(
    policy: Any,
    rows: list[dict[str, Any]],
    shape: str,
    placement: str,
    quotas: list[dict[str, Any]],
    start_s: int,
    depth: int | None,
    resolution: int,
) -> None:
    """No run time is above its estimate; jobs may end early, gangs, types, CPUs and quotas are in the way."""
    there = SHAPES[shape].model_copy(deep=True)
    there = type(there).model_validate({**there.model_dump(exclude_none=True, exclude_unset=True), "partitions": quotas})
    if not quotas or policy is WatchedEasy:  # its heads are protected from jobs of their own partition only
        rows = [{**row, "partition": "p" if quotas else ""} for row in rows]
    options: dict[str, Any] = {"resolution": resolution}
    if policy is WatchedConservative:
        options["depth"] = depth
    watched = policy(options)
    outcome = run(trace(*rows), there, watched, placement=placement, costs=Costs(start_s=start_s))
    starts = outcome.jobs["first_start_time_s"]
    assert not (outcome.jobs["state"] == "unfinished").any()
    for name, promised in watched.first.items():
        assert round(starts[name] * SECOND) <= promised, name


# -- textbook versions on counts ---------------------------------------------------------------------------------


class Textbook:
    """Conservative backfilling on a number of processors, as pyss has it (dinesh121991/pyss, Frachtenberg and others).

    Each job is booked at its arrival, at the earliest time from which enough is free for all of its estimate. When a
    job ends early its tail is given back, and each that waits is booked anew in the order of arrival, the others staying.
    """

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self.booked: dict[int, tuple[int, int, int]] = {}

    def earliest(self, now: int, estimate: int, gpus: int) -> int:
        """First time at which so many are free for so long."""
        times = sorted({now, *(end for _, end, _ in self.booked.values() if end > now)})
        return next(time for time in times if self._free(time, time + estimate) >= gpus)

    def _free(self, begin: int, end: int) -> int:
        times = [begin, *(start for start, _, _ in self.booked.values() if begin < start < end)]
        return min(self.gpus - sum(g for b, e, g in self.booked.values() if b <= time < e) for time in times)

    def run(self, jobs: list[tuple[int, int, int, int]]) -> dict[int, int]:
        """Starts of jobs (submit, duration, estimate, gpus), which are numbered as they stand."""
        coming = sorted(range(len(jobs)), key=lambda number: (jobs[number][0], number))
        starts: dict[int, int] = {}
        waiting: list[int] = []
        running: dict[int, int] = {}
        while coming or waiting or running:
            due = [self.booked[number][0] for number in waiting]
            now = min([*running.values(), *due, *(jobs[number][0] for number in coming[:1])])
            early = False
            for number in [number for number, end in running.items() if end == now]:
                del running[number]
                begin, end, gpus = self.booked[number]
                early = early or end > now
                self.booked[number] = (begin, now, gpus)
            for number in list(waiting) if early else []:
                _, _, estimate, gpus = jobs[number]
                del self.booked[number]
                begin = self.earliest(now, estimate, gpus)
                self.booked[number] = (begin, begin + estimate, gpus)
            while coming and jobs[coming[0]][0] == now:
                number = coming.pop(0)
                _, _, estimate, gpus = jobs[number]
                begin = self.earliest(now, estimate, gpus)
                self.booked[number] = (begin, begin + estimate, gpus)
                waiting.append(number)
            for number in [number for number in waiting if self.booked[number][0] == now]:
                waiting.remove(number)
                starts[number] = now
                running[number] = now + jobs[number][1]
        return starts


def rows_of(listed: list[tuple[int, int, int, int]]) -> Any:
    """A trace of (submit, duration, estimate, gpus)."""
    columns = enumerate(listed)
    return trace(*(job(number, each[0], each[1], each[3], estimate=each[2]) for number, each in columns))


@EXAMPLES
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(1, 10)), min_size=1, max_size=25))
def test_on_counts_conservative_is_the_textbook_algorithm(given: list[tuple[int, int, int]]) -> None:
    listed = [(submit, duration, duration, gpus) for submit, duration, gpus in given]
    outcome = run(rows_of(listed), flat_cluster(10, 1), "conservative", placement="any")
    assert outcome.jobs["first_start_time_s"].to_dict() == Textbook(10).run(listed)


@EXAMPLES
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(0, 20), st.integers(1, 10)),
        min_size=1,
        max_size=25,
    )
)
@example([(18, 3, 14, 7), (18, 2, 1, 7), (29, 4, 16, 7), (10, 22, 2, 9), (7, 30, 18, 3), (3, 6, 2, 8), (17, 16, 16, 4)])
def test_with_early_ends_too(given: list[tuple[int, int, int, int]]) -> None:
    """Compression is that of pyss: in the order of arrival, each moves forward as far as the others let it."""
    listed = [(submit, duration, duration + more, gpus) for submit, duration, more, gpus in given]
    outcome = run(rows_of(listed), flat_cluster(5, 2), "conservative", placement="any")
    assert outcome.jobs["first_start_time_s"].to_dict() == Textbook(10).run(listed)
