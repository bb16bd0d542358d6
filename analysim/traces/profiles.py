"""Profiles of synthetic traces: how jobs arrive, how large and how long they are, and whose they are."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from analysim.config.fields import Model
from analysim.errors import UserError
from analysim.spelling import suggest

Share = NonNegativeFloat
"""A weight; the weights of a mix are divided by their sum."""


class DurationPart(Model):
    """A part of the jobs whose durations are lognormal (``scale_s`` the median, ``sigma`` of the logarithm)
    or exponential (``scale_s`` the mean)."""

    share: Share
    scale_s: PositiveFloat
    sigma: NonNegativeFloat = 0.0
    shape: Literal["lognormal", "exponential"] = "lognormal"


class Tenant(Model):
    """A tenant path (org/team), its share of the submissions, and the leaf partition its jobs go to."""

    name: str
    share: Share
    partition: str = ""


class Profile(Model):
    """All that decides a synthetic trace except its seed, its length and its load.

    Time 0 is a Monday, 0:00. Durations of g-GPU jobs are those of one GPU times ``g ** size_exponent``.
    """

    description: str = ""
    jobs: PositiveInt = Field(default=10_000, description="jobs made where nothing else is said")
    gpus: PositiveInt | None = Field(default=None, description="cluster for which `load` holds")
    load: PositiveFloat | None = Field(default=None, description="offered load; absent: jobs_per_hour holds")
    jobs_per_hour: PositiveFloat = Field(default=60.0, description="mean arrival rate")
    daily_swing: float = Field(
        default=0.0, ge=0, le=1, description="arrival rate 1 + swing * cos(time of day)"
    )
    busiest_hour: float = Field(default=14.0, ge=0, lt=24)
    weekend: NonNegativeFloat = Field(default=1.0, description="arrival rate on days 6 and 7")
    burst_share: float = Field(
        default=0.0, ge=0, lt=1, description="jobs submitted right after one like them"
    )
    burst_gap_s: PositiveFloat = Field(default=5.0, description="mean time between jobs of a burst")
    sizes: dict[PositiveInt, Share] = Field(default={1: 1.0}, description="share of jobs by GPUs")
    durations: list[DurationPart] = Field(min_length=1, description="mix of run times of jobs with one GPU")
    size_exponent: float = Field(default=0.0, description="how run time grows with GPUs")
    shortest_s: PositiveFloat = Field(default=1.0, description="shorter durations are raised to it")
    longest_s: PositiveFloat | None = Field(default=None, description="longer durations are cut to it")
    resolution_s: PositiveFloat = Field(default=1.0, description="times are multiples of it")
    tenants: list[Tenant] = Field(default=[], description="absent: the tenant is empty")
    users_per_tenant: PositiveInt = Field(
        default=20, description="the k-th user submits in proportion to 1/k"
    )
    priorities: dict[int, Share] = Field(default={0: 1.0}, description="share of jobs by priority")
    nonpreemptible_share: float = Field(default=0.0, ge=0, le=1)
    statuses: dict[str, Share] = Field(default={}, description="share of jobs by recorded status")
    gpu_types: dict[str, Share] = Field(default={}, description="share of jobs by GPU type asked for")
    elastic_share: float = Field(default=0.0, ge=0, le=1, description="jobs that run on 1 to twice their GPUs")
    elastic_curve: str = Field(default="amdahl:0.95", description="their throughput by GPUs")


def _skewed(*names: str) -> list[Tenant]:
    """Give tenants shares in proportion to 1/k, as the virtual clusters of production are skewed."""
    return [Tenant(name=name, share=1 / rank) for rank, name in enumerate(names, start=1)]


_TEAMS = _skewed(
    "vision/detection",
    "language/pretraining",
    "ranking/ads",
    "vision/segmentation",
    "speech/recognition",
    "language/translation",
    "robotics/control",
    "ranking/feed",
    "vision/video",
    "speech/synthesis",
    "language/dialogue",
    "robotics/simulation",
)

PROFILES = {
    "philly": Profile(
        description="Microsoft Philly 2017, fitted to the figures published of its 112,956 GPU jobs",
        jobs=112_956,
        jobs_per_hour=34.4,  # 112,956 jobs in 137 days, 7 August to 22 December 2017
        daily_swing=0.35,
        weekend=0.5,
        burst_share=0.5,
        sizes={1: 0.8499, 2: 0.03, 4: 0.042, 8: 0.0619, 16: 0.012, 32: 0.0035, 64: 0.0006, 128: 0.0001},
        durations=[
            DurationPart(share=0.37, scale_s=75.8, sigma=1.2),
            DurationPart(share=0.37, scale_s=1_359, sigma=0.8),
            DurationPart(share=0.26, scale_s=5_684.8, sigma=2.19),
        ],
        size_exponent=0.5204,
        longest_s=4_240_676,
        tenants=_TEAMS,
        statuses={"completed": 0.604, "cancelled": 0.090, "failed": 0.305},
    ),
    "helios": Profile(
        description="SenseTime Helios 2020, fitted to the figures published of its 1,580,464 GPU jobs",
        jobs=1_580_464,
        jobs_per_hour=359.9,  # 1,580,464 jobs in 183 days, April to September 2020
        daily_swing=0.75,
        busiest_hour=13.0,
        weekend=0.67,
        burst_share=0.2,
        sizes={
            1: 0.6506,
            2: 0.058,
            4: 0.063,
            8: 0.184,
            16: 0.026,
            32: 0.0145,
            64: 0.0026,
            128: 0.0012,
            256: 1e-4,
        },
        durations=[
            DurationPart(share=0.19, scale_s=12.3, sigma=1.6),
            DurationPart(share=0.336, scale_s=99.1, sigma=0.75),
            DurationPart(share=0.4, scale_s=667.9, sigma=1.8),
            DurationPart(share=0.074, scale_s=15_621, sigma=1.4),
        ],
        size_exponent=0.4427,
        longest_s=4_320_009,
        tenants=_TEAMS,
        statuses={"completed": 0.624, "cancelled": 0.221, "failed": 0.155},
    ),
    "poisson": Profile(
        description="Poisson arrivals and exponential durations on one GPU each, for queueing theory",
        jobs_per_hour=60.0,
        durations=[DurationPart(share=1, scale_s=3_600, shape="exponential")],
        shortest_s=1e-6,
        resolution_s=1e-6,
    ),
    "demo": Profile(
        description="ten thousand jobs that queue on the cluster gpu-1152, for demonstrations",
        gpus=1_152,
        load=0.95,
        daily_swing=0.6,
        weekend=0.6,
        burst_share=0.25,
        sizes={1: 0.36, 2: 0.12, 4: 0.13, 8: 0.25, 16: 0.08, 32: 0.045, 64: 0.015},
        durations=[
            DurationPart(share=0.35, scale_s=480, sigma=1.0),
            DurationPart(share=0.45, scale_s=3_600, sigma=1.0),
            DurationPart(share=0.2, scale_s=18_000, sigma=1.0),
        ],
        size_exponent=0.1,
        longest_s=172_800,
        tenants=[
            Tenant(name="research/language", share=0.26, partition="research-language"),
            Tenant(name="products/ranking", share=0.24, partition="prod-ranking"),
            Tenant(name="research/vision", share=0.13, partition="research-vision"),
            Tenant(name="products/speech", share=0.18, partition="prod-speech"),
            Tenant(name="campus/courses", share=0.12, partition="batch"),
            Tenant(name="research/robotics", share=0.07, partition="research-robotics"),
        ],
        priorities={0: 0.6, 1: 0.3, 2: 0.1},
        nonpreemptible_share=0.2,
    ),
    "tiny": Profile(
        description="twenty jobs in whole minutes for the cluster tiny, to follow by hand",
        jobs=20,
        gpus=16,
        load=1.3,
        sizes={1: 0.3, 2: 0.3, 4: 0.25, 8: 0.15},
        durations=[DurationPart(share=1, scale_s=1_200, sigma=0.8)],
        longest_s=7_200,
        resolution_s=60,
        tenants=[Tenant(name="lab/vision", share=0.6), Tenant(name="lab/language", share=0.4)],
        users_per_tenant=2,
        priorities={0: 0.75, 1: 0.25},
        nonpreemptible_share=0.2,
    ),
}
"""The profiles by name. Sources and fit: ``docs/reference/generated-traces.md``."""


def find_profile(name: str) -> Profile:
    """Return a profile by its name. Raises ``UserError`` with the names there are."""
    if name not in PROFILES:
        raise UserError(f"There is no trace profile {name!r}.", suggest(name, PROFILES))
    return PROFILES[name]
