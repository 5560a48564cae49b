"""Monitor a calibrated model in production: drift tests that are valid at every moment, and late
labels.
"""

from calibrant.monitor.change import Change, Moment, MonitorResult
from calibrant.monitor.drift import DriftMonitor
from calibrant.monitor.durable import Monitor
from calibrant.monitor.expected import ExpectedPerformance, expected_performance
from calibrant.monitor.guarantee import GuaranteeMonitor
from calibrant.monitor.score_drift import ScoreDriftMonitor
from calibrant.monitor.snapshot import MonitorSnapshot

__all__ = [
    "Change",
    "DriftMonitor",
    "ExpectedPerformance",
    "GuaranteeMonitor",
    "Moment",
    "Monitor",
    "MonitorResult",
    "MonitorSnapshot",
    "ScoreDriftMonitor",
    "expected_performance",
]
