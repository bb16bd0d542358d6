"""What-if: changes to the plan that are undone unless they are kept."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysim.plan.plan import Plan


class Trial:
    """``with plan.trial() as trial: ... trial.keep()``; left without ``keep``, or by an exception, all is undone.

    Trials nest. The cost follows the number of changes made inside.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._kept = False

    def keep(self) -> None:
        """Make the changes part of the plan (or of the trial around this one)."""
        self._kept = True

    def __enter__(self) -> Trial:
        books = self._plan.books
        self._outer = books.journal
        self._changes: list[Callable[[], object]] = []
        books.journal = self._changes
        self._marks = (books.token, books.epoch)
        self._written = self._plan.written()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        books = self._plan.books
        books.journal = self._outer
        if self._kept and error is None:
            if self._outer is not None:
                self._outer.extend(self._changes)
            return
        for undo in reversed(self._changes):
            undo()
        books.token, books.epoch = self._marks
        self._plan.unwrite(self._written)
