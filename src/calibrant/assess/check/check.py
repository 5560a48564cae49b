"""Are the rows i.i.d.? Tests of exchangeability that are valid without assumptions, at every
moment.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import (
    ArrayLike,
    CodeArray,
    FloatArray,
    IndexArray,
    IntArray,
    Seed,
)
from calibrant.assess.check.exchangeability import (
    KINDS,
    Exchangeability,
    ExchangeabilityTest,
    GroupSign,
)
from calibrant.assess.check.group_signs import group_signs
from calibrant.assess.check.p_values import (
    bins_of_values,
    label_p_values,
    rank_p_values,
    rates_of,
    small_int,
)
from calibrant.assess.check.uniform_bets import (
    capital,
    drift_of_labels,
    drift_of_ranks,
    look_ends,
    runs_of_labels,
    runs_of_ranks,
)
from calibrant.cells.score_partition import middle_ranks
from calibrant.errors import InvalidTypeError
from calibrant.params.random import RandomSource, seed_number
from calibrant.params.rules import Integer, error_budget
from calibrant.sample.columns import column_of, drawn_rows
from calibrant.sample.groups import Groups
from calibrant.sample.label_runs import is_sorted, long_run
from calibrant.sample.reader import ONE_ROW_EACH, check_nothing_beside, read_judged, rows_in
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.sample.time_order import in_order, read_times


def check(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    time: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    confidence_level: float = 0.95,
    most_rows: int | None = 1_000_000,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
    random_state: Seed = 0,
) -> Exchangeability:
    """Test whether rows are i.i.d., or at least exchangeable, for every distribution.

    If not, say what has changed.

    Guarantee: if the rows are exchangeable (any order of them is as likely as any other, as for
    independent draws from one population), some test raises an alarm with probability at most 1 -
    confidence_level. This holds for any number of rows, with tied scores, and however often you
    look at the evidence along the way. Not claimed: that every change is found, or that the moment
    of a change is exact. For a `Sample` without groups, the result's `signs` list what the first
    rows suggest: an id that repeats, identical rows, runs of equal labels. They are hints, not tests.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes, in the order in which the rows came unless `time` is given; or the
        result of `calibrant.scored`, which has scores too.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Scores, in the same order.
    time : array-like of shape (n,), or str, default=None
        Numbers or dates by which the rows are ordered; text must be ISO 8601 dates such as
        "2024-01-31". Rows with the same time are put in random order, so their order within the
        file does not matter. For `Sample`, the name of a column.
    groups : array-like of shape (n,), or str, default=None
        The group of each row, such as its customer. One row of each group is picked at random. The
        result is then about the picked rows only, in time order (without `time`, in the order of
        the file): an alarm is false only if these are exchangeable. With few groups, few changes
        can be found. The absence of an alarm here does not cancel an alarm raised without groups,
        unless rows of a group share their labels or scores. For `Sample`, the name of a column.
    confidence_level : float, default=0.95
        Probability that no alarm is false, over all tests.
    most_rows : int or None, default=1_000_000
        If a `Sample` has more rows than this, about this many are drawn at random and tested, in
        their order. So the memory does not grow with the number of rows; but most neighbours of a
        row are left out, and runs are harder to find. None tests all rows, which are read into
        memory (about 200 bytes each), and so are those of a stream, which can be read only once.
    pos_label, classes
        As in `BinningCalibrator`.
    random_state : int, Generator, RandomState or None, default=0
        Breaks ties, together with the rows: the same rows in the same order give the same result.
        Choose it before you look at results: the probability is also over the random numbers, and
        the claim does not hold for the best of several seeds.

    Returns
    -------
    Exchangeability
        The result of each test, a verdict, advice, and signs that rows are grouped.

    Notes
    -----
    *P-values.* The rank of a value among the values up to it, with ties broken at random, is
    uniform and independent of the earlier ranks if the values are exchangeable: a conformal
    p-value. It is uniform even given the set of all values, so a bet may depend on the set, but not
    on the order. "scores" ranks the scores. "labels" ranks labels within bins of the score (about 2
    n^(1/3) bins of equal mass; if there are fewer values, every value is a bin). "scores by class"
    ranks the scores within each class.

    *Bets.* A gambler bets on each p-value, given the earlier ones, with a factor whose mean is 1 if
    it is uniform. So the capital is a nonnegative martingale that starts at 1, and by Ville's
    inequality it ever reaches 5 / alpha with probability at most alpha / 5. The union of five tests
    costs the factor 5. Capitals are not averaged over tests, because the ranks of labels and the
    ranks of scores are not independent. Within a test, capitals of many bets are averaged. "scores"
    bets that later scores are larger or smaller, or further out or in, and sometimes switches
    between these. "labels" bets that the odds of all bins have moved by a factor, or by more in
    higher bins. The two tests for runs bet that a row is like the last 1, 3 or 10. The capital is
    checked up to 1,000 times.

    *What an alarm disproves.* "scores": that the scores are exchangeable. "labels": that rows
    within each bin are exchangeable; it raises no alarm, with the stated probability, if only the
    shares of the bins move. A rate that changes with the score inside a bin can cause an alarm if
    the scores move within it. No test without assumptions can separate the two for a continuous
    score (Shah and Peters 2020); bins that get narrower with n keep the effect small. "scores by
    class": that scores within a class are exchangeable; a label shift does not set it off. So the
    pattern of alarms shows what changed.

    References
    ----------
    Vovk, Petej, Nouretdinov, Ahlberg, Carlsson and Gammerman (2021), "Retrain or not retrain:
    conformal test martingales for change-point detection", COPA. Ramdas, Ruf, Larsson and Koolen
    (2022), "Testing exchangeability: fork-convexity, supermartingales and e-processes",
    International Journal of Approximate Reasoning 141. Shah and Peters (2020), "The hardness of
    conditional independence testing and the generalised covariance measure", Annals of Statistics
    48.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import check
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=4_000)
    >>> alike = rng.uniform(size=4_000) < scores
    >>> check(alike, scores).verdict
    'ok'
    >>> moved = rng.uniform(size=4_000) < np.where(np.arange(4_000) < 2_000, scores, scores**2)
    >>> check(moved, scores).causes
    ('labels',)
    """
    alpha = error_budget(confidence_level)
    seed = seed_number(random_state)
    labels: dict[str, Any] = {"classes": classes, "pos_label": pos_label}
    signs: tuple[GroupSign, ...] = ()
    n_in_data = None
    held = rows_in(y)
    if held is not None:
        _check_names(held, time, groups)
        signs = () if groups or held.columns.group else _signs(held, time, labels)
        held, n_in_data = _drawn(held, time, groups, most_rows, seed)
    rows, times, together = _read(y if held is None else held, scores, time, groups, **labels)
    n_read = len(rows)
    rng = rows.ordered_source(seed, "order of ties").generator()
    rows, times = _in_order(rows, times, together, rng, seed)
    values = np.asarray(rows.scores, dtype=np.float64)
    codes = rows.codes
    order = np.argsort(values).astype(small_int(len(rows)))
    bins = bins_of_values(*_distinct(values, order))
    rates = rates_of(codes, bins)
    in_file_order = times is None and together is None
    run = long_run(codes, values, rates[bins]) if in_file_order else 0
    ends = look_ends(len(rows))
    paths = _paths(values, order, codes, bins, rates, ends, rng)
    threshold = float(np.log(len(KINDS) / alpha))
    tests = {kind: _test(kind, paths[kind], threshold, ends, times) for kind in KINDS}
    if tests["scores"].alarm:
        number, counts = _distinct(values, order)
        ranks = middle_ranks(counts)[number] - len(rows) / 2.0
        tests["scores"] = _with_change(tests["scores"], ranks, values, times)
    if tests["labels"].alarm:
        off = codes - rates[bins]
        tests["labels"] = _with_change(tests["labels"], off, off + codes.mean(), times)
    return Exchangeability(
        tuple(tests.values()),
        ends,
        float(confidence_level),
        len(rows),
        rows.skipped,
        grouped=together is not None,
        n_left_out=n_read - len(rows),
        long_run=run,
        sorted_by_score=in_file_order and is_sorted(values),
        signs=signs,
        n_in_data=n_read if n_in_data is None else n_in_data,
    )


def _check_names(data: Rows, time: Any, groups: Any) -> None:
    """Raise an error unless times and groups are columns of the data, and rows without times have
    an order.
    """
    for name, value in (("time", time), ("groups", groups)):
        if value is not None and not isinstance(value, str):
            raise InvalidTypeError(
                name, "name a column of the scored data", got=type(value).__name__
            )
    if time is None and not data.has_order:
        raise InvalidTypeError(
            "time", "name a column for data whose rows have no order", got="None"
        )


def _signs(held: Any, time: Any, labels: dict[str, Any]) -> tuple[GroupSign, ...]:
    """Signs that rows are grouped; the order of the file says nothing if rows have times."""
    found = group_signs(held, **labels)
    return found if time is None else tuple(one for one in found if one.kind != "runs of labels")


def _drawn(
    data: Rows, time: Any, groups: Any, most_rows: int | None, seed: int
) -> tuple[Rows, int | None]:
    """The rows to test: a random sample if there are more than `most_rows`.

    Also the number of rows, if it was counted.
    """
    if most_rows is None or data.reads_once:
        return data, None
    most_rows = Integer(1).check("most_rows", most_rows)
    n_rows = sum(data.sizes().values())
    if n_rows <= most_rows:
        return data, n_rows
    others = {part: name for part, name in (("time", time), ("groups", groups)) if name is not None}
    return drawn_rows(data, others, data.draw(most_rows / n_rows, seed)), n_rows


def _read(
    y: ArrayLike | Sample | Rows, scores: ArrayLike | None, time: Any, groups: Any, **labels: Any
) -> tuple[MemoryRows, NDArray[Any] | None, Groups | None]:
    """The rows, their times, and their groups."""
    held = rows_in(y)
    if held is None:
        rows = read_judged(y, scores, **labels).collect()
    else:
        check_nothing_beside(scores=scores)
        named = (("time", time), ("groups", groups))
        time, groups = (
            None if name is None else column_of(held, name, part) for part, name in named
        )
        rows = held.with_classes(**labels).collect()
    times = None if time is None else read_times(time, len(rows))
    return rows, times, rows.groups if groups is None else Groups.of(groups, len(rows))


def _in_order(
    rows: MemoryRows,
    times: NDArray[Any] | None,
    together: Groups | None,
    rng: np.random.Generator,
    seed: int,
) -> tuple[MemoryRows, NDArray[Any] | None]:
    """The rows and their times, in order; with groups, one random row of each."""
    if times is None and together is None:
        return rows, None
    chosen = in_order(len(rows), times, rng)
    if together is not None:
        source = RandomSource.of(seed, ONE_ROW_EACH, rows=rows.fingerprint())
        chosen = chosen[np.isin(chosen, together.one_row_each(source))]
    return rows.take(chosen), None if times is None else times[chosen]


def _paths(
    values: FloatArray,
    order: IndexArray,
    codes: CodeArray,
    bins: IndexArray,
    rates: FloatArray,
    ends: IntArray,
    rng: np.random.Generator,
) -> dict[str, FloatArray]:
    """The log capital of each test at each look."""
    found = {}
    p_values = rank_p_values(values, rng, order)
    found["scores"] = capital(drift_of_ranks(p_values), ends, switching=True)
    found["runs of scores"] = capital(runs_of_ranks(p_values), ends, switching=False)
    p_values = label_p_values(codes, bins, rng)
    given = (p_values, rates, bins)
    found["labels"] = capital(drift_of_labels(*given), ends, switching=True)
    found["runs of labels"] = capital(runs_of_labels(*given), ends, switching=False)
    for code in (0, 1):
        own = codes == code
        # position among the rows of the class
        place = np.cumsum(own, dtype=order.dtype) - 1
        own_order = place[order[own[order]]]
        p_values[own] = rank_p_values(values[own], rng, own_order)
    found["scores by class"] = capital(drift_of_ranks(p_values), ends, switching=True)
    return found


def _distinct(values: FloatArray, order: IndexArray) -> tuple[IndexArray, IntArray]:
    """The index of each row's value among the distinct values, and their counts."""
    ordered = values[order]
    in_order = np.cumsum(np.append(False, ordered[1:] != ordered[:-1]), dtype=order.dtype)
    number = np.empty_like(order)
    number[order] = in_order
    return number, np.bincount(in_order)


