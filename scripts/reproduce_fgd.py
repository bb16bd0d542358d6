"""Repeat the placement experiment of FGD (USENIX ATC 2023) on an openb workload, or all of it against the published.

``python scripts/reproduce_fgd.py --pods openb_pod_list_default.csv --nodes openb_node_list_gpu_node.csv --policy fgd
--seed 1`` places one workload once and prints allocation and fragmentation at arrived loads of 80, 90, 100 and 130 %
(``--json``: for machines). ``--all --traces DIR --expected FILE`` places the workloads that FILE has results of, with
every policy and the seeds 1 to 10, prints how far the means are from those, and exits with 1 if any is too far.
The files: https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023 (node_data, csv).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysim.clusters.importing import import_cluster
from analysim.errors import AnalysimError, UserError
from analysim.study.placing import LOADS, Course, Experiment, curves_of, fill
from analysim.traces import read_trace, require_gpus

POLICIES = {
    "random": "Random",
    "dotprod": "DotProd",
    "gpuclustering": "GpuClustering",
    "gpupacking": "GpuPacking",
    "bestfit": "BestFit",
    "fgd": "FGD",
}
"""Our names of the policies, and the published ones."""

SEEDS = 10
"""Seeds of the published means, and of ours."""

FIGURES = ("allocated_percent", "fragmented_percent_of_capacity")
COMPARED = (("allocated_percent", 100), ("allocated_percent", 130))
"""What is compared for every workload and policy."""

EXPECTED = ("workload", "policy", "metric", "arrived_load_percent", "mean_over_seeds", "sd_over_seeds", "seeds")
"""Columns of the published results that are used."""

FRAGMENTATION_POINTS = 1.0
"""Per cent of the cluster by which fragmentation may be off at any load."""

SHARED = Path(__file__).resolve().parents[2] / "shared"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and do what it asks; the exit code is 0, 1 (too far off) or 2 (a mistake in the input)."""
    options = _parser().parse_args(arguments)
    try:
        return _compare_all(options) if options.all else _place_one(options)
    except AnalysimError as error:
        print("error:", error, file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=Path, metavar="FILE", help="openb_pod_list_<workload>.csv")
    parser.add_argument("--nodes", type=Path, metavar="FILE", help="openb_node_list_gpu_node.csv")
    parser.add_argument("--policy", choices=list(POLICIES), default="fgd")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--all", action="store_true", help="compare with published results")
    parser.add_argument("--traces", type=Path, default=SHARED / "traces/openb", help="folder of openb files, for --all")
    parser.add_argument("--expected", type=Path, default=SHARED / "reference/fgd/expected.csv", help="for --all")
    return parser


def experiment_of(pods: Path, nodes: Path) -> Experiment:
    """Read a workload and a node list. Raises ``UserError`` where one of them cannot be used."""
    for path in (pods, nodes):
        if not path.is_file():
            raise UserError(f"{path}: no such file.")
    cluster, _ = import_cluster("openb", [nodes], "openb")
    return Experiment(require_gpus(read_trace(pods, format="openb")).frame, cluster)


def result_of(course: Course) -> dict[str, Any]:
    """Give the figures of one run as they are printed; null at a load that was not reached."""
    curve = fill(course.curve()).set_index("arrived_load_percent")
    figures = {
        name: {str(load): float(curve[name][load]) if load in curve.index else None for load in LOADS}
        for name in FIGURES
    }
    return {**figures, "pods": course.jobs, "failed": course.failed, "seconds": round(course.seconds, 3)}


def _place_one(options: argparse.Namespace) -> int:
    if options.pods is None or options.nodes is None:
        raise UserError("--pods and --nodes are needed.", "Name an openb_pod_list_*.csv and an openb_node_list_*.csv.")
    if options.seed < 0:
        raise UserError(f"The seed {options.seed} is negative.", "Give a whole number, 0 or more.")
    result = result_of(experiment_of(options.pods, options.nodes).run(options.policy, options.seed))
    if options.json:
        print(json.dumps(result, indent=2, allow_nan=False))
        return 0
    placed = result["pods"] - result["failed"]
    print(f"{options.policy}, seed {options.seed}: {placed:,} of {result['pods']:,} pods in {result['seconds']:.2f} s")
    print("arrived load   allocated  fragmented")
    for load in LOADS:
        allocated, fragmented = (result[name][str(load)] for name in FIGURES)
        if allocated is not None:
            print(f"{load:>11}%  {allocated:9.2f}%  {fragmented:9.2f}%")
    return 0


