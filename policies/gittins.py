"""The Gittins index of GPU-time, learnt from completed jobs: Tiresias with knowledge of the distribution."""

from collections import deque
from typing import Any

import numpy as np
from pydantic import Field

from analysim.policy import Feedback, FeedbackOptions, Job, Plan


class GittinsOptions(FeedbackOptions):
    """As of ``las``, which it is until it has learnt; then how much it learns, and how finely."""

    levels: int = Field(default=8, ge=2, le=64, description="levels of attained service, equally many jobs end in each")
    completions: int = Field(default=100, ge=2, description="completed jobs from which on the index is used")
    window: int = Field(default=10_000, ge=2, le=10_000_000, description="latest completed jobs that it is learnt from")
    factor: float = Field(default=1.25, ge=1.0, description="index of the preemptor over that of its victim")


def quantile_cuts(services: Any, levels: int) -> list[int]:
    """Cut a sorted sample of services into so many parts of equal number; fewer where values repeat."""
    places = (np.arange(1, levels) * len(services) + levels - 1) // levels - 1
    cuts = np.unique(services[places])
    return [int(cut) for cut in cuts if 0 < cut < services[-1]]


def gittins_indexes(services: Any, cuts: list[int]) -> list[float]:
    """Give the index of jobs at 0 and at each cut: the most of P(ends by a later cut) / E(service until then).

    With S a service of the sorted sample and a the service attained, the index is the largest P(S <= c | S > a) /
    E(min(S, c) - a | S > a) over the later cuts c, and over no cut at all (Gittins,
    'Bandit processes and dynamic allocation indices', J. R. Stat. Soc. B 41, 1979).
    """
    edges = [0, *cuts]
    counts = [int(place) for place in np.searchsorted(services, edges, side="right")]
    sums = np.concatenate(([0.0], np.cumsum(services, dtype=np.float64)))
    stops = [*zip(cuts, counts[1:], strict=True), (0, len(services))]
    indexes = []
    for level, (attained, first) in enumerate(zip(edges, counts, strict=True)):
        best = 0.0
        for cut, end in stops[level:]:
            ending = end - first
            spent = sums[end] - sums[first] - ending * attained + (len(services) - end) * (cut - attained)
            best = max(best, ending / spent if spent > 0 else 0.0)
        indexes.append(best)
    return indexes


class Gittins(Feedback):
    """Run the jobs of the highest Gittins index: most likely to end soon for the GPU-time it takes to see.

    The index is that of the GPU-times of the jobs completed so far; until there are ``completions`` of them this is
    ``las``. Jobs stand in levels of attained GPU-time; one that does not fit may stop jobs that have run
    ``minimum_run`` and whose level has an index ``factor`` times smaller.
    """

    name = "gittins"
    knowledge = "history"
    source = (
        "Gu et al., 'Tiresias: a GPU cluster manager for distributed deep learning', NSDI 2019 (discretised 2D-Gittins "
        "index); Gittins, 'Bandit processes and dynamic allocation indices', J. R. Stat. Soc. B 41, 1979"
    )
    Options = GittinsOptions

    def begin(self, plan: Plan) -> None:
        super().begin(plan)
        self._services: deque[int] = deque(maxlen=self.options.window)
        self._seen = 0
        self._next = self.options.completions
        self._places: list[int] = []
        self._bounds: list[int] = []
        self._stopped: dict[int, Job] = {}

    def place(self, level: int) -> int:
        return self._places[level] if self._places else level

    def bound(self, level: int) -> int:
        return self._bounds[level] if self._places else level

    def schedule(self, plan: Plan) -> None:
        for job in plan.completed:
            if job.gpus:
                self._services.append(plan.attained(job))
                self._seen += 1
        if self._seen >= self._next:
            self._learn(plan)
        self._stopped.update((job.rank, job) for job in plan.requeued)
        super().schedule(plan)

    def _learn(self, plan: Plan) -> None:
        """Take the index of the latest completed jobs; seldom, as all keys but those of new jobs are read again."""
        least, window = self.options.completions, self.options.window
        self._next = self._seen + min(max(self._seen // 2, least), max(window // 2, 1))
        services = np.sort(np.array(self._services, np.int64))
        cuts = quantile_cuts(services, self.options.levels)
        self._rank_levels(gittins_indexes(services, cuts))
        self._levels.set_thresholds(cuts)
        self._stopped = {rank: job for rank, job in self._stopped.items() if job.state.value == "pending"}
        for job in [*plan.running, *self._stopped.values()]:
            plan.rekey(job)

    def _rank_levels(self, indexes: list[float]) -> None:
        """Places by falling index, counted from that of level 0, so that the keys of jobs that never ran stay."""
        falling = sorted(range(len(indexes)), key=lambda level: (-indexes[level], level))
        new = falling.index(0)
        self._places = [falling.index(level) - new for level in range(len(indexes))]
        smaller = [sum(other * self.options.factor >= index for other in indexes) for index in indexes]
        self._bounds = [count - 1 - new for count in smaller]
