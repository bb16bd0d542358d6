"""Free capacity that also remembers which nodes changed and what kinds of jobs each node holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysim.cluster.capacity import Capacity
from analysim.cluster.topology import Topology
from analysim.jobs import Demand, Placement

SHARES = 0
"""Class of the jobs that take a share of one GPU; the class of any other is its number of GPUs."""


def class_of(demand: Demand) -> int:
    """Return the class of a demand with GPUs: ``SHARES``, or how many GPUs it asks for, whatever it runs on."""
    return SHARES if demand.sharing else demand.asked


class WatchedCapacity(Capacity):
    """Free capacity for placement strategies that compare all nodes; any other is better off without it.

    ``changed`` are nodes taken from or given to since somebody emptied it. ``held[n]`` counts the GPUs that jobs of
    each class hold on node n (a share counts as one), so that it stays right where a job gives its GPUs back one by
    one. ``board`` is for whoever reads both: it goes with this object, and ``copy`` asks it for a copy.
    """

    def __init__(self, topology: Topology) -> None:
        super().__init__(topology)
        self.changed: set[int] = set(range(topology.size))
        self.held: list[Mapping[int, int]] = [{}] * topology.size
        self.board: Any = None

    def copy(self) -> WatchedCapacity:
        """Copy what is free now, for a question that takes nothing for good."""
        twin = super().copy()
        assert isinstance(twin, WatchedCapacity)
        twin.changed = set(self.changed)
        twin.held = self.held[:]
        twin.board = None if self.board is None else self.board.copy()
        return twin

    def take(self, placement: Placement, demand: Demand) -> None:
        """Take, and note the nodes."""
        super().take(placement, demand)
        self._note(placement, demand, 1)

    def give(self, placement: Placement, demand: Demand) -> None:
        """Give back, and note the nodes."""
        super().give(placement, demand)
        self._note(placement, demand, -1)

    def exchange(self, node: int, mask: int, old: Demand, new: Demand, sign: int) -> None:
        """Let GPUs pass from one demand to another, and note the node."""
        super().exchange(node, mask, old, new, sign)
        self._note(((node, mask),), old, -sign)
        self._note(((node, mask),), new, sign)

    def _note(self, placement: Placement, demand: Demand, sign: int) -> None:
        for node, mask in placement:
            if node < 0:
                continue
            self.changed.add(node)
            if mask:
                kind = class_of(demand)
                held = dict(self.held[node])  # a new one: copies share what they have not changed
                held[kind] = held.get(kind, 0) + sign * mask.bit_count()
                if not held[kind]:
                    del held[kind]
                self.held[node] = held
