"""``analysim trace`` for logs of all formats: described, validated, converted and shaped."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_run import Command

from analysim.traces import read_trace
from analysim.traces.readers import registry
from analysim.traces.readers.format import Format
from tests.builders import shared_file
from tests.log_samples import HELIOS, LOGS, PAI_INSTANCES, PHILLY, SLURM


@pytest.fixture
def logs(here: Path) -> Path:
    """A working directory with a log of each kind."""
    for name, text in LOGS.items():
        (here / name).write_text(text)
    (here / "pai_instance_table.csv").write_text(PAI_INSTANCES)
    return here


def facts(analysim: Command, *words: Any) -> dict[str, Any]:
    result = analysim("trace", "describe", *words, "--json")
    assert result.exit_code == 0, result.stderr
    return dict(json.loads(result.stdout))


def refused(result: Any, *words: str) -> None:
    """Assert that a command failed with one clear line for its user."""
    assert result.exit_code == 2, result.stdout + result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


# describe


def test_what_was_understood_of_a_log_is_said_first(analysim: Command, logs: Path) -> None:
    result = analysim("trace", "describe", "sacct.txt", "--timezone", "Europe/Berlin", "--rows")
    assert result.stderr.splitlines() == [
        "trace    sacct.txt, read as Slurm accounting (sacct --parsable2) (slurm-sacct): "
        "3 rows = 2 jobs + 1 set aside",
        "times    submitted over 65 min; time 0 is 2026-03-02T07:00:00+00:00",
        "note: 1 set aside: never started",
        "note: Times without a zone are read as Europe/Berlin.",
    ]
    assert result.stdout.splitlines()[-1].split("  ")[:2] == ["set aside", "never started"]
    assert "jobs submitted by hour and by day (Europe/Berlin)" in result.stdout
    assert analysim("trace", "describe", "sacct.txt", "--quiet").stderr == ""


def test_figures_of_a_log(analysim: Command, logs: Path) -> None:
    told = facts(analysim, "sacct.txt", "--topology", "tiny")
    assert (told["rows"], told["jobs"], told["set_aside"], told["lacks"]) == (3, 2, {"never started": 1}, "")
    assert told["set_aside_rows"] == {"never started": {"ranges": [[2, 2]], "more": 0}}
    assert told["repaired_rows"] == told["repaired"] == {}
    assert told["waits"] == {"jobs": 2, "mean_s": 32.5, "median_s": 32.5, "p90_s": 54.5, "p99_s": 59.45}
    assert told["statuses"] == {"COMPLETED": 1, "CANCELLED": 1}
    assert [row["tenant"] for row in told["top_tenants"]] == ["cv", "nlp"]
    assert told["demand"] == {
        "mean_gpus": 8.0,
        "peak_gpus": 10,
        "cluster_gpus": 16,
        "mean_share": 0.5,
        "peak_share": 0.625,
        "hours_above": 0.0,
    }


def test_hours_are_those_of_the_zone(analysim: Command, logs: Path) -> None:
    local = facts(analysim, "sacct.txt", "--timezone", "Asia/Shanghai")["arrivals"]
    assert (local["clock"], local["by_hour"][8:10]) == ("Asia/Shanghai", [1, 1])
    assert local["by_weekday"]["Mon"] == 2
    zoned = facts(analysim, "dated.csv")["arrivals"]
    assert (zoned["clock"], zoned["by_hour"][10], zoned["by_weekday"]["Wed"]) == ("UTC", 2, 2)
    assert facts(analysim, "dated.csv", "--timezone", "Europe/Berlin")["arrivals"]["by_hour"][12] == 2
    undated = facts(analysim, "log.swf")["arrivals"]
    assert (undated["clock"], undated["by_weekday"]["day 1"]) == ("hours and days since time 0", 2)


def test_a_log_without_gpus_is_described_as_far_as_it_goes(analysim: Command, logs: Path) -> None:
    result = analysim("trace", "describe", "pai_instance_table.csv")
    assert result.exit_code == 0
    assert "GPUs are not told; what would tell is missing: pai_task_table.csv" in result.stderr
    plain = result.stdout.split("\n\n")[0].splitlines()
    lines = dict(line.split(maxsplit=1) for line in plain)
    assert (lines["mean_gpus"], lines["demand"], lines["jobs"]) == ("not told", "not told", "2")
    told = facts(analysim, "pai_instance_table.csv", "--topology", "tiny")
    assert all(told[key] is None for key in ("mean_gpus", "gpu_hours", "sizes", "cpu_jobs", "demand"))
    assert told["lacks"].startswith("pai_task_table.csv")
    assert told["durations"]["by_gpu_time"] is None
    assert told["waits"] is None  # submissions are not told: each job is submitted as it starts
    assert told["max_duration_s"] == told["durations"]["by_jobs"]["p99_s"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["page.png", "page.SVG"])
def test_a_page_of_figures(analysim: Command, logs: Path, name: str) -> None:
    result = analysim("trace", "describe", "sacct.txt", "--topology", "tiny", "--figure", name)
    assert result.exit_code == 0
    assert result.stderr.endswith(f"wrote {name}\n")
    begin = (logs / name).read_bytes()[:100]
    assert begin.startswith(b"\x89PNG") if name.endswith("png") else b"<?xml" in begin


def test_figures_of_another_kind_are_refused(analysim: Command, logs: Path) -> None:
    refused(analysim("trace", "describe", "sacct.txt", "--figure", "page.jpg"), "page.jpg", ".png or .svg")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--trace-format", "slurm-sact"), "slurm-sacct"),
        (("--timezone", "Berlin"), "Europe/Berlin"),
        (("--timezone", ""), "'' is not a time zone"),
        (("--column", "num_gpus"), "--column"),
        (("--topology", "tyni"), "tiny"),
        (("--figure", "nowhere/page.png"), "nowhere/page.png"),
    ],
)
def test_options_that_are_wrong(analysim: Command, logs: Path, words: tuple[str, str], name: str) -> None:
    refused(analysim("trace", "describe", "sacct.txt", *words), name)


# validate


def test_validate_tells_the_account_of_a_log(analysim: Command, logs: Path) -> None:
    result = analysim("trace", "validate", "cluster_log.csv")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "cluster_log.csv: no problems; helios, 4 rows = 3 jobs + 1 set aside",
        "        1  set aside: never started (row 3)",
    ]
    told = json.loads(analysim("trace", "validate", "cluster_log.csv", "--json").stdout)
    assert (told["format"], told["rows"], told["jobs"]) == ("helios", 4, 3)
    assert told["set_aside_rows"] == {"never started": {"ranges": [[3, 3]], "more": 0}}


def test_validate_lists_the_problem_of_a_broken_log(analysim: Command, logs: Path) -> None:
    (logs / "cluster_job_log").write_text(PHILLY[: len(PHILLY) // 2])
    refused(analysim("trace", "describe", "cluster_job_log"), "cluster_job_log")
    result = analysim("trace", "validate", "cluster_job_log")
    assert (result.exit_code, result.stdout.count("\n"), result.stderr) == (2, 1, "")
    assert "unreadable file: cluster_job_log" in result.stdout
    (problem,) = json.loads(analysim("trace", "validate", "cluster_job_log", "--json").stdout)
    assert problem["kind"] == "unreadable file"


def test_many_ranges_of_rows_are_cut(analysim: Command, here: Path) -> None:
    header, kept, aside, _ = SLURM.splitlines()
    rows = [line.replace(line.split("|")[0], str(number), 1) for number, line in enumerate([kept, aside] * 150)]
    (here / "long.txt").write_text("\n".join([header, *rows]) + "\n")
    told = facts(analysim, "long.txt")["set_aside_rows"]["never started"]
    assert (len(told["ranges"]), told["ranges"][0], told["more"]) == (100, [2, 2], 50)
    shown = analysim("trace", "validate", "long.txt").stdout.splitlines()[1]
    assert shown == "      150  set aside: never started (rows 2, 4, 6, 8, 10 and more)"


# broken files, by all commands that read

BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "blank": (b"  \n\n", "is empty"),
    "binary": (bytes(range(256)) * 20, "bad"),
    "nul": (b"\0" * 5_000, "bad"),
    "truncated gzip": (gzip.compress(SLURM.encode() * 50)[:-40], "ends too early"),
    "damaged gzip": (b"\x1f\x8b\x08\x00garbage that is no stream of gzip", "gzip"),
    "half a JSON": (PHILLY[: len(PHILLY) // 2].encode(), "is JSON"),
    "wrong delimiter": (HELIOS.replace(",", ";").encode(), ";"),
    "mixed encodings": (HELIOS.encode() + "16,é,vcA,8\n".encode() + "17,é,vcA,8\n".encode("latin-1"), "UTF-8"),
    "header only": (HELIOS.splitlines()[0].encode() + b"\n", "bad"),
    "header of sacct only": (SLURM.splitlines()[0].encode() + b"\n", "bad"),
    "nodes": (b"sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n", "topologies import openb"),
    "quotas": (b"date,vcA,vcB,total\n2020-04-01,8,16,24\n", "topologies import helios-quota"),
    "switches": (b"ip,DSW,PSW,ASW\n0c9d,G6,P10,S14\n", "topologies import lingjun"),
    "carriage return": (b"job_id,submit_time,duration,num_gpus,user\n1,0,5,1,a\rb\n2,0,5,1,c\n", "line 2"),
    "utf-16": (HELIOS.encode("utf-16"), "UTF-16"),
    "zip": (b"PK\x03\x04" + bytes(100), "ZIP"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_are_told_in_one_line(analysim: Command, here: Path, kind: str) -> None:
    content, words = BROKEN[kind]
    (here / "bad.csv").write_bytes(content)
    for command in (
        ("trace", "describe", "bad.csv"),
        ("trace", "convert", "bad.csv", "new.csv"),
        ("topologies", "infer", "bad.csv"),
    ):
        refused(analysim(*command), "bad.csv", words)
    assert not (here / "new.csv").exists()
    result = analysim("trace", "validate", "bad.csv")
    assert (result.exit_code, result.stderr) == (2, "")
    assert "Traceback" not in result.stdout
    assert words in result.stdout


def test_a_folder_is_no_trace(analysim: Command, here: Path) -> None:
    (here / "logs").mkdir()
    refused(analysim("trace", "describe", "./logs"), "is a folder")
    refused(analysim("trace", "describe", "logs"), "logs")


def test_a_file_that_two_readers_claim(
    analysim: Command, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helios = next(each for each in registry.FORMATS if each.name == "helios")
    other = Format("other", "Another", helios.recognises, helios.read)
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, other))
    refused(analysim("trace", "describe", "cluster_log.csv"), "helios and other", "--trace-format helios")
    assert facts(analysim, "cluster_log.csv", "--trace-format", "other")["jobs"] == 3


# convert


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("name", LOGS)
def test_converted_and_read_again_a_trace_is_the_same(
    analysim: Command, logs: Path, name: str, suffix: str
) -> None:
    source, target = name, f"converted{suffix}"
    result = analysim("trace", "convert", source, target)
    assert result.exit_code == 0, result.stderr
    before, after = read_trace(source), read_trace(target)
    pd.testing.assert_frame_equal(before.frame, after.frame)
    assert before.time_origin == after.time_origin
    again = analysim("trace", "convert", target, f"again{suffix}", "--quiet")
    assert (again.exit_code, again.stderr) == (0, "")
    assert (logs / target).read_bytes() == (logs / f"again{suffix}").read_bytes()


def test_convert_says_what_it_did_and_what_was_lost(analysim: Command, logs: Path) -> None:
    result = analysim("trace", "convert", "sacct.txt", "sacct.swf")
    lines = result.stderr.splitlines()
    assert lines[0].endswith("3 rows = 2 jobs + 1 set aside")
    assert "note: 1 set aside: never started" in lines
    assert "wrote sacct.swf: 2 jobs (slurm-sacct converted)" in lines
    assert "note: SWF has no field for: GPUs on each node, CPUs, memory, recorded nodes." in lines
    assert facts(analysim, "sacct.swf")["jobs"] == 2


def test_convert_refuses(analysim: Command, logs: Path) -> None:
    refused(analysim("trace", "convert", "pai_instance_table.csv", "p.csv"), "pai_task_table.csv")
    refused(analysim("trace", "convert", "sacct.txt", "sacct.json"), "sacct.json", ".parquet")
    refused(analysim("trace", "convert", "sacct.txt", "prod.csv"), "prod.csv is there already", "--force")
    assert analysim("trace", "convert", "sacct.txt", "prod.csv", "--force").exit_code == 0
    assert facts(analysim, "prod.csv")["jobs"] == 2
    assert not list(logs.glob(".*.tmp"))


# slice, scale, anonymise


def test_slices(analysim: Command, logs: Path) -> None:
    result = analysim("trace", "slice", "prod.csv", "red.csv", "--tenant", "red", "--max-gpus", "4")
    assert result.stderr.splitlines()[2:] == ["wrote red.csv: 2 jobs (of 6, left out: 3 not of red; 1 more than 4 GPUs)"]
    kept = read_trace("red.csv").frame
    assert kept["job_id"].tolist() == [1, 3]
    assert kept["submit_us"].tolist() == [0, 20_000_000]
    analysim("trace", "slice", "sacct.txt", "later.csv", "--window", "1h:")
    (later,) = read_trace("later.csv").frame.to_dict("records")
    assert read_trace("later.csv").time_origin == "2026-03-02T09:05:00+00:00"
    assert (later["job_id"], later["recorded_start_us"]) == ("3_1", 60_000_000)
    refused(analysim("trace", "slice", "prod.csv", "x.csv"), "--tenant")
    refused(analysim("trace", "slice", "prod.csv", "x.csv", "--window", "7d"), "7d")
    refused(analysim("trace", "slice", "prod.csv", "x.csv", "--tenant", "rde"), "red")
    refused(analysim("trace", "slice", "prod.csv", "x.csv", "--min-gpus", "-1"), "No job has -1 GPUs")
    refused(analysim("trace", "slice", "prod.csv", "x.csv", "--max-gpus", "-1"), "No job has -1 GPUs")


@pytest.mark.parametrize(
    "words", [("convert",), ("slice", "--window", "0d:"), ("scale", "--load", "1", "--gpus", "9"), ("anonymise",)]
)
def test_all_that_shape_tell_what_they_read(analysim: Command, logs: Path, words: tuple[str, ...]) -> None:
    command, *flags = words
    said = analysim("trace", command, "sacct.txt", "new.csv", "--timezone", "Europe/Berlin", *flags).stderr.splitlines()
    assert said[:4] == analysim("trace", "describe", "sacct.txt", "--timezone", "Europe/Berlin").stderr.splitlines()
    assert said[2] == "note: 1 set aside: never started"
    assert said[4].startswith("wrote new.csv")


def test_scaled_to_a_load(analysim: Command, logs: Path) -> None:
    words = ("trace", "scale", "prod.csv", "half.csv", "--load", "0.5")
    result = analysim(*words, "--topology", "tiny")
    assert result.stderr.splitlines()[2:] == ["wrote half.csv: 6 jobs (scaled to an offered load of 0.5 on 16 GPUs)"]
    assert facts(analysim, "half.csv")["gpu_hours"] * 3_600 / (16 * facts(analysim, "half.csv")["span_s"]) == (
        pytest.approx(0.5)
    )
    first = (logs / "half.csv").read_bytes()
    assert analysim(*words, "--gpus", "16", "--force").exit_code == 0
    assert (logs / "half.csv").read_bytes() == first


def test_days_drawn_again(analysim: Command, logs: Path) -> None:
    words = ("trace", "scale", "sacct.txt", "week.csv.gz", "--resample", "--days", "7", "--seed", "3")
    result = analysim(*words, "--copies", "2")
    assert [line.split(":")[0] for line in result.stderr.splitlines() if line.startswith("wrote")] == [
        "wrote week-1.csv.gz",
        "wrote week-2.csv.gz",
    ]
    assert analysim(*words).exit_code == 0
    assert (logs / "week.csv.gz").read_bytes() == (logs / "week-1.csv.gz").read_bytes()
    told = facts(analysim, "week-2.csv.gz")
    assert (told["jobs"], told["arrivals"]["by_hour"][8]) == (14, 7)
    refused(analysim(*words, "--copies", "2"), "week-1.csv.gz is there already")


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ((), "--resample"),
        (("--load", "0.5"), "--topology C or --gpus N"),
        (("--load", "0.5", "--gpus", "8", "--topology", "tiny"), "either"),
        (("--gpus", "8", "--resample"), "--load"),
        (("--load", "0.5", "--gpus", "8", "--copies", "2"), "--resample"),
        (("--resample", "--copies", "0"), "1 to 10,000"),
        (("--resample", "--days", "0"), "days"),
        (("--load", "-1", "--gpus", "8"), "positive"),
        (("--load", "1e-12", "--gpus", "16"), "times beyond 285 years"),
        (("--load", "1e-320", "--gpus", "16"), "times beyond 285 years"),
        (("--resample", "--seed", "-1"), "The seed -1 is negative"),
    ],
)
def test_scaling_that_cannot_be_meant(analysim: Command, here: Path, words: tuple[str, ...], remedy: str) -> None:
    refused(analysim("trace", "scale", "prod.csv", "x.csv", *words), remedy)
    assert not (here / "x.csv").exists()


def test_anonymised(analysim: Command, logs: Path) -> None:
    result = analysim("trace", "anonymise", "sacct.txt", "open.csv", "--key", "k")
    assert result.stderr.splitlines()[-1] == "wrote open.csv: 2 jobs (names are hashes, with your key)"
    text = (logs / "open.csv").read_text()
    assert not any(name in text for name in ("ann", "bob", "nlp", "3_1", "n1"))
    assert "who guesses a name can check it" in analysim("trace", "anonymise", "sacct.txt", "b.csv").stderr
    before, after = read_trace("sacct.txt").frame, read_trace("open.csv").frame
    assert before["duration_us"].tolist() == after["duration_us"].tolist()
    analysim("trace", "anonymise", "sacct.txt", "open.swf")
    assert "; Computer: anonymised\n" in (logs / "open.swf").read_text()
    assert "sacct" not in (logs / "open.swf").read_text()


# topologies infer


def test_infer_reads_logs_as_the_run_did(analysim: Command, logs: Path) -> None:
    words = ("--trace-format", "slurm-sacct", "--timezone", "Europe/Berlin")
    said = analysim("simulate", "--trace", "sacct.txt", "--no-figures", *words).stderr
    line = "analysim topologies infer sacct.txt --trace-format slurm-sacct --timezone Europe/Berlin -o sacct.topology.yaml"
    assert line in said
    assert analysim(*line.split()[1:]).exit_code == 0
    assert (logs / "sacct.topology.yaml").exists()
    refused(analysim("topologies", "infer", "pai_instance_table.csv"), "pai_task_table.csv")


# published figures


@pytest.mark.slow
def test_published_figures_of_venus(analysim: Command) -> None:
    told = facts(analysim, shared_file("traces/helios/venus_gpu_jobs.csv.gz"))
    assert (told["jobs"], round(told["mean_gpus"], 3), told["median_duration_s"]) == (125_303, 6.736, 204.0)
    assert sum(told["arrivals"]["by_hour"]) == sum(told["arrivals"]["by_weekday"].values()) == 125_303


def test_published_figures_of_openb_and_kalos(analysim: Command) -> None:
    assert facts(analysim, shared_file("traces/openb/openb_pod_list_default.csv"))["rows"] == 8_152
    kalos = facts(analysim, shared_file("traces/acme/converted_kalos_trace.csv"))
    assert (kalos["jobs"], round(kalos["gpu_hours"])) == (319, 456_843)


def test_published_figures_of_kth(analysim: Command) -> None:
    told = facts(analysim, shared_file("traces/swf/KTH-SP2-1996-2.1-cln.swf.gz"))
    assert (told["jobs"], told["waits"]["jobs"]) == (28_476, 28_476)
    assert told["waits"]["mean_s"] > told["waits"]["median_s"] > 0


def test_pai_instances_alone(analysim: Command) -> None:
    path = shared_file("traces/pai/pai_instance_table.tail_recovered.csv.gz")
    told = facts(analysim, path)
    assert (told["rows"], told["mean_gpus"]) == (19_752, None)
    assert told["jobs"] + sum(told["set_aside"].values()) == 19_752
    refused(analysim("trace", "slice", path, "x.csv", "--window", ":1d"), "pai_task_table")
