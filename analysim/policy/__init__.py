"""The one public door for policy authors: everything a policy file may import from this package."""

from analysim.jobs import Job, Placement
from analysim.plan.blocked import Blocked
from analysim.plan.orders import Order
from analysim.plan.plan import Plan
from analysim.plan.shadow import Shadow
from analysim.plan.trial import Trial
from analysim.policy.base import Duration, Knowledge, Options, Policy
from analysim.policy.moving import Moves
from analysim.policy.placement import PLACERS, Placer, RackFirst
from analysim.units import MICROSECONDS, seconds, to_seconds

__all__ = [
    "MICROSECONDS",
    "PLACERS",
    "Blocked",
    "Duration",
    "Job",
    "Knowledge",
    "Moves",
    "Options",
    "Order",
    "Placement",
    "Placer",
    "Plan",
    "Policy",
    "RackFirst",
    "Shadow",
    "Trial",
    "seconds",
    "to_seconds",
]
