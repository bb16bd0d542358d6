"""Files that come with a trace and hold no jobs are told apart from it, and from each other."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysim.traces.readers import FORMATS
from analysim.traces.readers.format import Sample, take_sample
from analysim.traces.readers.not_jobs import describe_other
from tests.builders import shared_file


def sample(text: str, name: str = "file") -> Sample:
    return Sample(Path(name), text, whole=True)


@pytest.mark.parametrize(
    ("text", "what", "command"),
    [
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n", "a table of nodes", "openb"),
        ("apiVersion: v1\nkind: Node\nmetadata:\n  name: n0\n", "Kubernetes nodes", "kubernetes"),
        (
            '{"apiVersion": "v1", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {}}]}',
            "Kubernetes nodes",
            "kubernetes",
        ),
        ("date,vcA,vcB,total\n2020-04-01,8,16,24\n", "GPUs of each virtual cluster", "helios-quota"),
        ("machineId, number of GPUs, single GPU mem\nm0,2, 12GB\n", "a table of nodes", "philly"),
        (",machineId,number of GPUs\n0,m0,8\n", "a table of nodes", "philly"),
        ("vc,node num\n6214e9,64\n", "nodes per virtual cluster", "philly"),
        ("7399a758eb02bae1a3621236,CPU,96,512,0\n75c536d5ba60528b3ef3ae40,V100,96,512,8\n", "a table of nodes", "pai"),
        ("machine,gpu_type,cap_cpu,cap_mem,cap_gpu\nm0,T4,96,512,2\n", "a table of nodes", "pai"),
        ("ip,DSW,PSW,ASW\n0c9d,G6,P10,S14\n", "hosts and their switches", "lingjun"),
        (
            "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,16,4,128,254\n",
            "size of a cluster",
            "tiresias",
        ),
        (
            "NodeName=n01 Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=0 CPUTot=64\n   State=IDLE\n",
            "scontrol show nodes",
            "slurm",
        ),
        ("ClusterName=ml\nNodeName=n[01-08] Gres=gpu:8\nPartitionName=all Nodes=ALL\n", "a slurm.conf", "slurm"),
        ("# ours\nSwitchName=s1 Nodes=n[01-08]\n", "topology.conf", "slurm"),
        ("PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nall* up infinite 8 idle n[01-08]\n", "sinfo", "slurm"),
        ("PartitionName=all\n   AllowGroups=ALL\n", "scontrol show partitions", "slurm"),
    ],
)
def test_what_a_topology_is_made_of(text: str, what: str, command: str) -> None:
    answer = describe_other(sample(text))
    assert answer is not None
    assert what in answer[0]
    assert answer[1] == f"Make a cluster of it: analysim topologies import {command} FILE"


def test_summaries_and_headers_are_for_no_command() -> None:
    answer = describe_other(sample("id,job_num,gpu_job_num,avg_que_time_gpu\nVenus,3,2,1.5\n"))
    assert answer == (
        "a published summary of whole clusters, not a table of jobs",
        "No command takes it: it is for reading.",
    )
    answer = describe_other(sample("job_name,inst_id,user,status,start_time,end_time\n", "pai_job_table.header"))
    assert answer is not None
    assert answer[0] == "only the column names of a table"


def test_archives(tmp_path: Path) -> None:
    for name, what, remedy in [
        ("pai_machine_spec.csv", "a table of nodes, not of jobs (in a tar archive)", "topologies import pai"),
        ("pai_job_table.csv", "a tar archive: it holds pai_job_table.csv", "Unpack it first"),
    ]:
        file = tmp_path / "archive.tar.gz"
        with tarfile.open(file, "w:gz") as archive:
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"a,b"))
        answer = describe_other(take_sample(file))
        assert answer is not None
        assert (answer[0], remedy in answer[1]) == (what, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "job_id,submit_time,duration,num_gpus\n1,0,10,1\n",
        "date,total\nx,1\n",
        "id,name\n1,a\n",
        '{"kind": "Pod", "apiVersion": "v1", "metadata": {"ownerReferences": [{"kind": "ReplicaSet"}]}}',
        "apiVersion: v1\nkind: Pod\n",
        "JobID|JobName|State\n1|x|COMPLETED\n",
    ],
)
def test_logs_and_unknown_files_are_not_described(text: str) -> None:
    assert describe_other(sample(text)) is None


@given(st.text(max_size=300), st.booleans())
def test_it_never_raises(text: str, whole: bool) -> None:
    describe_other(Sample(Path("missing"), text, whole))


_OTHERS = {
    "acme/cluster_summary.csv": "a published summary",
    "helios/helios_cluster_summary.csv": "a published summary",
    "helios/venus_cluster_gpu_number.csv": "GPUs of each virtual cluster",
    "helios/earth_cluster_gpu_number.csv": "GPUs of each virtual cluster",
    "lingjun/topo.csv": "hosts and their switches",
    "openb/openb_node_list_all_node.csv": "a table of nodes",
    "openb/openb_node_list_gpu_node.csv": "a table of nodes",
    "openb/openb_node_list_gpu_node.yaml": "a list of Kubernetes nodes",
    "pai/pai_machine_spec.tar.gz": "a table of nodes",
    "pai/pai_machine_metric.header": "only the column names",
    "pai/pai_group_tag_table.header": "only the column names",
    "pai/pai_sensor_table.header": "only the column names",
    "pai/pai_machine_spec.header": "only the column names",
    "pai/pai_job_table.header": "only the column names",
    "pai/pai_task_table.header": "only the column names",
    "pai/pai_instance_table.header": "only the column names",
    "philly/cluster_machine_list": "a table of nodes",
    "philly/revised_machine_list.csv": "a table of nodes",
    "philly/philly_vc_nodes_qssf.csv": "nodes per virtual cluster",
    "tiresias/cluster_spec.csv": "size of a cluster",
    "tiresias/n32g4.csv": "size of a cluster",
}


@pytest.mark.parametrize("name", _OTHERS)
def test_published_files_that_are_no_jobs(name: str) -> None:
    answer = describe_other(take_sample(shared_file(f"traces/{name}")))
    assert answer is not None
    assert _OTHERS[name] in answer[0]


def test_no_published_trace_is_taken_for_something_else() -> None:
    """Every file is either described here or read by some format, not both (bare headers apart)."""
    folder = shared_file("traces")
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix not in (".md", ".header"):
            found = take_sample(file)
            read = any(each.recognises(found) for each in FORMATS)
            assert read != (describe_other(found) is not None), file
