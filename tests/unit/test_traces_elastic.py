"""The columns of elastic jobs in files, and generated traces that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysim.errors import UserError
from analysim.traces import find_problems, generate, read_trace, write_trace

BAD = """job_id,submit_time,duration,num_gpus,least,max_gpus,throughput
1,0,10,4,2,8,amdahl:0.9
2,0,10,4,5,8,cubic
3,0,10,4,,2,1=1 4=3
4,0,10,4,,8,1=1 4=3
"""


def test_every_mistake_is_told_with_its_row_and_the_files_own_column(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(BAD)
    problems = find_problems(tmp_path / "t.csv", {"min_gpus": "least"})
    assert [problem.message.partition("t.csv, ")[2] for problem in problems] == [
        'row 2 (line 3), column least: "5" is more than num_gpus, 4.',
        'row 2 (line 3), column throughput: "cubic" is no curve of throughput.',
        'row 3 (line 4), column max_gpus: "2" is less than num_gpus, 4.',
        'row 4 (line 5), column throughput: "1=1 4=3" tells of 1 to 4 GPUs; the job runs on 4 to 8.',
    ]
    with pytest.raises(UserError, match="column least"):
        read_trace(tmp_path / "t.csv", {"min_gpus": "least"})


def test_a_share_of_generated_jobs_is_elastic_and_all_else_stays(tmp_path: Path) -> None:
    plain = generate("philly", jobs=2_000, gpus=64, seed=3)
    made = generate("philly", jobs=2_000, gpus=64, seed=3, options={"elastic_share": 0.5})
    elastic = made["max_gpus"] > 0
    gpus = made["gpu_milli"] // 1000
    assert 0.4 < elastic.mean() < 0.6
    assert (made["min_gpus"] == elastic).all()
    assert (made["max_gpus"] == (2 * gpus).clip(upper=64).where(elastic, 0)).all()
    assert set(made.loc[elastic, "throughput"]) == {"amdahl:0.95"}
    columns = ["min_gpus", "max_gpus", "throughput"]
    assert made.drop(columns=columns).equals(plain.drop(columns=columns))
    write_trace(made, tmp_path / "t.csv")
    assert read_trace(tmp_path / "t.csv").frame[columns].equals(made[columns])


def test_a_curve_that_is_none_is_told_by_its_field() -> None:
    with pytest.raises(UserError, match=r"elastic_curve 'cubic' is no curve of throughput\."):
        generate("tiny", options={"elastic_share": 1, "elastic_curve": "cubic"})
