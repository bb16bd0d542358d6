"""Deadlines: who is admitted, in which order they start, and that what is promised is kept."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysim.config.cluster import Costs
from analysim.metrics import summarise
from tests.builders import FREE, Outcome, flat_cluster, job, run, trace

FOUR = flat_cluster(1, 4)


def slo(job_id: Any, submit: float, duration: float, gpus: int, deadline: float, **given: Any) -> dict[str, Any]:
    """A job with a deadline and an exact estimate."""
    return job(job_id, submit, duration, gpus, **{"deadline": deadline, "estimate": duration, **given})


def plain(job_id: Any, submit: float, duration: float, gpus: int, **given: Any) -> dict[str, Any]:
    """A job without a deadline."""
    return job(job_id, submit, duration, gpus, **{"estimate": duration, **given})


def deadline(*rows: dict[str, Any], on: Any = FOUR, costs: Costs = FREE, **options: Any) -> Outcome:
    return run(trace(*rows), on, "deadline", options=options, costs=costs, placement="any")


def refused(ran: Outcome) -> list[tuple[float, float]]:
    """(time, place of the job) of those that were not admitted."""
    table = ran.tables.notes
    return list(table.loc[table["name"] == "not admitted", ["time_s", "value"]].itertuples(index=False, name=None))


def test_jobs_without_deadlines_are_first_come_first_served() -> None:
    rows = [plain(number, number, 5 + number * 7 % 11, 1 + number % 4) for number in range(20)]
    ours, fifo = (run(trace(*rows), FOUR, name).tables.segments for name in ("deadline", "fifo"))
    pd.testing.assert_frame_equal(ours, fifo)


def test_admitted_jobs_start_by_deadline_and_before_all_others() -> None:
    """All GPUs are held until 10 s; then c, which has to end by 20, a, which has time until 40, and b at last."""
    ran = deadline(
        slo("running", 0, 10, 4, 10), plain("b", 1, 5, 4), slo("a", 2, 10, 4, 40), slo("c", 3, 10, 4, 20)
    )
    assert [ran.times(name) for name in ("c", "a", "b")] == [(10, 20), (20, 30), (30, 35)]
    assert refused(ran) == []


def test_who_would_be_late_or_make_another_late_is_best_effort() -> None:
    """a needs 10..20 and has to end by 20. b would be late itself (it ends at 25), c would make a late. Both run later."""
    ran = deadline(
        slo("running", 0, 10, 4, 10), slo("a", 1, 10, 4, 20), slo("b", 2, 5, 4, 24), slo("c", 3, 5, 4, 15)
    )
    assert refused(ran) == [(2, 2), (3, 3)]
    assert [ran.times(name) for name in ("a", "b", "c")] == [(10, 20), (20, 25), (25, 30)]
    summary = summarise(ran.tables)
    assert (summary["deadlines"], summary["deadlines_met"]) == (4, 2)


def test_the_test_counts_gpus_and_not_jobs() -> None:
    """Two of 2 GPUs fit side by side from 10 on; a third of 2 GPUs only after them."""
    rows = [slo("running", 0, 10, 4, 10), slo("a", 1, 10, 2, 20), slo("b", 2, 10, 2, 20), slo("c", 3, 10, 2, 29)]
    assert refused(deadline(*rows)) == [(3, 3)]
    assert refused(deadline(*rows[:3], slo("c", 3, 10, 2, 30))) == []


def test_best_effort_jobs_make_way_the_latest_first() -> None:
    ran = deadline(plain("a", 0, 50, 2), plain("b", 1, 50, 2), slo("c", 5, 10, 2, 15))
    assert ran.decisions("preempt") == [(5, "b", "preempt", "")]
    assert ran.times("c") == (5, 15)
    assert ran.times("b")[1] == 61  # 10 s later than without


def test_where_they_may_not_be_stopped_their_ends_count() -> None:
    rows = [plain("a", 0, 50, 2), plain("b", 1, 50, 2), slo("c", 5, 10, 2, 59), slo("d", 6, 10, 2, 60)]
    ran = deadline(*rows, preemptive=False)
    assert refused(ran) == [(5, 2)]
    assert ran.times("d") == (50, 60)
    assert ran.decisions("preempt") == []
    fixed = [{**row, "preemptible": row["job_id"] in ("c", "d")} for row in rows]
    assert deadline(*fixed).segments() == ran.segments()


def test_the_time_to_save_is_counted() -> None:
    """Saving takes 3 s and loading 4: c may use a's GPUs from 8 s on, and is taken for 7 s late at most."""
    costs = Costs(checkpoint_s=3, restart_s=4)
    assert refused(deadline(plain("a", 0, 50, 4), slo("c", 5, 10, 4, 21.5), costs=costs)) == [(5, 1)]
    ran = deadline(plain("a", 0, 50, 4), slo("c", 5, 10, 4, 22), costs=costs)
    assert refused(ran) == [] and ran.times("c") == (8, 18)


def test_a_margin_is_kept() -> None:
    assert refused(deadline(slo("a", 0, 10, 4, 14), margin=5)) == [(0, 0)]
    assert refused(deadline(slo("a", 0, 10, 4, 15), margin=5)) == []


def test_one_that_is_late_already_keeps_nobody_out() -> None:
    """a, estimated to take 10 s, takes 100 and b, admitted, cannot be in time any more: c still may."""
    rows = [slo("a", 0, 100, 4, 20, estimate=10), slo("b", 1, 10, 4, 25), slo("c", 50, 10, 4, 200)]
    ran = deadline(*rows)
    assert refused(ran) == []
    assert [ran.times(name) for name in ("b", "c")] == [(100, 110), (110, 120)]
    assert summarise(ran.tables)["deadlines_met"] == 1


def test_nobody_passes_an_admitted_job_that_waits() -> None:
    ran = deadline(slo("a", 0, 10, 3, 10), slo("b", 1, 10, 4, 30), plain("c", 2, 3, 1))
    assert [ran.times(name)[0] for name in ("b", "c")] == [10, 20]


def test_where_no_job_has_a_deadline_nothing_is_said_of_them() -> None:
    summary = summarise(deadline(plain("a", 0, 1, 1)).tables)
    assert "deadlines" not in summary and "deadlines_met" not in summary


LOADS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(1, 4), st.integers(-1, 60), st.integers(0, 10)),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("preemptive", [True, False])
@given(jobs=LOADS)
def test_what_is_admitted_is_in_time(preemptive: bool, jobs: list[tuple[int, int, int, int, int]]) -> None:
    """On GPUs that are counted, with estimates that are never too short, no promise is broken, costs or not."""
    rows = []
    for number, (submit, duration, gpus, slack, short) in enumerate(jobs):
        actual = max(duration - short, 1)
        given = {"estimate": duration, **({"deadline": submit + duration + slack} if slack >= 0 else {})}
        rows.append(job(number, submit, actual, gpus, **given))
    frame = trace(*rows)
    ran = run(
        frame,
        flat_cluster(1, 4),
        "deadline",
        options={"preemptive": preemptive},
        costs=Costs(checkpoint_s=2, restart_s=1),
        placement="any",
    )
    table = ran.tables.jobs
    late = table.index[table["end_time_s"] > table["deadline_s"]]
    assert set(late) <= {int(place) for _, place in refused(ran)}
    assert (table["state"] == "completed").all()
