"""Slurm: every file it may come in, alone and together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import UserError
from tests.importing.importing_steps import Imported, bring_in

SHOWN = """\
NodeName=gpu01 Arch=x86_64 CoresPerSocket=32 \n\
   CPUAlloc=8 CPUEfctv=128 CPUTot=128 CPULoad=8.60
   AvailableFeatures=fast,ib
   Gres=gpu:a100:8(S:0-1),shard:16
   NodeAddr=gpu01 NodeHostName=gpu01 Version=23.11.4
   OS=Linux 5.14.0-1.el9.x86_64 #1 SMP PREEMPT_DYNAMIC \n\
   RealMemory=1048576 AllocMem=128000 FreeMem=120000 Sockets=2 Boards=1
   State=MIXED ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=batch,debug \n\
   CfgTRES=cpu=128,mem=1T,billing=128,gres/gpu=8,gres/gpu:a100=8
   AllocTRES=cpu=8,mem=128G,gres/gpu=2,gres/gpu:a100=2
   \n\
NodeName=gpu02 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=0 CPUTot=128 CPULoad=0.01
   Gres=gpu:a100:8(S:0-1)
   RealMemory=1048576 State=DOWN*+DRAIN ThreadsPerCore=2
   Partitions=batch
   Reason=NHC: Gres=gpu:a100:7 found [root@2026-01-29T08:00:07]

NodeName=mix01 CPUTot=64 RealMemory=524288 Gres=gpu:v100:2,gpu:k80:2,gpu:a100_1g.10gb:7 State=IDLE Partitions=debug
NodeName=cpu01 CPUTot=64 RealMemory=524288 Gres=(null) State=IDLE Partitions=debug CfgTRES=cpu=64,mem=512G
"""
PARTITIONS = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=part_batch
   MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=0 LLN=NO
   Nodes=gpu[01-02]
   PriorityJobFactor=1 PriorityTier=10 RootOnly=NO
   State=UP TotalCPUs=256 TotalNodes=2 SelectTypeParameters=NONE

PartitionName=debug
   AllowGroups=staff QoS=N/A MaxTime=00:30:00
   Nodes=gpu01,mix01
   PriorityTier=1 State=DOWN TotalCPUs=192 TotalNodes=2
"""


def slurm(folder: Path, files: Mapping[str, str]) -> Imported:
    return bring_in(folder, "slurm", files)


def test_shown_nodes(tmp_path: Path) -> None:
    made = slurm(tmp_path, {"nodes.txt": SHOWN})
    assert made.size == (5, 20)
    assert made.facts["gpus_by_type"] == {"a100": 16, "v100": 2, "k80": 2}
    gpu, half = made.nodes["gpu01"].type, made.nodes["mix01-k80"].type
    assert (gpu.gpus, gpu.cpus, gpu.memory_gb) == (8, 128, 1024)
    assert (half.gpus, half.cpus, half.memory_gb) == (2, 32, 256)
    assert made.partitions["batch"].nodes == "gpu[01-02]"
    assert made.partitions["debug"].nodes == "gpu01,mix01,mix01-k80,cpu01"
    assert made.says("down, drained", "gpu02")
    assert made.says("MIG slices", "a100_1g.10gb")
    assert made.says("other GRES", "shard")
    assert made.says("several types", "mix01")


def test_one_line_a_record_is_the_same(tmp_path: Path) -> None:
    records, lines = SHOWN.split("NodeName="), []
    lines = ["NodeName=" + " ".join(record.split()) for record in records if record]
    assert slurm(tmp_path, {"n": "\n".join(lines) + "\n"}).config == slurm(tmp_path, {"n": SHOWN}).config


def test_gpus_of_tres_where_gres_is_not_shown(tmp_path: Path) -> None:
    text = "NodeName=a CPUTot=8 CfgTRES=cpu=8,gres/gpu=16,gres/gpu:b200=4,gres/gpu:b200_2g.45gb=8 State=IDLE\n"
    assert slurm(tmp_path, {"n": text}).facts["gpus_by_type"] == {"b200": 4}


def test_shown_partitions(tmp_path: Path) -> None:
    made = slurm(tmp_path, {"nodes.txt": SHOWN, "partitions.txt": PARTITIONS})
    batch, debug = made.partitions["batch"], made.partitions["debug"]
    assert (batch.time_limit, batch.priority_tier) == (2 * 86_400_000_000, 10)
    assert (debug.nodes, debug.time_limit) == ("gpu01,mix01,mix01-k80", 1800 * 1_000_000)
    assert made.says("not up", "debug")
    assert made.says("cannot hold", "allowgroups")


