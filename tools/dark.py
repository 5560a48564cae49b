"""Pictures for the dark site: each figure is saved a second time, with greys turned around.

A colour keeps its hue, and so its meaning; a dark one becomes lighter. Black text on white becomes
light text on nothing, so that the page shows through.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

GREY = 0.12  # less saturated than this, a colour is a grey
DARKEST = 0.55  # a colour is at least as light as this on the dark site
PROPERTIES = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def on_dark(colour: Any) -> Any:
    """The same colour for a dark page."""
    from matplotlib.colors import to_rgba

    red, green, blue, alpha = to_rgba(colour)
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    if max(red, green, blue) - min(red, green, blue) < GREY:
        light = 0.93 - 0.8 * light
    else:
        light = max(light, DARKEST)
    return (*colorsys.hls_to_rgb(hue, light, saturation), alpha)


def turned(artist: Any) -> Iterator[tuple[Callable[[Any], None], Any]]:
    """Change the colours of one artist; give what changes them back."""
    import numpy as np
    from matplotlib.colors import to_rgba_array

    found = []
    for name in PROPERTIES:
        getter = getattr(artist, f"get_{name}", None)
        setter = getattr(artist, f"set_{name}", None)
        if getter is not None and setter is not None:
            found.append(
                (setter, getter())
            )  # all are read before one changes, as some follow others
    for setter, before in found:
        if isinstance(before, str) and before in ("none", "auto"):
            continue
        colours = to_rgba_array(before)
        if len(colours):
            yield setter, before
            changed = [on_dark(each) if each[3] else tuple(each) for each in colours]
            is_list = isinstance(before, np.ndarray) and before.ndim == 2
            setter(changed if is_list else changed[0])


def dark_name(name: str | Path) -> Path:
    """The name of the picture for the dark site."""
    path = Path(name)
    return path.with_name(f"{path.stem}-dark{path.suffix}")


def save_dark(figure: Any, name: str | Path, save: Any, **options: Any) -> None:
    """Save a figure that has been drawn for the dark site, beside the picture `name`."""
    before = [change for artist in figure.findobj() for change in turned(artist)]
    try:
        save(figure, dark_name(name), **{**options, "transparent": True})
    finally:
        for setter, value in reversed(before):
            setter(value)
