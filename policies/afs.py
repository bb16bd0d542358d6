"""AFS-L: the next GPU by comparing jobs two by two, the shorter one's gain against the longer one's."""

from bisect import insort

from analysim.policy import Claim, ElasticPolicy, Order


class Afs(ElasticPolicy):
    """Give each job its least GPUs, the shortest first, then one GPU at a time to the winner of all pairs.

    Of two jobs the shorter wins if its throughput would grow by a larger share of what it is than the longer one's
    of what it would be: then the mean completion time of the two falls more.
    """

    name = "afs"
    source = "Hwang et al., 'Elastic resource sharing for distributed deep learning', NSDI 2021 (AFS-L)"

    first = Order(lambda job, plan: plan.remaining(job) / plan.throughput(job, job.min_gpus) if job.gpus else 0)

    def share_out(self, claims: list[Claim], gpus: int) -> None:
        line = sorted(self._entry(claim) for claim in claims)
        while gpus and line:
            best = 0
            for place in range(1, len(line)):
                if line[place][4] >= line[best][3]:
                    best = place
            claim = line.pop(best)[2]
            if claim.more > gpus or claim.throughputs()[1] <= claim.throughputs()[0]:
                continue
            gpus -= claim.more
            claim.grow()
            if claim.more:
                insort(line, self._entry(claim))

    @staticmethod
    def _entry(claim: Claim) -> tuple[float, int, Claim, float, float]:
        """Time left, place, the job, and what one more GPU adds to its throughput: over what it is, and will be."""
        now, then = claim.throughputs()
        gain = (then - now) / claim.more
        return claim.time(claim.gpus), claim.place, claim, gain / now, gain / then