def _test(
    kind: str, path: FloatArray, threshold: float, ends: IntArray, times: Any
) -> ExchangeabilityTest:
    largest = max(float(path.max()), 0.0)
    if largest < threshold:
        return ExchangeabilityTest(kind, False, largest, path)
    after = int(ends[np.argmax(path >= threshold)])
    return ExchangeabilityTest(kind, True, largest, path, after, _time_of(times, after - 1))


def _with_change(
    test: ExchangeabilityTest, centred: FloatArray, shown: FloatArray, times: Any
) -> ExchangeabilityTest:
    """A test with the most likely time of a single change, by the largest standardised sum, and the
    means of what is shown on either side.
    """
    n = centred.size
    first = np.arange(1, n)
    sums = np.abs(centred.cumsum()[:-1])
    if times is not None and times[0] != times[-1]:
        is_later = times[1:] != times[:-1]  # rows with the same time have no order
        first = first[is_later]
        sums = sums[is_later]
    row = int(first[np.argmax(sums / np.sqrt(first * (n - first)))])
    return replace(
        test,
        change_after=row,
        change_time=_time_of(times, row),
        before=float(shown[:row].mean()),
        after=float(shown[row:].mean()),
    )


def _time_of(times: Any, row: int) -> Any:
    """The time of a row as text or as a plain number; None without times."""
    if times is None:
        return None
    return str(times[row]) if isinstance(times[row], np.datetime64) else times[row].item()
