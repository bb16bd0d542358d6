"""The run configuration: everything that decides a run, as YAML, flags or keyword arguments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveFloat

from analysim.config.cluster import Costs, PlacementName
from analysim.config.fields import DurationUs, Model


class RunConfig(Model):
    """One run: a trace, a cluster, a policy and the rules between them.

    Durations are microseconds inside; windows are ``"a:b"`` since the first submit.
    """

    trace: str
    policy: str = "fifo"
    topology: str | None = None
    placement: PlacementName = "pack"
    seed: int = Field(default=0, ge=0)
    load: PositiveFloat | None = Field(default=None, description="scale inter-arrival times to this load")
    window: str | None = None
    initial: bool = Field(default=False, description="jobs recorded as running when the window begins hold GPUs then")
    measure: str | None = None
    until: DurationUs | None = None
    estimates: str | None = Field(default=None, description="exact, factor:F or lognormal:S")
    overrun: Literal["extend", "kill"] = "extend"
    unknown_partition: Literal["reject", "root"] = "reject"
    schedule_every: DurationUs | None = None
    costs: Costs = Costs()
    columns: dict[str, str] = Field(default={}, description="schema name -> the file's own column")
    trace_format: str | None = Field(default=None, description="how the trace is read; by default its content tells")
    timezone: str | None = Field(default=None, description="zone of times without one, such as Europe/Berlin")
    options: dict[str, Any] = Field(default={}, description="options of the policy")
    pass_seconds: PositiveFloat = Field(default=60.0, le=86_400, description="wall time a policy may take in one pass")
