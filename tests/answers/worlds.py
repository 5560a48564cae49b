"""Calibrators of every kind that can be exported, the scores on which an export may go wrong, and
what is right.
"""

import numpy as np
import pyarrow as pa

from calibrant import (
    BinningCalibrator,
    Calibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    ShiftCalibrator,
    Tally,
    VennAbersCalibrator,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.cells.bins import OTHER, Rest
from calibrant.export import export_table

LARGEST = float(np.finfo(np.float64).max)
SMALLEST = 5e-324
ANYWHERE = [
    0.0,
    -0.0,
    SMALLEST,
    -SMALLEST,
    2.2250738585072014e-308,
    1e-300,
    LARGEST,
    -LARGEST,
    1e300,
    0.1,
    0.5,
    1.0,
]
NOWHERE = [None, np.nan, np.inf, -np.inf]
STRANGE_SEGMENTS = [
    "o'neill",
    'a"b',
    "back\\slash",
    "line\nbreak",
    "${env:HOME}",
    "-- ; DROP",
    "é\u2028",
    "{{x}}",
    "",
    " ",
]


def data(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return rng, scores, (rng.uniform(size=n) < scores**2).astype(int)


def counted(partition, seed=0, **parameters):
    """A calibrator from counts that differ in every region."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(50, 5_000, size=partition.n_regions)
    tally = Tally.from_counts(
        counts, rng.binomial(counts, rng.uniform(size=counts.size)), partition=partition
    )
    return BinningCalibrator.from_tally(partition, tally, **parameters)


def quantile():
    _, scores, y = data()
    return BinningCalibrator(12).fit(scores, y)


def fixed_width():
    return counted(Partition.fixed_width(10))


def tied():
    _, scores, y = data()
    return BinningCalibrator(8).fit(scores.round(1), y)


def atoms():
    return counted(Partition.atoms([-LARGEST, -1.0, -SMALLEST, 0.0, 0.1, 0.3, 1.0, LARGEST]))


def tiny_and_huge():
    edges = [
        -1e308,
        -1.5e-310,
        SMALLEST,
        3 * SMALLEST,
        2.2250738585072014e-308,
        1 / 3,
        123456.789,
        1e22,
        1e23,
        1.7e308,
    ]
    return counted(Partition.from_edges(edges))


def edge_at_the_end():
    return counted(Partition.from_edges([0.25, 0.7], score_range=(0.1, 0.7)))


def one_region():
    return counted(Partition.fixed_width(1, (-2.0, 3.0)))


def text_labels():
    _, scores, y = data()
    names = np.where(y == 1, "late; '--\n*/", '"on time" ${x} \\')
    return BinningCalibrator(5, pos_label="late; '--\n*/").fit(scores, names)


def positive_first():
    _, scores, y = data()
    return BinningCalibrator(5, pos_label="bad").fit(scores, np.where(y == 1, "bad", "good"))


def online():
    _, scores, y = data()
    return OnlineCalibrator(warmup=500, n_bins=6).partial_fit(scores, y)


def shift():
    _, scores, y = data()
    return ShiftCalibrator(4, interval="empirical-bernstein").fit(
        scores, y, importance_weight=2 * scores, weight_bound=2.0
    )


def label_shift():
    _, scores, y = data()
    return LabelShiftCalibrator(4).fit(scores, y, target_prior=0.5)


def scaling_binning():
    _, scores, y = data()
    return ScalingBinningCalibrator(
        VennAbersCalibrator(), n_bins=5, partition="uniform", random_state=0
    ).fit(scores, y)


def by_text():
    rng, scores, y = data()
    return BinningCalibrator(3, segment_rule=None).fit(
        scores, y, segments=rng.choice(STRANGE_SEGMENTS, size=scores.size)
    )


def by_number():
    parts = {
        -7: Partition.fixed_width(3),
        0: Partition.from_edges([0.5]),
        2**40: Partition.fixed_width(2, (-1, 2)),
    }
    return counted(Partition.by_segment(parts))


def by_bool():
    return counted(
        Partition.by_segment(
            {False: Partition.fixed_width(2), True: Partition.from_edges([0.1, 0.2])}
        )
    )


def curve():
    _, scores, y = data()
    return Calibrator(n_bins=6).fit(scores, y)


def curve_in_segments():
    rng, scores, y = data()
    y = np.where((scores > 0.4) & (scores < 0.5), 1 - y, y)  # where the curve moves
    segments = rng.choice(["a", "b'"], size=scores.size)
    return Calibrator("beta", n_bins=4, segment_rule=None).fit(scores, y, segments=segments)


def curve_positive_first():
    _, scores, y = data()
    return Calibrator("venn-abers", n_bins=3, pos_label="bad").fit(
        scores, np.where(y == 1, "bad", "good")
    )


def absorbed():
    """Scores of a file with four decimals: the look finds no ties, and yet an edge is tied."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        scores = np.round(rng.uniform(size=600), 4)
        fitted = BinningCalibrator(6).fit(scores, (rng.uniform(size=600) < scores).astype(int))
        if fitted.partition_.has_absorbed:
            return fitted
    raise AssertionError("no edge was absorbed")


def by_text_and_others():
    parts = {"a": Partition.fixed_width(3), "b'": Partition.from_edges([0.5])}
    return counted(Partition.by_segment(parts, other=Partition.fixed_width(2)))


def by_number_and_others():
    return counted(
        Partition.by_segment({-7: Partition.fixed_width(3)}, other=Partition.from_edges([0.1, 0.2]))
    )


def others_alone():
    return counted(Partition.by_segment({}, other=Partition.fixed_width(3)))


def curve_and_others():
    rng, scores, y = data()
    segments = rng.choice(["a", "b'", "c", "d"], size=scores.size)
    return Calibrator("beta", n_bins=4, segment_rule=["a", "b'"]).fit(scores, y, segments=segments)


WORLDS = (
    quantile,
    fixed_width,
    tied,
    atoms,
    tiny_and_huge,
    edge_at_the_end,
    one_region,
    text_labels,
    positive_first,
    online,
    shift,
    label_shift,
    scaling_binning,
    by_text,
    by_number,
    by_bool,
    curve,
    curve_in_segments,
    curve_positive_first,
    absorbed,
    by_text_and_others,
    by_number_and_others,
    others_alone,
    curve_and_others,
)


def edge_scores(calibrator):
    """Every cut and limit, and the doubles before and after it."""
    steps = export_table(calibrator).steps
    cuts = np.unique(
        np.concatenate([np.append(part.cuts, [part.low, part.high]) for part in steps])
    )
    with np.errstate(all="ignore"):
        return np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)])


