"""Options and settings of all tests.

Hypothesis: the profile ``everyday`` tries the same examples in every run, ``search`` (``--hypothesis-profile search``)
new ones, many more of them.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

USUAL = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("everyday", derandomize=True, database=None, print_blob=True, max_examples=15, **USUAL)  # type: ignore[arg-type]  # typed key by key
settings.register_profile("search", max_examples=1_000, print_blob=True, **USUAL)  # type: ignore[arg-type]  # typed key by key
settings.load_profile("everyday")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let golden tables be written anew."""
    parser.addoption("--update-golden", action="store_true", help="write the expected tables of tests/golden anew")
