"""What was freed before its time, and which reservations that may move forward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysim.plan.profile import Profile
from analysim.plan.sites import Pairs
from analysim.units import FOREVER

if TYPE_CHECKING:
    from analysim.plan.calendar import Booking


class Freed:
    """Sites on which something was freed in this pass, up to some time; with ``everywhere``, quota was freed too.

    A reservation that nothing blocked but what was freed has a start on one of these sites, before that time.
    """

    def __init__(self, everywhere: bool) -> None:
        self._everywhere = everywhere
        self._until: dict[int, int] = {}
        self._any = False
        self._longest: dict[int, int] = {}

    def add(self, pairs: Pairs, until: int) -> None:
        """Note that something was freed until a time."""
        self._any = True
        self._longest.clear()
        for site, _ in pairs:
            if site >= 0:
                self._until[site] = max(until, self._until.get(site, 0))

    def __bool__(self) -> bool:
        return self._any

    def may_help(self, profile: Profile, booking: Booking, needed: int, gpus: int) -> bool:
        """Tell whether a reservation that takes at least ``gpus`` on a site might move forward; False is certain."""
        if self._everywhere:
            return True
        if any(site in self._until for site, _ in booking.pairs):
            return True
        longest = self._longest.get(gpus)
        if longest is None:
            longest = self._longest[gpus] = self._longest_run(profile, gpus)
        return needed <= longest

    def sites_for(self, booking: Booking) -> set[int] | None:
        """Sites on which a reservation of one site can move forward; None: it may be any."""
        if self._everywhere or len(booking.pairs) != 1 or booking.job.demand.gpus > self._largest(booking):
            return None
        return {*self._until, booking.pairs[0][0]}

    @staticmethod
    def _largest(booking: Booking) -> int:
        """GPUs of the smallest of the largest nodes among the types that a job may use: more need several nodes."""
        return min(option.largest for option in booking.job.demand.options)

    def _longest_run(self, profile: Profile, gpus: int) -> int:
        """Longest time that any of the sites has so many GPUs free, of those that begin before it was to be free."""
        longest = 0
        times = profile.times
        for site, until in self._until.items():
            free = profile.tables[0][:, site] >= gpus
            edges = np.flatnonzero(np.diff(np.concatenate(([False], free, [False])).astype(np.int8)))
            for first, beyond in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                if times[first] >= until:
                    break
                if beyond == len(times):
                    return FOREVER
                longest = max(longest, int(times[beyond] - times[first]))
        return longest
