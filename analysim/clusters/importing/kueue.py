"""Queues of Kueue as a tree of partitions: nominal quota is guarantee, a cohort the parent, a flavor a GPU type.

https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/ and cohort/; API versions v1alpha1 to v1beta2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from analysim.clusters.importing.documents import Object, mapping, name_of, sequence, whole_quantity
from analysim.clusters.importing.found import FoundNode, FoundPartition, Tally
from analysim.clusters.importing.kubernetes_nodes import GPU_RESOURCES, TYPE_LABELS
from analysim.clusters.importing.sources import Source
from analysim.config.nodes import DEFAULT_GPU_TYPE, MAX_NAMES

KINDS = ("ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue", "Topology")
"""Kinds that are read."""

GPUS_PER_NODE = 8
"""GPUs of the nodes made where no nodes are given."""

Objects = Mapping[str, Sequence[tuple[Source, Object]]]


@dataclass
class Share:
    """Quota of one queue or cohort: what is its own, by GPU type; None as type where flavors do not tell types."""

    nominal: dict[str | None, int] = field(default_factory=dict)
    borrow: dict[str | None, int] = field(default_factory=dict)
    lend: dict[str | None, int] = field(default_factory=dict)


@dataclass
class Quotas:
    """What reading the queues needs of the nodes, and what it has to say."""

    nodes: list[FoundNode]
    tally: Tally
    notes: list[str] = field(default_factory=list)
    flavors: dict[str, dict[str, str]] = field(default_factory=dict)


def nodes_for(objects: Objects, notes: list[str]) -> list[FoundNode]:
    """Make nodes of ``GPUS_PER_NODE`` GPUs that hold all nominal quotas. Raises ``ConfigError``."""
    quotas = Quotas([], Tally())  # what there is to say is said when the queues are read
    _read_flavors(quotas, objects)
    needed: dict[str | None, int] = {}
    for kind in ("ClusterQueue", "Cohort"):
        for source, thing in objects.get(kind, ()):
            for gpu_type, gpus in _share(quotas, source, thing).nominal.items():
                needed[gpu_type] = needed.get(gpu_type, 0) + gpus
    counts = {gpu_type: -(-gpus // GPUS_PER_NODE) for gpu_type, gpus in needed.items() if gpus}
    if sum(counts.values()) > MAX_NAMES:
        source = objects["ClusterQueue"][0][0]
        raise source.error(None, f"quotas of {sum(needed.values()):,} GPUs.", "Check the quotas.")
    notes.append(f"assumed: nodes of {GPUS_PER_NODE} GPUs, just enough for the quotas, as no nodes are given")
    return [
        FoundNode(f"{gpu_type or DEFAULT_GPU_TYPE}-n{index:03d}", gpu_type=gpu_type, gpus=GPUS_PER_NODE)
        for gpu_type, count in counts.items()
        for index in range(count)
    ]


def read_quotas(quotas: Quotas, objects: Objects) -> list[FoundPartition]:
    """Read the tree of cohorts and queues. Raises ``ConfigError`` for quantities that are none."""
    _read_flavors(quotas, objects)
    shares: dict[str, Share] = {}
    partitions: dict[str, FoundPartition] = {}
    queues = {name_of(source, thing) for source, thing in objects["ClusterQueue"]}
    for source, thing in objects.get("Cohort", ()):
        name = _cohort_name(name_of(source, thing), queues)
        spec = mapping(thing, "spec")
        parent = _text(spec, "parentName") or _text(spec, "parent")
        partitions[name] = FoundPartition(name, parent=_cohort_name(parent, queues))
        shares[name] = _share(quotas, source, thing)
    for source, thing in objects["ClusterQueue"]:
        name, spec = name_of(source, thing), mapping(thing, "spec")
        cohort = _cohort_name(_text(spec, "cohortName") or _text(spec, "cohort"), queues)
        reclaim = mapping(spec, "preemption").get("reclaimWithinCohort", "Never") != "Never"
        partitions[name] = FoundPartition(name, parent=cohort, reclaim=reclaim and bool(cohort))
        shares[name] = _share(quotas, source, thing)
        if spec.get("stopPolicy", "None") != "None":
            quotas.tally.add("queues that are stopped (stopPolicy), kept as if they were not", name)
    for parent in [each.parent for each in partitions.values()]:
        if parent and parent not in partitions:
            partitions[parent] = FoundPartition(parent)
            shares[parent] = Share()
    _leave_empty_cohorts(quotas, partitions, queues)
    _fill(quotas, partitions, shares)
    _note_local_queues(quotas, objects)
    return list(partitions.values())


def _cohort_name(name: str, queues: set[str]) -> str:
    return f"{name}-cohort" if name in queues else name


def _text(spec: Object, key: str) -> str:
    value = spec.get(key)
    return value if isinstance(value, str) else ""


def _read_flavors(quotas: Quotas, objects: Objects) -> None:
    for source, thing in objects.get("ResourceFlavor", ()):
        labels = mapping(thing, "spec", "nodeLabels")
        quotas.flavors[name_of(source, thing)] = {key: str(value) for key, value in labels.items()}


def _share(quotas: Quotas, source: Source, thing: Object) -> Share:
    share = Share()
    name = name_of(source, thing)
    for group in sequence(mapping(thing, "spec"), "resourceGroups"):
        for flavor in sequence(group, "flavors"):
            for resource in sequence(flavor, "resources"):
                if not isinstance(resource, dict):
                    continue
                if resource.get("name") not in GPU_RESOURCES:
                    quotas.tally.add("quotas of other resources than whole GPUs, left out", str(resource.get("name")))
                    continue
                known, gpu_type = _type_of(quotas, str(flavor.get("name")))
                if known:
                    _add(share, source, f"{thing['kind']} {name}", gpu_type, resource)
                else:
                    example = f"{name}: {flavor.get('name')}"
                    quotas.tally.add("quotas of flavors that no node matches, left out", example)
    return share


def _add(share: Share, source: Source, what: str, gpu_type: str | None, resource: Object) -> None:
    """Add a flavor's quota; flavors of one GPU type are summed, and one without bound unbinds the sum."""
    first = gpu_type not in share.nominal
    nominal = whole_quantity(source, f"{what}: nominalQuota", resource.get("nominalQuota", "0"))
    share.nominal[gpu_type] = share.nominal.get(gpu_type, 0) + nominal
    for key, bounds, unbounded in (("borrowingLimit", share.borrow, None), ("lendingLimit", share.lend, nominal)):
        bound = resource.get(key)
        amount = whole_quantity(source, f"{what}: {key}", bound) if bound is not None else unbounded
        if amount is not None and (first or gpu_type in bounds):
            bounds[gpu_type] = bounds.get(gpu_type, 0) + amount
        else:
            bounds.pop(gpu_type, None)


