"""Files that come with a trace and are none: node lists, quotas, summaries, and which command takes them."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from itertools import islice

from analysim.traces.readers.format import Sample
from analysim.traces.readers.slurm import EXPORT

_Answer = tuple[str, str]

_NODES = "a table of nodes, not of jobs"
_QUOTAS = "a table of the GPUs of each virtual cluster by day, not of jobs"
_NO_COMMAND = "No command takes it: it is for reading."

_HEADERS: dict[tuple[str, ...], _Answer] = {
    ("sn", "cpu_milli", "memory_mib", "gpu", "model"): (_NODES, "openb"),
    ("machineId", "number of GPUs", "single GPU mem"): (_NODES, "philly"),
    ("", "machineId", "number of GPUs"): (_NODES, "philly"),
    ("vc", "node num"): ("a table of nodes per virtual cluster, not of jobs", "philly"),
    ("ip", "DSW", "PSW", "ASW"): ("a table of hosts and their switches, not of jobs", "lingjun"),
    ("num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"): (
        "the size of a cluster, not a table of jobs",
        "tiresias",
    ),
    ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"): (_NODES, "pai"),
}
"""What a table is by its whole header, and the format under which ``topologies import`` takes it."""

_PAI_HEADERS = {"job_name", "worker_name", "inst_id", "machine"}
_PAI_MACHINE = re.compile(r"[0-9a-f]{16,},\w+,[0-9]+(?:\.[0-9]+)?,[0-9]+(?:\.[0-9]+)?,[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NODE_KIND = re.compile(r"""["']?\bkind["']?\s*:\s*["']?Node(?:List)?["']?\s*[,}\r\n]""")
_NO_ITEMS = re.compile(r"""["']?\bitems["']?\s*:\s*\[\s*\]""")
_SACCT = {"AllocCPUS", "AllocTRES", "Elapsed", "ElapsedRaw", "ExitCode", "NCPUS", "NNodes", "NodeList", "ReqTRES"}
"""Columns that one would not name so oneself."""

_TAR_MAGIC = slice(257, 262)


def describe_other(sample: Sample) -> tuple[str, str] | None:
    """Say what a file is that comes with a trace but holds no jobs, and the remedy; None where it is not known.

    The first completes "FILE is ...", the second is a sentence that names the command which takes the file.
    It is asked only of files that no format recognises, reads no more than the sample (and the first name in
    a tar archive), and never raises.
    """
    for describe in _DESCRIPTIONS:
        answer = describe(sample)
        if answer is not None:
            what, command = answer
            return what, command if " " in command else _import(command)
    return None


def _import(format_name: str) -> str:
    return f"Make a cluster of it: analysim topologies import {format_name} FILE"


def _by_header(sample: Sample) -> _Answer | None:
    header = tuple(sample.header)
    return _HEADERS.get(header) if len(sample.lines) > 1 else None


def _quotas(sample: Sample) -> _Answer | None:
    """Helios: GPUs of each virtual cluster by day."""
    header = sample.header
    if len(header) > 2 and header[0] == "date" and header[-1] == "total" and _rows_fit(sample, len(header)):
        return _QUOTAS, "helios-quota"
    return None


def _rows_fit(sample: Sample, fields: int) -> bool:
    rows = [line.split(",") for line in islice(sample.lines, 1, 6)]
    return all(len(row) == fields and _DATE.fullmatch(row[0]) is not None for row in rows)


def _summary(sample: Sample) -> _Answer | None:
    """Helios and Acme: published figures of whole clusters."""
    if sample.header[:1] == ["id"] and {"job_num", "gpu_job_num", "avg_que_time_gpu"} <= set(sample.header):
        return "a published summary of whole clusters, not a table of jobs", _NO_COMMAND
    return None


def _pai_header(sample: Sample) -> _Answer | None:
    """The line of column names that PAI ships beside each table, whose file has none."""
    lines = [line for line in sample.lines if line.strip()]
    if sample.whole and len(lines) == 1 and len(sample.header) > 3 and _PAI_HEADERS & set(sample.header):
        return "only the column names of a table", "Name the table itself: it is read without this file."
    return None


def _pai_machines(sample: Sample) -> _Answer | None:
    """PAI: machines without a header row, as text or in a tar archive."""
    lines = sample.lines[:20]
    if lines and all(_PAI_MACHINE.fullmatch(line.strip()) for line in lines):
        return _NODES, "pai"
    return None


def _archive(sample: Sample) -> _Answer | None:
    if sample.text[_TAR_MAGIC] != "ustar":
        return None
    try:
        with tarfile.open(sample.path) as archive:
            first = archive.next()
            name = first.name if first else ""
    except (tarfile.TarError, OSError, EOFError):
        name = ""
    if "machine_spec" in name:
        return f"{_NODES} (in a tar archive)", "pai"
    unpacked = f": it holds {name}" if name else ""
    return f"a tar archive{unpacked}", "Unpack it first (tar -xf FILE), and name one of its files."


def _kubernetes_nodes(sample: Sample) -> _Answer | None:
    if sample.mentions("kind", "apiVersion") and _NODE_KIND.search(sample.text):
        return "a list of Kubernetes nodes, not of jobs", "kubernetes"
    return None


def _slurm(sample: Sample) -> _Answer | None:
    """Slurm's own files and outputs about nodes."""
    text = sample.text
    lines = [line.strip() for line in sample.lines if line.strip() and not line.lstrip().startswith("#")][:200]
    if any(re.match(r"(?i)(?:SwitchName|BlockName)=\S", line) for line in lines):
        return "a Slurm topology.conf, not a list of jobs", "slurm"
    if any(re.match(r"(?i)NodeName=\S", line) for line in lines):
        shown = re.search(r"^\s+State=|\bCPUAlloc=", text, re.MULTILINE)
        what = "the output of scontrol show nodes" if shown else "a slurm.conf"
        return f"{what}, not a list of jobs", "slurm"
    if any(re.match(r"(?i)(?:ClusterName|SlurmctldHost|SelectType)=", line) for line in lines):
        return "a slurm.conf, not a list of jobs", "slurm"
    if lines and re.match(r"(?:PARTITION|NODELIST|HOSTNAMES)[\s|*]", lines[0]) and "NODE" in lines[0]:
        return "the output of sinfo, not a list of jobs", "slurm"
    if any(re.match(r"PartitionName=\S", line) for line in lines[:1]):
        return "the output of scontrol show partitions, not a list of jobs", "slurm"
    return None


def _sacct(sample: Sample) -> _Answer | None:
    """sacct without --parsable2: commas, or blanks, between columns whose texts hold such themselves."""
    columns = sample.header if len(sample.header) > 1 else (sample.lines or [""])[0].split()
    if {"JobID", "JobIDRaw"} & set(columns) and _SACCT & set(columns):
        return "a table of sacct whose columns are not told apart by |", EXPORT
    return None


def _empty_list(sample: Sample) -> _Answer | None:
    alone = sample.whole and sample.text.count("apiVersion") == 1
    if alone and sample.mentions("kind", "apiVersion") and _NO_ITEMS.search(sample.text):
        return "a list of Kubernetes that has no objects", "Export some: kubectl get pods,jobs -A -o json"
    return None


_DESCRIPTIONS: tuple[Callable[[Sample], _Answer | None], ...] = (
    _archive,
    _by_header,
    _pai_header,
    _quotas,
    _summary,
    _pai_machines,
    _kubernetes_nodes,
    _empty_list,
    _slurm,
    _sacct,
)
