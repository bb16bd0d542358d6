"""Make the tables of ``docs/policies.md``: every policy on the same jobs, and placements with and without span penalty.

``python scripts/policy_table.py`` rewrites the page in place, ``--workload`` and ``--policy`` (repeated) run some only
and print. The workloads of Venus and Philly need the public traces (``--traces DIR``); without them nothing is
written. Estimates are exact, so that policies which need them can run; nothing is tuned to a workload.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from bench import PHILLY_COLUMNS, VENUS_COLUMNS, every_policy

from analysim.clusters import load_cluster
from analysim.config.cluster import ClusterConfig, SpanPenalty
from analysim.config.run import RunConfig
from analysim.engine import Simulation
from analysim.metrics import summarise
from analysim.policy.loading import load_policy
from analysim.shelf import find
from analysim.traces import read_trace

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/policies.md"
TRACES = ROOT.parent / "shared/traces"
PLACEMENTS = ("pack", "first", "spread", "random", "rack")
PENALTY = SpanPenalty(node=1.0, rack=0.9, cluster=0.75)
"""Speeds of a gang on one node, in one rack, across racks; invented, to see whether it matters."""


@dataclass(frozen=True)
class Workload:
    """Jobs and a cluster, and what the page says of them."""

    name: str
    says: str
    make: Callable[[Path], pd.DataFrame]
    topology: str


def _venus(traces: Path) -> pd.DataFrame:
    return read_trace(traces / "helios/venus_gpu_jobs.csv.gz", VENUS_COLUMNS).frame


def _philly(traces: Path) -> pd.DataFrame:
    return read_trace(traces / "philly/philly_sia.csv.gz", PHILLY_COLUMNS).frame


def _demo(traces: Path) -> pd.DataFrame:
    return read_trace(find("traces", "demo")).frame


WORKLOADS = (
    Workload("venus-640", "125,303 jobs of Helios Venus on 640 GPUs: a real queue", _venus, "venus-640"),
    Workload("philly-640", "82,247 jobs of Philly on 640 GPUs: a real queue", _philly, "philly-640"),
    Workload("venus", "125,303 jobs of Helios Venus on its 1,064 GPUs: hardly a queue", _venus, "helios-venus"),
    Workload("demo", "the shipped trace on `gpu-1152`: priorities, tenants with quotas", _demo, "gpu-1152"),
)


def run(frame: pd.DataFrame, cluster: ClusterConfig, policy: str, placement: Any = "pack") -> dict[str, Any]:
    """Simulate and sum up; ``seconds`` is CPU time of the engine alone."""
    config = RunConfig(trace="table", placement=placement)
    simulation = Simulation(frame, cluster, load_policy(policy)(), config)
    tables = simulation.run()
    summary = summarise(tables)
    return {"seconds": simulation.cpu_seconds, "knowledge": simulation.policy.knowledge, **summary}


def row_of(name: str, found: dict[str, Any]) -> str:
    """One line of a table."""
    fragmentation = found["fragmentation"]
    cells = [
        name,
        *(f"{found[key]:,.0f}" for key in ("mean_jct_s", "median_jct_s", "p99_jct_s", "mean_wait_s")),
        *(f"{found[key]:.3f}" for key in ("allocated_utilisation", "productive_utilisation")),
        f"{fragmentation['unusable_share']:.3f}",
        f"{fragmentation['excess_nodes']:.1f}",
        *(f"{found[key]:,}" for key in ("preemptions", "migrations")),
        f"{found['gpu_hours_lost']:,.0f}",
        f"{found['seconds']:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "mean JCT s", "median JCT s", "p99 JCT s", "mean wait s", "allocated", "productive", "unusable share",
    "excess nodes", "preemptions", "migrations", "GPU-hours lost", "seconds",
)  # fmt: skip


def table(first: str, rows: list[str]) -> str:
    """A table in Markdown."""
    return "\n".join([f"| {first} | " + " | ".join(HEAD) + " |", "|---" * (len(HEAD) + 1) + "|", *rows])


def compare_policies(workload: Workload, traces: Path, names: list[str]) -> str:
    """All policies on one workload."""
    frame, cluster = workload.make(traces), load_cluster(find("topologies", workload.topology))
    frame["estimate_us"] = frame["duration_us"]
    rows = []
    for name in names:
        found = run(frame, cluster, name)
        rows.append(row_of(f"`{name}` ({found['knowledge']})", found))
        print(f"{workload.name}: {rows[-1]}", file=sys.stderr, flush=True)
    return f"## {workload.name}\n\n{workload.says}.\n\n{table('policy (knowledge)', rows)}\n"


def compare_placements(traces: Path) -> str:
    """Placements with and without a penalty for gangs that are spread."""
    frame, cluster = _venus(traces), load_cluster(find("topologies", "venus-640"))
    rows = []
    for penalty in (SpanPenalty(), PENALTY):
        said = "with" if penalty is PENALTY else "without"
        for policy in ("fifo", "migrate"):
            for placement in PLACEMENTS:
                found = run(frame, cluster.model_copy(update={"span_penalty": penalty}), policy, placement)
                rows.append(row_of(f"`{policy}`, `{placement}`, {said}", found))
                print(rows[-1], file=sys.stderr, flush=True)
    penalties = f"{PENALTY.node:g} on one node, {PENALTY.rack:g} within a rack, {PENALTY.cluster:g} across racks"
    intro = f"venus-640 again. With the penalty a gang runs at a speed of {penalties}; these figures are invented."
    return f"## Placement, with and without `span_penalty`\n\n{intro}\n\n{table('policy, placement, penalty', rows)}\n"


BEGIN, END = "<!-- tables: scripts/policy_table.py -->\n", "<!-- end of tables -->\n"


def main() -> int:
    """Read the command line, run, write the page or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", action="append", choices=[each.name for each in WORKLOADS])
    parser.add_argument("--policy", action="append")
    parser.add_argument("--traces", type=Path, default=TRACES)
    arguments = parser.parse_args()
    if not arguments.traces.is_dir():
        print(f"error: the public traces are not in {arguments.traces}; name their folder: --traces.", file=sys.stderr)
        return 2
    chosen = [each for each in WORKLOADS if each.name in (arguments.workload or [each.name])]
    parts = [compare_policies(each, arguments.traces, arguments.policy or every_policy()) for each in chosen]
    if arguments.workload or arguments.policy:
        print("\n".join(parts))
        return 0
    parts.append(compare_placements(arguments.traces))
    text = PAGE.read_text()
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text(head + "\n" + "\n".join(parts) + "\n" + tail)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
