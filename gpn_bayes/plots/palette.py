"""The colours of all pictures: distinct to colour-blind readers, legible on white and on black."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# After Okabe and Ito; each has a contrast of 3 or more to white and to nearly black (WCAG 2).
BLUE, VERMILION, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#00936B", "#B8659A", "#7A7A7A"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, GREY)
# Lines beyond the colours go on with other dashes.
DASHES = ("-", "--", ":", "-.")


def series(count: int) -> list[str]:
    """Return a number of colours, over again where they run out.

    Examples
    --------
    >>> series(6)[5] == series(1)[0]
    True
    """
    return [SERIES[k % len(SERIES)] for k in range(count)]


def dashes(count: int) -> list[Any]:
    """Return a number of line styles, which differ where `series` repeats a colour."""
    return [DASHES[k // len(SERIES) % len(DASHES)] for k in range(count)]


def ink() -> str:
    """Return the colour of text in the style in use."""
    return str(mpl.rcParams["text.color"])


def shades(ax: "Axes") -> LinearSegmentedColormap:
    """Return the colours of probabilities, from that of the axes' background to blue."""
    return LinearSegmentedColormap.from_list("probability", [to_hex(ax.get_facecolor()), BLUE])


def luminance(colour: str | Sequence[float]) -> float:
    """Return the relative luminance of a colour (WCAG 2), from 0 to 1.

    Examples
    --------
    >>> luminance("white"), luminance("black")
    (1.0, 0.0)
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]  # type: ignore[arg-type]  # stubs: tuples only
    return round(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], 6)


def readable_on(colour: Sequence[float]) -> str:
    """Return black or white, whichever stands out more on a colour."""
    return "black" if luminance(colour) > 0.179 else "white"
