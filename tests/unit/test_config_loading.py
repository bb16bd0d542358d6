"""Reading YAML, validating it in one line, and ``--set key=value``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import PositiveInt

from analysim.config.cluster import ClusterConfig, Costs
from analysim.config.fields import Model
from analysim.config.loading import (
    Dumper,
    apply_settings,
    load_run_config,
    load_yaml,
    validate,
)
from analysim.config.run import RunConfig
from analysim.errors import ConfigError


def read(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return load_yaml(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("1e3", 1000.0),
        ("6214e9", 6214e9),
        ("1.5E-2", 0.015),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("007", "007"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2020-04-01", "2020-04-01"),
        (".inf", ".inf"),
        ("1h30m", "1h30m"),
        ("0d:30d", "0d:30d"),
        ("'12'", "12"),
        ("<<", "<<"),
    ],
)
def test_words_mean_what_people_mean(tmp_path: Path, text: str, value: object) -> None:
    found = read(tmp_path, f"key: {text}\n")["key"]
    assert found == value
    assert type(found) is type(value)


def test_keys_are_text_as_written(tmp_path: Path) -> None:
    data = read(tmp_path, "on: 1\n4090: 2\n6214e9: 3\ntrue: 4\n")
    assert data == {"on": 1, "4090": 2, "6214e9": 3, "true": 4}


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeffname: x\n") == {"name": "x"}


@pytest.mark.parametrize("value", ["12", "1e3", "on", "007", "true", "", "null", "a: b", "x", "6214e9", "é"])
def test_written_text_is_read_back_as_text(tmp_path: Path, value: str) -> None:
    assert read(tmp_path, yaml.dump({"key": value}, Dumper=Dumper, allow_unicode=True)) == {"key": value}


def test_equal_parts_are_written_in_full(tmp_path: Path) -> None:
    part = {"a": 1.5}
    text = yaml.dump({"x": part, "y": part}, Dumper=Dumper)
    assert "&" not in text
    assert read(tmp_path, text) == {"x": part, "y": part}


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("name: a\nseed: 1\nname: b\n", "{file}:3:1: key 'name' is written twice.", "Keep one of the two."),
        ("a:\n  b: 1\n  b: 2\n", "{file}:3:3: key 'b' is written twice.", "Keep one of the two."),
        (
            "name: a: b\n",
            "{file}:1:8: mapping values are not allowed here.",
            "Check the indentation and the quotes of this line.",
        ),
        (
            "racks: [a, b\nname: x\n",
            "{file}:2:5: expected ',' or ']', but got ':'.",
            "Check the indentation and the quotes of this line.",
        ),
        ("a:\n\tb: 1\n", "{file}:2:1: a tab in the indentation.", "Indent with spaces."),
        (
            "? [a]\n: 1\n",
            "{file}:1:3: a key must be a plain word.",
            "Check the indentation and the quotes of this line.",
        ),
        (
            "a: !!python/name:os.system x\n",
            "{file}:1:4: could not determine a constructor for the tag"
            " 'tag:yaml.org,2002:python/name:os.system'.",
            "Check the indentation and the quotes of this line.",
        ),
        ("", "{file}: expected keys and values, but the file is empty.", "Write key: value."),
        ("- a\n", "{file}: expected keys and values, but the file holds a list.", "Write key: value."),
        ("fifo\n", "{file}: expected keys and values, but the file holds 'fifo'.", "Write key: value."),
        (
            "a: \x07\n",
            "{file}: no YAML text: unacceptable character #x0007: special characters are not allowed.",
            "Check the file's contents.",
        ),
    ],
)
def test_broken_yaml_is_told_in_one_line(tmp_path: Path, text: str, message: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert caught.value.message == message.format(file=tmp_path / "x.yaml")
    assert caught.value.remedy == remedy


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(ConfigError) as caught:
        load_yaml(path)
    assert str(caught.value) == f"{path}: byte 6 is no UTF-8 text. Save the file as UTF-8."
    with pytest.raises(ConfigError) as caught:
        load_yaml(tmp_path / "gone.yaml")
    assert (
        str(caught.value)
        == f"{tmp_path}/gone.yaml: cannot be read: No such file or directory. Check the path."
    )
    with pytest.raises(ConfigError) as caught:
        load_yaml(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory. Check the path."


CLUSTER: dict[str, Any] = {
    "name": "c",
    "node_types": {"big": {"gpus": 8}},
    "racks": [{"name": "r", "nodes": [{"type": "big", "count": 1}]}],
}


@pytest.mark.parametrize(
    ("change", "message", "remedy"),
    [
        ({"rack": []}, "unknown key 'rack'.", "Did you mean 'racks'?"),
        (
            {"racks": [{"name": "r", "nodes": [{"type": "big", "cuont": 1}]}]},
            "unknown key 'cuont' in racks[0].nodes[0].",
            "Did you mean 'count'?",
        ),
        (
            {"node_types": {"big": {"gpu": 8, "memory": 1}}},
            "unknown key 'gpu' in node_types.big. (1 more problem in it.)",
            "Did you mean 'gpus'?",
        ),
        (
            {"partitions": [{"name": "p", "limits": {"user": {"gpu": 1}}}]},
            "unknown key 'gpu' in partitions[0].limits.user.",
            "Did you mean 'gpus'?",
        ),
        (
            {"links": {"zzz": 1}},
            "unknown key 'zzz' in links.",
            "Known: rack_gbps, pod_gbps, core_gbps, oversubscription.",
        ),
        ({"racks": [{"nodes": [{"type": "big", "count": 1}]}]}, "racks[0].name is missing.", "Add it."),
        ({"racks": []}, "racks is a list; expected at least 1 of them.", ""),
        ({"node_types": {}}, "node_types is a mapping; expected at least 1 of them.", ""),
        ({"racks": "r[0-3]"}, "racks is 'r[0-3]'; expected a list.", ""),
        ({"racks": None}, "racks is empty; expected a list.", ""),
        ({"node_types": {"big": 8}}, "node_types.big is 8; expected a mapping of keys to values.", ""),
        ({"name": 6214e9}, "name is 6214000000000.0; expected text.", "Put it in quotes."),
        ({"name": ""}, "name is ''; expected text.", ""),
        (
            {"racks": [{"name": "r", "nodes": [{"type": "big", "count": -2}]}]},
            "racks[0].nodes[0].count is -2; expected more than 0.",
            "",
        ),
        ({"node_types": {"big": {"gpus": 7.5}}}, "node_types.big.gpus is 7.5; expected a whole number.", ""),
        (
            {"node_types": {"big": {"gpus": "many"}}},
            "node_types.big.gpus is 'many'; expected a whole number.",
            "",
        ),
        (
            {"node_types": {"big": {"nvlink": "ja"}}},
            "node_types.big.nvlink is 'ja'; expected true or false.",
            "",
        ),
        ({"speeds": {"V100": "fast"}}, "speeds.V100 is 'fast'; expected a number.", ""),
        ({"speeds": {"V100": 0}}, "speeds.V100 is 0; expected more than 0.", ""),
        (
            {"partitions": [{"name": "p", "guarantee": "all"}]},
            "partitions[0].guarantee is 'all'; expected a whole number or a mapping of keys to values.",
            "",
        ),
        (
            {"partitions": [{"name": "p", "limit": {"V100": -3}}]},
            "partitions[0].limit.V100 is -3; expected 0 or more.",
            "",
        ),
        (
            {"partitions": [{"name": "p", "nodes": 7}]},
            "partitions[0].nodes is 7; expected text or a list.",
            "Put it in quotes.",
        ),
        (
            {"partitions": [{"name": "p", "time_limit": "12 hours"}]},
            "partitions[0].time_limit: '12 hours' is not a duration; write 90 (seconds), 1h30m or 7d.",
            "",
        ),
        (
            {"partitions": [{"name": "p", "time_limit": -1}]},
            "partitions[0].time_limit: a duration may not be negative.",
            "",
        ),
        (
            {"node_types": {"big": {"gpus": -1, "cpus": 0, "memory_gb": "x"}}},
            "node_types.big.gpus is -1; expected 0 or more. (2 more problems in it.)",
            "",
        ),
    ],
)
def test_broken_cluster_files(change: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(ClusterConfig, {**CLUSTER, **change}, "c.yaml")
    assert caught.value.message == f"c.yaml: {message}"
    assert caught.value.remedy == remedy


def test_a_word_for_true_is_true_where_a_boolean_is_wanted() -> None:
    config = validate(ClusterConfig, {**CLUSTER, "node_types": {"big": {"nvlink": "on"}}}, "c.yaml")
    assert config.node_types["big"].nvlink is True


def test_long_values_are_cut() -> None:
    with pytest.raises(ConfigError) as caught:
        validate(RunConfig, {"trace": "t", "seed": "x" * 500}, "run.yaml")
    assert caught.value.message == f"run.yaml: seed is '{'x' * 56}...; expected a whole number."


def test_data_that_is_no_mapping() -> None:
    with pytest.raises(ConfigError) as caught:
        validate(RunConfig, 7, "run.yaml")
    assert caught.value.message.startswith("run.yaml: the whole is 7; expected ")


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("polcy: fifo\n", "unknown key 'polcy'.", "Did you mean 'policy'?"),
        ("costs: {restart: 5}\n", "unknown key 'restart' in costs.", "Did you mean 'restart_s'?"),
        (
            "costs: {restart_s: soon}\n",
            "costs.restart_s: 'soon' is not a duration; write 90 (seconds), 1h30m or 7d.",
            "",
        ),
        ("load: 0\n", "load is 0; expected more than 0.", ""),
        (
            "placement: packed\n",
            "placement is 'packed'; expected 'pack', 'first', 'spread', 'random', 'rack', 'any', 'fgd', 'bestfit', 'dotprod', 'gpupacking' or 'gpuclustering'.",
            "Did you mean 'pack'?",
        ),
        ("overrun: stop\n", "overrun is 'stop'; expected 'extend' or 'kill'.", "Known: extend, kill."),
        ("seed: 1.5\n", "seed is 1.5; expected a whole number.", ""),
        ("trace: 7\n", "trace is 7; expected text.", "Put it in quotes."),
        ("columns: [a]\n", "columns is a list; expected a mapping of keys to values.", ""),
    ],
)
def test_broken_run_configurations(tmp_path: Path, text: str, message: str, remedy: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_run_config(path)
    assert (caught.value.message, caught.value.remedy) == (f"{path}: {message}", remedy)


def test_a_run_configuration_keeps_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("policy: srtf\nuntil: 30d\ncosts: {restart_s: 1m}\noptions: {max_moves: 4}\n")
    fields = load_run_config(path)
    assert fields == {
        "policy": "srtf",
        "until": "30d",
        "costs": {"restart_s": "1m"},
        "options": {"max_moves": 4},
    }
    config = validate(RunConfig, {"trace": "prod.csv", **fields}, path)
    assert (config.until, config.costs.restart_s) == (30 * 86_400_000_000, 60_000_000)


def test_the_reference_shows_a_file_that_works_and_names_every_key(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "run-config.md").read_text()
    path = tmp_path / "example.yaml"
    path.write_text(text.split("```yaml\n")[1].split("```")[0])
    assert validate(RunConfig, load_run_config(path), path).costs.restart_s == 120_000_000
    for key in (*RunConfig.model_fields, *Costs.model_fields):
        assert f"`{key}`" in text, f"{key} is not in the reference"


def test_settings_reach_fields_groups_and_options() -> None:
    fields = {"trace": "t", "seed": 1, "costs": {"restart_s": 5}, "options": {"skip": True}}
    result = apply_settings(
        fields,
        [
            "seed=7",
            "until = 30d",
            "costs.checkpoint_s=10",
            "policy.max_moves=4",
            "thresholds=[1h, 10h]",
            "skip=false",
            "columns.submit_time=arrival_s",
            "window=0d:30d",
            "factor=1e3",
            "load=",
            "policy=preempt",
        ],
    )
    assert result == {
        "trace": "t",
        "seed": 7,
        "until": "30d",
        "costs": {"restart_s": 5, "checkpoint_s": 10},
        "options": {"skip": False, "max_moves": 4, "thresholds": ["1h", "10h"], "factor": 1000.0},
        "columns": {"submit_time": "arrival_s"},
        "window": "0d:30d",
        "load": None,
        "policy": "preempt",
    }
    assert fields == {"trace": "t", "seed": 1, "costs": {"restart_s": 5}, "options": {"skip": True}}


@pytest.mark.parametrize(
    ("setting", "message", "remedy"),
    [
        ("seed", "--set 'seed': expected key=value.", "Write --set seed=7 or the like."),
        ("=7", "--set '=7': expected key=value.", "Write --set seed=7 or the like."),
        ("cost.restart_s=1", "--set cost.restart_s: there is no group 'cost'.", "Did you mean 'costs'?"),
        (
            "seed.x=1",
            "--set seed.x: there is no group 'seed'.",
            "Known: policy, costs, columns, options.",
        ),
        (
            "max_moves=[1",
            "--set max_moves:1:3: expected ',' or ']', but got '<stream end>'.",
            "Check the indentation and the quotes of this line.",
        ),
    ],
)
def test_broken_settings(setting: str, message: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        apply_settings({}, [setting])
    assert (caught.value.message, caught.value.remedy) == (message, remedy)


def test_a_setting_inside_something_that_is_no_group() -> None:
    with pytest.raises(ConfigError) as caught:
        apply_settings({"costs": 5}, ["costs.restart_s=1"])
    assert (
        str(caught.value) == "--set costs.restart_s: costs is 5, no group of keys. Write costs as a mapping."
    )


def test_options_of_a_policy_are_judged_by_its_own_model() -> None:
    class Options(Model):
        max_moves: PositiveInt = 2

    options = apply_settings({}, ["max_move=4"])["options"]
    with pytest.raises(ConfigError) as caught:
        validate(Options, options, "options of policy migrate")
    assert str(caught.value) == "options of policy migrate: unknown key 'max_move'. Did you mean 'max_moves'?"
