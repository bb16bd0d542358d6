"""Least attained service first in discretised levels: Tiresias without knowledge of durations."""

from analysim.policy import Feedback


class Las(Feedback):
    """Run the jobs that have had the least GPU-time, in levels; first started, first served inside a level.

    A job sinks one level at each threshold of GPU-time. One that does not fit may stop jobs of lower levels that
    have run ``minimum_run``. A stopped job that has waited ``promote`` times as long as it ran counts as new.
    """

    name = "las"
    source = (
        "Gu et al., 'Tiresias: a GPU cluster manager for distributed deep learning', NSDI 2019 (discretised 2D-LAS); "
        "its simulator's dlas-gpu"
    )
