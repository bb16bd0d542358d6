"""Which kind a file is of, and one clear line for whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from typer.testing import CliRunner, Result

from analysim.cli.application import build
from analysim.clusters.importing import IMPORTERS, import_cluster
from analysim.clusters.importing.sources import MAX_BYTES, Source
from analysim.errors import ConfigError

TIRESIAS = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,2,4,128,256\n"
KINDS = ("slurm", "kubernetes", "nvidia-smi", "philly", "pai", "openb", "lingjun", "helios-quota", "tiresias")
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b" \n", "is empty"),
    "binary": (b"\x7fELF\0\0\1", "is binary"),
    "latin": ("NodeName=a1 Gres=gpu:8\n# f\xfcr\n".encode("latin-1"), "line 2 has the byte 0xfc"),
    "gzip": (b"\x1f\x8b\x08\0\0\0\0\0", "gzip file is damaged"),
    "prose": (b"The cluster has many nodes.\n", "is nothing that"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_told_in_one_line(tmp_path: Path, kind: str, name: str) -> None:
    content, words = BROKEN[name]
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        import_cluster(kind, [tmp_path / "file"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["\n" * 1_000_000, "GPU0 " * 50_000, "NodeName=a1 Name " * 20_000, "NodeName=a1 x=1\n" * 50_000, "," * 500_000],
    ids=["blank lines", "a long line", "a long record", "many lines", "commas"],
)
def test_no_file_takes_long_to_recognise(tmp_path: Path, text: str) -> None:
    source = Source(tmp_path / "file", text + "x\n")
    start = process_time()
    for importer in IMPORTERS:
        importer.recognises(source)
    assert process_time() - start < 10


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        import_cluster("slurm", [tmp_path / "none"])
    with pytest.raises(ConfigError, match="is a folder"):
        import_cluster("slurm", [tmp_path])
    with pytest.raises(ConfigError, match="no file to import"):
        import_cluster("slurm", [])


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ConfigError, match="more than 256 MB"):
        import_cluster("slurm", [tmp_path / "file"])


def test_the_wrong_kind_names_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "spec.csv").write_text(TIRESIAS)
    with pytest.raises(ConfigError, match="It looks like tiresias: analysim topologies import tiresias"):
        import_cluster("openb", [tmp_path / "spec.csv"])
    with pytest.raises(ConfigError, match=r"no kind 'slum' of source\. Did you mean 'slurm'"):
        import_cluster("slum", [tmp_path / "spec.csv"])


def test_auto_takes_the_kind_that_knows_all_files(tmp_path: Path) -> None:
    (tmp_path / "spec.csv").write_text(TIRESIAS)
    (tmp_path / "topo.csv").write_text("ip,DSW,PSW,ASW\nh1,G,P,A\n")
    (tmp_path / "prose").write_text("hello")
    assert import_cluster("auto", [tmp_path / "spec.csv"])[0].name == "tiresias"
    with pytest.raises(ConfigError, match="of different kinds"):
        import_cluster("auto", [tmp_path / "spec.csv", tmp_path / "topo.csv"])
    with pytest.raises(ConfigError, match="prose: no kind of source recognises"):
        import_cluster("auto", [tmp_path / "spec.csv", tmp_path / "prose"])


def command(*words: object) -> Result:
    return CliRunner().invoke(build(), [str(word) for word in words], prog_name="analysim")


def test_the_command_writes_what_simulates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.csv").write_text(TIRESIAS)
    Path("t.csv").write_text("job_id,submit_time,duration,num_gpus\n1,0,60,8\n2,5,60,4\n")
    made = command("topologies", "import", "tiresias", "spec.csv", "-o", "ours.yaml")
    assert (made.exit_code, made.stdout) == (0, "")
    assert "note: 2 nodes with 8 GPUs in 1 rack\n" in made.stderr
    assert made.stderr.endswith("wrote ours.yaml\n")
    assert "# a switch is a rack" in Path("ours.yaml").read_text()
    assert command("topologies", "validate", "ours.yaml").stdout == "ours.yaml: valid, 2 nodes, 8 GPUs\n"
    run = command("simulate", "--trace", "t.csv", "--topology", "ours.yaml", "--no-figures", "--out", "run")
    assert run.exit_code == 0
    again = command("topologies", "import", "tiresias", "spec.csv", "-o", "ours.yaml")
    assert (again.exit_code, again.stderr) == (
        2,
        "error: ours.yaml is there already. Choose another name, or replace it with --force.\n",
    )
    forced = command("topologies", "import", "tiresias", "spec.csv", "-o", "ours.yaml", "--force", "--quiet")
    assert (forced.exit_code, forced.stderr) == (0, "")


def test_the_command_fails_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello")
    result = command("topologies", "import", "slurm", tmp_path / "x", "-o", tmp_path / "y")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert not (tmp_path / "y").exists()
