"""The one public door for policy authors: everything a policy file may import from this package."""

from analysim.jobs import Job, Placement
from analysim.plan.blocked import Blocked
from analysim.plan.orders import Order
from analysim.plan.plan import Plan
from analysim.plan.shadow import Shadow
from analysim.plan.trial import Trial
from analysim.policy.agenda import Agenda, Looks
from analysim.policy.base import Duration, Knowledge, Options, Policy
from analysim.policy.feedback import Feedback, FeedbackOptions
from analysim.policy.levels import Levels
from analysim.policy.placement import PLACERS, Placer, RackFirst
from analysim.policy.shortest import RemainingService, ShortestFirst, ShortestOptions
from analysim.units import MICROSECONDS, seconds, to_seconds

__all__ = [
    "MICROSECONDS",
    "PLACERS",
    "Agenda",
    "Blocked",
    "Duration",
    "Feedback",
    "FeedbackOptions",
    "Job",
    "Knowledge",
    "Levels",
    "Looks",
    "Options",
    "Order",
    "Placement",
    "Placer",
    "Plan",
    "Policy",
    "RackFirst",
    "RemainingService",
    "Shadow",
    "ShortestFirst",
    "ShortestOptions",
    "Trial",
    "seconds",
    "to_seconds",
]
