"""The zone in which a published log was written, for those who have not named it."""

from __future__ import annotations

from datetime import tzinfo

from analysim.traces.moments import zone_notes


def name_zone(naive: int, timezone: tzinfo | None, whose: str, zone: str) -> list[str]:
    """Say as which zone times without one were read, and which one is theirs as far as is known."""
    notes = zone_notes(naive, timezone)
    if notes and timezone is None:
        notes.append(f"{whose} times are known to be of {zone}: --timezone {zone}.")
    return notes
