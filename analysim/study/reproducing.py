"""Make a run again from its folder alone, and tell whether the bytes are the same."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from analysim import shelf
from analysim.config.cluster import ClusterConfig
from analysim.config.run import RunConfig
from analysim.errors import RunFolderError, ShelfError
from analysim.policy import Policy
from analysim.policy.loading import load_policy
from analysim.run.folder import (
    FIDELITY_FIGURE,
    FIDELITY_FILE,
    FIGURES,
    POLICY_FILE,
    TIMING_FILE,
    read_policy_source,
    read_record,
    read_timing,
)
from analysim.run.inputs import Inputs, load_inputs, read_named, source_of

_APART = {TIMING_FILE, FIDELITY_FILE, *(f"{FIGURES}/{FIDELITY_FIGURE}.{kind}" for kind in ("png", "svg"))}


def load_again(folder: Path) -> Inputs:
    """Load what a run was made of: its trace, and the cluster and the policy as its folder keeps them.

    Raises ``RunFolderError`` when the trace or the copy of the policy is missing or has changed.
    """
    record = read_record(folder)
    config = RunConfig.model_validate(record["config"])
    policy = _load_policy_again(config.policy, folder, record["policy"])
    path = _find_trace(config.trace, folder)
    trace = read_named(config, path)
    if trace.sha256 != record["trace"]["sha256"]:
        raise _changed(f"{path} has changed since the run {folder}.")
    cluster = ClusterConfig.model_validate(record["topology"]["cluster"])
    inputs = load_inputs(config, policy=policy, cluster=cluster, trace=trace)
    return replace(inputs, cluster_origin=record["topology"]["origin"])


def _load_policy_again(name: str, folder: Path, recorded: dict[str, Any]) -> type[Policy]:
    """Load the copy of the policy's file; a ``module:Class`` from its own module."""
    if sha256(read_policy_source(folder)).hexdigest() != recorded["sha256"]:
        raise _changed(f"{folder / POLICY_FILE} is not the policy that the run was made with.")
    if ":" not in name or name.endswith(".py"):
        policy = load_policy(str(folder / POLICY_FILE))
        policy.name = recorded["name"]  # a file without a name goes by the file's own
        return policy
    policy = load_policy(name)
    if sha256(source_of(policy)).hexdigest() != recorded["sha256"]:
        raise _changed(f"The module of {name} has changed since the run {folder}.")
    return policy


def _changed(message: str) -> RunFolderError:
    return RunFolderError(message, "Put the original back, or simulate anew.")


def _find_trace(name: str, folder: Path) -> Path:
    """Find the trace by the name the user gave: here, else from the directory in which the run was made."""
    try:
        return shelf.find("traces", name)
    except ShelfError as error:
        path = Path(read_timing(folder).get("working_directory", "")) / name
        if path.is_file():
            return path
        raise RunFolderError(f"The trace {name} of the run {folder} is not there.", error.remedy) from error


def compare_files(one: Path, other: Path) -> dict[str, bool]:
    """Tell for each file of two run folders whether both have the same bytes.

    Apart from ``timing.json``, and from what ``fidelity`` adds, which is made of the other files.
    """
    hashes = [_hashes(folder) for folder in (one, other)]
    names = sorted(set(hashes[0]) | set(hashes[1]))
    return {name: hashes[0].get(name) == hashes[1].get(name) for name in names}


def _hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in files}
    return {name: sha256(path.read_bytes()).hexdigest() for name, path in names.items() if name not in _APART}
