"""Confidence sequences: widths are those of the theory, and no batch or order changes what it
should not.
"""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from calibrant.errors import InvalidValueError
from calibrant.limits.sequences.betting import Gamblers
from calibrant.limits.sequences.centred import log_evidence
from calibrant.limits.sequences.paper import squared_surprises
from calibrant.sequences import SEQUENCES, CentredBetaBinomial, Paper

labels = st.lists(st.integers(0, 1), min_size=1, max_size=60).map(
    lambda bits: np.array(bits, dtype=np.uint8)
)
each = pytest.mark.parametrize("kind", SEQUENCES.values(), ids=SEQUENCES.keys())


def fed(kind, codes, n_regions: int = 1, alpha: float = 0.1):
    sequence = kind(n_regions, alpha)
    sequence.update(np.zeros(codes.size, dtype=np.intp), codes)
    return sequence


def alternating(n: int) -> np.ndarray:
    return (np.arange(n) % 2).astype(np.uint8)


@each
@settings(max_examples=min(40, settings.default.max_examples))  # of up to sixty looks each
@given(codes=labels)
def test_the_path_shows_what_a_look_after_every_label_would(kind, codes) -> None:
    path = kind.path(codes, 0.1)
    for n in range(1, codes.size + 1):
        now = fed(kind, codes[:n]).limits()
        assert (path.lower[n - 1], path.upper[n - 1]) == pytest.approx(
            (now.lower[0], now.upper[0]), abs=1e-12
        )


@each
@given(codes=labels, cuts=st.lists(st.integers(0, 60), max_size=4))
def test_no_batch_size_changes_a_bit_of_the_state(kind, codes, cuts) -> None:
    pieces = kind(1, 0.1)
    bounds = [0, *sorted(min(cut, codes.size) for cut in cuts), codes.size]
    for start, stop in itertools.pairwise(bounds):
        pieces.update(np.zeros(stop - start, dtype=np.intp), codes[start:stop])
    assert json.dumps(pieces.to_dict()) == json.dumps(fed(kind, codes).to_dict())


@each
@given(codes=labels)
def test_regions_do_not_disturb_each_other(kind, codes) -> None:
    both = kind(2, 0.2)  # twice the error for twice the regions: each keeps its share
    both.update(
        np.repeat([0, 1], codes.size)[np.argsort(np.tile(np.arange(codes.size), 2), kind="stable")],
        np.repeat(codes, 2),
    )
    alone = fed(kind, codes, alpha=0.1).limits()
    np.testing.assert_allclose(both.limits().lower, alone.lower[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.limits().upper, alone.upper[0], rtol=0, atol=1e-12)


@each
@given(codes=labels)
def test_state_goes_on_elsewhere_bit_for_bit(kind, codes) -> None:
    first = fed(kind, codes, 3)
    second = kind(3, 0.1)
    second.restore(json.loads(json.dumps(first.to_dict())))
    for sequence in (first, second):
        sequence.update(np.array([0, 1, 0, 2]), np.array([1, 0, 0, 1], dtype=np.uint8))
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())
    assert first.limits() == second.limits()


@each
@given(codes=labels)
def test_flipped_labels_mirror_the_limits(kind, codes) -> None:
    path = kind.path(codes, 0.1)
    mirrored = kind.path(1 - codes, 0.1)
    np.testing.assert_allclose(path.lower, 1 - mirrored.upper, atol=1e-12)
    np.testing.assert_allclose(path.upper, 1 - mirrored.lower, atol=1e-12)


@each
def test_nothing_seen_is_everything_possible(kind) -> None:
    limits = kind(3, 0.1).limits()
    assert limits.lower.tolist() == [0, 0, 0]
    assert limits.upper.tolist() == [1, 1, 1]


def half_width(codes: np.ndarray) -> float:
    """The paper's, written out once more from the formula, with B = 10 and alpha = .1."""
    v = max(1.0, float(squared_surprises(codes, 0, 0).sum()))
    spread = 7 * np.sqrt(v * np.log(1 + np.log(v)))
    return float(spread + 5.3 * np.log(6.3 * 100)) / codes.size


def test_half_width_of_the_theory() -> None:
    codes = alternating(1000)
    found = fed(Paper, codes, 10).limits().radius[0]
    assert found == pytest.approx(half_width(codes), rel=1e-12)


@pytest.mark.parametrize(("n", "ratio"), [(100_000, 2.4), (100, 4.0)])
def test_the_default_is_several_times_narrower_than_the_papers(n: int, ratio: float) -> None:
    codes = alternating(n)
    default = fed(CentredBetaBinomial, codes, 10).limits().radius[0]
    assert half_width(codes) / default >= ratio