def _type_of(quotas: Quotas, flavor: str) -> tuple[bool, str | None]:
    """Whether a flavor can be used, and the GPU type it stands for (None: several)."""
    labels = quotas.flavors.get(flavor)
    if labels is None:
        quotas.tally.add("uses of flavors that are not among the files, taken for GPUs of every type", flavor)
        labels = {}
    if not quotas.nodes:
        named = next((labels[each] for each in TYPE_LABELS if each in labels), None)
        return True, named or (flavor if labels else None)
    matching = [node for node in quotas.nodes if node.gpus and all(node.labels.get(k) == v for k, v in labels.items())]
    if not any(node.labels for node in quotas.nodes):  # nodes made for the quotas have none
        named = next((labels[each] for each in TYPE_LABELS if each in labels), None) or (flavor if labels else None)
        matching = [node for node in quotas.nodes if named is None or node.gpu_type == named]
    types = {node.gpu_type or DEFAULT_GPU_TYPE for node in matching}
    if len(types) == 1:
        return True, types.pop()
    return bool(types), None


def _leave_empty_cohorts(quotas: Quotas, partitions: dict[str, FoundPartition], queues: set[str]) -> None:
    while True:
        parents = {each.parent for each in partitions.values()}
        empty = [name for name in partitions if name not in queues and name not in parents]
        if not empty:
            return
        for name in empty:
            quotas.tally.add("cohorts without queues, left out", name)
            del partitions[name]


