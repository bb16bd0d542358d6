"""Jobs to look at again at instants of their own, and passes asked for when time alone may let a job start."""

from __future__ import annotations

from heapq import heappop, heappush

from analysim.jobs import Job, State
from analysim.plan.plan import Plan


class Agenda:
    """Jobs by the instant (microseconds) at which something about them changes by itself."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Job]] = []

    def note(self, when: int, job: Job) -> None:
        """Note an instant for a job as it is now."""
        heappush(self._heap, (when, job.rank, job.stint, job))

    def due(self, now: int, running: bool) -> list[Job]:
        """Take out the jobs whose instant has come; return those that still run (or wait) as when it was noted."""
        heap = self._heap
        found = []
        while heap and heap[0][0] <= now:
            _, _, stint, job = heappop(heap)
            if _still(job, stint, running):
                found.append(job)
        return found

    def first(self, running: bool) -> int | None:
        """Find the next instant of a job that still runs (or still waits) as when it was noted; None: there is none."""
        heap = self._heap
        while heap:
            when, _, stint, job = heap[0]
            if _still(job, stint, running):
                return when
            heappop(heap)
        return None

    def clear(self) -> None:
        """Forget all that was noted."""
        self._heap.clear()


def _still(job: Job, stint: int, running: bool) -> bool:
    """Tell whether a job runs (or waits) as it did then; one that was noted as it started has begun a stint since."""
    return job.stint - stint <= running and (job.state is State.RUNNING) is running


class Looks:
    """Asks for a pass ``every`` so many microseconds at most while something is blocked.

    0: for none, and every pass is a look.
    """

    __slots__ = ("_next", "every")

    def __init__(self, every: int) -> None:
        self.every = every
        self._next = 0

    def due(self, plan: Plan) -> bool:
        """Tell whether this pass is a look, for who does only then what takes long."""
        return self._next <= plan.now

    def again(self, plan: Plan) -> None:
        """Some job could not start: look again in a while, when somebody may have settled, sunk or risen."""
        if self.every and self.due(plan):
            self._next = plan.now + self.every
            plan.wake_at(self._next)
