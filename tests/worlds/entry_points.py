"""Everything that takes a `Sample`, and what it takes: weights, groups, segments and their bounds.

The table in `docs/reference/api/index.md` is made from it: run this file to write it anew.
"""

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import calibrant
from calibrant import Sample, calibrators, intervals, metrics, scored
from calibrant.assess.conformal import ConformalSets
from calibrant.errors import NotTakenError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api" / "index.md"
HEADING = "## Which functions take weights, groups and segments"
ROLES = {"weight": "w", "group": "g", "segment": "s"}
"""From a role to its column."""
COMBINATIONS = [roles for size in (1, 2, 3) for roles in combinations(ROLES, size)]
GROUP_SIZE = 6
WEIGHT_BOUND = 2.0


def table(n_rows: int = 480) -> pa.Table:
    """Rows of groups of 1 to 7 rows, with weights and two segments."""
    rng = np.random.default_rng(11)
    scores = rng.uniform(0.02, 0.98, n_rows)
    group = np.repeat(np.arange(n_rows), rng.integers(1, 8, n_rows))[:n_rows]
    segment = np.array(["a", "b"])[rng.integers(0, 2, n_rows)]
    rate = np.where(segment == "a", scores, scores**2)
    return pa.table(
        {
            "p": scores,
            "y": (rng.uniform(size=n_rows) < rate).astype(int),
            "w": rng.uniform(0.5, WEIGHT_BOUND, n_rows),
            "g": group,
            "s": segment,
        }
    )


ROWS = table()


def data_with(*roles: str, **described: Any) -> Sample:
    """The rows, with these roles and what describes them."""
    columns = {role: ROLES[role] for role in roles}
    return scored(ROWS, score="p", label="y", **columns, **described, progress=False)


