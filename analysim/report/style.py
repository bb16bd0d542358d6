"""How every figure looks: palette, page width, lettering, and saving to the same bytes each time."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from analysim.errors import RunFolderError
from analysim.whole_file import whole_file

PAGE_WIDTH_CM = 16.0
"""Width of every figure: the text width of an A4 page."""

DOTS_PER_INCH = 200
CM_PER_INCH = 2.54
SMALLEST_FONT_PT = 8.0

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#595959"

PALETTE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY_BLUE, BLACK)
"""Okabe and Ito's colours (jfly.uni-koeln.de/color, 2008) without their yellow, which is lost on white."""

LINE_STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.2, 1, 1.2, 1, 1.2)))

_METADATA: dict[str, dict[str, Any]] = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}
"""Kinds of files, each without what differs between two of them: date and version."""

_TITLE_CHARACTERS = 78
_CAPTION_CHARACTERS = 96
_LEGEND_CHARACTERS = 84

_SETTINGS: Any = {  # Any: the type of the keys differs between versions of matplotlib
    "font.family": ["DejaVu Sans"],
    "font.size": SMALLEST_FONT_PT,
    "axes.labelsize": SMALLEST_FONT_PT,
    "axes.titlesize": SMALLEST_FONT_PT,
    "axes.titlelocation": "left",
    "axes.titlepad": 4.0,
    "xtick.labelsize": SMALLEST_FONT_PT,
    "ytick.labelsize": SMALLEST_FONT_PT,
    "legend.fontsize": SMALLEST_FONT_PT,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.borderaxespad": 0.2,
    "legend.columnspacing": 1.4,
    "figure.titlesize": 9.5,
    "text.parse_math": False,  # a tenant may be called "$prod$"
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "hatch.linewidth": 0.5,
    "hatch.color": "#BBBBBB",
    "savefig.dpi": DOTS_PER_INCH,
    "figure.dpi": DOTS_PER_INCH,
    "svg.hashsalt": "analysim",  # else element ids are random and no two files are the same
    "svg.fonttype": "path",
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw with our settings over matplotlib's defaults, whatever the user's own; undone on leaving."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new_figure(title: str, height_cm: float, caption: str = "") -> Figure:
    """Make a figure of page width with its title above and its caption below.

    ``height_cm`` is what the axes need; lines of title and caption are added to it.
    """
    heading = textwrap.fill(title, _TITLE_CHARACTERS)
    footnote = "\n".join(textwrap.fill(line, _CAPTION_CHARACTERS) for line in caption.splitlines())
    lines = heading.count("\n") + footnote.count("\n") + bool(heading) + bool(footnote)
    size = (PAGE_WIDTH_CM / CM_PER_INCH, (height_cm + 0.42 * lines) / CM_PER_INCH)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    if heading:
        figure.suptitle(heading, x=0.01, ha="left")
    if footnote:
        figure.supxlabel(footnote, x=0.01, ha="left", fontsize=SMALLEST_FONT_PT, color=GREY)
    return figure


def save_figure(figure: Figure, out: Path, name: str) -> list[Path]:
    """Write ``name.png`` and ``name.svg`` into ``out`` and return both paths.

    The bytes depend on the data and on matplotlib's version only. Raises ``RunFolderError``.
    """
    paths = [out / f"{name}{kind}" for kind in _METADATA]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with _laid_out(figure):
            for path in paths:
                figure.savefig(path, metadata=_METADATA[path.suffix])
    except OSError as error:
        raise RunFolderError(
            f"{out}: the figure {name!r} cannot be written ({error.strerror or error}).",
            "Choose another folder or make room.",
        ) from error
    return paths


def save_page(figure: Figure, path: Path) -> None:
    """Write one file, PNG or SVG by its suffix, to the same bytes each time. Raises ``AnalysimError``."""
    kind = path.suffix.lower()
    with whole_file(path) as temporary, _laid_out(figure):
        figure.savefig(temporary, format=kind.removeprefix("."), metadata=_METADATA[kind])


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Lay a figure out once, for all files that are written of it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        yield


def line_style(position: int) -> dict[str, Any]:
    """Return colour and dashes of curve ``position``; 35 positions differ, neighbours in both."""
    dashes = LINE_STYLES[(position + position // len(PALETTE)) % len(LINE_STYLES)]
    return {"color": PALETTE[position % len(PALETTE)], "linestyle": dashes}


def short_names(names: Sequence[object], limit: int = 24) -> list[str]:
    """Shorten names to ``limit`` characters by cutting out their middle; number those that then agree."""
    shortened: list[str] = []
    seen: dict[str, int] = {}
    for name in names:
        text = shorten(str(name), limit)
        seen[text] = seen.get(text, 0) + 1
        shortened.append(text if seen[text] == 1 else f"{shorten(text, limit - 4)} ({seen[text]})")
    return shortened


def shorten(name: str, limit: int) -> str:
    """Cut out the middle of a name longer than ``limit`` characters; blanks for what cannot be printed."""
    text = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "(none)"
    if len(text) > limit:
        tail = (limit - 1) // 3
        text = f"{text[: limit - 1 - tail]}…{text[-tail:]}"
    return text


def legend_above(axes: Axes, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Put the legend between title and axes, where it hides no data, in as many columns as fit the page."""
    if not handles:
        return
    counts = range(len(labels), 1, -1)
    columns = next((count for count in counts if _width(labels, count) <= _LEGEND_CHARACTERS), 1)
    shown = [f" {label}" if label.startswith("_") else label for label in labels]  # "_..." would be left out
    axes.legend(handles, shown, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns)


def _width(labels: Sequence[str], columns: int) -> int:
    """Estimate the characters across a legend, 7 for the line before each label."""
    parts = np.array_split([len(label) for label in labels], columns)  # as matplotlib fills its columns
    return sum(int(part.max()) + 7 for part in parts)


def write_instead(axes: Axes, message: str) -> None:
    """Say why there is nothing to draw, in the middle of empty axes."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, message, transform=axes.transAxes, ha="center", va="center", color=GREY)