QOS_HEADER = (
    "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|GrpTRESMins|"
    "GrpTRESRunMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|MaxTRESMins|MaxWall|MaxTRESPU|MaxJobsPU|"
    "MaxSubmitPU|MaxTRESPA|MaxTRESRunMinsPA|MaxTRESRunMinsPU|MaxJobsPA|MaxSubmitPA|MinTRES"
)


def qos(*rows: dict[str, str], end: str = "") -> str:
    names = QOS_HEADER.split("|")
    cells = [[row.get(name, "") for name in names] for row in rows]
    return "".join("|".join(row) + end + "\n" for row in (names, *cells))


@pytest.mark.parametrize("end", ["", "|"], ids=["-P", "-p"])
def test_limits_of_a_partitions_qos(tmp_path: Path, end: str) -> None:
    table = qos(
        {"Name": "normal", "Priority": "0"},
        {
            "Name": "part_batch",
            "Priority": "100",
            "GrpTRES": "cpu=200,gres/gpu=12,gres/gpu:a100=12",
            "MaxTRES": "gres/gpu=8",
            "MaxWall": "1-00:00:00",
            "MaxTRESPU": "gres/gpu:a100=8",
            "MaxJobsPU": "4",
            "MaxTRESPA": "gres/gpu=10",
            "GrpJobs": "50",
        },
        end=end,
    )
    shown = SHOWN.split("NodeName=mix01")[0]
    made = slurm(tmp_path, {"nodes.txt": shown, "partitions.txt": PARTITIONS, "qos.txt": table})
    batch = made.partitions["batch"]
    assert (batch.limit, batch.max_gpus_per_job, batch.time_limit) == (12, 8, 86_400_000_000)
    assert batch.limits.user is not None and batch.limits.tenant is not None
    assert (batch.limits.user.gpus, batch.limits.user.jobs, batch.limits.tenant.gpus) == (8, 4, 10)
    assert made.says("cannot hold", "grpjobs", "grptres of cpu")
    assert made.says("belong to no partition", "normal")
    assert made.says("priorities of QOS", "part_batch")


def test_a_limit_by_type_and_one_of_no_type_there(tmp_path: Path) -> None:
    table = qos({"Name": "part_batch", "GrpTRES": "gres/gpu:A100=12,gres/gpu:h100=2"})
    made = slurm(tmp_path, {"n": SHOWN, "p": PARTITIONS, "q": table})
    assert made.partitions["batch"].limit == {"a100": 12}
    assert made.says("GPU types that no node has", "h100")


ACCOUNTS = """\
Cluster|Account|User|Partition|Share|GrpTRES|ParentName|QOS
c|root|||1|||normal
c|science|||1|gres/gpu=12|root|normal
c|nlp|||1|gres/gpu=8|science|normal
c|nlp|ann||1|||normal
"""


def test_accounts_are_partitions_where_there_are_none(tmp_path: Path) -> None:
    made = slurm(tmp_path, {"slurm.conf": "NodeName=a[1-2] Gres=gpu:8\n", "assoc.txt": ACCOUNTS})
    assert [each.name for each in made.config.partitions] == ["science"]
    assert (made.partitions["science"].limit, made.partitions["nlp"].limit) == (12, 8)
    assert made.partitions["science"].children == [made.partitions["nlp"]]
    assert made.says("associations of users", ": 1")
    both = slurm(tmp_path, {"n": SHOWN, "assoc.txt": ACCOUNTS})
    assert set(both.partitions) == {"batch", "debug"}
    assert both.says("accounts with limits, left out", "science, nlp")


CONFIGURATION = """\
ClusterName=lab
SlurmctldHost=head
NodeName=DEFAULT CPUs=64 RealMemory=524288 State=UNKNOWN
NodeName=a[01-04] Gres=gpu:8 \\
   Feature=nv
NodeName=b[1-2] Gres=gpu:h100:4 # new
NodeName=c1 CPUs=0 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2
NodeName=f[1-9] State=FUTURE
NodeSet=nvset Feature=nv
PartitionName=DEFAULT MaxTime=1-0 State=UP
PartitionName=all Nodes=ALL Default=YES
PartitionName=nv Nodes=nvset,b1 MaxTime=INFINITE PriorityTier=5
PartitionName=root Nodes=b[1-2]
PartitionName=gone Nodes=x[1-2]
"""
GRES = """\
AutoDetect=off
NodeName=a[01-04] Name=gpu Type=a100 File=/dev/nvidia[0-7] Cores=0-31
Name=shard Count=4
"""


