"""Whatever takes a sample uses its weights, groups, segments and bounds, or says why not."""

from typing import Any

import numpy as np
import pytest

from calibrant import (
    BinningCalibrator,
    Calibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    ShiftCalibrator,
    scored,
)
from calibrant.errors import InvalidTypeError, InvalidValueError, NotTakenError
from calibrant.sample.reader import read_rows, rows_of
from worlds.entry_points import (
    COMBINATIONS,
    ENTRY_POINTS,
    GROUP_SIZE,
    PAGE,
    ROLES,
    ROWS,
    WEIGHT_BOUND,
    EntryPoint,
    data_with,
    outcome,
    page,
)

ONE_OF_EACH = {
    "VennAbersCalibrator",
    "LabelShiftCalibrator",
    "OnlineCalibrator",
    "MonotoneBand",
    "ConformalSets",
}
"""What draws one row of each group: every group counts the same."""


@pytest.mark.broad
@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_a_role_is_used_or_refused(name: str) -> None:
    """A role that changed nothing was passed over, unless it is declared to play no part."""
    entry = ENTRY_POINTS[name]
    plain = outcome(entry, entry.needs)
    for role in ("weight", "group", "segment"):
        if role in entry.needs:
            continue
        found = outcome(entry, (*entry.needs, role))
        if isinstance(found, NotTakenError):
            assert found.parameter in ("importance_weight", "groups", "segments")
            assert str(found.rule).startswith("be None: ")
            assert role not in entry.plays_no_part
        else:
            assert (found == plain) == (role in entry.plays_no_part), role


@pytest.mark.broad
@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_bounds_of_the_data_are_those_of_the_arguments(name: str) -> None:
    entry = ENTRY_POINTS[name]
    for roles in (("weight",), ("group",), ("weight", "group")):
        bounds = entry.bounds(*roles)
        if not bounds or not set(entry.needs) <= set(roles):
            continue
        given = outcome(entry, roles)
        if isinstance(given, NotTakenError):
            continue
        named = {"weight_bound": WEIGHT_BOUND, "max_group_size": GROUP_SIZE}
        own = {"weight_bound": "weight", "max_group_size": "group"}
        described = {bound: value for bound, value in named.items() if own[bound] in roles}
        data = data_with(*roles, **described)
        assert entry.answer(data) == given, roles
        assert entry.answer(data, **bounds) == given, roles
        for bound in bounds:
            other: dict[str, Any] = {bound: 2 * named[bound]}
            with pytest.raises(InvalidValueError) as refused:
                entry.answer(data, **other)
            assert refused.value.parameter == bound
            assert refused.value.got == repr(2 * named[bound])


@pytest.mark.broad
@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_the_rate_of_groups_that_data_ask_for_is_the_one_that_is_given(name: str) -> None:
    entry = ENTRY_POINTS[name]
    roles = (*entry.needs, "group")
    if isinstance(outcome(entry, roles), NotTakenError) or "group" in entry.plays_no_part:
        return
    wrong = "rows" if name in ONE_OF_EACH else "groups"
    data = data_with(*roles, group_target=wrong)
    bounds = entry.bounds(*roles)
    if "group_target" in entry.parameters:
        expected = entry.answer(data_with(*roles), **bounds, group_target=wrong)
        assert entry.answer(data, **bounds) == expected
        with pytest.raises(InvalidValueError) as differs:
            entry.answer(data, **bounds, group_target="rows")
        assert differs.value.parameter == "group_target"
    elif name == "check":  # not about a rate
        assert entry.answer(data) == entry.answer(data_with(*roles))
    else:
        with pytest.raises(NotTakenError) as refused:
            entry.answer(data, **bounds)
        assert refused.value.parameter == "group_target"
        assert refused.value.got == repr(wrong)


@pytest.mark.parametrize("roles", [("segment",), ("group", "segment"), ("weight", "segment")])
@pytest.mark.parametrize(
    "kind",
    [
        Calibrator,
        BinningCalibrator,
        OnlineCalibrator,
        ShiftCalibrator,
        LabelShiftCalibrator,
    ],
)
def test_segments_are_refused_by_a_partition_without_them(
    kind: type, roles: tuple[str, ...]
) -> None:
    """They were passed over, or ended in errors about other things."""
    entry = ENTRY_POINTS[kind.__name__]
    if "weight" in roles and isinstance(outcome(entry, ("weight",)), NotTakenError):
        return
    data = data_with(*{*roles, *entry.needs})
    calibrator = kind(partition=Partition.fixed_width(3))
    with pytest.raises(NotTakenError) as refused:
        calibrator.fit(data, **entry.more, **entry.bounds(*roles, *entry.needs))
    assert (refused.value.parameter, refused.value.got) == ("segments", "segment='s'")
    assert refused.value.rule == "be None: the partition has no segments"


