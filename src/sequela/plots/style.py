"""Colours, sizes, axes and file formats that all plots share.

Colour-blind readers can distinguish the colours. Different meanings also differ in line style or
marker, so that they can be distinguished in print without colours. No function here changes the
global settings of matplotlib.
"""

from __future__ import annotations

import importlib
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sequela.support.errors import InputError, SequelaError
from sequela.support.files import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from matplotlib.axes import Axes

__all__ = [
    "DIAGONAL",
    "FAINT",
    "INHIBITS",
    "LINE",
    "NOTHING",
    "OUTLIER",
    "PROMOTES",
    "SMALL",
    "TEXT",
    "check_columns",
    "check_result",
    "diverging",
    "load",
    "open_axes",
    "root",
    "save_figure",
    "series",
    "series_colours",
    "settle",
    "side",
]

# Dark blue and orange.
LINE = "#1f4e79"
OUTLIER = "#c8590b"
PROMOTES = "#c8590b"
INHIBITS = "#1f4e79"
FAINT = "0.6"
NOTHING = "0.9"  # a cell without a value
DIAGONAL = "0.6"

# Font sizes in points.
TEXT = 9.0
SMALL = 7.5
_MARGIN = 0.06  # margin around the figure in inches
_MAX_LAYOUTS = 5

