"""Alibaba's GPU sharing trace as CSV with and without times, and as YAML; the published files where at hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError, UserError
from analysim.traces import Trace, describe, read_trace
from tests.builders import shared_file

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
ROWS = [
    "p-0,4000,8192,1,460,,LS,Running,0,900,5",
    "p-1,88000,327680,8,1000,V100M16|V100M32|V100M32,Burstable,Succeeded,10,110,20",
    "p-2,6000,12288,1,1000,T4,BE,Running,30,400,30",
    "p-3,6000,12288,2,1000,,LS,Pending,40,900,",
    "p-4,2000,4096,0,0,,Guaranteed,Failed,50,60,51",
]
SHORT = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-0,4000,8192,1,460\np-1,12000,1024,4,1000\n"
SECOND = 1_000_000
PODS = """apiVersion: v1
kind: Pod
metadata:
  annotations:
    alibabacloud.com/creation-time: '1970-01-01T00:00:10Z'
    alibabacloud.com/deletion-time: '1970-01-01T00:01:40Z'
    alibabacloud.com/gpu-card-model: V100M16|V100M32
    alibabacloud.com/gpu-count: '1'
    alibabacloud.com/gpu-milli: '460'
  name: openb-pod-0000
  namespace: paib-gpu
spec:
  containers:
  - name: main
    resources:
      limits: &amount
        cpu: 6000m
        memory: 12288Mi
      requests: *amount

---

apiVersion: v1
kind: Pod
metadata:
  annotations:
    alibabacloud.com/gpu-count: '8'
    alibabacloud.com/gpu-milli: '1000'
  name: openb-pod-0001
  namespace: paib-gpu
spec:
  containers:
  - resources: {requests: {cpu: 96, memory: 1Gi}}
