"""Replay: every job starts when it really started, so that a wrong cluster is found before a policy is blamed."""

from typing import Any

from analysim.policy import PLACERS, Blocked, Job, Order, Plan, Policy


class OnNodes:
    """The strategy "any" on some nodes only: what really happened need not keep our rule of gangs."""

    def __init__(self) -> None:
        self.nodes = 0
        self._any = PLACERS["any"]()

    def place(self, capacity: Any, job: Any, option: Any, mask: int) -> Any:
        """Gather the GPUs on the nodes that are set."""
        return self._any.place(capacity, job, option, mask & self.nodes)


class Replay(Policy):
    """Start each job at its recorded start, on its recorded nodes where the topology has them; no real policy.

    A job that cannot start then starts as soon as it fits, those with the earlier recorded start first; why it
    could not goes into ``notes``, as does that it had to run on other nodes. Jobs without a recorded start come last.
    """

    name = "replay"
    knowledge = "record"
    source = "the recorded starts and nodes of the trace itself"

    due = Order(lambda job, plan: plan.policy.rank(job, plan))

    def begin(self, plan: Plan) -> None:
        self._on_nodes = OnNodes()

    def rank(self, job: Job, plan: Plan) -> tuple[int, int]:
        """Jobs that are due by recorded start, then those without, then those whose time has not come."""
        start = plan.recorded_start(job)
        if start is None:
            return (1, 0)
        return (0, start) if start <= plan.now else (2, start)

    def schedule(self, plan: Plan) -> None:
        due = list(plan.woken)
        for job in plan.arrived:
            start = plan.recorded_start(job)
            if start is not None and start > plan.now:
                plan.wake_at(start, job)
            elif start is not None:
                due.append(job)
        for job in plan.pending_by(self.due):
            if self.rank(job, plan)[0] == 2:
                break
            self._start(plan, job)
        for job in due:
            # The walk passes over what asks for as much as one that failed; on its own nodes a job may yet fit.
            if plan.placement(job) is None and not self._start(plan, job):
                answer = plan.fit(job)
                plan.note(f"late: {answer.reason if isinstance(answer, Blocked) else 'fragmented'}", job.rank)

    def _start(self, plan: Plan, job: Job) -> bool:
        nodes = plan.recorded_nodes(job)
        self._on_nodes.nodes = plan.nodes_mask(nodes)
        if nodes and plan.start(job, where=self._on_nodes):
            return True
        started = bool(plan.start(job))
        if started and nodes:
            plan.note("elsewhere", job.rank)
        return started
