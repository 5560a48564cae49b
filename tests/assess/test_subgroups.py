"""Audits of subgroups that overlap, against rates that are known."""

import warnings
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest

from calibrant import audit, scored
from calibrant.assess.metrics.bin_sums import read_forecasts
from calibrant.assess.subgroups.audit_subgroups import Question, audit_subgroups
from calibrant.assess.subgroups.entries import (
    Expected,
    JointCells,
    SubgroupEntries,
    _drawn_positives,
    largest_surprise_p_value,
    level_of_each,
    proved_off,
)
from calibrant.assess.subgroups.findings import (
    TOO_HIGH,
    TOO_LOW,
    SubgroupFinding,
    proved_sizes,
    rate_tests,
)
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.attributes import read_attributes
from calibrant.params.random import RandomSource
from calibrant.text import numbers
from worlds.guarantees import assert_kept
from worlds.subgroups import SCORES, Rows, attributes, calibrated, planted, waves


def family_of(rows: Rows, order: int = 2, min_share: float = 0.05) -> SubgroupFamily:
    columns = read_attributes(rows.attributes)
    levels = [AttributeLevels.of(column) for column in columns]
    codes = [level.codes(column) for level, column in zip(levels, columns, strict=True)]
    return SubgroupFamily.of(levels, codes, order, min_share)


def asked(rows: Rows, **options):
    """The audit at 90 % confidence."""
    read = read_forecasts(rows.y, rows.scores, None, [0, 1])
    question = Question(**{"confidence_level": 0.9, "n_draws": 99, **options})
    return audit_subgroups(read, read_attributes(rows.attributes), question)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(SCORES))
def test_of_calibrated_scores_nothing_is_shown_more_often_than_alpha(kind: str):
    def shown():
        for seed in count():
            found = asked(calibrated(np.random.default_rng(seed), 600, kind), order=3)
            assert found.is_any_off or not found.findings
            yield {"any": found.is_any_off}

    assert_kept(shown(), caught=0.25)


def test_drawn_labels_that_surprise_as_much_count_against_the_real_ones(
    monkeypatch: pytest.MonkeyPatch,
):
    """Also where the same surprise is rounded in another way, as an array of more rows may be."""
    scores = np.full(1, 0.5)
    (column,) = read_attributes({"sex": ["f"]})
    level = AttributeLevels.of(column)
    family = SubgroupFamily.of([level], [level.codes(column)], 1, 0.5)
    exact = Expected.surprise

    def rounded(self: Expected, positives: np.ndarray) -> np.ndarray:
        return exact(self, positives) * (1.0 - 1e-15 * (positives.ndim - 1))

    monkeypatch.setattr(Expected, "surprise", rounded)
    codes = np.ones(1, dtype=np.uint8)
    entries = SubgroupEntries.of_rows(family, scores, codes)
    assert largest_surprise_p_value(entries, 19, RandomSource(0)) == 1.0


@pytest.mark.broad
def test_the_monte_carlo_test_uses_its_whole_level():
    """It is exact: with continuous scores, p <= 0.2 in a fifth of all draws, neither fewer nor
    more.
    """
    below = 0
    for seed in range(300):
        rows = calibrated(np.random.default_rng(seed), 300, "skewed")
        family = family_of(rows, min_share=0.1)
        entries = SubgroupEntries.of_rows(family, rows.scores, rows.y)
        below += largest_surprise_p_value(entries, 19, RandomSource(seed)) <= 0.2
    assert 40 <= below <= 80


