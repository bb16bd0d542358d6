"""The files that ``draw_run`` and ``draw_comparison`` write, and that they can be read at page width."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.text import Text
from report_tables import all_rejected, nothing, one_job, simulate

from analysim.errors import RunFolderError
from analysim.metrics import summarise
from analysim.report import draw_comparison, draw_run
from analysim.tables import RunTables

pytestmark = pytest.mark.slow

RUN_FIGURES = ["jct_cdf", "wait_cdf", "utilisation", "queue", "fragmentation", "tenants", "occupancy"]
COMPARISON_FIGURES = ["comparison"] + [
    f"comparison_{name}" for name in ("jct_cdf", "wait_cdf", "utilisation", "queue", "sizes")
]
LONG = (
    "preempt(min_run=600s,levels=3,promote=86400s) on a-cluster-with-quite-a-long-name, trace of a whole year"
)
CAPTION = "Cluster inferred: 12 nodes of 8 GPUs in racks of 8. The policy knows nothing of durations. " * 3
ODD_TENANTS = ["$prod$_^{x}", "_hidden", "tab\tand\nline", "", "a/very/long/path/of/tenants/in/a/tree", "b"]
RUNS = {
    "one job": one_job,
    "all rejected": all_rejected,
    "nothing": nothing,
    "odd names": lambda: simulate(300, 3, ODD_TENANTS),
    "one node": lambda: simulate(200, 1, ["a", "b"]),
    "many tenants": lambda: simulate(1500, 40, [f"team-{i:03d}" for i in range(300)]),
}


@pytest.fixture(scope="module")
def small() -> RunTables:
    return simulate(400, 12, ["a", "b", "c"])


def test_same_tables_give_the_same_bytes_whatever_the_users_settings(tmp_path: Path) -> None:
    tables = simulate(60, 2, ["a", "b"])
    first = draw_run(tables, summarise(tables), "small", tmp_path / "1", CAPTION)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": None}):
        before = dict(matplotlib.rcParams)
        second = draw_run(tables, summarise(tables), "small", tmp_path / "2", CAPTION)
        assert dict(matplotlib.rcParams) == before
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
        check_file(one)


def check_file(path: Path) -> None:
    """Assert that a figure is of page width and carries neither date nor version."""
    content = path.read_bytes()
    assert b"dc:date" not in content
    assert b"Software" not in content
    assert matplotlib.__version__.encode() not in content[:3_000]
    if path.suffix == ".svg":
        width = ElementTree.parse(path).getroot().attrib["width"]
        assert float(width.removesuffix("pt")) == pytest.approx(16 / 2.54 * 72, abs=0.01)


def test_unwritable_folder_is_named(small: RunTables, tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("a file where the folder should be")
    with pytest.raises(RunFolderError, match="figures"):
        draw_run(small, summarise(small), "small", tmp_path / "figures")


def test_comparison_has_all_its_figures_also_with_runs_that_did_nothing(
    small: RunTables, tmp_path: Path
) -> None:
    named = {"fifo": small, "sjf": simulate(400, 12, ["a"], seed=1), "none": all_rejected()}
    runs = [(name, tables, summarise(tables)) for name, tables in named.items()]
    for number, chosen in enumerate((runs[::-1], runs[2:])):
        paths = draw_comparison(chosen, tmp_path / str(number), CAPTION)
        assert [path.stem for path in paths] == [name for name in COMPARISON_FIGURES for _ in range(2)]
    assert draw_comparison([], tmp_path) == []


class DrawnTexts:
    """What was written into each PNG: text, size in points, and box in pixels, by figure."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_figure: dict[Any, dict[Text, tuple[str, float, Any]]] = defaultdict(dict)
        original = Text.draw

        def draw(text: Text, renderer: Any) -> None:
            original(text, renderer)
            if type(renderer) is RendererAgg and text.get_visible() and text.get_text().strip():
                box = text.get_window_extent(renderer)
                self.by_figure[text.get_figure()][text] = (text.get_text(), text.get_fontsize(), box)

        monkeypatch.setattr(Text, "draw", draw)

    def check(self) -> None:
        """Assert that all can be read: large enough, on the page, none over another."""
        assert self.by_figure
        for figure, texts in self.by_figure.items():
            page = figure.bbox
            for text, size, box in texts.values():
                assert size >= 8, text
                assert page.x0 - 1 <= box.x0 and box.x1 <= page.x1 + 1, f"{text!r} leaves the page"
                assert page.y0 - 1 <= box.y0 and box.y1 <= page.y1 + 1, f"{text!r} leaves the page"
            for (one, _, box), (other, _, other_box) in combinations(texts.values(), 2):
                assert not box.padded(-1).overlaps(other_box.padded(-1)), f"{one!r} over {other!r}"


@pytest.mark.parametrize("shape", RUNS)
def test_every_run_has_all_its_figures_and_they_can_be_read(
    shape: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tables = RUNS[shape]()
    summary = summarise(tables)
    texts = DrawnTexts(monkeypatch)
    paths = draw_run(tables, summary, LONG, tmp_path / "figures", CAPTION)
    texts.check()
    assert [path.name for path in paths] == [
        f"{name}.{kind}" for name in RUN_FIGURES for kind in ("png", "svg")
    ]
    for path in paths:
        assert 3_000 < path.stat().st_size < 400_000, path.name


def test_no_text_overlaps_with_nine_runs_of_long_names(
    small: RunTables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    labels = ["fifo", "_sjf", "srtf", "$odd$", LONG, LONG + " again", "migrate", "backfill-easy", "gittins"]
    other = simulate(400, 12, ["a", "b"], seed=1)
    runs = [
        (label, tables, summarise(tables)) for label, tables in zip(labels, [small, other] * 5, strict=False)
    ]
    texts = DrawnTexts(monkeypatch)
    draw_comparison(runs, tmp_path, CAPTION)
    texts.check()
