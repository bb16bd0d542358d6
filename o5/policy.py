"""Optimus: one GPU at a time to the job whose remaining time falls most by it."""

from heapq import heapify, heappop, heappush

from pydantic import Field

from analysim.policy import Claim, Duration, ElasticOptions, ElasticPolicy


class OptimusOptions(ElasticOptions):
    """Allocations every ten minutes, as in the paper's experiments."""

    interval: Duration = Field(default="10m", validate_default=True, description="between allocations, 0: none")


class Optimus(ElasticPolicy):
    """Give each job its least GPUs in order of arrival, the rest by marginal gain: the time left that a GPU saves."""

    name = "optimus"
    source = "Peng et al., 'Optimus: an efficient dynamic resource scheduler for deep learning clusters', EuroSys 2018"
    Options = OptimusOptions

    def share_out(self, claims: list[Claim], gpus: int) -> None:
        heap = [(-self._gain(claim), claim.place, claim) for claim in claims]
        heapify(heap)
        while heap and gpus:
            gain, _, claim = heappop(heap)
            if gain < 0 and claim.more <= gpus:
                gpus -= claim.more
                claim.grow()
                if claim.more:
                    heappush(heap, (-self._gain(claim), claim.place, claim))

    @staticmethod
    def _gain(claim: Claim) -> float:
        """Time left that its next size saves, for each GPU that it takes."""
        return (claim.time(claim.gpus) - claim.time(claim.gpus + claim.more)) / claim.more