@pytest.mark.slow
def test_what_is_proved_of_which_and_how_much_and_the_upper_bound_is_true():
    def broken():
        for seed in count():
            rows = waves(np.random.default_rng(seed), 800)
            family = family_of(rows)
            error = rows.rates - rows.scores
            entries = SubgroupEntries.of_rows(family, rows.scores, rows.y)
            marked = proved_off(entries, 0.1)
            positives = entries.n_positive
            expected = entries.expected().total
            false = [
                number
                for number in np.flatnonzero(marked)
                if not (
                    error[family.members(number)] * np.sign(positives[number] - expected[number])
                    > 0
                ).any()
            ]
            first = np.arange(800) % 2 == 0
            tests = rate_tests(entries)
            spread = rows.scores * (1 - rows.scores)
            sizes = proved_sizes(family, rows.y - rows.scores, spread, first, 0.1, tests)
            overstated = False
            for size in sizes:
                halves = [error[family.members(size.subgroup) & half] for half in (first, ~first)]
                truths = [
                    half.mean() * (1 if size.too_low else -1)
                    for half in halves
                    if half.size == size.n_rows
                ]
                overstated |= size.error > max(truths)
            mean = family.sums(rows.rates) / family.counts
            limits = entries.rate_limits(0.1)
            missed = bool(((mean < limits.lower) | (mean > limits.upper)).any())
            yield {"which": bool(false), "how much": overstated, "limits": missed}

    assert_kept(broken(), caught=0.25)


@pytest.mark.slow
def test_a_subgroup_whose_rates_are_lower_is_not_said_to_have_a_higher_one():
    """The one-sided truth of `which`: rates at their scores or below, so that nothing may be said
    to be too low.
    """

    def wrong():
        for seed in count():
            rng = np.random.default_rng(seed)
            rows = calibrated(rng, 400, "tied")
            rates = np.where(rows.attributes["smoker"], rows.scores, 0.9 * rows.scores)
            y = (rng.random(400) < rates).astype(np.uint8)
            family = family_of(rows, min_share=0.1)
            entries = SubgroupEntries.of_rows(family, rows.scores, y)
            marked = proved_off(entries, 0.5)
            above = entries.n_positive > family.sums(rows.scores)
            yield {"too low": bool((marked & above).any())}

    assert_kept(wrong(), alpha=0.5, caught=0.7)


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_bounds_for_the_population_cover_its_errors(grouped: bool):
    """Two attributes with four cells, whose errors in the population are known."""
    error = np.array([[0.1, -0.05], [0.0, 0.02]])

    def broken():
        for seed in count():
            rng = np.random.default_rng(seed)
            n_units, size = (150, 4) if grouped else (600, 1)
            unit = np.repeat(np.arange(n_units), size)
            a = rng.integers(0, 2, n_units)[unit]
            b = (rng.random(unit.size) < 0.3).astype(int)
            scores = rng.uniform(0.2, 0.6, unit.size)
            effect = rng.choice([-0.15, 0.15], n_units)[unit] if grouped else 0.0
            y = (rng.random(unit.size) < scores + error[a, b] + effect).astype(np.uint8)
            attributes = {"a": a == 1, "b": b == 1}
            beside = {"groups": unit, "max_group_size": 4} if grouped else {}
            read = read_forecasts(y, scores, None, [0, 1], **beside)
            question = Question(target="population", confidence_level=0.9, n_draws=19)
            found = audit_subgroups(read, read_attributes(attributes), question)
            truth = {
                "all rows": 0.5 * (0.7 * (0.1 + 0.0) + 0.3 * (-0.05 + 0.02)),
                **{
                    f"a = {value == 1}": 0.7 * error[value, 0] + 0.3 * error[value, 1]
                    for value in (0, 1)
                },
                **{f"b = {value == 1}": error[:, value].mean() for value in (0, 1)},
                **{f"a = {v == 1}, b = {w == 1}": error[v, w] for v in (0, 1) for w in (0, 1)},
            }
            table = found.table
            missed = any(
                abs(truth[name]) > largest
                for name, largest in zip(table.subgroup, table.largest_error, strict=True)
            )
            overstated = any(
                one.error > truth[one.subgroup] * (1 if one.direction == TOO_LOW else -1)
                for one in found.findings
                if one.error > 0
            )
            yield {"upper bound": missed, "sizes": overstated}

    assert_kept(broken(), caught=0.25)


def test_limits_of_a_population_do_not_depend_on_which_other_subgroups_have_enough_rows():
    """Counted rows must not choose how many subgroups share alpha.

    The rows of b = 0 stay as they are; the others move from one value of `a` to many.
    """
    rng = np.random.default_rng(0)
    n = 3_000
    b = rng.random(n) < 0.5
    scores = rng.uniform(0.3, 0.7, n)
    y = (rng.random(n) < scores).astype(np.uint8)
    values = np.array([f"v{number:02}" for number in range(12)])
    even = rng.integers(0, 12, n)
    radii = []
    for uneven in (even, np.where(rng.random(n) < 0.1, even, 0)):
        columns = read_attributes({"a": values[uneven], "b": b})
        read = read_forecasts(y, scores, None, [0, 1])
        question = Question(target="population", n_draws=19, min_share=0.06)
        found = audit_subgroups(read, columns, question).table
        place = found.subgroup.index("b = False")
        radii.append((len(found.subgroup), found.upper[place] - found.lower[place]))
    assert radii[0][0] > 1.5 * radii[1][0]
    assert radii[0][1] == pytest.approx(radii[1][1], rel=0.02)


def test_what_is_tested_in_a_half_is_chosen_by_the_other_half_alone():
    """A subgroup that loses its rows in the tested half leaves its place empty: no other takes it."""
    rng = np.random.default_rng(1)
    n = 8_000
    place = rng.integers(0, 8, n)
    scores = rng.uniform(0.4, 0.6, n)
    error = np.array([0.3, 0.28, 0.26, 0.24, 0.22, 0.2, 0.18, 0.16])
    y = (rng.random(n) < scores + error[place]).astype(np.uint8)
    first = np.arange(n) % 2 == 0
    gone = np.where(~first & (place == 0), 1, place)
    tried = [subgroups_tried(~first, codes, y, scores, min_share=0.1) for codes in (place, gone)]
    assert len(tried[0]) == 5
    assert "p = 0" in tried[0]
    assert tried[1] == [name for name in tried[0] if name != "p = 0"]


def subgroups_tried(half, codes, y, scores, min_share):
    """The subgroups that are tested in a half of the rows."""
    levels = [AttributeLevels("p", tuple(range(8)))]
    family = SubgroupFamily.of(levels, [codes], 1, min_share)
    found = []

    def tested(rows, tail, too_low):
        if not (rows & ~half).any():
            number = next(
                number
                for number in range(family.n_subgroups)
                if np.array_equal(family.members(number) & half, rows)
            )
            found.append(family.words(number))
        return 0.0, 0.0

    def searched_in(rows):
        return SubgroupFamily.of(levels, [codes[rows]], 1, min_share)

    spread = scores * (1.0 - scores)
    proved_sizes(family, y - scores, spread, ~half, 0.1, tested, searched_in)
    return found


@pytest.mark.broad
def test_a_planted_subgroup_is_found_named_and_measured_and_its_relatives_are_folded():
    rows = planted(np.random.default_rng(5), 20_000, 0.15)
    found = audit(rows.y, rows.scores, attributes=rows.attributes)
    assert len(found.subgroups) == 1
    finding = found.subgroups[0]
    assert finding.subgroup == "smoker = True, gain = 0"
    assert finding.direction == TOO_LOW
    assert 0.09 < finding.error < 0.15
    assert finding.also, "smokers, and smokers of one sex, are off too"
    assert "smoker = True" in finding.also
    assert finding.rate_limit == pytest.approx(finding.tested_score + finding.error)
    said = numbers.per_cent(numbers.nearest(finding.tested_score))
    assert f"where the model says {said} and the true rate is at least" in finding.text
    assert 0.15 < found.subgroups_upper_bound < 0.25
    assert finding.text in found.details
    assert finding.short in found.by_attributes.sentence


@pytest.mark.broad
def test_scores_that_are_too_high_are_the_mirror_image():
    rows = planted(np.random.default_rng(5), 20_000, 0.15)
    low = audit(rows.y, rows.scores, attributes=rows.attributes).subgroups[0]
    high = audit(1 - rows.y, 1.0 - rows.scores, attributes=rows.attributes).subgroups[0]
    assert high.direction == TOO_HIGH
    assert high.subgroup == low.subgroup
    assert high.mean_score == pytest.approx(1.0 - low.mean_score)


def test_scores_of_0_and_1_that_are_contradicted_once_are_off_for_certain():
    n = 200
    scores = np.repeat([0.0, 1.0], n // 2)
    y = scores.astype(int)
    y[0] = 1
    found = audit(y, scores, attributes={"half": np.arange(n) % 2 == 0})
    assert found.by_attributes.is_any_off
    assert found.by_attributes.p_value == pytest.approx(1 / 1000)
    assert [finding.direction for finding in found.subgroups] == [TOO_LOW]
    calm = audit(scores.astype(int), scores, attributes={"half": np.arange(n) % 2 == 0})
    assert calm.by_attributes.p_value == 1.0
    assert not calm.subgroups


def test_a_constant_attribute_makes_no_subgroup_but_all_rows():
    rows = calibrated(np.random.default_rng(0), 300, "tied")
    found = audit(rows.y, rows.scores, attributes={"country": ["here"] * 300})
    assert found.by_attributes.table.subgroup == ("all rows",)
    assert 0.0 < found.subgroups_upper_bound < 0.3


def test_without_attributes_there_are_no_subgroups():
    found = audit([0, 1, 0, 1], [0.1, 0.9, 0.2, 0.8])
    assert found.subgroups == ()
    assert found.subgroups_upper_bound is None
    assert found.by_attributes is None


def test_drawn_labels_are_added_up_by_subgroup():
    rows = calibrated(np.random.default_rng(1), 9_000, "skewed")
    family = family_of(rows, order=3)
    drawn = _drawn_positives(JointCells.of(family), rows.scores, 7, np.random.default_rng(2))
    again = np.random.default_rng(2)
    parts = np.split(rows.scores, [8191])
    labels = np.hstack([again.random((7, part.size)) < part for part in parts])
    assert np.array_equal(drawn, np.stack([family.sums(one.astype(float)) for one in labels]))


def test_the_surprise_is_half_a_squared_deviation_of_symmetric_labels_and_that_of_a_poisson_variable_of_rare_ones():  # noqa: E501
    one = SubgroupFamily.of([], [np.zeros(1000, dtype=int)], 1, 0.5)
    none = np.zeros(1000, dtype=np.uint8)
    symmetric = SubgroupEntries.of_rows(one, np.full(1000, 0.5), none).expected()
    assert symmetric.surprise(np.array([550.0]))[0] == pytest.approx(50**2 / (2 * 250), rel=1e-3)
    rare = SubgroupEntries.of_rows(one, np.full(1000, 1e-3), none).expected()
    assert rare.surprise(np.array([6.0]))[0] == pytest.approx(6 * np.log(6) - 5, rel=0.01)
    assert rare.surprise(np.array([0.0]))[0] == pytest.approx(1.0, rel=0.01)


def test_levels_and_tails_add_up_to_alpha():
    rows = calibrated(np.random.default_rng(2), 2_000, "skewed")
    family = family_of(rows, order=3)
    assert level_of_each(family, 0.05).sum() == pytest.approx(0.05)
    tails = SubgroupEntries.of_rows(family, rows.scores, rows.y).tails(0.05)
    assert 2 * tails.sum() == pytest.approx(0.05, rel=1e-6)
    smallest = tails[family.counts.argmin()]
    largest = tails[0]
    assert smallest > largest, "small subgroups have the widest limits, and most of alpha"


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "lists"])
def test_frames_of_all_libraries_give_the_same_answer(kind: str):
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(3)
    named = attributes(rng, 500)
    scores = rng.random(500)
    y = (rng.random(500) < scores**2).astype(int)
    frame = pd.DataFrame(named)
    given = {
        "pandas": frame,
        "polars": polars.from_pandas(frame),
        "pyarrow": pyarrow.Table.from_pandas(frame),
        "lists": {name: list(frame[name]) for name in frame},
    }[kind]
    assert (
        audit(y, scores, attributes=given).subgroups == audit(y, scores, attributes=named).subgroups
    )


def test_columns_of_scored_data_are_named():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(attributes(rng, 400)).assign(p=rng.random(400), y=rng.integers(0, 2, 400))
    names = ["sex", "smoker", "age"]
    beside = audit(frame.y, frame.p, attributes=frame[names]).by_attributes
    named = audit(scored(frame, score="p", label="y"), attributes=names).by_attributes
    assert named.sentence == beside.sentence


def test_rows_without_weight_are_left_out_of_attributes_too():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(attributes(rng, 400))
    scores = rng.random(400)
    y = rng.integers(0, 2, 400)
    weights = rng.integers(0, 3, 400).astype(float)
    kept = weights > 0
    whole = audit(y, scores, attributes=frame, importance_weight=weights, weight_bound=2.0)
    part = audit(
        y[kept],
        scores[kept],
        attributes=frame[kept],
        importance_weight=weights[kept],
        weight_bound=2.0,
    )
    assert whole.by_attributes.table.subgroup == part.by_attributes.table.subgroup
    assert whole.subgroups_upper_bound == part.subgroups_upper_bound


def test_with_groups_or_weights_two_questions_are_refused_with_the_reason():
    rows = planted(np.random.default_rng(6), 6_000, 0.25)
    group = np.arange(6_000) // 3
    found = audit(
        rows.y, rows.scores, attributes=rows.attributes, groups=group, max_group_size=3
    ).by_attributes
    assert found.p_value is None
    assert "groups or weights" in found.refused
    assert found.target == "population"
    assert found.findings
    assert all(finding.error > 0 for finding in found.findings)
    assert found.n_set_aside > 0
    assert any("groups" in assumed for assumed in found.assumptions)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"order": 4}, "order"),
        ({"order": 0}, "order"),
        ({"min_share": 0.0}, "min_share"),
        ({"min_share": 1.0}, "min_share"),
        ({"target": "sample"}, "target"),
        ({"attributes": {"a": [1]}}, "attributes"),
        ({"attributes": {}}, "attributes"),
        ({"attributes": {"a": [1.0, np.inf, 2.0]}}, "attributes"),
    ],
)
def test_wrong_values_name_the_parameter(options: dict, parameter: str):
    with pytest.raises(InvalidValueError) as error:
        audit([0, 1, 1], [0.1, 0.5, 0.7], **{"attributes": {"a": ["x", "y", "y"]}, **options})
    assert error.value.parameter == parameter


@pytest.mark.parametrize(
    "given",
    ["sex", ["sex"], 5, {"a": [[1], [2], [3]]}, {"a": np.array(["2020-01-01"] * 3, "M8[D]")}],
)
def test_wrong_kinds_of_attributes_are_refused(given: object):
    with pytest.raises((InvalidTypeError, InvalidValueError)) as error:
        audit([0, 1, 1], [0.1, 0.5, 0.7], attributes=given)
    assert error.value.parameter == "attributes"


def test_columns_with_one_name_are_refused():
    twice = pd.DataFrame([["f", 1], ["m", 2], ["f", 3]], columns=["a", "a"])
    for given in (twice, {0: ["f", "m", "f"], "0": [1, 2, 3]}):
        with pytest.raises(InvalidValueError, match="columns with different names; got two named"):
            audit([0, 1, 1], [0.1, 0.5, 0.7], attributes=given)


@pytest.mark.parametrize("small", [1e-300, 1e-310])
def test_scores_that_are_next_to_nothing_are_off_and_told_in_plain_numbers(small: float):
    y = [1] * 5 + [0] * 95 + [1] * 100
    kind = ["x"] * 100 + ["z"] * 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = audit(y, [small] * 100 + [0.999] * 100, attributes={"a": kind}).by_attributes
    assert found.p_value == 0.001
    assert [one.subgroup for one in found.findings] == ["a = x"]
    assert "e+" not in found.sentence


