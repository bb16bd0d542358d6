"""The placement strategies by name."""

from __future__ import annotations

from collections.abc import Mapping

from analysim.policy.placement import Anywhere, First, Pack, Placer, RackFirst, Random, Spread
from analysim.policy.scored import BestFit, DotProd, Fgd, GpuClustering, GpuPacking

PLACERS: Mapping[str, type[Placer]] = {
    placer.name: placer
    for placer in (
        Pack,
        First,
        Spread,
        Random,
        RackFirst,
        Anywhere,
        Fgd,
        BestFit,
        DotProd,
        GpuPacking,
        GpuClustering,
    )
}
"""The strategies by the name that ``--placement`` takes."""
