"""Conformal sets: exact coverage, on worlds whose truth does not matter, for it holds in all."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from calibrant.assess.conformal import ConformalGuarantee
from calibrant.errors import CalibrantError
from calibrant.tripod import ConformalSets
from worlds.binary import WORLDS

LEVEL = 1e-4  # some 40 binomial tests in this file
SIMULATED = [world for world in WORLDS if world.name != "near-empty"]


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores).astype(int)


def covered(scores, y, rows, coverage, **options):
    """Whether the set of each of these rows, held out in turn, holds its label.

    Rows are exchangeable: given which they are, each of them is the future one with the same
    probability. So the mean over rows is the coverage itself.
    """
    sets = ConformalSets(**options)
    others = (np.delete(np.arange(y.size), row) for row in rows)
    return np.array(
        [
            sets.fit(scores[kept], y[kept], classes=(0, 1)).predict_set(
                scores[[row]], coverage=coverage
            )[0, y[row]]
            for kept, row in zip(others, rows, strict=True)
        ]
    )


@pytest.mark.parametrize("world", SIMULATED, ids=lambda world: world.name)
def test_marginal_coverage_by_enumeration(world):
    rng = np.random.default_rng(100 + WORLDS.index(world))
    # 0.83 of 51 is no whole number, so the deterministic set covers a little more
    coverage = 0.83
    n = 51
    for _ in range(2):
        assert covered(*world.draw(rng, n), range(n), coverage).mean() >= coverage


@pytest.mark.parametrize("world", SIMULATED, ids=lambda world: world.name)
def test_coverage_within_each_label_by_enumeration(world):
    rng = np.random.default_rng(200 + WORLDS.index(world))
    scores, y = world.draw(rng, 20_000 if world.name == "rare" else 200)
    for label in (0, 1):
        rows = np.flatnonzero(y == label)[:100]
        kept = np.concatenate([rows, np.flatnonzero(y != label)[:100]])
        assert rows.size > 5
        held_out = range(rows.size)
        assert covered(scores[kept], y[kept], held_out, 0.75, conditional="label").mean() >= 0.75


def test_sets_are_not_vacuous_where_scores_tell():
    rng = np.random.default_rng(7)
    scores, y = data(100, seed=rng)
    # without ties the coverage is exactly 80 / 100
    assert covered(scores, y, range(100), 0.8).mean() == 0.8
    scores, y = data(10_000, seed=rng)
    assert (
        ConformalSets().fit(scores, y).predict_set(scores, coverage=0.8).sum(axis=1).mean() < 1.25
    )


def test_p_values_by_hand():
    # oddness - 0.5: -0.4, 0.1, 0.1, -0.4
    scores = [0.1, 0.4, 0.6, 0.9]
    y = [0, 1, 0, 1]
    sets = ConformalSets().fit(scores, y)
    # 0.9 is odd by 0.4 as a 0: no row is odder; by -0.4 as a 1: all four are at least as odd
    np.testing.assert_allclose(sets.predict_p_value([0.9]), [[1 / 5, 5 / 5]])
    by_label = ConformalSets(conditional="label").fit(scores, y)
    np.testing.assert_allclose(by_label.predict_p_value([0.6]), [[2 / 3, 2 / 3]])


@pytest.mark.parametrize(("coverage", "n"), [(0.9, 9), (0.9, 99), (0.95, 19), (0.7, 9), (0.8, 4)])
def test_coverage_is_read_as_the_decimal_it_was_written_as(coverage, n):
    # alpha (n + 1) is a whole number: that many smallest p-values, and no fewer, leave the set
    scores = np.arange(n) / n
    sets = ConformalSets(conditional="label").fit(
        np.concatenate([scores, scores]), [0] * n + [1] * n, classes=(0, 1)
    )
    oddest = sets.predict_set([2.0], coverage=coverage)
    np.testing.assert_array_equal(oddest, [[False, True]])


@pytest.mark.parametrize("conditional", ["marginal", "label"])
def test_larger_coverage_contains_smaller_and_flipping_mirrors(conditional):
    scores, y = data()
    sets = ConformalSets(conditional=conditional).fit(scores, y)
    found = [sets.predict_set(scores, coverage=level) for level in (0.5, 0.8, 0.95, 0.999)]
    assert all((found[i + 1] >= found[i]).all() for i in range(3))
    mirrored = ConformalSets(conditional=conditional).fit(1 - scores, 1 - y)
    np.testing.assert_allclose(
        mirrored.predict_p_value(1 - scores)[:, ::-1], sets.predict_p_value(scores), atol=0.02
    )


def test_columns_follow_the_classes():
    scores, y = data()
    plain = ConformalSets(conditional="label").fit(scores, y)
    named = ConformalSets(conditional="label", pos_label="bad").fit(
        scores, np.where(y == 1, "bad", "good")
    )
    assert named.classes_.tolist() == ["bad", "good"]
    np.testing.assert_array_equal(named.predict_set(scores), plain.predict_set(scores)[:, ::-1])


def test_a_label_never_seen_is_in_every_set():
    sets = ConformalSets(conditional="label").fit([0.1, 0.2, 0.3], [0, 0, 0], classes=(0, 1))
    assert sets.predict_set([0.0, 5.0], coverage=0.5)[:, 1].all()


def test_few_rows_give_full_sets():
    sets = ConformalSets().fit([0.1, 0.9], [0, 1])
    assert sets.predict_set([0.0, 0.5, 1.0], coverage=0.9).all()


def test_label_conditional_needs_only_ranks():
    scores, y = data()
    plain, cubed = (ConformalSets(conditional="label").fit(s, y) for s in (scores, 1024 * scores))
    np.testing.assert_array_equal(plain.predict_set(scores), cubed.predict_set(1024 * scores))


@pytest.mark.parametrize("conditional", ["marginal", "label"])
def test_json_round_trip_and_clone(conditional):
    scores, y = data()
    sets = ConformalSets(conditional=conditional, center=0.4).fit(scores, y)
    restored = ConformalSets.from_dict(json.loads(json.dumps(sets.to_dict())))
    np.testing.assert_array_equal(restored.predict_p_value(scores), sets.predict_p_value(scores))
    assert restored.guarantee_ == sets.guarantee_
    assert not hasattr(clone(sets), "classes_")


def test_ties_count_against_a_row():
    scores = np.full(100, 0.5)
    sets = ConformalSets().fit(scores, np.arange(100) % 2)
    assert (sets.predict_p_value([0.5]) == 1.0).all()


def test_guarantee_in_words():
    guarantee = ConformalSets(conditional="label").fit(*data()).guarantee_
    assert isinstance(guarantee, ConformalGuarantee)
    assert guarantee.is_proved
    assert "of either class" in str(guarantee)
    for one in (guarantee, ConformalSets().fit(*data()).guarantee_):
        assert len(one.sentence.split()) <= 35
        assert "exchangeable" in one.sentence


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"conditional": "group"},
            ValueError,
            "conditional must be one of 'marginal', 'label'; got 'group'",
        ),
        ({"center": np.nan}, ValueError, "center must be a finite number"),
    ],
)
def test_bad_parameters_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        ConformalSets(**options).fit(*data())


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1, np.nan])
def test_bad_coverage_is_refused(coverage):
    with pytest.raises(ValueError, match="coverage must be a number strictly between 0 and 1"):
        ConformalSets().fit(*data()).predict_set([0.5], coverage=coverage)


BOTH = ConformalSets().fit(*data()).to_dict()
EACH = ConformalSets(conditional="label").fit(*data()).to_dict()
FORGED = {
    "not a dict": [BOTH],
    "other schema": {**BOTH, "schema": "calibrant.conformal/9"},
    "no oddness": {key: value for key, value in BOTH.items() if key != "oddness"},
    "conditional": {**BOTH, "conditional": "group"},
    "center": {**BOTH, "center": float("nan")},
    "positive index": {**BOTH, "positive_index": 7},
    "positive index as a bool": {**BOTH, "positive_index": True},
    "three classes": {**BOTH, "classes": [0, 1, 2]},
    "classes out of order": {**BOTH, "classes": [1, 0]},
    "one class twice": {**BOTH, "classes": [1, 1]},
    "classes as text": {**BOTH, "classes": "01"},
    "one list": {**BOTH, "oddness": BOTH["oddness"][:1]},
    "oddness as a number": {**BOTH, "oddness": 3},
    "oddness as text": {**BOTH, "oddness": [["a"], ["a"]]},
    "oddness as dicts": {**BOTH, "oddness": [{"0": 1}, {"0": 1}]},
    "NaN": {**EACH, "oddness": [[float("nan")], EACH["oddness"][1]]},
    "out of order": {**EACH, "oddness": [EACH["oddness"][0][::-1], EACH["oddness"][1]]},
    "no rows": {**EACH, "oddness": [[], []]},
    "two orders where there is one": {**EACH, "conditional": "marginal"},
}


@pytest.mark.parametrize("state", FORGED.values(), ids=FORGED)
def test_forged_states_raise(state):
    assert ConformalSets.from_dict(BOTH).to_dict() == BOTH
    assert ConformalSets.from_dict(EACH).to_dict() == EACH
    with pytest.raises(CalibrantError):
        ConformalSets.from_dict(state)