# Colours, line styles and markers for figures with several curves. The colours are those of Okabe
# and Ito, except yellow, which is hard to see on white paper. The lengths of the three lists have
# no common factor, so that the first 280 curves have different combinations.
_COLOURS = ["#1f4e79", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000", "#e69f00"]
_STYLES: list[Any] = ["-", "--", "-.", ":", (0, (4, 1, 1, 1, 1, 1))]
_MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<"]

_BLUES = ["#12375a", "#2f6da3", "#93bfdf"]
_ORANGES = ["#f6b583", "#cc6215", "#7a2f05"]


# Do not write the date into files, so that the same figure always gives the same file.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
_SETTINGS = {
    "svg.hashsalt": "sequela",
    "svg.fonttype": "none",  # store text as text, so that it can be searched, copied and edited
    "pdf.fonttype": 42,
}


def load(name: str) -> Any:
    """Import a module of the extra `plot`. If it is missing, the error says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.split(".", maxsplit=1)[0]
        raise SequelaError(
            f"plots need {package}, which is not installed; install it with: "
            'pip install "sequela[plot]"'
        ) from None


def open_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of `width` x `height` inches."""
    plt = load("matplotlib.pyplot")
    if ax is None:
        figure, ax = plt.subplots(figsize=(width, height), layout="constrained")
        # Panels next to the axes use up the margin of the layout. Therefore add another margin.
        w, h = _MARGIN / width, _MARGIN / height
        figure.get_layout_engine().set(rect=(w, h, 1.0 - 2 * w, 1.0 - 2 * h))
    elif not isinstance(ax, plt.Axes):
        raise InputError(f"ax is of type {type(ax).__name__}; expected a matplotlib Axes or None")
    opened: Axes = ax
    return opened


def side(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes in inches, before the layout is computed."""
    box = ax.get_window_extent()
    dpi = float(ax.figure.dpi)
    return box.width / dpi, box.height / dpi


def diverging(*, step: bool = False) -> Any:
    """Return a colour map from blue through white to orange; missing values are grey.

    With `step` only zero is white, so that even the weakest effect can be seen.
    """
    colors = load("matplotlib.colors")
    if step:
        parts = [*_BLUES, "#cfe1ee", "#fbdcc3", *_ORANGES]
        places = [0.0, 0.2, 0.4, 0.5, 0.5, 0.6, 0.8, 1.0]
        smooth = colors.LinearSegmentedColormap.from_list(
            "sequela", list(zip(places, parts, strict=True))
        )
        shades = [smooth(k / 2048) for k in range(2049)]
        shades[1024] = (1.0, 1.0, 1.0, 1.0)
        colour_map = colors.ListedColormap(shades, "sequela")
    else:
        colour_map = colors.LinearSegmentedColormap.from_list(
            "sequela", [*_BLUES, "#f7f7f7", *_ORANGES]
        )
    return colour_map.with_extremes(bad=NOTHING)


def series(place: int) -> tuple[str, Any, str]:
    """Return colour, line style and marker of the curve with this number, counted from 0."""
    return (
        _COLOURS[place % len(_COLOURS)],
        _STYLES[place % len(_STYLES)],
        _MARKERS[place % len(_MARKERS)],
    )


def series_colours() -> list[str]:
    """Return colours for several curves or items, in the order in which they are to be used."""
    return list(_COLOURS)


def check_columns(name: str, table: Any, columns: Iterable[str], maker: str) -> pd.DataFrame:
    """Return the table; raise an error if columns or rows are missing.

    `maker` is the call that makes such a table. The error message shows it.
    """
    if not isinstance(table, pd.DataFrame):
        raise InputError(
            f"{name} is of type {type(table).__name__}; expected a DataFrame from {maker}"
        )
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise InputError(
            f"{name} has no column {missing[0]!r} (it has {', '.join(map(repr, table.columns))}); "
            f"expected a table from {maker}"
        )
    if table.empty:
        raise InputError(
            f"{name} has no rows; expected a table with at least one row, from {maker}"
        )
    return table


def check_result(name: str, result: object, expected: type, maker: str) -> None:
    """Raise an error if `result` is not of the expected class.

    `maker` is the call that returns such a result. The error message shows it.
    """
    if not isinstance(result, expected):
        raise InputError(
            f"{name} is of type {type(result).__name__}; expected {expected.__name__} from {maker}"
        )


def save_figure(figure: Any, path: str | os.PathLike[str], *, dpi: float = 200.0) -> None:
    """Write a figure to a file. The end of the file name determines the format.

    The same figure gives the same bytes, because the file contains no date and no random names. The
    text in SVG and PDF files can be searched and copied. If the file exists, it is replaced only
    after the new file is complete.

    Parameters
    ----------
    figure : Figure or Axes
        The axes that a plot returned, or their figure.
    path : str or path
        A file name that ends in .png, .svg or .pdf.
    dpi : float
        Pixels per inch, for a PNG file and for images inside other formats.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from matplotlib.figure import Figure
    >>> from sequela.data.examples import example_theta
    >>> from sequela.plots.theta import plot_theta
    >>> ax = plot_theta(example_theta(), ax=Figure().subplots())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(ax, Path(folder, "theta.svg"))
    ...     "step 2" in Path(folder, "theta.svg").read_text()
    True
    """
    mpl = load("matplotlib")
    whole = root(figure)
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in _METADATA:
        raise InputError(
            f"path is {str(path)!r}; expected a name that ends in .png, .svg or .pdf, which "
            "determines the format"
        )
    options: dict[str, Any] = {}
    if whole.get_layout_engine() is None:
        options["bbox_inches"] = "tight"  # without a layout, labels would be cut off
    else:
        settle(whole)
    with mpl.rc_context(_SETTINGS), _missing_signs_allowed(), replacing(path) as file:
        whole.savefig(file, format=suffix, dpi=dpi, metadata=_METADATA[suffix], **options)


def root(figure: Any) -> Any:
    """Return the whole figure, given axes or a part of the figure."""
    parts = load("matplotlib.figure")
    parent = getattr(figure, "figure", None)
    if isinstance(figure, parts.Figure):
        return figure
    if isinstance(parent, parts.Figure):
        return parent
    if isinstance(parent, parts.SubFigure) and parent is not figure:
        return root(parent)
    if isinstance(figure, parts.SubFigure):
        return figure.canvas.figure
    raise InputError(
        f"figure is of type {type(figure).__name__}; expected a matplotlib Figure or Axes"
    )


def settle(ax: Any) -> None:
    """Compute the layout of the figure now, so that positions in it can be measured.

    If axes move, the panels next to them also move, but only when the layout is computed the next
    time. Therefore the layout is repeated until no axes move by more than a thousandth of the
    figure.
    """
    whole = root(ax)
    with _missing_signs_allowed():
        engine = whole.get_layout_engine()
        before: list[float] = _places(whole)
        for _ in range(_MAX_LAYOUTS if engine is not None else 0):
            engine.execute(whole)
            after = _places(whole)
            if all(abs(a - b) < 1e-3 for a, b in zip(before, after, strict=True)):
                break
            before = after
        for part in whole.axes:
            part.apply_aspect()


def _places(figure: Any) -> list[float]:
    return [float(x) for ax in figure.axes for x in ax.get_position(original=True).extents]


@contextmanager
def _missing_signs_allowed() -> Iterator[None]:
    """Ignore warnings about characters that the font lacks. They are drawn as empty boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield
