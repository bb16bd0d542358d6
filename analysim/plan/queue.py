"""A sorted queue: cheap at both ends, cheap elsewhere as long as little comes out of order at a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any

from analysim.jobs import Job

Entry = tuple[Any, int, Job]
"""A job in an order: key, rank, job. Keys and ranks decide; two entries never tie."""

_COMPACT_FROM = 1_024
_BULK_FROM = 64
_MOST_LATE = 512


class Queue:
    """Entries in order. Taking the first only moves a mark; the space is given back from time to time.

    What does not belong at the end goes into a second, short list, so that a long queue need not be shifted for
    it; when that is full the two are merged. The first list is empty only when the queue is.
    """

    __slots__ = ("_first", "_items", "_late")

    def __init__(self) -> None:
        self._items: list[Entry] = []
        self._first = 0
        self._late: list[Entry] = []

    def __len__(self) -> int:
        return len(self._items) - self._first + len(self._late)

    @property
    def head(self) -> Entry:
        """The first entry."""
        first = self._items[self._first]
        if self._late and self._late[0] < first:
            return self._late[0]
        return first

    def append(self, entry: Entry) -> bool:
        """Put an entry behind all others, of which there must be one; False: it does not belong there."""
        items = self._items
        if items[-1] < entry:
            items.append(entry)
            return True
        return False

    def add(self, entry: Entry) -> None:
        """Put an entry in its place."""
        items = self._items
        if not items or items[-1] < entry:
            items.append(entry)
            return
        insort(self._late, entry)
        if len(self._late) > _MOST_LATE:
            self._merge(self._late)
            self._late = []

    def add_all(self, entries: list[Entry]) -> None:
        """Put many entries in their places at once."""
        if len(entries) < _BULK_FROM:
            for entry in entries:
                self.add(entry)
        else:
            self._merge(entries)

    def _merge(self, entries: list[Entry]) -> None:
        self._items = self._items[self._first :] + entries
        self._first = 0
        self._items.sort()  # two runs, mostly in order: they are merged in linear time

    def remove(self, entry: Entry) -> bool:
        """Take an entry out; tell whether it was the first."""
        items, late = self._items, self._late
        first = self._first
        if items[first] is entry:
            self._take_first()
            return not late or entry < late[0]
        place = bisect_left(late, entry[:2])
        if place < len(late) and late[place] is entry:
            del late[place]
            return place == 0 and entry < items[first]
        del items[bisect_left(items, entry[:2], lo=first)]
        return False

    def _take_first(self) -> None:
        items = self._items
        first = self._first
        items[first] = None  # type: ignore[call-overload]  # the job may go; nothing looks before the mark
        first += 1
        if first == len(items):
            self._items, self._late = self._late, []
            first = 0
        elif first > _COMPACT_FROM and first * 2 > len(items):
            del items[:first]
            first = 0
        self._first = first

    def after(self, key: Any, rank: int) -> Entry | None:
        """Return the first entry behind a position; None: there is none."""
        items = self._items
        position = self._first
        if position < len(items) and not (key, rank) < items[position][:2]:
            position += 1
            if position < len(items) and not (key, rank) < items[position][:2]:
                position = bisect_right(items, (key, rank, _EVERY_JOB), lo=position)
        found = items[position] if position < len(items) else None
        if self._late:
            place = bisect_right(self._late, (key, rank, _EVERY_JOB))
            if place < len(self._late) and (found is None or self._late[place] < found):
                return self._late[place]
        return found


class _AfterEveryJob:
    """Compares greater than any job, so that a bisection lands behind an equal (key, rank)."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_EVERY_JOB: Any = _AfterEveryJob()
