"""Configuration models are written as a user would write them, and read back equal."""

from __future__ import annotations

from analysim.config.cluster import ClusterConfig, Partition
from analysim.config.dumping import as_written
from analysim.config.fields import DurationUs, Model
from analysim.config.run import RunConfig


def test_durations_are_written_in_seconds() -> None:
    config = RunConfig.model_validate(
        {"trace": "t.csv", "until": "1h30m", "costs": {"checkpoint_s": 0.25, "checkpoint_interval_s": "10m"}}
    )
    written = as_written(config)
    assert written["until"] == 5400
    assert written["schedule_every"] is None
    assert written["costs"] == {
        "start_s": 0,
        "checkpoint_s": 0.25,
        "restart_s": 60,
        "checkpoint_interval_s": 600,
        "size_gb": None,
        "bandwidth_gb_per_s": None,
    }
    assert RunConfig.model_validate(written) == config


def test_a_cluster_with_quotas_that_change_reads_back_equal() -> None:
    config = ClusterConfig.model_validate(
        {
            "name": "c",
            "node_types": {"z": {"gpus": 8, "gpu_type": "H100"}, "a": {"gpus": 4, "gpu_type": "T4"}},
            "racks": [{"name": "r", "nodes": [{"type": "z", "count": 2}, {"type": "a", "count": 1}]}],
            "speeds": {"H100": 2.2},
            "partitions": [
                {
                    "name": "p",
                    "guarantee": {"H100": 8},
                    "time_limit": "2d",
                    "children": [{"name": "q", "time_limit": 1.5}],
                    "changes": [{"time": "7d", "guarantee": 4, "nodes": ["r"]}],
                }
            ],
        }
    )
    written = as_written(config)
    assert written["partitions"][0]["changes"][0]["time"] == 604_800
    assert written["partitions"][0]["children"][0]["time_limit"] == 1.5
    assert ClusterConfig.model_validate(written) == config
    assert list(written["node_types"]) == ["z", "a"]


def test_options_of_a_policy_with_a_list_of_durations() -> None:
    class Options(Model):
        thresholds: tuple[DurationUs, ...] = (3_600_000_000,)
        factor: float = 2.0

    assert as_written(Options()) == {"thresholds": [3600], "factor": 2.0}
    assert Options.model_validate(as_written(Options())) == Options()


def test_without_defaults_only_what_was_chosen_is_written_and_names_come_first() -> None:
    partition = Partition.model_validate({"name": "p", "guarantee": 8, "limits": {}, "time_limit": "1h"})
    written = as_written(partition, defaults=False)
    assert list(written.items()) == [("name", "p"), ("guarantee", 8), ("time_limit", 3600)]
