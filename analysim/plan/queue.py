"""A sorted queue: cheap at both ends, cheap elsewhere as long as little comes out of order at a time."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from analysim.jobs import Job

Entry = tuple[Any, int, Job]
"""A job in an order: key, rank, job. Keys and ranks decide; two entries never tie."""

_COMPACT_FROM = 1_024
_BULK_FROM = 64
_MOST_LATE = 2_048


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
        items, late = self._items, self._late
        place = self._first
        behind = (key, rank + 1)
        if place < len(items) and items[place][1] == rank:
            place += 1
        else:
            place = bisect_left(items, behind, lo=place)
        found = items[place] if place < len(items) else None
        if late:
            place = bisect_left(late, behind)
            if place < len(late) and (found is None or late[place] < found):
                return late[place]
        return found
