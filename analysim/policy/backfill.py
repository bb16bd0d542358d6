"""What policies share that let later jobs go before earlier ones without delaying them."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from analysim.policy.base import Duration, Options


class BackfillOptions(Options):
    """Bounds on what a pass looks at, as those of Slurm's backfill plugin; by default there are none."""

    test: PositiveInt | None = Field(
        default=None, description="waiting jobs that a pass tries; those passed over with their like do not count"
    )
    window: Duration | None = Field(
        default=None, gt=0, description="how far ahead starts are promised; who would start later gets no promise"
    )
    resolution: Duration = Field(default=0, description="times are rounded up to multiples of this; 0: they are not")
