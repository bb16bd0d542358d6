"""Lottery scheduling: the next job is drawn among the waiting ones."""

from hashlib import blake2b
from math import log
from typing import Literal

from pydantic import Field

from analysim.policy import Job, Options, Order, Plan, Policy


class LotteryOptions(Options):
    """Who holds how many tickets, and which draw this is."""

    tickets: Literal["equal", "priority"] = Field(
        default="equal", description="one ticket a job, or 1 + its priority (at least one)"
    )
    seed: int = Field(default=0, description="of the draw; another seed is another draw")
    skip: bool = Field(default=False, description="whether jobs drawn later may pass one that does not fit")


class Lottery(Policy):
    """Draw the next job among those that wait, by tickets; never stop one. A floor to compare with.

    The order is a hash of seed, job and stint. A job draws an exponential time with its tickets as rate, from the
    draw of the last winner on: so, at each draw, all that wait win with chances in proportion to their tickets.
    """

    name = "lottery"
    attention = "room"
    source = "Waldspurger and Weihl, 'Lottery scheduling: flexible proportional-share resource management', OSDI 1994"
    Options = LotteryOptions

    drawn = Order(lambda job, plan: plan.policy.draw(job))

    def begin(self, plan: Plan) -> None:
        self._last = 0.0
        self._draws: dict[int, tuple[int, float]] = {}

    def draw(self, job: Job) -> float:
        """Draw of a job, made once for each time that it waits."""
        found = self._draws.get(job.rank)
        if found is None or found[0] != job.stint:
            tickets = max(1 + job.priority, 1) if self.options.tickets == "priority" else 1
            text = f"{self.options.seed} lottery {job.id} {job.stint}"
            number = int.from_bytes(blake2b(text.encode(), digest_size=7).digest())
            found = (job.stint, self._last - log((number + 1) / (1 << 56)) / tickets)
            self._draws[job.rank] = found
        return found[1]

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending_by(self.drawn):
            if plan.start(job):
                self._last = max(self._last, self.draw(job))
                del self._draws[job.rank]
            elif not self.options.skip:
                plan.close(job.partition)