def in_rows(calibrator, scores, dtype=np.float64):
    """Scores, each with every segment where there are segments: one that is missing and one that is
    unknown too.
    """
    scores = [score if score is None else float(dtype(score)) for score in scores]
    kind = pa.float64() if dtype is np.float64 else pa.float32()
    partition = getattr(calibrator, "partition_", None)
    segments = partition.segments if partition is not None and partition.has_segments else None
    if segments is None:
        return pa.table({"id": pa.array(range(len(scores))), "score": pa.array(scores, kind)})
    unknown = {str: "nowhere", int: 99, bool: None, Rest: "nowhere"}[type(segments[0])]
    named = [name for name in segments if name is not OTHER]
    tried = (
        (*named, unknown) if OTHER in segments else (*named, unknown, None)
    )  # ONNX knows no text that is missing
    pairs = [(score, segment) for score in scores for segment in tried]
    return pa.table(
        {
            "id": pa.array(range(len(pairs))),
            "score": pa.array([score for score, _ in pairs], kind),
            "segment": pa.array([segment for _, segment in pairs]),
        }
    )


def expected(calibrator, rows):
    """What `predict` and its kin give, row by row; None where they refuse."""
    from calibrant.errors import CalibrantError

    scores = rows["score"].to_pylist()
    segments = rows["segment"].to_pylist() if "segment" in rows.column_names else None
    accepted = np.array([s is not None and np.isfinite(s) for s in scores])
    groups = [(None, accepted)]
    if segments is not None:
        known = calibrator.partition_.segments
        known = (set(segments) - {None}) if OTHER in known else known
        groups = [
            (name, accepted & np.array([s == name and s is not None for s in segments]))
            for name in known
        ]
    columns = {
        name: [None] * len(scores) for name in ("calibrated", "lower", "upper", "region", "set")
    }
    for name, mask in groups:
        places = np.flatnonzero(mask)
        chosen = np.array([scores[place] for place in places])
        if rows["score"].type == pa.float32():
            chosen = chosen.astype(np.float32)
        inside = np.array(
            [
                _takes(calibrator, chosen[i : i + 1], name, CalibrantError)
                for i in range(chosen.size)
            ]
        )
        if not inside.any():
            continue
        _fill(columns, calibrator, places[inside], chosen[inside], name)
    return columns


def _options(size, segment):
    return {} if segment is None else {"segments": np.array([segment] * size)}


def _takes(calibrator, score, segment, error):
    try:
        calibrator.predict(score, **_options(1, segment))
    except error:
        return False
    return True


def _fill(columns, calibrator, places, scores, segment):
    options = _options(scores.size, segment)
    limits = calibrator.predict_interval(scores, **options)
    labels = calibrator.classes_.tolist()
    sets = [
        "{" + ", ".join(str(c) for c, i in zip(labels, row, strict=True) if i) + "}"
        for row in calibrator.predict_set(scores, **options).tolist()
    ]
    mapped = calibrator.base_.predict(scores) if hasattr(calibrator, "base_") else scores
    found = {
        "calibrated": calibrator.predict(scores, **options).tolist(),
        "lower": limits[:, 0].tolist(),
        "upper": limits[:, 1].tolist(),
        "region": calibrator.partition_.assign(mapped, **options).tolist(),
        "set": sets,
    }
    for name, values in found.items():
        for place, value in zip(places, values, strict=True):
            columns[name][place] = value