def test_configuration(tmp_path: Path) -> None:
    made = slurm(tmp_path, {"slurm.conf": CONFIGURATION, "gres.conf": GRES})
    assert made.size == (7, 40)
    assert made.facts["gpus_by_type"] == {"a100": 32, "h100": 8}
    assert made.nodes["a03"].type.cpus == made.nodes["c1"].type.cpus == 64
    assert made.partitions["all"].nodes is None
    assert made.partitions["all"].time_limit == 86_400_000_000
    assert (made.partitions["nv"].nodes, made.partitions["nv"].time_limit) == ("a[01-04],b1", None)
    assert set(made.partitions) == {"all", "nv", "root-partition"}
    assert made.says("FUTURE", ": 9")
    assert made.says("parameters in slurm.conf", ": 2")
    assert made.says("partitions without nodes", "gone")
    assert made.says("other GRES", "shard")


def test_gres_conf_alone_with_one_node(tmp_path: Path) -> None:
    gres = "Name=gpu Type=gp100 File=/dev/nvidia0\nName=gpu Type=p6000 File=/dev/nvidia[1-2]\n"
    made = slurm(tmp_path, {"slurm.conf": "NodeName=n CPUs=12\n", "gres.conf": gres})
    assert made.facts["gpus_by_type"] == {"gp100": 1, "p6000": 2}
    named = slurm(tmp_path, {"gres.conf": "NodeName=n[1-3] Name=gpu Type=a40 Count=2\n"})
    assert named.facts["gpus_by_type"] == {"a40": 6}


LONG = """\
Fri Jul 16 10:47:52 2021
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
dgx-001        1    batch*        idle 256    2:64:2 524288        0      1   (null) none
dgx-001        1     debug        idle 256    2:64:2 524288        0      1   (null) none
dgx-002        1    batch*        down 256    2:64:2 524288        0      1   (null) Not responding at all
"""


def test_sinfo(tmp_path: Path) -> None:
    made = slurm(tmp_path, {"sinfo.txt": LONG})
    assert made.size == (2, 0)
    assert made.says("no column GRES")
    assert made.says("no GPUs were found")
    assert made.partitions["debug"].nodes == "dgx-001"
    second = "NODELIST|PARTITION|GRES|CPUS|MEMORY\ndgx-[001-002]|batch*|gpu:a100:8(S:0-7)|256|524288+\n"
    both = slurm(tmp_path, {"sinfo.txt": LONG, "gres.txt": second})
    assert both.size == (2, 16)
    assert both.partitions["batch"].nodes is None
    wide = (
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nnormal*      up 2-00:00:00      2    mix t[01,09]\nhalf\n"
    )
    made = slurm(tmp_path, {"sinfo.txt": wide})
    assert made.size == (2, 0)
    assert made.partitions["normal"].time_limit == 2 * 86_400_000_000
    assert made.says("another number of columns", "line 3")


TREE = """\
# three levels
SwitchName=s[1-2] Nodes=%s
SwitchName=p1 Switches=s1 LinkSpeed=100
SwitchName=p2 Switches=s2,s3
SwitchName=s3 Nodes=x1
SwitchName=core Switches=p[1-2]
"""
FOUR = {"slurm.conf": "NodeName=a[1-4] Gres=gpu:8\n"}


def test_tree_of_switches(tmp_path: Path) -> None:
    text = "SwitchName=s1 Nodes=a[1-2]\nSwitchName=s2 Nodes=a[3-4]\nSwitchName=top Switches=s[1-2]\n"
    made = slurm(tmp_path, {**FOUR, "topology.conf": text})
    assert made.racks == {"a1": ("s1", ""), "a2": ("s1", ""), "a3": ("s2", ""), "a4": ("s2", "")}
    three = "SwitchName=s1 Nodes=a[1-2]\nSwitchName=s2 Nodes=a3,x1\n" + TREE.split("\n", 2)[2]
    made = slurm(tmp_path, {**FOUR, "topology.conf": three})
    assert made.racks == {"a1": ("s1", "p1"), "a2": ("s1", "p1"), "a3": ("s2", "p2"), "a4": ("no-rack", "")}
    assert made.says("no other file describes", "x1")
    assert made.says("link speeds")
    assert made.says("whose rack is not recorded", ": 1")


