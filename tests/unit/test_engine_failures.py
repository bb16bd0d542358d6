"""Policies that fail, cheat or decide against the rules are named with their file and line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from analysim.errors import IllegalDecision, KnowledgeError, PolicyFailure, TraceError
from analysim.policy import Job, Order, Plan, Policy
from tests.builders import SECOND, cluster, flat_cluster, job, run, scripted, trace

ROWS = trace(job("a", 5, 10, 2, estimate=20), job("b", 5, 10, 2, estimate=30))
NODE = flat_cluster(1, 4)


def line_of(text: str) -> int:
    """Line of this file that contains a text, the first time."""
    source = inspect.getsource(inspect.getmodule(line_of)).splitlines()  # type: ignore[arg-type]  # this module
    return next(number for number, line in enumerate(source, 1) if text in line)


class Raises(Policy):
    name = "raises"

    def schedule(self, plan: Plan) -> None:
        {}["no such key"]


class Returns(Policy):
    name = "returns"

    def schedule(self, plan: Plan) -> Any:
        return list(plan.pending)


class Yields(Policy):
    name = "yields"

    def schedule(self, plan: Plan) -> Any:
        yield from plan.pending


class Loops(Policy):
    name = "loops"

    def schedule(self, plan: Plan) -> None:
        while True:
            plan.fit(next(iter(plan.pending)))


class BadBeginning(Policy):
    name = "bad-beginning"

    def begin(self, plan: Plan) -> None:
        raise RuntimeError("not ready")

    def schedule(self, plan: Plan) -> None:
        pass


class StartsTwice(Policy):
    name = "starts-twice"

    def schedule(self, plan: Plan) -> None:
        first = next(iter(plan.pending))
        plan.start(first)
        plan.start(first)  # the second time


class Peeks(Policy):
    name = "peeks"

    def schedule(self, plan: Plan) -> None:
        print(next(iter(plan.pending)).duration)  # type: ignore[attr-defined]  # that is the point


@pytest.mark.parametrize(
    ("policy", "text", "line"),
    [
        (Raises(), "KeyError: 'no such key'", '{}["no such key"]'),
        (BadBeginning(), "RuntimeError: not ready", 'raise RuntimeError("not ready")'),
        (Peeks(), "job.duration needs knowledge = 'oracle'", "print(next("),
    ],
)
def test_a_policy_that_raises_is_named_with_file_and_line(policy: Policy, text: str, line: str) -> None:
    with pytest.raises(PolicyFailure) as caught:
        run(ROWS, NODE, policy)
    assert f"policy {policy.name!r}" in caught.value.message
    assert f"{__file__}:{line_of(line)}" in caught.value.message
    assert text in caught.value.message
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(("policy", "what"), [(Returns(), r"returned \["), (Yields(), "returned a generator")])
def test_a_policy_that_returns_something_is_told_to_decide_through_the_plan(policy: Policy, what: str) -> None:
    with pytest.raises(PolicyFailure, match=what) as caught:
        run(ROWS, NODE, policy)
    assert f"{policy.name!r}" in caught.value.message and __file__ in caught.value.message
    assert "through the plan" in caught.value.remedy


def test_a_policy_that_loops_for_ever_is_stopped() -> None:
    with pytest.raises(PolicyFailure, match="one pass took longer than pass_seconds") as caught:
        run(ROWS, NODE, Loops(), pass_seconds=0.1)
    assert "'loops'" in caught.value.message and __file__ in caught.value.message


def test_an_illegal_decision_ends_in_the_authors_line() -> None:
    with pytest.raises(IllegalDecision) as caught:
        run(ROWS, NODE, StartsTwice())
    assert caught.value.message.startswith(
        "policy 'starts-twice' at 5.000000 s, job a: only a pending job can be started"
    )
    assert f"{__file__}:{line_of('plan.start(first)  # the second time')}" in caught.value.message


# -- decisions against the rules -------------------------------------------------------------------------------

PARTS = cluster(
    {"a": {"gpus": 4, "gpu_type": "A"}, "b": {"gpus": 4, "gpu_type": "B"}},
    {"r": [("a", 1), ("b", 1)]},
    partitions=[{"name": "p", "nodes": "r-n00"}],
)


def first(plan: Plan) -> Job:
    return next(iter(plan.pending))


def started(plan: Plan) -> Job:
    chosen = first(plan)
    plan.start(chosen)
    return chosen


ILLEGAL: dict[str, tuple[Callable[[Plan], object], str]] = {
    "preempt a waiting job": (lambda plan: plan.preempt(first(plan)), "only a running job can be preempted"),
    "migrate a waiting job": (lambda plan: plan.migrate(first(plan), [0]), "only a running job can be migrated"),
    "unknown mode": (lambda plan: plan.preempt(started(plan), "pause"), "none of checkpoint, kill, suspend, cancel"),
    "resize": (lambda plan: plan.resize(started(plan), 4), "not elastic"),
    "close": (lambda plan: plan.close("q"), "there is no partition 'q'"),
    "partition": (lambda plan: plan.partition("q"), "there is no partition 'q'"),
    "too few GPUs": (lambda plan: plan.start(first(plan), ((0, 0b1),)), "1 GPUs on 1 nodes; the job asks for 2 GPUs"),
    "a node twice": (lambda plan: plan.start(first(plan), ((0, 0b1), (0, 0b10))), "2 GPUs on 2 nodes"),
    "no such GPU": (lambda plan: plan.start(first(plan), ((0, 0b110000),)), "has no GPUs with mask"),
    "no such node": (lambda plan: plan.start(first(plan), ((7, 0b11),)), "has no GPUs with mask"),
    "other partition's nodes": (lambda plan: plan.start(first(plan), ((1, 0b11),)), "nodes that the job may not use"),
    "no placement": (lambda plan: plan.start(first(plan), 3.5), "is not a placement"),
    "no strategy": (lambda plan: plan.fit(first(plan), placer=3.5), "no placement strategy"),
    "an order made anew": (
        lambda plan: list(plan.pending_by(Order(lambda each: each.submit))),
        "must be declared once on the policy's class",
    ),
    "a lambda": (lambda plan: list(plan.running_by(lambda each: each.submit)), "must be declared once"),  # type: ignore[arg-type]  # on purpose
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_decisions_against_the_rules_are_illegal(name: str) -> None:
    decide, text = ILLEGAL[name]
    rows = trace(job("a", 5, 10, 2, partition="p", gpu_type="A"))
    with pytest.raises(IllegalDecision, match=text) as caught:
        run(rows, PARTS, scripted(decide))
    assert "at 5.000000 s" in caught.value.message


@pytest.mark.parametrize("where", [((0, 0b1),), ((9, 0),), ((0, 0), (1, 0)), ()])
def test_a_job_without_gpus_takes_none(where: Any) -> None:
    with pytest.raises(IllegalDecision):
        run(trace(job("a", 5, 10, 0)), NODE, scripted(lambda plan: plan.start(first(plan), where)))


# -- knowledge -------------------------------------------------------------------------------------------------


def answers(knowledge: str, ask: Callable[[Plan, Job], object]) -> object:
    """What a policy of some knowledge gets to hear about a job, or that it may not ask."""
    heard: list[object] = []

    def schedule(plan: Plan) -> None:
        for waiting in plan.pending:
            try:
                heard.append(ask(plan, waiting))
            except KnowledgeError:
                heard.append("hidden")
            plan.start(waiting)

    run(ROWS, NODE, scripted(schedule, knowledge=knowledge))
    return heard[0]


@pytest.mark.parametrize(
    ("ask", "none", "history", "estimate", "oracle"),
    [
        (lambda plan, each: each.duration, "hidden", "hidden", "hidden", 10),
        (lambda plan, each: plan.duration(each), "hidden", "hidden", "hidden", 10),
        (lambda plan, each: plan.remaining(each), "hidden", "hidden", 20, 10),
        (lambda plan, each: each.estimate, "hidden", "hidden", 20, 20),
        (lambda plan, each: plan.estimate(each), "hidden", "hidden", 20, 20),
        (lambda plan, each: len(plan.completed) * SECOND, "hidden", 0, 0, 0),
    ],
)
def test_a_policy_hears_what_it_declared(ask: Any, none: Any, history: Any, estimate: Any, oracle: Any) -> None:
    expected = {"none": none, "history": history, "estimate": estimate, "oracle": oracle}
    for knowledge, answer in expected.items():
        assert answers(knowledge, ask) == (answer if answer == "hidden" else answer * SECOND), knowledge


def test_a_job_has_no_recorded_times_or_status() -> None:
    for name in ("duration", "recorded_start", "recorded_node", "status"):
        assert answers("none", lambda plan, each, name=name: hasattr(each, name)) is False
    assert answers("oracle", lambda plan, each: hasattr(each, "duration")) is True


def test_what_remains_under_an_estimate_is_never_negative() -> None:
    seen = []

    def schedule(plan: Plan) -> None:
        for waiting in plan.pending:
            plan.start(waiting)
        seen.extend((plan.now / SECOND, plan.remaining(each) / SECOND) for each in plan.running if each.id == "a")
        if plan.now < 12 * SECOND:
            plan.wake_at(plan.now + 4 * SECOND)

    rows = trace(job("a", 0, 20, 1, estimate=10))
    run(rows, NODE, scripted(schedule, knowledge="estimate", idle_passes=True))
    assert seen == [(0, 10), (4, 6), (8, 2), (12, 0)]


def test_history_is_of_completed_jobs_and_none_is_lost() -> None:
    heard = {}

    def schedule(plan: Plan) -> None:
        heard[plan.now / SECOND] = [(each.id, plan.duration(each) / SECOND) for each in plan.completed]
        for waiting in plan.pending:
            plan.start(waiting)

    rows = trace(job("a", 0, 10), job("b", 0, 20), job("c", 50, 5))
    run(rows, NODE, scripted(schedule, knowledge="history"))
    assert heard == {0: [], 50: [("a", 10), ("b", 20)]}  # nothing waited when they ended, so no pass was made


def test_a_missing_estimate_is_the_partitions_time_limit_or_an_error() -> None:
    limited = flat_cluster(1, 4, partitions=[{"name": "p", "time_limit": 60}])
    seen = []

    def schedule(plan: Plan) -> None:
        for waiting in plan.pending:
            seen.append(plan.estimate(waiting) / SECOND)
            plan.start(waiting)

    policy = scripted(schedule, knowledge="estimate")
    run(trace(job("a", 0, 10, partition="p"), job("b", 0, 10, partition="p", estimate=7)), limited, policy)
    assert seen == [60, 7]
    with pytest.raises(TraceError, match=r"1 jobs have none \(the first: b\)") as caught:
        run(trace(job("a", 0, 10, partition="p"), job("b", 0, 10)), limited, policy)
    assert "--estimates exact" in caught.value.remedy and caught.value.exit_code == 2
