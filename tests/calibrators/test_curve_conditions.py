"""What the proof of a curve without jumps needs: which rows may shape which curve, one value at both
knots of an edge, and limits that are those of the final curve.
"""

from dataclasses import replace

import numpy as np
import pytest

from calibrant import BlendCalibrator, Calibrator
from calibrant.calibrators.curve.curve_bounds import CurveBounds
from calibrant.calibrators.curve.half_curves import HalfCurves, RowsAtKnots
from calibrant.calibrators.curve.least_epsilon import SMOOTHNESS
from calibrant.calibrators.curve.pilot_rows import Beyond
from calibrant.calibrators.curve.programme import joined_edges
from calibrant.calibrators.regions.binned_rows import cut_and_count
from calibrant.sample.reader import read_rows


def draw(n=3_000, seed=0, rate=np.square):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < rate(scores)).astype(int)


def counted(n=3_000, **options):
    model = Calibrator(**options)
    return RowsAtKnots.of_binned(cut_and_count(read_rows(*draw(n)), model), 0)


def moved_within_regions(counts, knots, half):
    """The rows of one half at other knots of their regions, with other labels."""
    found = counts.copy()
    for begin, end in zip(knots.starts[:-1], knots.starts[1:], strict=True):
        found[begin:end, half] = counts[begin:end, half][::-1, ::-1]
    return found


@pytest.mark.parametrize("curve", ["auto", "isotonic"])
@pytest.mark.parametrize("n", [300, 3_000])
@pytest.mark.parametrize("half", [0, 1])
def test_a_curve_uses_pilot_rows_and_the_other_half_alone(half, n, curve):
    """Neither scores nor labels of half k change the knots, g0 or g_k, flattened or not."""
    rows = counted(n)
    knots = rows.rows.knots
    other = moved_within_regions(rows.rows.counts, knots, half)
    assert (other != rows.rows.counts).any()
    changed = replace(rows, rows=replace(rows.rows, counts=other))
    one, two = (HalfCurves.fit(found, curve).evidence for found in (rows, changed))
    np.testing.assert_array_equal(one.first, two.first)
    np.testing.assert_array_equal(one.halves[half], two.halves[half])
    assert np.abs(one.halves[1 - half] - two.halves[1 - half]).max() > 1e-3


@pytest.mark.parametrize("n", [300, 3_000])
def test_the_budget_and_the_choice_of_limits_depend_on_no_counted_label(n):
    """Regions share the error budget, and get exact limits or bets, by pilot rows and numbers of
    rows.
    """
    rows = counted(n)
    exchanged = replace(rows, rows=replace(rows.rows, counts=rows.rows.counts[:, :, ::-1]))
    one, two = (HalfCurves.fit(found, "auto").evidence for found in (rows, exchanged))
    for name in ("rate", "spread", "of_errors", "of_scores", "weight"):
        np.testing.assert_array_equal(getattr(one.guess, name), getattr(two.guess, name))
    shares = [found.guess.shares(found.rows.expected, 0.1) for found in (one, two)]
    np.testing.assert_array_equal(*shares)
    exact = [found.rows.is_exact(found.guess, found.first) for found in (one, two)]
    np.testing.assert_array_equal(*exact)


def test_flattening_beyond_pilot_scores_is_decided_by_the_rows_of_the_fit():
    knots = counted().rows.knots
    last = knots.n_knots - 9
    beyond = Beyond(knots, np.array([0]), np.array([last]), np.full(knots.regions.n_regions, 0.01))
    curve = 0.1 + 0.8 * np.arange(knots.n_knots) / knots.n_knots
    none = np.zeros((knots.n_knots, 2))
    flat = beyond.of(curve, none)
    np.testing.assert_array_equal(flat[: last + 1], curve[: last + 1])
    assert np.ptp(flat[last:]) == pytest.approx(0.01)
    few = none.copy()
    few[last + 1 :] = 20.0 * np.column_stack([1.0 - curve, curve])[last + 1 :]
    np.testing.assert_array_equal(beyond.of(curve, few), curve)
    elsewhere = none.copy()
    elsewhere[: last + 1] = 20.0
    np.testing.assert_array_equal(beyond.of(curve, elsewhere), flat)


