"""Published machine lists and quotas: openb, PAI, Lingjun, Tiresias, Philly, Helios."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import ConfigError, UserError
from tests.builders import shared_file
from tests.importing.importing_steps import bring_in, bring_in_paths

OPENB = (
    "sn,cpu_milli,memory_mib,gpu,model\nn-0001,64000,262144,2,T4\nn-0002,64000,262144,2,T4\nn-0003,96000,524288,0,\n"
)


def test_openb(tmp_path: Path) -> None:
    made = bring_in(tmp_path, "openb", {"nodes.csv": OPENB.replace(",0,\n", ",0,NaN\n")})
    assert made.size == (3, 4)
    node = made.nodes["n-0001"].type
    assert (node.gpu_type, node.cpus, node.memory_gb) == ("T4", 64, 256)
    assert made.nodes["n-0003"].type.gpu_type is None
    assert made.says("2 nodes with GPUs and 1 without")
    assert made.says("racks are not recorded")


def test_openb_lists_of_the_same_names_are_two_clusters(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'n-0003' is there twice"):
        bring_in(tmp_path, "openb", {"a.csv": OPENB, "b.csv": OPENB.replace("96000", "32000")})
    assert bring_in(tmp_path, "openb", {"a.csv": OPENB, "b.csv": OPENB}).says("listed twice", ": 3")


@pytest.mark.parametrize(("name", "nodes"), [("all", 1523), ("gpu", 1213)])
def test_openb_is_as_published(tmp_path: Path, name: str, nodes: int) -> None:
    made = bring_in_paths(tmp_path, "openb", shared_file(f"traces/openb/openb_node_list_{name}_node.csv"))
    assert made.size == (nodes, 6212)
    assert sum(node.type.gpus > 0 for node in made.nodes.values()) == 1213


PAI = "0123456789abcdef01234567,CPU,96,512,0\n1123456789abcdef01234567,V100M32,96,384,8\n2123456789abcdef01234567,MISC,96,512,8\n"


def packed(text: str, *names: str) -> bytes:
    """A tar.gz of files with the same text."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        PAI,
        gzip.compress(PAI.encode()),
        packed(PAI, "pai_machine_spec.csv"),
        "machine,gpu_type,cap_cpu,cap_mem,cap_gpu\n" + PAI,
    ],
    ids=["csv", "gzip", "tar", "header"],
)
def test_pai(tmp_path: Path, content: str | bytes) -> None:
    made = bring_in(tmp_path, "pai", {"spec": content})
    assert made.size == (3, 16)
    assert made.facts["gpus_by_type"] == {"V100M32": 8, "MISC": 8}
    assert made.facts["memory_gb"] == 1408
    assert made.says("MISC")


def test_pai_is_as_published(tmp_path: Path) -> None:
    files = [shared_file(f"traces/pai/pai_machine_spec.{end}") for end in ("tar.gz", "header")]
    assert bring_in_paths(tmp_path, "pai", *files).size == (1897, 6742)


def test_an_archive_of_two_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds 2 files"):
        bring_in(tmp_path, "pai", {"spec": packed(PAI, "a.csv", "b.csv")})


LINGJUN = "ip,DSW,PSW,ASW\nh1,G6,P1,S1\nh2,G6,P1,S2\nh3,G6,P2,S1\nh4,G6,P1,S1\n"


def test_lingjun_racks_are_all_three_switches(tmp_path: Path) -> None:
    made = bring_in(tmp_path, "lingjun", {"topo.csv": LINGJUN})
    assert made.size == (4, 32)
    assert made.racks == {
        "h1": ("G6-P1-S1", "G6-P1"),
        "h4": ("G6-P1-S1", "G6-P1"),
        "h2": ("G6-P1-S2", "G6-P1"),
        "h3": ("G6-P2-S1", "G6-P2"),
    }
    assert made.says("assumed: 8 GPUs a host")


def test_lingjun_is_as_published(tmp_path: Path) -> None:
    made = bring_in_paths(tmp_path, "lingjun", shared_file("traces/lingjun/topo.csv"))
    assert (made.facts["nodes"], made.facts["racks"], made.facts["pods"]) == (847, 119, 3)
    racks = [node.rack for node in made.nodes.values()]
    assert max(racks.count(rack) for rack in set(racks)) == 8


def test_tiresias(tmp_path: Path) -> None:
    text = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,3,4,128,256"
    made = bring_in(tmp_path, "tiresias", {"spec.csv": text})
    assert made.size == (6, 24)
    assert len(made.config.racks) == 1  # racks alike are one entry
    assert made.racks["switch1-n02"] == ("switch1", "")
    with pytest.raises(ConfigError, match=r"line 2: num_switch is '0'"):
        bring_in(tmp_path, "tiresias", {"spec.csv": text.replace("2,3,4", "0,3,4")})


