"""GPUs on their way to being free, and the reservations that wait for them.

A preempted job holds its GPUs while it saves its state. A start may use them: the job is reserved, those GPUs
are its own, and it starts by itself when the last of them is free.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysim.cluster.capacity import Capacity
from analysim.jobs import Job, Option, Placement


class Release:
    """GPUs that one job holds until ``until_us`` while it saves its state.

    ``masks`` are the GPUs by node that nobody has claimed yet, ``claims`` the others: (who, node, mask).
    ``charged`` tells whether they still count in the usage of the job's own partition.
    """

    __slots__ = ("charged", "claims", "from_us", "job", "masks", "option", "placement", "until_us")

    def __init__(
        self, job: Job, option: Option, placement: Placement, from_us: int, until_us: int, charged: bool
    ) -> None:
        self.job = job
        self.option = option
        self.placement = placement
        self.from_us = from_us
        self.until_us = until_us
        self.charged = charged
        self.masks = dict(placement)
        self.claims: list[tuple[Job, int, int]] = []

    @property
    def unclaimed(self) -> Placement:
        """What nobody has claimed, as a placement."""
        if not self.job.demand.gpus:
            return self.placement
        return tuple((node, mask) for node, mask in self.masks.items() if mask)

    def claim(self, job: Job, node: int, wanted: int) -> int:
        """Claim what of ``wanted`` is here and unclaimed; return the mask of it."""
        got = self.masks.get(node, 0) & wanted
        if got:
            self.masks[node] ^= got
            self.claims.append((job, node, got))
        return got

    def give_back(self, job: Job) -> Iterator[tuple[int, int]]:
        """Undo the claims of a job; yield (node, mask) of each."""
        kept = []
        for claim in self.claims:
            if claim[0] is job:
                self.masks[claim[1]] |= claim[2]
                yield claim[1], claim[2]
            else:
                kept.append(claim)
        self.claims = kept


class Reservation:
    """A job that waits for GPUs it has claimed: ``missing`` GPUs, and what it holds since when."""

    __slots__ = ("held", "job", "missing")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.missing = 0
        self.held: list[tuple[int, int, int]] = []

    def receive(self, node: int, mask: int, now: int) -> bool:
        """Take GPUs that became free; tell whether the gang is complete."""
        self.held.append((node, mask, now))
        self.missing -= mask.bit_count()
        return self.missing == 0


def claimable(capacity: Capacity, releases: dict[int, Release]) -> Capacity | None:
    """Copy the capacity with every unclaimed GPU that is being released counted as free; None: there is none.

    A share of a GPU that is being released is not: it is free only when it is.
    """
    view: Capacity | None = None
    for release in releases.values():
        placement = release.unclaimed
        if placement and not release.job.demand.sharing:
            if view is None:
                view = capacity.copy()
            view.give(placement, release.job.demand)
    return view
