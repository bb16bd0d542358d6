"""A trace without names: each becomes a keyed hash, the same one wherever it occurs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pandas as pd

from analysim.traces.trace import Trace, sort_jobs

_DIGITS = 10
_ID_DIGITS = 16
"""Hexadecimal digits of ids: among a million, two of 10 digits would be the same as likely as not."""

_NODE = re.compile(r"[^,;|\s\[\]]+(?:\[[^\]]*\])?")


def anonymise(trace: Trace, key: str = "") -> Trace:
    """Replace users, tenants, partitions, models, nodes, and job ids that are text, by hashes.

    The same name and key give the same hash in every file; who has no key cannot try names out. Each part of
    a tenant's path is hashed by itself, so that the tree stays, and each node of a list. Numbers stay: times,
    sizes, job ids that are integers. Hashes are BLAKE2b (RFC 7693) of 10 hexadecimal digits, 16 for job ids.
    The trace is called ``anonymised``: SWF files tell its name.
    """
    hasher = _Hasher(key)
    frame = trace.frame
    hashed = {
        "user": _map(frame["user"], hasher.of("user")),
        "tenant": _map(frame["tenant"], lambda path: "/".join(map(hasher.of("tenant"), path.split("/")))),
        "partition": _map(frame["partition"], hasher.of("partition")),
        "model": _map(frame["model"], hasher.of("model")),
        "recorded_node": _map(frame["recorded_node"], hasher.nodes),
    }
    if frame["job_id"].dtype != np.int64:
        hashed["job_id"] = _map(frame["job_id"], hasher.of("job", _ID_DIGITS))
    # Jobs of one instant stand in the order of their ids, which are others now.
    return replace(trace, name="anonymised", frame=sort_jobs(frame.assign(**hashed)))


class _Hasher:
    def __init__(self, key: str) -> None:
        secret = _encode(key)
        # BLAKE2b takes keys of up to 64 bytes.
        self.secret = secret if len(secret) <= blake2b.MAX_KEY_SIZE else blake2b(secret).digest()

    def of(self, prefix: str, digits: int = _DIGITS) -> Callable[[str], str]:
        """Make a function that hashes names; an empty one stays empty."""

        def hash_name(name: str) -> str:
            digest = blake2b(_encode(name), digest_size=digits // 2, key=self.secret)
            return f"{prefix}-{digest.hexdigest()}" if name else ""

        return hash_name

    def nodes(self, names: str) -> str:
        """Hash each node of a list (``n1,n2``); a range (``n[1-4]``) is one name."""
        hash_node = self.of("node")
        return _NODE.sub(lambda match: hash_node(match[0]), names)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # what a shell hands over may be no UTF-8


def _map(names: pd.Series, change: Callable[[str], str]) -> pd.Series:
    """Change each different name once."""
    codes, words = pd.factorize(names)
    changed = np.array([change(str(word)) for word in words], object)
    return pd.Series(changed[codes], index=names.index, dtype="str")
