"""Limits of Slurm's accounting: a partition's QOS, and accounts where there are no partitions.

https://slurm.schedmd.com/resource_limits.html and https://slurm.schedmd.com/qos.html
"""

from __future__ import annotations

from collections.abc import Sequence

from analysim.clusters.importing.found import Found, FoundPartition
from analysim.clusters.importing.slurm_cluster import Slurm
from analysim.clusters.importing.slurm_texts import Record, read_time, tres_gpus
from analysim.config.cluster import GpuAmount, RunningLimit
from analysim.config.nodes import DEFAULT_GPU_TYPE

_HELD = ("name", "priority", "grptres", "maxtres", "maxwall", "maxtrespu", "maxjobspu", "maxtrespa", "maxjobspa")
_NO_LIMIT = (
    "gracetime",
    "preempt",
    "preemptmode",
    "preemptexempttime",
    "flags",
    "usagefactor",
    "usagethres",
    "descr",
    "id",
)
_OF_ACCOUNTS = ("account", "grptres", "parentname", "parname", "cluster", "share", "qos", "defqos", "defaultqos")
LEFT_OUT = "limits that a cluster file cannot hold, left out"


def apply_accounting(slurm: Slurm, found: Found) -> None:
    """Give partitions the limits of their QOS; accounts become partitions where there are no others.

    Raises ``ConfigError``.
    """
    limits = {record.get("name"): record for record in slurm.qos if record.get("name")}
    used: set[str] = set()
    partitions = {each.name: each for each in found.partitions}
    for queue in slurm.queues.values():
        if queue.qos in limits:
            used.add(queue.qos)
            _limit_partition(slurm, found, partitions[queue.name], limits[queue.qos])
        elif queue.qos and slurm.qos:
            slurm.tally.add("partitions whose QOS the list lacks", f"{queue.name}: {queue.qos}")
    for name in sorted(set(limits) - used):
        slurm.tally.add("QOS that belong to no partition, left out: jobs choose them, a cluster file has none", name)
    shared = [queue.qos for queue in slurm.queues.values() if queue.qos in used]
    for name in sorted({each for each in shared if shared.count(each) > 1}):
        slurm.tally.add("QOS of several partitions, each of which has the whole limit", name)
    _apply_accounts(slurm, found)


def _limit_partition(slurm: Slurm, found: Found, partition: FoundPartition, record: Record) -> None:
    partition.limit = _gpu_limit(slurm, found, record, "grptres")
    per_job = _gpu_limit(slurm, found, record, "maxtres")
    if isinstance(per_job, dict):
        slurm.tally.add(LEFT_OUT, "MaxTRES by GPU type")
    elif per_job == 0:
        partition.limit = 0
    else:
        partition.max_gpus_per_job = per_job
    partition.user = _running(slurm, found, record, "pu")
    partition.tenant = _running(slurm, found, record, "pa")
    wall = read_time(record, "maxwall")
    times = [each for each in (wall, partition.time_limit_s) if each is not None]
    partition.time_limit_s = min(times, default=None)
    if record.get("priority") not in ("", "0"):
        slurm.tally.add("priorities of QOS, left out: a partition's own PriorityTier counts", record.get("name"))
    _count_others(slurm, record, _HELD)


def _running(slurm: Slurm, found: Found, record: Record, suffix: str) -> RunningLimit | None:
    gpus = _gpu_limit(slurm, found, record, f"maxtres{suffix}")
    if isinstance(gpus, dict):
        types = _types(found)
        if len(types) > 1:
            slurm.tally.add(LEFT_OUT, f"MaxTRES{suffix.upper()} by GPU type")
            gpus = None
        else:
            gpus = sum(gpus.values())
    jobs = record.whole(f"maxjobs{suffix}")
    return None if gpus is None and jobs is None else RunningLimit(gpus=gpus, jobs=jobs)


def _types(found: Found) -> list[str]:
    return list(dict.fromkeys(node.gpu_type or DEFAULT_GPU_TYPE for node in found.nodes if node.gpus))


def _gpu_limit(slurm: Slurm, found: Found, record: Record, key: str) -> GpuAmount | None:
    """GPUs that a limit names, in all or by type; what else it names is counted."""
    total, by_type, others = tres_gpus(record, key)
    for name in others:
        slurm.tally.add(LEFT_OUT, f"{key} of {name}")
    known = {each.lower(): each for each in _types(found)}
    for name in sorted(set(by_type) - set(known)):
        slurm.tally.add("limits on GPU types that no node has, left out", name)
    typed = {known[name]: count for name, count in by_type.items() if name in known}
    if total is not None:
        if typed and sum(typed.values()) != total:
            slurm.tally.add(LEFT_OUT, f"{key} by GPU type beside one in all")
        return total
    return typed or None


def _count_others(slurm: Slurm, record: Record, held: Sequence[str]) -> None:
    for key in record.values:
        if key not in held and key not in _NO_LIMIT and record.get(key) and key:
            slurm.tally.add(LEFT_OUT, key)


def _apply_accounts(slurm: Slurm, found: Found) -> None:
    accounts = [each for each in slurm.associations if each.get("account") and not each.get("user")]
    users = len(slurm.associations) - len(accounts)
    if users:
        slurm.tally.add("associations of users, left out: limits per user stand on partitions here", count=users)
    if found.partitions:
        limited = [each for each in accounts if each.get("grptres", "maxtres", "grpjobs", "maxjobs")]
        for record in limited:
            slurm.tally.add(
                "accounts with limits, left out: accounts cut across the Slurm partitions. Without partitions"
                " (slurm.conf or sinfo without them) accounts become the partitions",
                record.get("account"),
            )
        return
    names: set[str] = set()
    for record in accounts:
        name = record.get("account").strip()
        if name in names:
            slurm.tally.add("associations of accounts beyond the first, left out", name)
            continue
        names.add(name)
        limit = _gpu_limit(slurm, found, record, "grptres")
        parent = record.get("parentname", "parname").strip()
        found.partitions.append(FoundPartition(name, parent="" if parent == "root" else parent, limit=limit))
        _count_others(slurm, record, _OF_ACCOUNTS)
    root = [each for each in found.partitions if each.name == "root"]
    if root:
        found.partitions.remove(root[0])
        slurm.notes.append("the account root is the whole cluster; a limit on it is left out")
    if found.partitions:
        slurm.notes.append(f"{len(found.partitions)} accounts are the partitions: a job's tenant names its account")