def test_blocks(tmp_path: Path) -> None:
    text = "BlockName=b1 Nodes=a1\nBlockName=b2 Nodes=a2\nBlockName=b3 Nodes=a[3-4]\nBlockSizes=1,2\n"
    made = slurm(tmp_path, {**FOUR, "topology.conf": text})
    assert made.racks == {
        "a1": ("b1", "blocks0"),
        "a2": ("b2", "blocks0"),
        "a3": ("b3", "blocks1"),
        "a4": ("b3", "blocks1"),
    }


def test_topology_yaml(tmp_path: Path) -> None:
    tree = "tree:\n    switches:\n      - {switch: top, children: 's[1-2]'}\n      - {switch: s1, nodes: 'a[1-2]'}\n"
    tree += "      - {switch: s2, nodes: 'a[3-4]'}\n"
    block = "block:\n    block_sizes: [2]\n    blocks:\n      - {block: b1, nodes: 'a[1-4]'}\n"
    for default, racks in (("tree", {"s1", "s2"}), ("block", {"b1"})):
        text = f"---\n- topology: t\n  cluster_default: {str(default == 'tree').lower()}\n  {tree}"
        text += f"- topology: b\n  cluster_default: {str(default == 'block').lower()}\n  {block}"
        made = slurm(tmp_path, {**FOUR, "topology.yaml": text})
        assert {rack for rack, _ in made.racks.values()} == racks
        assert made.says("left out: b" if default == "tree" else "left out: t")
    assert slurm(tmp_path, {**FOUR, "t": "- topology: f\n  flat: true\n"}).says("neither a tree nor blocks")


def test_racks_alike_are_one_entry(tmp_path: Path) -> None:
    files = {"slurm.conf": "NodeName=g[01-08] Gres=gpu:8\n"}
    files["topology.conf"] = "".join(f"SwitchName=r{n} Nodes=g[0{2 * n - 1}-0{2 * n}]\n" for n in (1, 2, 3, 4))
    rack = slurm(tmp_path, files).config.racks
    assert [(each.name, [group.names for group in each.nodes]) for each in rack] == [("r[1-4]", ["g[01-08]"])]


def test_what_differs_is_counted(tmp_path: Path) -> None:
    made = slurm(tmp_path, {"a": "NodeName=a1 CPUs=8 Gres=gpu:8\n", "b": "NodeName=a1 CPUs=16 Gres=gpu:4\n"})
    assert made.size == (1, 8)
    assert made.says("differ from an earlier one", "a1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NodeName=a[1- Gres=gpu:8\n", "file: line 1: bad names 'a[1-'"),
        ("NodeName=a[1-900000] Gres=gpu:8\n", "more than 100,000 names"),
        ("NodeName=a1 RealMemory=lots\n", "line 1: realmemory is 'lots', no number"),
        ("\nNodeName=a1\nPartitionName=p Nodes=a1 MaxTime=soon\n", "line 3: maxtime is 'soon', no time limit"),
        ("Name|Priority|GrpTRES\nq|1\n", "line 2: 2 fields, the header has 3"),
        ("SwitchName=s1 Nodes=a1\n", "no nodes in these files"),
        ("BlockName=b Nodes=a\nBlockSizes=two\n", "line 2: BlockSizes is 'two'"),
        ("- topology: t\n  tree: {switches: [", "no YAML"),
        ("NODELIST PARTITION\n", "a header of sinfo and no nodes"),
    ],
)
def test_broken(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        slurm(tmp_path, {"file": text})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


TEXTS = (SHOWN, PARTITIONS, CONFIGURATION, GRES, LONG, ACCOUNTS, qos({"Name": "q", "GrpTRES": "gres/gpu=1"}))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(TEXTS),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 3), st.text(max_size=2)), max_size=4),
)
def test_any_bytes_give_a_cluster_or_one_line(tmp_path: Path, text: str, edits: list[tuple[int, int, str]]) -> None:
    for place, width, new in edits:
        at = place % len(text)
        text = text[:at] + new + text[at + width :]
    try:
        slurm(tmp_path, {"mutated": text})
    except UserError as error:
        assert "\n" not in str(error)