def _fill(quotas: Quotas, partitions: dict[str, FoundPartition], shares: Mapping[str, Share]) -> None:
    """Write the shares into the partitions: by type where every flavor is one, else over all types."""
    capacity: dict[str | None, int] = {}
    for node in quotas.nodes:
        if node.gpus:
            gpu_type = node.gpu_type or DEFAULT_GPU_TYPE
            capacity[gpu_type] = capacity.get(gpu_type, 0) + node.gpus
    typed = len(capacity) > 1 and not any(None in shares[name].nominal for name in partitions)
    types: list[str | None] = list(capacity) if typed else [None]
    if len(capacity) > 1 and not typed:
        quotas.notes.append("quotas count GPUs of all types together: some flavors stand for more than one GPU type")
    own = {name: _merged(shares[name], types) for name in partitions}
    guarantees = {name: _below(name, partitions, own, types) for name in partitions}
    tops = [name for name in partitions if not partitions[name].parent]
    everything: dict[str | None, int] = {None: sum(capacity.values())}
    there = capacity if typed else everything
    promised = {each: sum(guarantees[name][each] for name in tops) for each in types}
    over = any(promised[each] > there.get(each, 0) for each in types)
    if over:
        quotas.notes.append(
            f"the quotas sum to {sum(promised.values()):,} GPUs, the nodes have {sum(there.values()):,}: quotas became"
            " limits (limit = nominalQuota + borrowingLimit), nothing is guaranteed and nothing reclaimed"
        )
    for name, partition in partitions.items():
        _write(partition, own[name], guarantees[name], types, over)


def _merged(share: Share, types: Sequence[str | None]) -> Share:
    if types != [None]:
        return share
    merged = Share({None: sum(share.nominal.values())})
    for bounds, result in ((share.borrow, merged.borrow), (share.lend, merged.lend)):
        if share.nominal and set(bounds) == set(share.nominal):
            result[None] = sum(bounds.values())
    return merged


def _below(
    name: str, partitions: Mapping[str, FoundPartition], own: Mapping[str, Share], types: Sequence[str | None]
) -> dict[str | None, int]:
    """Guarantee of a partition: its own nominal quota, and for a cohort that of all below it."""
    total = {each: own[name].nominal.get(each, 0) for each in types}
    waiting, seen = [name], {name}
    while waiting:
        above = waiting.pop()
        for child, partition in partitions.items():
            if partition.parent == above and child not in seen:
                seen.add(child)
                waiting.append(child)
                for each in types:
                    total[each] += own[child].nominal.get(each, 0)
    return total


def _write(
    partition: FoundPartition,
    own: Share,
    guarantee: Mapping[str | None, int],
    types: Sequence[str | None],
    over: bool,
) -> None:
    alone = not partition.parent
    # A cohort that states no quota of a type has no bound of its own there; a queue that has none may not use it.
    stated = {each: each in own.nominal or guarantee[each] > 0 for each in types}
    borrow = {each: 0 if alone else own.borrow[each] for each in types if alone or each in own.borrow}
    lend = {each: min(amount, guarantee[each]) for each, amount in own.lend.items() if each in types}
    lend = {each: amount for each, amount in lend.items() if amount < guarantee[each]}
    if over:
        limits = {each: guarantee[each] + borrow[each] for each in borrow}
        limits |= {each: 0 for each in types if not stated[each]}
        partition.limit = _amount(limits)
        partition.reclaim = False
        return
    borrow |= {each: 0 for each in types if not stated[each]}
    partition.guarantee = _amount({each: amount for each, amount in guarantee.items() if amount}) or 0
    partition.borrow = _amount(borrow)
    partition.lend = _amount(lend)


def _amount(amounts: Mapping[str | None, int]) -> int | dict[str, int] | None:
    if not amounts:
        return None
    if None in amounts:
        return amounts[None]
    return {str(each): amount for each, amount in amounts.items()}


def _note_local_queues(quotas: Quotas, objects: Objects) -> None:
    for source, thing in objects.get("LocalQueue", ()):
        space = mapping(thing, "metadata").get("namespace", "default")
        queue = _text(mapping(thing, "spec"), "clusterQueue")
        quotas.tally.add(
            "local queues, which are no partitions of their own: jobs go to the cluster queue that each points to",
            f"{space}/{name_of(source, thing)} -> {queue}",
        )