def test_surprises_start_from_one_half() -> None:
    assert squared_surprises(np.array([1, 1, 0], dtype=np.uint8), 0, 0).tolist() == [0.25, 0.0, 1.0]
    assert squared_surprises(np.array([0], dtype=np.uint8), 2, 1).tolist() == [0.25]


def test_paper_refuses_where_it_is_not_valid() -> None:
    with pytest.raises(ValueError, match=r"below 2\.5e25"):
        Paper(10, 1e-25)
    Paper(10, 1e-20)


def test_only_the_order_free_one_takes_counts() -> None:
    assert [name for name, kind in SEQUENCES.items() if kind.order_free] == [
        "centred-beta-binomial"
    ]
    with pytest.raises(TypeError, match="depend on counts only to take counts; got 'paper': "):
        Paper(1, 0.1).add_counts(np.array([1]), np.array([1]))


def mixture(n: int, k: int, q: float) -> float:
    """Log of the mean over c = 2, 20, 200 of prod_{i<k} (c + i/q) prod_{j<n-k} (c + j/(1-q)) /
    (c)_n, written out.
    """
    i = np.arange(k)
    j = np.arange(n - k)
    m = np.arange(n)
    logs = [
        np.log(c + i / q).sum() + np.log(c + j / (1 - q)).sum() - np.log(c + m).sum()
        for c in (2, 20, 200)
    ]
    return float(special.logsumexp(logs) - np.log(3))


@given(st.integers(0, 2000), st.data())
def test_centred_limits_are_next_to_rates_that_are_ruled_out(n, data) -> None:
    k = data.draw(st.integers(0, n))
    sequence = CentredBetaBinomial(4, 0.1)
    sequence.add_counts(np.array([n, 0, 0, 0]), np.array([k, 0, 0, 0]))
    lower = sequence.limits().lower[0]
    upper = sequence.limits().upper[0]
    assert (lower == 0) == (k <= 1)
    assert (upper == 1) == (n - k <= 1)
    for q in (lower, upper):
        if 0 < q < 1:
            assert 0 <= mixture(n, k, q) - np.log(40) < 1e-6
    if n:
        assert lower <= k / n <= upper


def test_centred_limits_of_many_labels_are_next_to_rates_that_are_ruled_out() -> None:
    n, k = (
        np.array(counts) for counts in ([10**4, 10**6, 10**8, 10**9], [10, 1000, 10**7, 5 * 10**8])
    )
    found = CentredBetaBinomial.limits_of(n, k, float(np.log(40)))
    for q in (found.lower, found.upper):
        beyond = log_evidence(k.astype(float), n.astype(float), q, 1.0 - q) - np.log(40)
        assert (beyond >= 0).all()
        assert (beyond < 1e-6).all()


@pytest.mark.broad
def test_centred_limits_of_few_labels_are_those_of_the_formula() -> None:
    # every count up to 30 labels, against bisection of the formula written out
    for n in (2, 3, 7, 30):
        for k in range(2, n + 1):
            low = 1e-12
            high = k / n
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (
                    (middle, high)
                    if mixture(n, k, min(middle, 1 - 1e-15)) >= np.log(10)
                    else (low, middle)
                )
            found = CentredBetaBinomial.limits_of(np.array([n]), np.array([k]), float(np.log(10)))
            assert found.lower[0] == pytest.approx(low, rel=1e-6)
            mirrored = CentredBetaBinomial.limits_of(
                np.array([n]), np.array([n - k]), float(np.log(10))
            )
            assert mirrored.upper[0] == pytest.approx(1 - found.lower[0], abs=1e-15)


@pytest.mark.parametrize("q", [0.5, 0.03])
def test_centred_mixture_is_a_martingale_at_the_true_rate(q: float) -> None:
    # exact: its mean over all labels of length n is 1
    for n in (1, 5, 40):
        k = np.arange(n + 1)
        mean = np.exp(
            stats.binom.logpmf(k, n, q)
            + log_evidence(k.astype(float), np.full(n + 1, float(n)), q, 1 - q)
        )
        assert mean.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.broad
