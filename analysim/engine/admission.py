"""From trace rows to demands: which partition a job belongs to, what it asks for, and whether it can ever run.

All of it is decided once per distinct demand, so a million rows cost as much as their distinct shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pandas as pd

from analysim.cluster.capacity import Capacity
from analysim.cluster.partitions import UNBOUNDED, Leaf, PartitionTree, admits
from analysim.cluster.topology import Topology
from analysim.config.run import RunConfig
from analysim.elastic import COLUMNS as ELASTIC
from analysim.elastic import Elasticity, bounds, check_elastic, parse_curve
from analysim.errors import TraceError
from analysim.jobs import Demand, Domains, Family, Job, Option, Workload
from analysim.plan.search import place
from analysim.policy.placers import PLACERS
from analysim.tables import TOPOLOGY_LEVELS
from analysim.units import GPU_MILLI

_KEY = [
    *("leaf", "gpu_milli", "gpus", "per_node", "gpu_type", "features", "cpu_milli", "memory_mb", "preemptible"),
    *("required", "preferred", "relax_us", "user", "tenant"),
]

_NO_DOMAIN = "within one domain"


class Admission:
    """Builds the demands of a trace on a cluster, or the reasons why jobs are rejected.

    ``counts_only`` is that of the run's placement strategy: any GPUs will do, the gang rule does not hold.
    """

    def __init__(self, topology: Topology, tree: PartitionTree, counts_only: bool, config: RunConfig) -> None:
        self._topology = topology
        self._tree = tree
        self._counts_only = counts_only
        self._config = config
        self._empty = Capacity(topology)
        self._families: dict[tuple[object, ...], Family] = {}
        self._options: dict[tuple[int, str, str], tuple[Option, ...] | str] = {}

    def admit(self, frame: pd.DataFrame) -> Workload:
        """Assign every row its demand; rows that can never run get a reason instead."""
        check_elastic(frame)
        workload = Workload(frame)
        leaves, refusals = self._leaves(frame)
        workload.leaf_names = [leaf.full_name for leaf in self._tree.all]
        workload.leaf_of = leaves
        shapes = self._shapes(frame, leaves)
        workload.elastic = "max_gpus" in shapes
        key = [*_KEY, *ELASTIC] if workload.elastic else _KEY
        grouped = shapes.groupby(key, sort=True)
        numbers = grouped.ngroup().to_numpy(np.int64)
        reason_of: list[str] = []
        number_of: list[int] = []
        for row in grouped.first().reset_index()[key].itertuples(index=False):
            demand, reason = self._demand(len(workload.demands), row)
            if workload.elastic and row.min_gpus:
                demand.elastic = self._elasticity(demand, row)
                if demand.relaxed is not None:
                    demand.relaxed.elastic = demand.elastic
            number_of.append(-1 if reason else len(workload.demands))
            reason_of.append(reason)
            if not reason:
                workload.demands.append(demand)
        workload.demand_of = np.array([*number_of, -1], np.int64)[numbers]
        for rank in np.flatnonzero(workload.demand_of < 0).tolist():
            workload.rejections[rank] = reason_of[numbers[rank]]
        for rank, reason in refusals.items():
            workload.rejections[rank] = reason
            workload.demand_of[rank] = -1
        for demand in workload.demands:
            if demand.relaxed is not None:
                workload.relaxes = True
                workload.demands.append(demand.relaxed)
                demand.relaxed.index = len(workload.demands) - 1
            for option in demand.options:
                self._tree.narrow(option, demand.leaf)
        workload.work_us = self._work(frame, workload, leaves)
        return workload

    # -- partitions --------------------------------------------------------------------------------------

    def _leaves(self, frame: pd.DataFrame) -> tuple[np.ndarray, dict[int, str]]:
        if not self._tree.has_partitions:
            return np.zeros(len(frame), np.int64), {}
        pairs = frame[["partition", "tenant"]].astype(object)
        grouped = pairs.groupby(["partition", "tenant"], sort=True)
        numbers = grouped.ngroup().to_numpy(np.int64)
        firsts = pairs.drop_duplicates().sort_values(["partition", "tenant"])
        found = [self._leaf(str(partition), str(tenant)) for partition, tenant in firsts.itertuples(index=False)]
        order = np.array([leaf.order if isinstance(leaf, Leaf) else 0 for leaf in found] + [0], np.int64)
        refused = {number: leaf for number, leaf in enumerate(found) if isinstance(leaf, str)}
        rows = np.flatnonzero(np.isin(numbers, list(refused)))
        return order[numbers], {rank: refused[numbers[rank]] for rank in rows.tolist()}

    def _leaf(self, partition: str, tenant: str) -> Leaf | str:
        """Find the leaf of a job: its partition; without one, the partition named as its tenant; else the root."""
        names = [partition] if partition else [tenant, *reversed(tenant.split("/"))]
        for name in names:
            leaf = self._tree.by_name.get(name) or self._tree.by_path.get(name)
            if leaf is None or not name:
                continue
            if not leaf.children or leaf.parent is None:
                return leaf
            if partition:
                return f"partition {partition!r} has children; a job names one of its leaves"
        if partition and self._config.unknown_partition == "reject":
            return f"partition {partition!r} is not in the topology"
        return self._tree.root

    # -- shapes ------------------------------------------------------------------------------------------

    def _shapes(self, frame: pd.DataFrame, leaves: np.ndarray) -> pd.DataFrame:
        gpu_milli = frame["gpu_milli"].to_numpy(np.int64)
        gpus = -(-gpu_milli // GPU_MILLI)
        modelled = self._topology.models_resources
        shapes = pd.DataFrame({"leaf": leaves, "gpus": gpus, "gpu_milli": gpu_milli})
        shapes["per_node"] = np.where(gpus > 0, frame["gpus_per_node"].to_numpy(np.int64), 0)
        shapes["gpu_type"] = np.where(gpus > 0, frame["gpu_type"].to_numpy(object), "")
        shapes["features"] = frame["features"].to_numpy(object)
        for name in ("required", "preferred"):
            shapes[name] = np.where(gpus > 0, frame[f"topology_{name}"].to_numpy(object), "")
        waits = np.maximum(frame["topology_wait_us"].to_numpy(np.int64), 0)
        shapes["relax_us"] = np.where(shapes["preferred"] != "", waits, 0)
        for column in ("cpu_milli", "memory_mb"):
            asked = frame[column].to_numpy(np.int64) if modelled else np.zeros(len(frame), np.int64)
            shapes[column] = -(-asked // np.maximum(gpus, 1))
        shapes["preemptible"] = frame["preemptible"].to_numpy(bool)
        for kind in ("user", "tenant"):
            binds = np.array(
                [any(limited == kind for _, limited, _ in leaf.limited) for leaf in self._tree.all], bool
            )
            shapes[kind] = np.where(binds[leaves], frame[kind].to_numpy(object), "") if binds.any() else ""
        least, most, elastic = bounds(frame)
        if elastic.any():
            shapes["min_gpus"], shapes["max_gpus"] = np.where(elastic, least, 0), np.where(elastic, most, 0)
            shapes["throughput"] = np.where(elastic, frame["throughput"].to_numpy(object), "")
        return shapes

    def _elasticity(self, demand: Demand, row: Any) -> Elasticity:
        """On how many GPUs an elastic job may run; what its partition allows a job bounds it too."""
        most = int(row.max_gpus)
        for leaf in demand.leaf.path:
            allowed = leaf.config.max_gpus_per_job if leaf.config else None
            if allowed is not None and allowed >= demand.gpus:
                most = min(most, allowed)
        step = demand.per_node or 1
        return Elasticity(demand.gpus, int(row.min_gpus), most // step * step, step, parse_curve(row.throughput))

    def _demand(self, index: int, row: Any) -> tuple[Demand, str]:
        """Make the demand of a shape; with the reason where it can never run."""
        leaf: Leaf = self._tree.all[row.leaf]
        wanted = str(row.gpu_type), str(row.features)
        options = self._options_of(leaf, *wanted) if row.gpus else self._cpu_options(leaf, wanted[1])
        make = self._maker(row, leaf, options)
        required, within = self._domains(row.required), self._domains(row.preferred)
        demand = make(index, required)
        if demand.gpus > 1 and row.gpu_milli % GPU_MILLI:
            return demand, f"asks for {row.gpu_milli / GPU_MILLI:g} GPUs; only a share of one GPU can be taken"
        why = options if isinstance(options, str) else self._why_never(demand)
        if why == _NO_DOMAIN:
            domain = {"nvlink": "NVLink domain"}.get(row.required, row.required)
            why = f"asks for {row.gpu_milli / GPU_MILLI:g} GPUs within one {domain}; no {domain} can hold them"
        if why or within is None:
            return demand, why
        both = _within(within, required)
        if not self._fits_empty(make(index, both)):
            return demand, ""  # there is no such place on the whole cluster: it does not wait for one
        relaxed = make(index, both + (required or ((self._topology.all_nodes,),)))
        if not row.relax_us:
            return relaxed, ""
        demand = make(index, both)
        demand.relaxed, demand.relax_us = relaxed, int(row.relax_us)
        return demand, ""

    def _maker(
        self, row: Any, leaf: Leaf, options: tuple[Option, ...] | str
    ) -> Callable[[int, Domains | None], Demand]:
        """Return what makes demands of a shape, by their index and the domains they keep to."""
        found = () if isinstance(options, str) else options
        gpus = int(row.gpus)
        per_node = int(row.per_node) if row.gpu_milli >= GPU_MILLI else 0
        # On nodes of several sizes a larger gang may fit where a smaller one, which wants one node, does not.
        uneven = any(len(option.node_types) > 1 for option in found)
        single = tuple(gpus <= option.largest for option in found) if uneven else ()
        kind = (leaf.order, str(row.gpu_type), str(row.features), per_node, bool(row.preemptible), row.user, row.tenant)
        request = (row.required, row.preferred, int(row.relax_us))

        def make(index: int, domains: Domains | None) -> Demand:
            family = self._families.setdefault((*kind, gpus > 0, single, *request, domains), Family())
            return Demand(
                index,
                gpus,
                leaf,
                found,
                family,
                share=int(row.gpu_milli) if gpus == 1 else GPU_MILLI,
                per_node=per_node,
                cpu_milli=int(row.cpu_milli),
                memory_mb=int(row.memory_mb),
                preemptible=bool(row.preemptible),
                user=str(row.user),
                tenant=str(row.tenant),
                domains=domains,
            )

        return make

    def _domains(self, level: str) -> Domains | None:
        if level and level not in TOPOLOGY_LEVELS:
            raise TraceError(f"topology level {level!r} is none of {', '.join(TOPOLOGY_LEVELS)}.", "Name one of them.")
        return (self._topology.domains(level),) if level else None

    def _options_of(self, leaf: Leaf, gpu_type: str, features: str) -> tuple[Option, ...] | str:
        key = (leaf.order, gpu_type, features)
        if key not in self._options:
            self._options[key] = self._make_options(leaf, gpu_type, features)
        return self._options[key]

    def _make_options(self, leaf: Leaf, gpu_type: str, features: str) -> tuple[Option, ...] | str:
        topology = self._topology
        names = gpu_type.split("|") if gpu_type else topology.gpu_types
        known = [name.strip() for name in names if name.strip() in topology.gpu_types]
        if not known:
            return f"GPU type {gpu_type!r} is not in the topology" if gpu_type else "the cluster has no GPUs"
        options = []
        suitable = topology.with_features(features) if features else topology.all_nodes
        for name in known:
            number = topology.gpu_types.index(name)
            allowed = topology.type_masks[number] & suitable
            mask = self._tree.ever_nodes(leaf) & allowed
            if mask:
                options.append(self._option(leaf, number, mask, allowed))
        if not options and features:
            return f"partition {leaf.name!r} has no node with GPU type {gpu_type or 'any'!r} and features {features!r}"
        if not options:
            return f"partition {leaf.name!r} has no node with GPU type {gpu_type or 'any'!r}"
        return tuple(options)

    def _option(self, leaf: Leaf, number: int, mask: int, allowed: int) -> Option:
        tree = self._tree
        sizes = self._topology.sizes_in(mask)
        return Option(number, mask, sizes, tree.chains(leaf, number), tree.bounded, allowed)

    def _cpu_options(self, leaf: Leaf, features: str) -> tuple[Option, ...] | str:
        tree, topology = self._tree, self._topology
        allowed = topology.with_features(features) if features else topology.all_nodes
        mask = tree.ever_nodes(leaf) & allowed
        if not mask:
            return f"partition {leaf.name!r} has no node with features {features!r}"
        return (Option(-1, mask, (), tree.chains(leaf, -1), tree.bounded, allowed),)

    # -- what can never run ------------------------------------------------------------------------------

    def _why_never(self, demand: Demand) -> str:
        """Say why a demand can never run with all nodes up and every quota at its largest; empty: it can."""
        gpus, per_node = demand.gpus, demand.per_node
        if per_node and gpus % per_node:
            return f"asks for {gpus} GPUs, which {per_node} per node does not divide"
        for leaf in demand.leaf.path:
            most = leaf.config.max_gpus_per_job if leaf.config else None
            if most is not None and gpus > most:
                return f"asks for {gpus} GPUs; partition {leaf.name!r} allows {most} a job"
        quota = self._why_quota_never(demand)
        if quota:
            return quota
        return "" if self._fits_empty(demand) else self._why_no_place(demand)

    def _fits_empty(self, demand: Demand) -> bool:
        """Tell whether a demand fits on the cluster with nobody on it."""
        probe = Job(0, 0, 0, demand, None)  # type: ignore[arg-type]  # a probe has no trace row
        placer = PLACERS["any" if self._counts_only else "first"]()
        return any(
            place(placer, self._empty, probe, option, option.mask) is not None for option in demand.options
        )

    def _why_quota_never(self, demand: Demand) -> str:
        if not self._tree.bounded:
            return ""
        for owner, kind, limit in demand.leaf.limited:
            if (limit.gpus is not None and demand.gpus > limit.gpus) or limit.jobs == 0:
                return f"asks for {demand.gpus} GPUs; a {kind} may use {limit.gpus} in partition {owner.name!r}"
        reasons = []
        for option in demand.options:
            reason = ""
            for chain in option.chains:
                for account in chain:
                    cap, guarantee, stated = self._tree.largest(account)
                    if demand.gpu_milli > cap:
                        reason = f"asks for {demand.gpus} GPUs; partition {account.partition.name!r} may use "
                        reason += f"{cap // GPU_MILLI if cap < UNBOUNDED else 'any'} at most"
                    elif (
                        not demand.preemptible
                        and stated
                        and not account.partition.borrow_nonpreemptible
                        and demand.gpu_milli > guarantee
                    ):
                        reason = f"asks for {demand.gpus} GPUs and is not preemptible; partition "
                        reason += f"{account.partition.name!r} guarantees {guarantee // GPU_MILLI}"
                if not reason and not self._tree.changes and not admits(chain, demand.gpu_milli, demand.preemptible):
                    reason = f"asks for {demand.gpus} GPUs; what other partitions do not lend leaves fewer"
            if not reason:
                return ""
            reasons.append(reason)
        return reasons[0] if reasons else ""

    def _why_no_place(self, demand: Demand) -> str:
        topology = self._topology
        have = max((topology.gpus_in(option.mask) for option in demand.options), default=0)
        where = f"partition {demand.leaf.name!r}" if demand.leaf.parent else "the cluster"
        if demand.domains is not None and self._fits_empty(_unbound(demand)):
            return _NO_DOMAIN
        if demand.gpus > have:
            return f"asks for {demand.gpus} GPUs; {where} has {have} of a type it may use"
        largest = max((option.largest for option in demand.options), default=0)
        if demand.per_node > largest:
            return f"asks for {demand.per_node} GPUs on a node; the largest in {where} has {largest}"
        if demand.resources:
            cpus, memory = demand.cpu_milli / 1_000, demand.memory_mb / 1_024
            return f"asks for {cpus:g} CPUs and {memory:g} GB per GPU; no node in {where} has room for that"
        return f"asks for a gang of {demand.gpus} GPUs that the nodes of {where} cannot form"

    # -- how long a job runs -----------------------------------------------------------------------------

    def _work(self, frame: pd.DataFrame, workload: Workload, leaves: np.ndarray) -> np.ndarray:
        """Productive time until a job ends: its duration, or less where a limit or estimate kills it."""
        work = workload.duration_us
        limits = np.array([self._tree.time_limit(leaf) for leaf in self._tree.all], np.int64)
        if (limits < work.max(initial=0)).any():
            work = np.minimum(work, limits[leaves])
        if self._config.overrun == "kill":
            estimates = frame["estimate_us"].to_numpy(np.int64)
            work = np.where(estimates >= 0, np.minimum(work, estimates), work)
        return work


def _unbound(demand: Demand) -> Demand:
    """The same demand without its domains."""
    twin = copy(demand)
    twin.domains = None
    return twin


def _within(preferred: Domains, required: Domains | None) -> Domains:
    """Domains that keep to a preferred level and to a required one."""
    if required is None:
        return preferred
    pairs = ((one & other) for one in preferred[0] for other in required[0])
    return (tuple(mask for mask in pairs if mask),)