def test_a_single_relative_is_named_and_a_single_subgroup_counted_as_one():
    finding = SubgroupFinding("a", "scores too low", 100, 0.2, 0.4, 0.0, also=("b",))
    assert finding.text.endswith("; 1 more subgroup is off in the same direction (b).")
    alone = audit([0, 1, 1], [0.1, 0.5, 0.7], attributes={"a": ["x"] * 3}).by_attributes
    assert alone.sentence.startswith("No sign that any of 1 subgroup is off (")
    assert ", 3 rows, " in alone.sentence


def test_a_sentence_keeps_the_rows_tested_and_all_rows_apart():
    """The limit is about the rows tested, so it stands beside their mean score."""
    rng = np.random.default_rng(3)
    side = rng.random(6_000) < 0.4
    scores = rng.uniform(0.2, 0.8, size=6_000)
    y = rng.random(6_000) < scores - np.where(side, 0.15, 0.0)
    found = audit(y, scores, attributes={"side": side}).by_attributes
    (one,) = [finding for finding in found.findings if finding.subgroup == "side = True"]
    assert 0 < one.tested_rows < one.n_rows == side.sum()
    assert one.mean_score == pytest.approx(scores[side].mean())
    assert one.rate == pytest.approx(y[side].mean())
    assert numbers.nearest(one.tested_score) != numbers.nearest(one.mean_score)
    tested = (
        f"in {one.tested_rows:,} tested rows of side = True, where the model says"
        f" {numbers.per_cent(numbers.nearest(one.tested_score))} and the true rate is at most"
        f" {numbers.per_cent(numbers.upper(one.rate_limit))}"
    )
    every = (
        f"(model says {numbers.per_cent(numbers.nearest(one.mean_score))}, happened"
        f" {numbers.per_cent(numbers.nearest(one.rate))} in {one.n_rows:,} rows)"
    )
    assert f"{tested} {every}" in one.text


def test_the_number_of_subgroups_counts_those_that_a_finding_explains():
    alone = audit([0, 1, 1], [0.1, 0.5, 0.7], attributes={"a": ["x"] * 3}).by_attributes
    first = SubgroupFinding("a", "scores too low", 100, 0.2, 0.4, 0.0, also=("b", "c"))
    others = [SubgroupFinding(name, "scores too low", 9, 0.2, 0.4, 0.0) for name in "defa"]
    found = replace(alone, p_value=0.001, findings=(first, *others))
    assert found.n_off == 6
    assert "; 6 of 1 subgroups are off (95% confidence, p = 0.001, " in found.sentence
    assert first.text in found.notes
    assert first.text.endswith("; 2 more subgroups are off in the same direction (such as b).")
    assert [one.text in found.notes for one in others] == [True, True, False, False]
    one = replace(alone, p_value=0.001, findings=(others[0],))
    assert one.n_off == 1
    assert one.sentence.startswith("Scores are too low for some in d (95% confidence, p = 0.001, ")


def test_in_a_population_the_error_is_told_and_no_limit_of_the_rate():
    rows = planted(np.random.default_rng(4), 20_000, 0.15)
    found = audit(rows.y, rows.scores, attributes=rows.attributes, target="population")
    leader = found.subgroups[0]
    assert leader.error > 0.0
    assert leader.rate_limit is None
    least = numbers.points(numbers.lower(leader.error))
    assert leader.text.startswith(f"Scores are too low by at least {least} on average in ")
    assert "true rate" not in leader.text


def test_the_same_rows_give_the_same_answer():
    rows = planted(np.random.default_rng(8), 2_000, 0.1)
    first, second = (
        audit(rows.y, rows.scores, attributes=rows.attributes).by_attributes for _ in range(2)
    )
    assert first.to_dict() == second.to_dict()