def curves_for(experiment: Experiment, policies: Sequence[str] = tuple(POLICIES), seeds: int = SEEDS) -> pd.DataFrame:
    """Run the seeds 1 to ``seeds`` of some policies and return their curves, named as published."""
    courses = [experiment.run(policy, seed) for policy in policies for seed in range(1, seeds + 1)]
    return curves_of(courses).replace({"placement": POLICIES})


def compare(curves: pd.DataFrame, expected: pd.DataFrame, seeds: int = SEEDS) -> pd.DataFrame:
    """Set the means over seeds beside the published ones, a row for each policy, figure and load that both have.

    ``tolerance`` is three standard errors of the difference of two means, and no less than 0.3 points.
    """
    means = curves.groupby(["placement", "arrived_load_percent"])[list(FIGURES)].mean()
    rows = []
    for each in expected.itertuples(index=False):
        key = (each.policy, each.arrived_load_percent)
        if key in means.index:
            sd = float(each.sd_over_seeds)
            rows.append(
                {
                    "metric": each.metric,
                    "policy": each.policy,
                    "load": each.arrived_load_percent,
                    "ours": float(means.loc[key, each.metric]),
                    "published": float(each.mean_over_seeds),
                    "sd": sd,
                    "tolerance": max(0.3, 3 * sd * math.sqrt(1 / seeds + 1 / each.seeds)),
                }
            )
    table = pd.DataFrame(rows)
    return table.assign(difference=table["ours"] - table["published"])


def read_expected(path: Path) -> pd.DataFrame:
    """Read published results. Raises ``UserError`` where the file is no table that has them."""
    if not path.is_file():
        raise UserError(f"{path}: no such file.", "Name the published results with --expected.")
    try:
        expected = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is no CSV: {str(error).splitlines()[0]}", "Name the published results.") from None
    for column in EXPECTED:
        if column not in expected:
            raise UserError(f"{path} has no column {column!r}.", f"Published results have {', '.join(EXPECTED)}.")
    return expected


def _compare_all(options: argparse.Namespace) -> int:
    expected = read_expected(options.expected)
    too_far = 0
    print(f"{'workload':<12} {'policy':<14} {'load':>5} {'ours':>7} {'published':>9} {'off by':>7} {'tolerance':>9}")
    for workload, published in expected.groupby("workload"):
        pods = options.traces / f"openb_pod_list_{workload}.csv"
        experiment = experiment_of(pods, options.traces / "openb_node_list_gpu_node.csv")
        table = compare(curves_for(experiment), published)
        for metric, load in COMPARED:
            for row in table[(table["metric"] == metric) & (table["load"] == load)].itertuples():
                far = abs(row.difference) > row.tolerance
                too_far += far
                print(
                    f"{workload:<12} {row.policy:<14} {load:>4}% {row.ours:7.2f} {row.published:9.2f}"
                    f" {row.difference:+7.2f} {row.tolerance:9.2f}{'  TOO FAR' if far else ''}",
                    flush=True,
                )
        fragmented = table[table["metric"] == FIGURES[1]]
        worst = fragmented.loc[fragmented["difference"].abs().idxmax()]
        too_far += abs(worst["difference"]) > FRAGMENTATION_POINTS
        print(
            f"{workload:<12} fragmentation at {fragmented['load'].nunique()} loads: at most"
            f" {abs(worst['difference']):.2f} points off ({worst['policy']} at {worst['load']}%)"
        )
    return 1 if too_far else 0


if __name__ == "__main__":
    sys.exit(main())