def test_each_curve_is_flattened_by_the_rows_that_it_was_fitted_to(monkeypatch):
    rows = counted(300)
    seen = []
    flattened = Beyond.of

    def spy(beyond, curve, counts):
        seen.append(counts)
        return flattened(beyond, curve, counts)

    monkeypatch.setattr(Beyond, "of", spy)
    HalfCurves.fit(rows, "auto")
    allowed = (rows.rows.of_pilot, rows.rows.to_fit(0), rows.rows.to_fit(1))
    for counts, expected in zip(seen, allowed, strict=True):
        np.testing.assert_array_equal(counts, expected)


def test_where_groups_prove_nothing_the_curves_are_bounded_by_their_ends(monkeypatch):
    seen = []
    bounds = HalfCurves.bounds

    def spy(halves, alpha):
        seen.append(halves.evidence)
        return bounds(halves, alpha)

    monkeypatch.setattr(HalfCurves, "bounds", spy)
    scores, y = draw(600)
    Calibrator(n_bins=2).fit(scores, y, groups=np.arange(600) // 2, max_group_size=2)
    evidence = seen[-1]
    rows = replace(evidence.rows, unproved=np.array([1]))
    proved = rows.prove(evidence, 0.1, np.full(2, 0.5))
    ends = [evidence.ends(half - evidence.first) for half in evidence.halves]
    assert proved.curves.lower[1] == pytest.approx(np.mean([low[1] for low, _ in ends]))
    assert proved.curves.upper[1] == pytest.approx(np.mean([high[1] for _, high in ends]))
    assert proved.curves.upper[0] < np.mean([high[0] for _, high in ends])


def two_clusters(n, rng):
    """A good score that is small for nearly all rows."""
    high = rng.uniform(size=n) < 0.08
    return np.where(high, rng.uniform(0.8, 0.99, size=n), rng.uniform(0.001, 0.05, size=n))


def test_few_rows_do_not_throw_a_good_score_away():
    """Often no pilot row has a large score. The rows of a half do, and the curve rises there."""
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        scores = two_clusters(160, rng)
        y = rng.uniform(size=160) < scores
        new = two_clusters(20_000, rng)
        p = Calibrator().fit(scores, y).predict(new)
        losses = [-(new * np.log(q) + (1 - new) * np.log1p(-q)).mean() for q in (p, new)]
        ratios.append(losses[0] / losses[1])
    assert max(ratios) < 1.6


def good_forest(n, rng):
    """Scores as of a forest on page blocks: most are 0, the others are shares of 100 trees, and about
    one row in ten is positive. The true rate is steep in the middle.
    """
    is_mixed = rng.uniform(size=n) < 0.35
    scores = np.where(is_mixed, np.round(rng.beta(0.5, 1.2, size=n), 2), 0.0)
    rates = np.where(scores > 0.0, 1.0 / (1.0 + np.exp(-12.0 * (scores - 0.45))), 0.002)
    return scores, rates


@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_pilot_rows_with_few_scores_do_not_throw_a_good_score_away():
    """With 100 rows, 12 rows choose the knots, and most of them have the score 0. Curves need knots
    between and beyond the other few scores.
    """
    over_blend = []
    widths = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        scores, rates = good_forest(100, rng)
        y = rng.uniform(size=100) < rates
        new, p = good_forest(10_000, rng)
        fitted = [model.fit(scores, y).predict(new) for model in (Calibrator(), BlendCalibrator())]
        losses = [-(p * np.log(q) + (1.0 - p) * np.log1p(-q)).mean() for q in fitted]
        over_blend.append(losses[0] / losses[1])
        widths.append(np.ptp(fitted[0]))
    assert np.mean(over_blend) < 1.1
    assert max(over_blend) < 1.35
    assert min(widths) > 0.4


@pytest.mark.parametrize("curve", ["auto", "isotonic", "venn-abers"])
def test_both_knots_of_an_edge_have_one_value(curve):
    halves = HalfCurves.fit(counted(), curve)
    evidence = halves.evidence
    edges = joined_edges(evidence.knots)
    assert edges.size == evidence.knots.regions.n_regions - 1
    shares = np.full(edges.size + 1, 1.0 / (edges.size + 1))
    moved, _ = halves.moved(CurveBounds.of(evidence, 0.1, shares), SMOOTHNESS)
    for values in (evidence.first, *evidence.halves, moved):
        np.testing.assert_array_equal(values[edges], values[edges - 1])


def test_limits_are_those_of_the_curve_that_predicts():
    """No value is clipped or moved after its limits were found."""
    for rate in (np.square, lambda s: np.where(s < 0.5, 0.002, 0.998)):
        scores, y = draw(2_000, rate=rate)
        seen = []
        proved_for = CurveBounds.proved_for

        def spy(bounds, curve, mix, *rest, seen=seen, proved_for=proved_for):
            seen.append((bounds, curve, mix, proved_for(bounds, curve, mix, *rest)))
            return seen[-1][-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CurveBounds, "proved_for", spy)
            model = Calibrator().fit(scores, y)
        bounds, curve, mix, proved = seen[-1]
        knots = bounds.evidence.knots
        np.testing.assert_array_equal(model.pieces_.left, curve[knots.first])
        straight = model.pieces_.is_straight
        np.testing.assert_array_equal(model.pieces_.right[straight], curve[knots.last][straight])
        expected = bounds.errors(curve, mix)
        np.testing.assert_array_equal(proved.errors.lower, expected.lower)
        np.testing.assert_array_equal(model.guarantee_.errors.upper, expected.upper)
        assert curve.min() >= 0.0
        assert curve.max() <= 1.0


def steps_at_edges(model):
    """How far predictions are apart on both sides of each edge between regions."""
    edges = model.partition_.as_bins().parts[0].cuts
    before = np.nextafter(edges, -np.inf)
    return edges, np.abs(model.predict(edges) - model.predict(before))


RATES = {
    "plain": lambda s: s,
    "square": np.square,
    "steep": lambda s: 1.0 / (1.0 + np.exp(-30.0 * (s - 0.4))),
    "rare": lambda s: 0.02 + 0.1 * s**3,
    "flat": lambda s: np.full(s.shape, 0.3),
    "falling": lambda s: 1.0 - s,
    "zigzag": lambda s: 0.5 + 0.3 * np.sin(8.0 * s),
}


@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
@pytest.mark.parametrize("n", [60, 150, 300, 1_000, 5_000])
@pytest.mark.parametrize("name", RATES)
def test_no_curve_of_untied_scores_jumps_where_the_notes_name_nothing(name, n):
    for seed in range(3):
        scores, y = draw(n, seed, RATES[name])
        model = Calibrator().fit(scores, y)
        _, steps = steps_at_edges(model)
        said = [note for note in model.guarantee_.notes if note.startswith("the curve jumps at")]
        assert (steps > 0.002).any() == bool(said)
        if model.n_shifted_ == 0:
            assert (steps <= 0.002).all()
        if name != "zigzag":
            values = model.predict(np.sort(scores))
            order = np.diff(values if values[0] < values[-1] else values[::-1])
            assert model.n_shifted_ > 0 or (order >= 0.0).all()


def test_a_jump_is_named_where_the_data_refute_every_continuous_curve():
    scores, y = draw(5_000, rate=RATES["zigzag"])
    model = Calibrator().fit(scores, y)
    assert model.n_shifted_ > 0
    edges, steps = steps_at_edges(model)
    (note,) = (note for note in model.guarantee_.notes if note.startswith("the curve jumps"))
    for edge in edges[steps > 0.002]:
        assert f"{edge:.2g}" in note or f"{edge:.3g}" in note
    again = Calibrator.from_dict(model.to_dict())
    assert note in again.guarantee_.notes


def test_smoothness_is_a_dial_between_waves_and_epsilon():
    scores, y = draw(3_000, 2, rate=lambda s: np.where(s < 0.5, 0.2, 0.4))
    found = [Calibrator(smoothness=rho).fit(scores, y) for rho in (0.0, 1.0)]
    assert found[0].guarantee_.epsilon <= found[1].guarantee_.epsilon * 1.01
    assert np.abs(found[0].predict(scores) - found[1].predict(scores)).max() > 1e-3
    for model in found:
        assert steps_at_edges(model)[1].max() <= 0.002