def test_tiresias_is_as_published(tmp_path: Path) -> None:
    assert bring_in_paths(tmp_path, "tiresias", shared_file("traces/tiresias/n32g4.csv")).size == (32, 128)


PHILLY = "machineId, number of GPUs, single GPU mem\nm1,2, 12GB\nm2,8, 24GB\n"
REVISED = ",machineId,number of GPUs\n0,m1,4\n1,m2,0\n"
CLUSTERS = "vc,node num\n6214e9,1\n103959,2\n"


def test_philly_list(tmp_path: Path) -> None:
    made = bring_in(tmp_path, "philly", {"list": PHILLY})
    assert made.size == (2, 10)
    assert made.nodes["m2"].type.gpu_memory_gb == 24
    assert made.says("known to be wrong", "10 GPUs")


def test_philly_revised_counts_win_in_either_order(tmp_path: Path) -> None:
    for names in (("a", "b"), ("b", "a")):
        files = {"a": PHILLY, "b": REVISED, "c": CLUSTERS}
        made = bring_in(tmp_path, "philly", {name: files[name] for name in (*names, "c")})
        assert made.size == (2, 4)
        assert made.nodes["m1"].type.gpu_memory_gb == 12
        assert {name: each.limit for name, each in made.partitions.items()} == {"6214e9": 8, "103959": 16}


def test_philly_clusters_alone_have_nodes_of_their_own(tmp_path: Path) -> None:
    made = bring_in(tmp_path, "philly", {"vc.csv": CLUSTERS})
    assert made.size == (3, 24)
    assert made.partitions["103959"].nodes == "vc-103959-n[00-01]"


@pytest.mark.parametrize(
    ("names", "size"),
    [
        (["cluster_machine_list"], (552, 2490)),
        (["revised_machine_list.csv"], (552, 3205)),
        (["philly_vc_nodes_qssf.csv"], (352, 2816)),
    ],
)
def test_philly_is_as_published(tmp_path: Path, names: list[str], size: tuple[int, int]) -> None:
    files = [shared_file(f"traces/philly/{name}") for name in names]
    assert bring_in_paths(tmp_path, "philly", *files).size == size


HELIOS = "date,vcA,vcB,vcC,total\n2020-04-01,16,0,0,16\n2020-04-02,16,8,0,24\n2020-04-05,8,8,0,16\n"


def test_helios_quotas_change_at_the_start_of_a_day(tmp_path: Path) -> None:
    made = bring_in(tmp_path, "helios-quota", {"quota.csv": HELIOS})
    assert made.size == (3, 24)
    first, second, third = (made.partitions[name] for name in ("vcA", "vcB", "vcC"))
    assert (first.guarantee, first.borrow) == (16, 0)
    assert [(each.time, each.guarantee, each.borrow) for each in first.changes] == [(4 * 86_400_000_000, 8, 0)]
    assert [(each.time, each.guarantee) for each in second.changes] == [(86_400_000_000, 8)]
    assert (third.guarantee, third.borrow, third.changes) == (0, 0, [])
    assert made.says("never have GPUs", "vcC")
    assert made.says("time 0 of the quotas is 2020-04-01")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("2020-04-02", "2020-04-01", "line 3: 2020-04-01 does not come after"),
        ("2020-04-02", "yesterday", "line 3: 'yesterday' is no date"),
        (",24\n", ",25\n", "line 3: the quotas sum to 24, total is 25"),
        ("16,8,0,24", "16,8", "line 3: 3 fields where 5"),
        ("16,8,0,24", "16,-8,0,24", "line 3: vcB is '-8'"),
        ("vcB", "vcA", "two columns"),
    ],
)
def test_helios_broken(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        bring_in(tmp_path, "helios-quota", {"quota.csv": HELIOS.replace(old, new, 1)})


def test_helios_is_as_published(tmp_path: Path) -> None:
    made = bring_in_paths(tmp_path, "helios-quota", shared_file("traces/helios/venus_cluster_gpu_number.csv"))
    assert made.size == (158, 1264)
    assert sum(int(str(each.guarantee)) for each in made.partitions.values()) == 968
    assert sum(len(each.changes) for each in made.partitions.values()) == 27


TEXTS = {"openb": OPENB, "pai": PAI, "lingjun": LINGJUN, "philly": PHILLY, "helios-quota": HELIOS}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(TEXTS)),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3), st.text(max_size=2)), max_size=4),
)
def test_any_bytes_give_a_cluster_or_one_line(tmp_path: Path, kind: str, edits: list[tuple[int, int, str]]) -> None:
    text = TEXTS[kind]
    for place, width, new in edits:
        at = place % len(text)
        text = text[:at] + new + text[at + width :]
    try:
        bring_in(tmp_path, kind, {"mutated": text})
    except UserError as error:
        assert "\n" not in str(error)
