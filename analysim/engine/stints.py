"""What a job did with its GPUs while it held them, written when the stint is over."""

from __future__ import annotations

from analysim.jobs import Job, Placement
from analysim.ledger import Ledger
from analysim.plan.snapshot import Snapshot, split
from analysim.tables import CHECKPOINT, HOLD, RESTART, RUN


def close_stint(ledger: Ledger, job: Job, was: Job | Snapshot, now: int, progress: int) -> None:
    """Record a stint that ends now: the hold of a migration, the restart, and the run with what it gained."""
    placement = was.placement
    assert placement is not None
    if was.hold_until > was.hold_from:
        until = min(was.hold_until, now)
        _, _, fresh = split(was.shared, placement)
        ledger.held(job.rank, was.shared, was.hold_from, until, CHECKPOINT)
        ledger.held(job.rank, fresh, was.hold_from, until, HOLD)
    if was.run_from > was.hold_until:
        ledger.held(job.rank, placement, was.hold_until, min(was.run_from, now), RESTART)
    if now >= was.run_from or now == was.hold_from:
        ledger.held(job.rank, placement, min(was.run_from, now), now, RUN, was.speed, progress)


def waiting_pieces(held: list[tuple[int, int, int]]) -> list[tuple[Placement, int]]:
    """Group what a reservation holds by the instant since when it holds it."""
    since: dict[int, list[tuple[int, int]]] = {}
    for node, mask, start in held:
        since.setdefault(start, []).append((node, mask))
    return [(tuple(pairs), start) for start, pairs in since.items()]
