"""From a configuration file and flags to one run configuration; flags win over the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysim.errors import ConfigError

if TYPE_CHECKING:
    from analysim.config.run import RunConfig


def merge_fields(
    file: Path | None, flags: Mapping[str, Any], columns: Sequence[str], settings: Sequence[str]
) -> dict[str, Any]:
    """Put the fields of a run configuration together: the file's, then flags that were given, then ``--set``.

    Raises ``ConfigError`` for a broken file or flag.
    """
    from analysim.config.loading import apply_settings, load_run_config

    fields = load_run_config(file) if file is not None else {}
    fields |= {name: value for name, value in flags.items() if value is not None}
    if columns:
        fields["columns"] = {**fields.get("columns", {}), **read_columns(columns)}
    return apply_settings(fields, settings)


def read_columns(columns: Sequence[str]) -> dict[str, str]:
    """Read ``--column name=own`` flags. Raises ``ConfigError``."""
    pairs = [column.partition("=") for column in columns]
    for column, (name, _, own) in zip(columns, pairs, strict=True):
        if not name.strip() or not own:
            raise ConfigError(f"--column {column!r} is no pair.", "Write --column submit_time=arrival_s.")
    return {name.strip(): own for name, _, own in pairs}


def make_config(fields: Mapping[str, Any]) -> RunConfig:
    """Check the fields as a whole. Raises ``ConfigError``."""
    from analysim.config.loading import validate
    from analysim.config.run import RunConfig

    if "trace" not in fields:
        raise ConfigError("No trace is named.", "Add --trace FILE, or --trace demo for the example.")
    return validate(RunConfig, dict(fields), "the run's configuration")
