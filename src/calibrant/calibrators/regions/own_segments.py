"""Which segments have their own regions; all others share those of "other"."""

from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from calibrant.calibrators.regions.parameters import CutParameters
from calibrant.cells.bins import OTHER
from calibrant.errors import InvalidValueError
from calibrant.params.random import Draw, draw_key
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows
from calibrant.text.sentences import shown

_LARGEST_SHARE = 2 / 17  # of the rows, to choose segments
_DRAWN_ROWS = 16  # expected from the smallest kept segment, in a draw that chooses segments
_MOST_DRAWN = 1 << 20  # rows, to choose segments


class ChosenSegments(NamedTuple):
    """The kept segments (None for all), the number of rows of each that were drawn to choose them,
    and the others.
    """

    kept: frozenset[Hashable] | None = None
    drawn: Mapping[Hashable, int] = MappingProxyType({})
    pooled: tuple[Any, ...] = ()


def chosen_segments(
    data: Rows, settings: CutParameters, seed: int, can_draw: bool
) -> ChosenSegments:
    """Choose the segments that have their own regions: those given, or those with enough rows in a
    random draw. Rows must have segments.

    The draw is from all rows, of any segment. Given the drawn rows, the others are independent
    draws and the choice is fixed. That would not be true for a choice by the counts of all rows.
    """
    if settings._own_segments is not None:
        return _given_segments(data, settings._own_segments)
    if settings.segment_rule is None:
        return ChosenSegments()
    if settings.segment_rule == "auto" and not _draws_by_default(data, settings, can_draw):
        return ChosenSegments()
    return _drawn_segments(data, settings, seed)


def _given_segments(data: Rows, names: Iterable[Hashable]) -> ChosenSegments:
    kept = frozenset(names)
    sizes = data.sizes()
    refused = [name for name in kept if name not in sizes or name == OTHER.value]
    if refused:
        rule = f"name segments of the data, none of them {OTHER.value!r}"
        raise InvalidValueError("segment_rule", rule, got=shown(refused[0]))
    return ChosenSegments(kept, {}, tuple(name for name in sizes if name not in kept))


def _draws_by_default(data: Rows, settings: CutParameters, can_draw: bool) -> bool:
    """Whether pilot rows are drawn anyway, which can then choose segments, too."""
    repeats = in_memory(data) and data.repeats is not None
    if repeats or data.columns.group is not None:
        return False
    return settings.pilot == "auto" and settings.partition == "quantile" and can_draw


def _drawn_segments(data: Rows, settings: CutParameters, seed: int) -> ChosenSegments:
    """Keep the segments with enough rows in a random draw."""
    parts = data.split_by(segment_draw(data, settings, seed))
    n_rows = sum(parts.sizes.values())
    drawn = {name: len(scores) for name, scores in parts.drawn.items()}
    kept = kept_segments(drawn, _fewest(settings, n_rows) * sum(drawn.values()) / max(n_rows, 1))
    pooled = tuple(name for name in parts.sizes if name not in kept)
    if not pooled:
        return ChosenSegments(kept, drawn, ())
    own = {name: drawn[name] for name in kept}
    others = sum(drawn[name] for name in pooled)
    return ChosenSegments(kept, {**own, OTHER: others}, pooled)


def fewest_rows(n_rows: int, n_bins: int | str) -> int:
    """The number of rows from which on a segment has its own regions by default.

    300, or 100 for each requested bin, and at least a thousandth of all rows.

    >>> fewest_rows(10_000, "auto"), fewest_rows(10_000, 10), fewest_rows(1_000_000, "auto")
    (300, 1000, 1000)
    """
    return max(300, 100 * n_bins if isinstance(n_bins, int) else 0, n_rows // 1000)


def _fewest(settings: CutParameters, n_rows: int) -> int:
    return settings._fewest_rows or fewest_rows(n_rows, settings.n_bins)


def kept_segments(drawn: Mapping[Hashable, int], fewest: float) -> frozenset[Hashable]:
    """Return the segments with at least `fewest` drawn rows, never including "other".

    If the remaining segments have a twentieth of the rows or more, but fewer than `fewest` rows,
    the smallest of these segments are added to the remaining ones.
    """
    kept = sorted(
        (rows, name)
        for name, rows in drawn.items()
        if rows >= max(fewest, 1) and name != OTHER.value
    )
    total = sum(drawn.values())
    place = 0
    rest = total - sum(rows for rows, _ in kept)
    while place < len(kept) and total < 20 * rest and rest < fewest:
        rest += kept[place][0]
        place += 1
    return frozenset(name for _, name in kept[place:])


def segment_draw(data: Rows, settings: CutParameters, seed: int) -> Draw:
    """The rows that choose segments: those that cut bins, or about 16 from a segment that is just
    large enough.
    """
    if settings.pilot is not None and not isinstance(settings.pilot, str):
        return data.draw(settings.pilot, seed)
    n_rows = sum(data.sizes().values())
    return Draw.of_share(
        draw_key(seed, data.fingerprint()),
        min(_DRAWN_ROWS / _fewest(settings, n_rows), _LARGEST_SHARE, _MOST_DRAWN / max(n_rows, 1)),
    )
