"""One example of every result class, by the name of the class.

A class without an example fails a test.
"""

from collections.abc import Callable
from functools import cache
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import calibrant
from calibrant.adversary import confront, width_demonstration
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.intervals import MonotoneBand
from calibrant.metrics import auc, brier_score, reliability_table
from calibrant.monitor import Monitor
from calibrant.ratios import LogisticRatio
from calibrant.text.result import Result
from calibrant.tripod import ConformalSets

ROWS = 400


@cache
def _rows() -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores that are overconfident."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=ROWS)
    return (rng.uniform(size=ROWS) < 0.25 + scores / 2).astype(int), scores


def _segments() -> np.ndarray:
    return np.repeat(["a", "b"], ROWS // 2)


@cache
def _calibrator() -> calibrant.BinningCalibrator:
    y, scores = _rows()
    return calibrant.BinningCalibrator(4).fit(scores, y)


def _rate() -> calibrant.Rate:
    y, scores = _rows()
    labels = y.astype(float)
    labels[np.random.default_rng(1).permutation(ROWS)[100:]] = np.nan
    return calibrant.rate(labels, scores, segments=_segments())


def _draw() -> Result:
    found = _rate().draw
    assert found is not None
    return found


def _exchangeability() -> Result:
    y, scores = _rows()
    return calibrant.check(np.sort(y), scores)


def _sign() -> Result:
    y, scores = _rows()
    table = pa.table({"p": scores, "y": y, "customer_id": np.arange(ROWS) // 4})
    return calibrant.check(calibrant.scored(table, score="p", label="y")).signs[0]


def _comparison() -> Result:
    y, scores = _rows()
    methods = {"platt": calibrant.PlattCalibrator(), "binning": calibrant.BinningCalibrator(4)}
    return calibrant.compare_calibrators(y, scores, methods)


def _two_models() -> dict[str, np.ndarray]:
    _, scores = _rows()
    return {"one": scores, "two": 0.25 + scores / 2}


def _sequential() -> Result:
    y, _ = _rows()
    return calibrant.SequentialModelComparison(("one", "two")).update(y, _two_models()).result()


def _decisions() -> Result:
    y, scores = _rows()
    data = calibrant.scored(pa.table({"p": scores, "y": y}), score="p", label="y")
    return calibrant.decide(_calibrator(), data, cost_false_alarm=1.0, cost_miss=3.0)


def _monitored() -> Result:
    monitor = calibrant.DriftMonitor(_calibrator())
    monitor.update(np.full(ROWS, 0.9), np.zeros(ROWS, dtype=int))
    return monitor.summary()


def _snapshot() -> Result:
    with (
        TemporaryDirectory() as folder,
        Monitor(f"{folder}/watch.db", _calibrator(), maturity=7) as monitor,
    ):
        monitor.record("loan 1", 0.3, at="2026-01-01")
        monitor.resolve("loan 1", 1, at="2026-01-05")
        return monitor.advance("2026-01-09")


def _by_attributes() -> Result:
    y, scores = _rows()
    return (
        calibrant.SubgroupCalibrator()
        .fit(scores, y, attributes={"segment": _segments()})
        .guarantee_
    )


def _subgroups() -> SubgroupAudit:
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.0, 0.5, size=ROWS)
    old = rng.random(ROWS) < 0.5
    labels = rng.uniform(size=ROWS) < scores + 0.3 * old
    found = calibrant.audit(labels, scores, attributes={"old": old}).by_attributes
    assert found is not None
    return found


def _class_wise() -> Result:
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([1.0, 1.0, 1.0], size=ROWS)
    labels = [rng.choice(3, p=row) for row in scores]
    return calibrant.ClassWiseCalibrator(2).fit(scores, labels).guarantee_


def _diagnostics() -> Result:
    rng = np.random.default_rng(0)
    ratio = LogisticRatio().fit(rng.normal(size=(ROWS, 1)), rng.normal(0.3, size=(ROWS, 1)))
    return ratio.diagnostics_


def _of_rows(function: Callable[..., Result], **settings: object) -> Callable[[], Result]:
    return lambda: function(*_rows(), **settings)


EXAMPLES: dict[str, Callable[[], Result]] = {
    "Audit": lambda: calibrant.audit(*_rows(), segments=_segments()),
    "BandGuarantee": lambda: MonotoneBand().fit(*_rows()[::-1]).guarantee_,
    "BrierScore": _of_rows(brier_score),
    "CalibratorComparison": _comparison,
    "ClassWiseGuarantee": _class_wise,
    "ConformalGuarantee": lambda: ConformalSets().fit(*_rows()[::-1]).guarantee_,
    "Confrontation": lambda: confront(calibrant.PlattCalibrator(), sample_sizes=(100, 200)),
    "Decisions": _decisions,
    "Differences": _sequential,
    "DrawCheck": _draw,
    "Estimate": _of_rows(auc),
    "Exchangeability": _exchangeability,
    "ExpectedPerformance": lambda: calibrant.expected_performance(_calibrator(), _rows()[1]),
    "Gate": lambda: _rate().gate(at_least=0.5),
    "GroupSign": _sign,
    "Guarantee": lambda: _calibrator().guarantee_,
    "MonitorResult": _monitored,
    "MonitorSnapshot": _snapshot,
    "ModelComparison": lambda: calibrant.compare_models(_rows()[0], _two_models()),
    "NetBenefit": lambda: calibrant.net_benefit(_rows()[0], _two_models()),
    "NoGuarantee": lambda: calibrant.PlattCalibrator().fit(*_rows()[::-1]).guarantee_,
    "Plan": lambda: calibrant.plan(epsilon=0.1, n_bins=5),
    "Rate": _rate,
    "RatePlan": lambda: calibrant.plan_rate(at_least=0.95, expected_rate=0.99),
    "RatioDiagnostics": _diagnostics,
    "ReliabilityTable": _of_rows(reliability_table),
    "SubgroupAudit": _subgroups,
    "SubgroupGuarantee": _by_attributes,
    "Threshold": _of_rows(calibrant.threshold, precision=0.6),
    "Validation": lambda: calibrant.validation_table(*_rows(), grades=_segments()),
    "WeakerGuarantee": lambda: calibrant.VennAbersCalibrator().fit(*_rows()[::-1]).guarantee_,
    "WidthDemonstration": lambda: width_demonstration(calibrant.PlattCalibrator(), n=100),
}