---
apiVersion: v1
kind: Node
metadata: {name: openb-node-0000}
"""


def read(folder: Path, text: str, name: str = "openb.csv") -> Trace:
    file = folder / name
    file.write_text(text)
    trace = read_trace(file)
    assert trace.rows == len(trace.frame) + sum(trace.set_aside.values())
    return trace


def test_pods_become_jobs(tmp_path: Path) -> None:
    trace = read(tmp_path, "\n".join([HEADER, *ROWS]))
    assert (trace.format, trace.time_origin) == ("openb", None)
    jobs = trace.frame.set_index("job_id")
    assert jobs["gpu_milli"].to_dict() == {"p-0": 460, "p-1": 8_000, "p-2": 1_000, "p-3": 2_000, "p-4": 0}
    assert jobs["gpus_per_node"].to_dict() == {"p-0": 1, "p-1": 8, "p-2": 1, "p-3": 2, "p-4": 0}
    assert (jobs["cpu_milli"]["p-1"], jobs["memory_mb"]["p-1"]) == (88_000, 327_680)
    assert (jobs["submit_us"]["p-1"], jobs["recorded_start_us"]["p-1"]) == (10 * SECOND, 20 * SECOND)
    assert jobs["duration_us"].to_dict() == {
        name: each * SECOND for name, each in (("p-0", 895), ("p-1", 90), ("p-2", 370), ("p-3", 860), ("p-4", 9))
    }
    assert jobs["status"].to_dict() == {"p-0": "Running", "p-1": "Succeeded", "p-2": "Running", "p-3": "Pending", "p-4": "Failed"}


def test_pending_pods_are_demand_all_the_same(tmp_path: Path) -> None:
    trace = read(tmp_path, "\n".join([HEADER, *ROWS]))
    assert trace.set_aside == {}
    assert trace.account.repaired["never scheduled: asks for as long as the pod existed"].tolist() == [4]
    pending = trace.frame[trace.frame["job_id"] == "p-3"]
    assert pending[["duration_us", "recorded_start_us"]].to_numpy().tolist() == [[860 * SECOND, -1]]


def test_running_pods_at_the_edge_of_the_window(tmp_path: Path) -> None:
    """Others that were Running as last seen have ended by their deletion."""
    trace = read(tmp_path, "\n".join([HEADER, *ROWS]))
    assert trace.account.repaired["still running at the edge of the window: runs until then"].tolist() == [1]


def test_types_are_told_once_and_qos_is_a_priority(tmp_path: Path) -> None:
    jobs = read(tmp_path, "\n".join([HEADER, *ROWS])).frame.set_index("job_id")
    assert jobs["gpu_type"].to_dict() == {"p-0": "", "p-1": "V100M16|V100M32", "p-2": "T4", "p-3": "", "p-4": ""}
    assert jobs["priority"].to_dict() == {"p-0": 2, "p-1": 1, "p-2": 0, "p-3": 2, "p-4": 2}


def test_files_without_times_still_tell_their_jobs(tmp_path: Path) -> None:
    trace = read(tmp_path, SHORT)
    facts = describe(trace)
    assert (facts["format"], facts["jobs"], facts["mean_gpus"]) == ("openb", 2, 2.23)
    assert trace.account.repaired["no times in the file: submitted at 0, runs 0 s"].tolist() == [1, 2]
    assert any("has no times" in note for note in trace.notes)


def test_a_file_without_memory(tmp_path: Path) -> None:
    trace = read(tmp_path, "name,cpu_milli,num_gpu,gpu_milli\np-0,4000,1,460\n")
    assert trace.frame["memory_mb"].tolist() == [0]


def test_pods_as_yaml(tmp_path: Path) -> None:
    trace = read(tmp_path, PODS, "pods.yaml")
    assert trace.format == "openb-yaml"
    jobs = trace.frame.set_index("job_id")
    assert jobs["gpu_milli"].to_dict() == {"openb-pod-0000": 460, "openb-pod-0001": 8_000}
    assert jobs["gpu_type"].to_dict() == {"openb-pod-0000": "V100M16|V100M32", "openb-pod-0001": ""}
    assert (jobs["cpu_milli"]["openb-pod-0000"], jobs["memory_mb"]["openb-pod-0000"]) == (6_000, 12_288)
    assert (jobs["cpu_milli"]["openb-pod-0001"], jobs["tenant"]["openb-pod-0001"]) == (96_000, "paib-gpu")
    assert jobs["duration_us"]["openb-pod-0000"] == 90 * SECOND
    assert trace.set_aside == {"not a pod": 1}
    assert trace.account.repaired["no creation time: submitted with the first"].tolist() == [2]
    assert trace.account.repaired["no deletion time: runs until the last moment of the file"].tolist() == [2]


def test_yaml_times_in_seconds_or_none(tmp_path: Path) -> None:
    seconds = PODS.replace("1970-01-01T00:00:10Z", "10").replace("1970-01-01T00:01:40Z", "100.5")
    trace = read(tmp_path, seconds, "pods.yaml")
    assert (trace.time_origin, trace.frame["duration_us"].max()) == (None, 90_500_000)
    none = "\n".join(line for line in PODS.splitlines() if "-time:" not in line)
    trace = read(tmp_path, none, "pods.yaml")
    assert trace.frame["duration_us"].tolist() == [0, 0]
    assert "no times in the file: submitted at 0, runs 0 s" in trace.account.repaired


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "\n", "no rows"),
        ("\n".join([HEADER, *ROWS])[:-20], "line 6: 7 fields where 11 are expected"),
        ("\n".join([HEADER, *ROWS]).replace("460", "many"), 'line 2, gpu_milli: "many" is not a number'),
        (
            HEADER.replace(",scheduled_time", "") + "\np-0,4000,8192,1,460,,LS,Running,0,900\n",
            'no column "scheduled_time"',
        ),
        ("\n".join([HEADER, *ROWS]).replace(",", ";"), "has no column"),
    ],
)
def test_broken_files_are_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "openb.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(file, format="openb")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Node\n", "has no pods"),
        ("kind: Pod\nmetadata: {}\n", "record 1: this pod has no"),
        (PODS + "\t: '", "bad YAML"),
    ],
)
def test_broken_yaml_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(file, format="openb-yaml")


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_whatever_the_file_it_balances_or_is_told(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name, text = data.draw(
        st.sampled_from([("openb", "\n".join([HEADER, *ROWS])), ("openb", SHORT), ("openb-yaml", PODS)])
    )
    for _ in range(data.draw(st.integers(1, 4))):
        place, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 20))
        text = text[:place] + data.draw(st.text(max_size=8)) + text[place + length :]
    file = tmp_path_factory.mktemp("fuzz") / "openb"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        trace = read_trace(file, format=name)
    except UserError:
        return
    assert trace.rows == len(trace.frame) + sum(trace.set_aside.values())


def test_the_published_file() -> None:
    """8,152 tasks: https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023."""
    trace = read_trace(shared_file("traces/openb/openb_pod_list_default.csv"))
    facts = describe(trace)
    assert (facts["format"], facts["rows"], facts["max_gpus"]) == ("openb", 8_152, 8)
    assert (facts["jobs"], trace.set_aside) == (8_152, {})
    assert trace.frame["status"].eq("Pending").sum() == 897


@pytest.mark.parametrize("variant", ["gpuspec33", "gpushare40", "multigpu20"])
def test_variants_of_the_published_file(variant: str) -> None:
    file = shared_file(f"traces/openb/openb_pod_list_{variant}.csv")
    trace = read_trace(file)
    assert trace.format == "openb"
    assert trace.rows == len(trace.frame) + sum(trace.set_aside.values()) > 8_000
    pods = pd.read_csv(file)
    pods = pods[pods["num_gpu"] > 0]
    assert describe(trace)["mean_gpus"] == pytest.approx((pods["num_gpu"] * pods["gpu_milli"]).mean() / 1_000)
