"""The one public door for policy authors: everything a policy file may import from this package."""

from analysim.jobs import Job, Placement
from analysim.plan.backlog import Candidates
from analysim.plan.blocked import Blocked
from analysim.plan.calendar import Calendar
from analysim.plan.orders import Order
from analysim.plan.plan import Plan
from analysim.plan.shadow import Shadow
from analysim.plan.trial import Trial
from analysim.policy.agenda import Agenda, Looks
from analysim.policy.backfill import BackfillOptions
from analysim.policy.base import Duration, Knowledge, Options, Policy
from analysim.policy.consolidation import Consolidation, IntoUsed, MoveBudget, move_price
from analysim.policy.elastic import Claim, ElasticOptions, ElasticPolicy
from analysim.policy.feedback import Feedback, FeedbackOptions
from analysim.policy.levels import Levels, Thresholds
from analysim.policy.moving import Moves
from analysim.policy.placement import Placer
from analysim.policy.placers import PLACERS
from analysim.policy.shortest import RemainingService, ShortestFirst, ShortestOptions
from analysim.units import MICROSECONDS, seconds, to_seconds

__all__ = [
    "MICROSECONDS",
    "PLACERS",
    "Agenda",
    "BackfillOptions",
    "Blocked",
    "Calendar",
    "Candidates",
    "Claim",
    "Consolidation",
    "Duration",
    "ElasticOptions",
    "ElasticPolicy",
    "Feedback",
    "FeedbackOptions",
    "IntoUsed",
    "Job",
    "Knowledge",
    "Levels",
    "Looks",
    "MoveBudget",
    "Moves",
    "Options",
    "Order",
    "Placement",
    "Placer",
    "Plan",
    "Policy",
    "RemainingService",
    "Shadow",
    "ShortestFirst",
    "ShortestOptions",
    "Thresholds",
    "Trial",
    "move_price",
    "seconds",
    "to_seconds",
]
