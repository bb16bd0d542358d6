"""A sorted queue: cheap at both ends, one binary search elsewhere."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Any

from analysim.jobs import Job

Entry = tuple[Any, int, Job]
"""A job in an order: key, rank, job. Keys and ranks decide; two entries never tie."""

_COMPACT_FROM = 1_024
_BULK_FROM = 64


class Queue:
    """Entries in order. Taking the first only moves a mark; the space is given back from time to time."""

    __slots__ = ("_first", "_items")

    def __init__(self) -> None:
        self._items: list[Entry] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._items) - self._first

    @property
    def head(self) -> Entry:
        """The first entry."""
        return self._items[self._first]

    def add(self, entry: Entry) -> None:
        """Put an entry in its place: at the end in arrival order, by binary search otherwise."""
        items = self._items
        if len(items) == self._first or items[-1] < entry:
            items.append(entry)
        else:
            insort(items, entry, lo=self._first)

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Put many entries in their places at once."""
        added = list(entries)
        if len(added) < _BULK_FROM:
            for entry in added:
                self.add(entry)
            return
        self._items = self._items[self._first :] + added
        self._first = 0
        self._items.sort()

    def remove(self, entry: Entry) -> None:
        """Take an entry out."""
        items = self._items
        first = self._first
        if items[first] is entry:
            items[first] = None  # type: ignore[call-overload]  # the job may go; nothing looks before the mark
            first += 1
            if first > _COMPACT_FROM and first * 2 > len(items):
                del items[:first]
                first = 0
            self._first = first
        else:
            del items[bisect_left(items, entry[:2], lo=first)]

    def after(self, key: Any, rank: int) -> Entry | None:
        """Return the first entry behind a position; None: there is none."""
        items = self._items
        position = self._first
        if position < len(items) and not (key, rank) < items[position][:2]:
            position += 1
            if position < len(items) and not (key, rank) < items[position][:2]:
                position = bisect_right(items, (key, rank, _EVERY_JOB), lo=position)
        return items[position] if position < len(items) else None


class _AfterEveryJob:
    """Compares greater than any job, so that a bisection lands behind an equal (key, rank)."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_EVERY_JOB: Any = _AfterEveryJob()
