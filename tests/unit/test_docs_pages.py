"""The documentation holds: pages run as written, links lead somewhere, tables have the columns that are described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import analysim
import analysim.policy
from analysim.plan.plan import Plan
from analysim.policy.loading import load_policy
from analysim.tables import TABLE_NAMES
from tests.builders import SHARING, SHIPPED
from tests.unit.docs_pages import PAGES, ROOT, blocks, run_page, tidy

REFERENCE = ROOT / "docs/reference"
PROGRAMS = [
    page
    for page in PAGES
    if page.parent.name in ("how-to", "reference")
    and any(block.language in ("sh", "python") for block in blocks(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_a_page_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "prod.csv").write_text("job_id,arrival_s,duration,num_gpus\n1,0,60,4\n2,30,60,4\n")
    for said in run_page(page, tmp_path):
        assert tidy(said.printed) == tidy(said.block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text("utf-8")):
        path = (page.parent / target) if target else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_linked_from_the_index() -> None:
    linked = set(re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs/index.md").read_text("utf-8")))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert pages - linked == {"index.md"}


def test_the_run_folder_page_names_the_columns_there_are() -> None:
    text = (REFERENCE / "run-folder.md").read_text("utf-8")
    tables = analysim.simulate("tiny", topology="tiny").tables
    for name in TABLE_NAMES:
        section = text.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
        columns = set(getattr(tables, name).columns)
        assert columns - named(section) == set(OTHER_PAGE.get(name, ())), name
        assert named(section) - columns <= VALUES, name


OTHER_PAGE = {
    "timeline": ("unusable_share", "stranded_gpus", "largest_gang_share", "excess_nodes"),
}
"""Columns that the page leaves to the page on metrics."""

VALUES = {
    *("completed", "killed", "cancelled", "rejected", "unfinished"),
    *("run", "restart", "checkpoint", "hold", "suspend"),
    *("start", "reserve", "preempt", "kill", "cancel", "migrate", "blocked", "quota"),
    *("time_origin", "duration_s"),
}
"""Names that a section may use beside its columns: what stands in them, columns of other tables."""


def named(section: str) -> set[str]:
    """Single words in code style: names of columns, and of values."""
    return set(re.findall(r"`([a-z_]+)`", section))


def test_the_policy_api_page_names_all_that_a_policy_may_use() -> None:
    text = (REFERENCE / "policy-api.md").read_text("utf-8")
    of_the_engine = {"books", "placer", "touch", "refuse", "written", "unwrite", "note_completed", "close_pass"}
    names = {name for name in vars(Plan) if not name.startswith("_")} - of_the_engine
    assert len(names) > 30
    for name in names | set(analysim.policy.__all__):
        assert re.search(rf"\b{name}\b", text), name


@pytest.mark.parametrize("name", [*SHIPPED, *SHARING, "easy", "replay"])
def test_the_page_on_policies_names_every_option(name: str) -> None:
    page = REFERENCE / "policies" / f"{name}.md"
    if page.exists():
        section = page.read_text("utf-8")
    else:
        section = (REFERENCE / "policies.md").read_text("utf-8").split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert listed == set(load_policy(name).Options.model_fields)
