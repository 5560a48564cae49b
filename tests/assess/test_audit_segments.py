"""An audit by segment: each is judged within one error budget, and the faulty ones are named."""

import numpy as np
import pytest

from calibrant import audit
from calibrant.limits.non_identical import non_identical


def test_faulty_segment_is_named_and_others_are_not() -> None:
    rng = np.random.default_rng(17)
    scores = rng.uniform(0.1, 0.9, size=30_000)
    segments = rng.choice(["north", "south", "west"], size=30_000)
    y = rng.uniform(size=30_000) < scores - 0.1 * (segments == "south")
    report = audit(y, scores, segments=segments)
    assert report.by_segment
    assert report.worst.segment == "south"
    assert report.worst.direction == "scores too high"
    assert {finding.segment for finding in report.findings} <= {"south", None}
    assert "in segment 'south'" in str(report.worst)
    (south,) = [row for row in report.to_dict()["findings"] if row["segment"] == "south"]
    assert south["error"] == report.worst.error


def test_segments_and_all_rows_share_alpha_as_documented() -> None:
    # limits, the step to the population and the unseen mass, recomputed from the documented shares
    rng = np.random.default_rng(25)
    scores = rng.choice([0.2, 0.7], size=1_000)
    segments = rng.integers(2, size=1_000)
    y = rng.uniform(size=1_000) < scores**2
    report = audit(y, scores, segments=segments, confidence_level=0.9)
    for bounds in (report, report.within_segments):
        expected = 2.414213562373095 * np.sqrt(np.log(2 / (0.1 * 0.05 / 2)) / 1_000)
        assert bounds.unseen_mass == pytest.approx(expected, rel=1e-12)
    top = report.table.resolution == 0
    positives = [y.sum(), y[segments == 0].sum(), y[segments == 1].sum()]
    tail = 1 - (1 - 0.1 * 0.85 / 3 / 2) ** (1 / 1)  # a third each, two resolutions, one region
    reference = non_identical(report.table.counts[top], np.array(positives), tail / 2)
    np.testing.assert_allclose(report.table.lower[top], reference.lower, rtol=1e-12)
    np.testing.assert_allclose(report.table.upper[top], reference.upper, rtol=1e-12)
    share = report.table.error * report.table.counts / 1_000
    proved = np.maximum(share[top], share[~top].reshape(3, 2).sum(axis=1))
    averages = (proved[0], max(proved[0], proved[1:].sum()))
    for bounds, average in zip((report, report.within_segments), averages, strict=True):
        q = bounds.average_lower_bound
        kl = average * np.log(average / q) + (1 - average) * np.log((1 - average) / (1 - q))
        assert 1_000 * kl == pytest.approx(np.log(2 / (0.1 * 0.05)), rel=1e-6)


def test_upper_bound_with_segments_is_within_segments() -> None:
    rng = np.random.default_rng(19)
    scores = rng.choice([0.2, 0.6], size=10_000)
    segments = rng.integers(2, size=10_000)
    y = rng.uniform(size=10_000) < scores + 0.1 * (2 * segments - 1)
    assert audit(y, scores).upper_bound < 0.05
    report = audit(y, scores, segments=segments)
    assert report.upper_bound < 0.05 < 0.1 < report.within_segments.upper_bound
    assert not report.is_miscalibrated
    assert report.verdict == "problem"  # within segments
    within = [text for text in report.notes if text.startswith("no observed score")]
    assert any("within segments" in text for text in within)


def test_findings_are_sorted_and_those_of_the_text_are_the_same() -> None:
    rng = np.random.default_rng(23)
    scores = rng.uniform(0.1, 0.6, size=20_000)
    segments = rng.integers(12, size=20_000)
    report = audit(rng.uniform(size=20_000) < scores + 0.3, scores, segments=segments)
    assert len(report.findings) == 13  # all rows, and each segment
    assert [finding.error for finding in report.findings] == sorted(
        (f.error for f in report.findings), reverse=True
    )
    _, findings = report.tables()
    assert findings.columns["error"] == [finding.error for finding in report.findings]
    assert len(findings.text().rows) == 13


def test_the_segment_without_an_upper_bound_is_named() -> None:
    rng = np.random.default_rng(16)
    segments = np.repeat(["few", "many"], 1_000)
    scores = np.where(segments == "few", 0.5, rng.uniform(size=2_000))
    within = audit(rng.uniform(size=2_000) < scores, scores, segments=segments).within_segments
    assert within.upper_bound_reason.startswith(
        "the 1,000 rows of 'many' have 1,000 distinct scores"
    )


def test_the_tolerance_is_for_segments_too() -> None:
    rng = np.random.default_rng(14)
    segment = np.arange(40_000) % 2
    scores = rng.uniform(0.2, 0.8, size=40_000)
    y = rng.uniform(size=40_000) < scores + np.where(segment, 0.1, -0.1)
    report = audit(y, scores, segments=segment, tolerance=0.05)
    assert report.verdict == "problem"
    assert not report.is_miscalibrated
    assert report.within_segments.is_miscalibrated
    assert " in segment " in report.sentence
    assert any("within segments" in note for note in report.notes)
    assert audit(y, scores, segments=segment, tolerance=0.12).worst is None
