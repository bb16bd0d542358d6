"""Who holds what: GPUs free, held and on their way to being free, and the accounts that count them."""

from __future__ import annotations

from analysim.cluster.capacity import Capacity
from analysim.cluster.partitions import PartitionTree, admits, admits_holder, charge, charge_holder
from analysim.cluster.topology import Topology
from analysim.jobs import Demand, Job, Option
from analysim.plan.releases import Release, Reservation
from analysim.units import GPU_MILLI


class Holdings:
    """Free capacity, releases and reservations; ``unclaimed`` are GPUs being released that nobody has claimed."""

    def __init__(self, topology: Topology, tree: PartitionTree) -> None:
        self.topology = topology
        self.tree = tree
        self.capacity = Capacity(topology)
        self.reserved: dict[int, Reservation] = {}
        self.releases: dict[int, Release] = {}
        self.unclaimed: dict[int, int] = {}

    def admitted(self, demand: Demand, option: Option) -> bool:
        """Tell whether quotas and limits allow a start of this demand on this GPU type."""
        if not option.bounded:
            return True
        amount = demand.gpu_milli
        for chain in option.chains:
            if not admits(chain, amount, demand.preemptible):
                return False
        return not demand.leaf.limited or admits_holder(demand)

    def claimable_on(self, node: int) -> int:
        """GPUs of a node that are free or being released unclaimed, as a mask."""
        return self.capacity.free[node] | self.unclaimed.get(node, 0)

    def claimable_gpus(self, option: Option) -> int:
        """Count the GPUs that are free or being released unclaimed on the nodes of an option."""
        coming = sum(mask.bit_count() for node, mask in self.unclaimed.items() if option.mask >> node & 1)
        return self.capacity.free_within(option.gpu_type, option.mask) + coming

    def would_host(self, node: int, gpus: int, demand: Demand, leaving: list[Job]) -> bool:
        """Tell whether a node has the CPUs and memory for a demand once these jobs have left it."""
        if not demand.resources or not self.capacity.models_resources:
            return True
        cpu_milli = memory_mb = 0
        holders = [(job.placement or (), job.demand) for job in leaving]
        releases = [each for each in self.releases.values() if not each.job.demand.sharing]
        holders += [(release.unclaimed, release.job.demand) for release in releases]
        for placement, held in holders:
            count = sum(mask.bit_count() for where, mask in placement if where == node)
            cpu_milli += count * held.cpu_milli
            memory_mb += count * held.memory_mb
        return self.capacity.hosts(node, gpus, demand, cpu_milli, memory_mb)

    def charge(self, demand: Demand, option: Option | None, amount: int, jobs: int) -> None:
        """Count GPUs (thousandths; negative: less) and jobs in the accounts of a partition path."""
        assert option is not None
        for chain in option.chains:
            charge(chain, amount)
        if demand.leaf.limited:
            charge_holder(demand, amount, jobs)

    def _claim(self, job: Job, node: int, wanted: int) -> None:
        for release in self.releases.values():
            got = release.claim(job, node, wanted)
            if got:
                self._flip(node, got)
                self._hand_over(release, job.demand, node, got, 1)
                wanted ^= got

    def _flip_unclaimed(self, release: Release) -> None:
        """Count what nobody claimed of a release among the unclaimed, or no longer; a share cannot be claimed."""
        if not release.job.demand.sharing:
            for node, mask in release.unclaimed:
                self._flip(node, mask)

    def _flip(self, node: int, mask: int) -> None:
        left = self.unclaimed.get(node, 0) ^ mask
        if left:
            self.unclaimed[node] = left
        else:
            self.unclaimed.pop(node, None)

    def _hand_over(self, release: Release, to: Demand, node: int, mask: int, sign: int) -> None:
        """CPUs, memory and quota usage of claimed GPUs go from their old holder to the new one."""
        self.capacity.exchange(node, mask, release.job.demand, to, sign)
        if release.charged:
            self.charge(release.job.demand, release.option, -sign * mask.bit_count() * GPU_MILLI, 0)