@dataclass(frozen=True)
class EntryPoint:
    """A function of a sample, and how its answer is compared.

    `plays_no_part` are roles of which the answer does not depend, and why that is right.
    """

    name: str
    call: Callable[..., Any]
    of: Callable[..., Any]
    more: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    plays_no_part: dict[str, str] = field(default_factory=dict)

    @property
    def parameters(self) -> set[str]:
        """The names of its parameters."""
        return set(inspect.signature(self.of).parameters)

    def bounds(self, *roles: str) -> dict[str, Any]:
        """The bounds that it takes with these roles."""
        known = {"weight_bound": ("weight", WEIGHT_BOUND), "max_group_size": ("group", GROUP_SIZE)}
        return {
            name: value
            for name, (role, value) in known.items()
            if role in roles and name in self.parameters
        }

    def answer(self, data: Sample, **bounds: Any) -> str:
        """What it says of the data, as text."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _shown(self.call(data, **self.more, **bounds))


def _shown(found: Any) -> str:
    if hasattr(found, "predict_proba") or hasattr(found, "predict_interval"):
        grid: Any = np.linspace(0.05, 0.95, 19)
        if getattr(getattr(found, "partition_", None), "has_segments", False):
            parts = [found.predict(grid, segments=[name] * 19) for name in "ab"]
            return repr((parts, found.guarantee_.to_dict()))
        said = found.guarantee_.to_dict() if hasattr(found, "guarantee_") else None
        answers = [
            getattr(found, name)(grid).tolist()
            for name in ("predict", "predict_interval")
            if hasattr(found, name)
        ]
        return repr((answers, said))
    said = found.to_dict() if hasattr(found, "to_dict") else found
    return re.sub(r"seconds': [^,]+", "seconds': 0", repr(said))


def _fit(kind: type, **settings: Any) -> Callable[..., Any]:
    return lambda data, **more: kind(**settings).fit(data, **more)


_NO_GUARANTEE = {"group": "groups make no difference, because this curve has no guarantee"}
_ALL_ROWS = {"segment": "segments are ignored: the result is for all rows together"}


def _calibrator(kind: type, **options: Any) -> EntryPoint:
    settings = options.pop("settings", {})
    return EntryPoint(kind.__name__, _fit(kind, **settings), kind.fit, **options)


def _function(function: Callable[..., Any], **options: Any) -> EntryPoint:
    return EntryPoint(function.__name__, function, function, **options)


ENTRY_POINTS = {
    entry.name: entry
    for entry in (
        _calibrator(calibrators.Calibrator),
        _calibrator(calibrators.BinningCalibrator, settings={"n_bins": 3}),
        _calibrator(calibrators.ScalingBinningCalibrator, settings={"n_bins": 3}),
        _calibrator(calibrators.VennAbersCalibrator),
        _calibrator(calibrators.PlattCalibrator, plays_no_part=_NO_GUARANTEE),
        _calibrator(calibrators.BetaCalibrator, plays_no_part=_NO_GUARANTEE),
        _calibrator(calibrators.TemperatureCalibrator, plays_no_part=_NO_GUARANTEE),
        _calibrator(calibrators.IsotonicCalibrator, plays_no_part=_NO_GUARANTEE),
        _calibrator(calibrators.BlendCalibrator, plays_no_part=_NO_GUARANTEE),
        _calibrator(calibrators.SubgroupCalibrator),
        _calibrator(calibrant.ShiftCalibrator, settings={"n_bins": 3}, needs=("weight",)),
        _calibrator(
            calibrant.LabelShiftCalibrator, settings={"n_bins": 3}, more={"target_prior": 0.4}
        ),
        _calibrator(calibrant.OnlineCalibrator, settings={"n_bins": 3, "warmup": 60}),
        _calibrator(intervals.MonotoneBand),
        _calibrator(ConformalSets),
        _function(calibrant.audit),
        _function(
            calibrant.check,
            plays_no_part={
                "weight": "weights are ignored: the test is about rows as they were drawn",
                **_ALL_ROWS,
            },
        ),
        _function(
            calibrant.compare_calibrators,
            more={"calibrators": {"platt": calibrant.PlattCalibrator()}},
        ),
        _function(calibrant.threshold, more={"precision": 0.55}),
        _function(calibrant.validation_table),
        _function(calibrant.net_benefit, more={"thresholds": [0.3, 0.5]}, plays_no_part=_ALL_ROWS),
        _function(metrics.brier_score, plays_no_part=_ALL_ROWS),
        _function(metrics.log_loss, plays_no_part=_ALL_ROWS),
        _function(metrics.ece, plays_no_part=_ALL_ROWS),
        _function(metrics.debiased_ece, plays_no_part=_ALL_ROWS),
        _function(metrics.smooth_ece, plays_no_part=_ALL_ROWS),
        _function(metrics.auc, plays_no_part=_ALL_ROWS),
        _function(
            metrics.sweep_bins,
            plays_no_part={
                "group": "groups are ignored, because this is only a rule of thumb",
                **_ALL_ROWS,
            },
        ),
    )
}


def outcome(entry: EntryPoint, roles: tuple[str, ...]) -> NotTakenError | str:
    """The answer with these roles, or the error that says why there is none."""
    try:
        return entry.answer(data_with(*roles), **entry.bounds(*roles))
    except NotTakenError as error:
        return error


def page() -> str:
    """The index of the API, which ends with the table of what takes what.

    A function takes any combination of what it takes alone.
    """
    lines = [
        HEADING,
        "",
        "These are columns of [`scored(...)`](../../guides/big-data.md) data (`weight=`, `group=`,"
        " `segment=`), or the arrays `importance_weight=`, `groups=` and `segments=`. A function"
        " takes any combination of those that it takes. The table is made by calling each function"
        " with all seven combinations.",
        "",
        "| | " + " | ".join(ROLES) + " |",
        "| --- |" + " --- |" * len(ROLES),
    ]
    notes: dict[str, int] = {}

    def note(text: str) -> str:
        number = notes.setdefault(text, len(notes) + 1)
        return str(number)

    for entry in ENTRY_POINTS.values():
        taken = {
            roles: not isinstance(outcome(entry, roles), NotTakenError)
            for roles in COMBINATIONS
            if set(entry.needs) <= set(roles)
        }
        cells = []
        for role in ROLES:
            if not set(entry.needs) <= {role}:
                cells.append("with weights")
                continue
            found = outcome(entry, (role,))
            if isinstance(found, NotTakenError):
                cells.append(f"no ({note(f'`{found.parameter}` must {found.rule}')})")
                continue
            idle = entry.plays_no_part.get(role)
            cells.append(f"yes ({note(idle)})" if idle else "yes")
        takes = {role for role, cell in zip(ROLES, cells, strict=True) if not cell.startswith("no")}
        if any(is_taken != (set(roles) <= takes) for roles, is_taken in taken.items()):
            raise AssertionError(f"{entry.name} takes some combinations and not others")
        lines.append(f"| `{entry.name}` | " + " | ".join(cells) + " |")
    said = [f"{number}. {text[0].upper()}{text[1:]}." for text, number in notes.items()]
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
    return "\n".join([before, "", *lines, "", *said, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