def test_segments_beside_a_partition_without_them_are_refused() -> None:
    columns = [ROWS[name].to_pylist() for name in ("p", "y", "s")]
    with pytest.raises(InvalidTypeError) as refused:
        Calibrator(partition=Partition.fixed_width(3)).fit(
            columns[0], columns[1], segments=columns[2]
        )
    assert refused.value.parameter == "segments"


@pytest.mark.parametrize("role", ["weight", "group", "segment"])
def test_unlabelled_scores_go_with_plain_rows_alone(role: str) -> None:
    """With groups and weights they were passed over, and named in the guarantee."""
    with pytest.raises(NotTakenError) as refused:
        Calibrator().fit(
            data_with(role),
            unlabelled_scores=ROWS["p"].to_pylist(),
            **ENTRY_POINTS["Calibrator"].bounds(role),
        )
    assert refused.value.got == f"{role}={ROLES[role]!r}"


def test_bounds_are_kept_in_memory_and_shown() -> None:
    data = data_with("weight", "group", weight_bound=2.0, max_group_size=6, group_target="rows")
    for held in (data, data.collect()):
        assert held.weight_bound == 2.0
        assert held.max_group_size == 6
        assert held.group_target == "rows"
        assert "weight_bound=2.0, max_group_size=6, group_target='rows'" in repr(held)
    plain = data_with("weight")
    assert (plain.weight_bound, plain.max_group_size, plain.group_target) == (None, None, None)


@pytest.mark.parametrize(
    ("bounds", "rule"),
    [
        ({"weight_bound": 2.0}, "be None without weights"),
        ({"max_group_size": 3}, "be None without groups"),
        ({"group_target": "rows"}, "be None without groups"),
    ],
)
def test_a_bound_needs_its_column(bounds: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidTypeError) as refused:
        data_with("segment", **bounds)
    assert refused.value.parameter == next(iter(bounds))
    assert refused.value.rule == rule


@pytest.mark.parametrize(
    "bounds", [{"weight_bound": 0.0}, {"max_group_size": 0}, {"group_target": "row"}]
)
def test_a_bound_is_checked_where_it_is_named(bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError) as refused:
        scored(ROWS, score="p", label="y", weight="w", group="g", **bounds)
    assert refused.value.parameter == next(iter(bounds))


def test_a_weight_above_the_bound_of_the_data_is_refused() -> None:
    data = data_with("weight", weight_bound=1.0)
    with pytest.raises(InvalidValueError) as refused:
        BinningCalibrator(n_bins=3).fit(data)
    assert "weight" in str(refused.value.parameter)


@pytest.mark.slow
def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_all_combinations_are_asked() -> None:
    assert len(COMBINATIONS) == 7
    assert all(isinstance(entry, EntryPoint) for entry in ENTRY_POINTS.values())


@pytest.mark.parametrize("scored_first", [False, True])
def test_rows_carry_what_is_known_about_them(scored_first: bool) -> None:
    scores, y, groups = [0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1], [1, 1, 2, 3]
    if scored_first:
        table = {"p": scores, "y": y, "g": groups}
        held = scored(table, score="p", label="y", group="g", max_group_size=2)
        rows = read_rows(held, max_group_size=None, group_target="rows")
        assert rows_of(held).bounds.group_target is None
        with pytest.raises(InvalidValueError, match="max_group_size must be left out or equal"):
            read_rows(held, max_group_size=3)
    else:
        rows = read_rows(scores, y, groups=groups, max_group_size=2, group_target="rows")
        with pytest.raises(InvalidValueError, match="max_group_size must be an int >= 1"):
            read_rows(scores, y, groups=groups, max_group_size=0)
    expected = {"max_group_size": 2, "group_target": "rows"}
    assert rows.bounds.known == rows.collect().bounds.known == expected
    assert rows.collect().take(np.array([0, 1])).bounds.known == expected