@pytest.mark.parametrize("rate", [0.5, 0.05])
def test_centred_limits_looked_at_after_every_label_miss_no_more_than_alpha(rate: float) -> None:
    rng = np.random.default_rng(9)
    runs = 1000
    n_labels = 1000
    alpha = 0.1
    n = np.arange(1.0, n_labels + 1)
    k = np.cumsum(rng.uniform(size=(runs, n_labels)) < rate, axis=1).astype(float)
    evidence = np.stack(
        [log_evidence(one, n, np.full(n_labels, rate), np.full(n_labels, 1 - rate)) for one in k]
    )
    misses = (evidence >= -np.log(alpha)).any(axis=1)
    assert stats.binomtest(int(misses.sum()), runs, alpha, alternative="greater").pvalue > 1e-3
    assert misses.mean() > 0.02  # and the limits are not vacuous
    # the limits miss exactly where the evidence says so
    some = rng.integers(runs, size=3)
    for run in {*some.tolist(), *np.flatnonzero(misses)[:3].tolist()}:
        limits = CentredBetaBinomial.limits_of(
            n.astype(int), k[run].astype(int), -float(np.log(alpha))
        )
        np.testing.assert_array_equal(
            (limits.lower > rate) | (limits.upper < rate), evidence[run] >= -np.log(alpha)
        )


RATES = np.sin(np.linspace(0.0, np.pi / 2, 1001)) ** 2
LARGEST_BET = 0.5


def gamblers_on(outcomes: np.ndarray, log_threshold: float = np.log(20.0)) -> Gamblers:
    gamblers = Gamblers.fresh(RATES, LARGEST_BET)
    gamblers.take(outcomes, log_threshold)
    return gamblers


def test_limits_of_gamblers_never_widen_and_rates_that_are_ruled_out_are_forgotten() -> None:
    labels = np.random.default_rng(0).uniform(size=5000) < 0.3
    gamblers = Gamblers.fresh(RATES, LARGEST_BET)
    path = []
    for part in np.array_split(labels.astype(float), 500):
        gamblers.take(part, np.log(20.0))
        path.append(gamblers.limits())
    lower, upper = np.array(path).T
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 0).all()
    assert lower[-1] < 0.3 < upper[-1]
    assert gamblers.too_low.size < 100
    assert gamblers_on(labels.astype(float)).limits() == path[-1]


def test_gamblers_survive_labels_that_no_rate_can_explain() -> None:
    lower, upper = gamblers_on(np.repeat([0.0, 1.0], 4000)).limits()
    assert 0 <= lower <= upper <= 1


def test_without_outcomes_no_bet_is_made() -> None:
    gamblers = gamblers_on(np.empty(0))
    assert gamblers.limits() == (0.0, 1.0)
    assert (gamblers.n, gamblers.k, gamblers.squares) == (0, 0.0, 0.0)


def test_a_rate_is_ruled_out_once_the_capital_against_it_reaches_the_threshold():
    labels = np.array([1, 1, 0, 1, 1, 1, 1, 0, 1, 1])
    log_threshold = np.log(3.0)
    gamblers = gamblers_on(labels, log_threshold)
    bets = Gamblers.fresh(RATES, LARGEST_BET)._bets(labels, log_threshold)[:, None]
    with np.errstate(divide="ignore"):
        factors = 1.0 + np.minimum(bets, LARGEST_BET / RATES) * (labels[:, None] - RATES)
    capital = factors.cumprod(axis=0).max(axis=0)
    assert gamblers.low == np.count_nonzero(capital >= 3.0) < np.count_nonzero(capital >= 2.0)


def state_of_gamblers(**changed) -> dict:
    return gamblers_on(np.array([1, 0, 1, 1]), 1.0).to_dict() | changed


def test_a_state_of_gamblers_without_a_rate_left_or_with_all_of_them_is_read() -> None:
    for low, high in ((0, RATES.size), (5, 5), (RATES.size, RATES.size)):
        capital = [1.0] * (high - low)
        state = state_of_gamblers(low=low, high=high, too_low=capital, too_high=capital)
        again = Gamblers.fresh(RATES, LARGEST_BET)._resume(state)
        assert (again.low, again.high) == (low, high)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"low": 7, "high": 6}, "low and high"),
        ({"high": RATES.size + 1}, "low and high"),
        ({"low": 1, "high": 3, "too_low": [1.0] * 2, "too_high": [1.0]}, "too_low and too_high"),
        ({"low": 1, "high": 3, "too_low": [1.0], "too_high": [1.0]}, "too_low and too_high"),
        (
            {"low": 1, "high": 3, "too_low": [1.0] * 4, "too_high": [1.0] * 4},
            "too_low and too_high",
        ),
    ],
)
def test_a_state_of_gamblers_that_does_not_fit_is_refused(changed, named) -> None:
    with pytest.raises(InvalidValueError) as refused:
        Gamblers.fresh(RATES, LARGEST_BET)._resume(state_of_gamblers(**changed))
    assert refused.value.parameter == named
