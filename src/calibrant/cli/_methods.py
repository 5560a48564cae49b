"""The methods that `fit` knows: how each is made from options, and how it reads its rows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from calibrant.cli._errors import RefusedError

if TYPE_CHECKING:
    from calibrant.rows.base import ScoredData

BINNING = ("binning", "uniform")
CURVES = ("platt", "temperature", "beta", "isotonic", "venn-abers")
METHODS = (*BINNING, "scaling-binning", *CURVES)
_CLASSES = {
    "platt": "PlattCalibrator",
    "temperature": "TemperatureCalibrator",
    "beta": "BetaCalibrator",
    "isotonic": "IsotonicCalibrator",
    "venn-abers": "VennAbersCalibrator",
    "scaling-binning": "ScalingBinningCalibrator",
}
_FLAGS = {"bins": "--bins", "interval": "--interval", "split": "--split", "value": "--value", "score_range": "--range"}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a calibrator is made; saved with the model, so that `verify` can make it again."""

    method: str = "binning"
    bins: int | str = "auto"
    confidence: float = 0.9
    interval: str | None = None
    split: float | None = None
    value: str = "mean"
    score_range: tuple[float, float] | None = None
    weight_bound: float | None = None
    weighted: bool = False
    seed: int = 0

    def saved(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_saved(cls, state: Any) -> "Settings | None":
        """Read back; None for what another release, or someone else, has written."""
        if not isinstance(state, Mapping) or set(state) != {entry.name for entry in fields(cls)}:
            return None
        pair = state["score_range"]
        return cls(**{**state, "score_range": None if pair is None else tuple(pair)})

    def check(self) -> None:
        """Refuse options that the method does not have, rather than ignore them."""
        default = Settings()
        given = {name for name in _FLAGS if getattr(self, name) != getattr(default, name)}
        allowed = {
            "binning": {"bins", "interval", "split", "value"},
            "uniform": {"bins", "interval", "value", "score_range"},
            "scaling-binning": {"bins", "interval", "split", "value"},
        }.get(self.method, set())
        if extra := sorted(_FLAGS[name] for name in given - allowed):
            raise RefusedError(f"{extra[0]} is not for --method {self.method}")
        if self.weighted and self.method not in BINNING:
            raise RefusedError(f"--weight is for --method binning and uniform; got {self.method}")
        if self.weight_bound is not None and not self.weighted:
            raise RefusedError("--weight-bound needs --weight, the column of weights")
        if self.interval == "betting" and not self.weighted:
            raise RefusedError("--interval betting is for rows with a --weight")

    def fit(self, data: "ScoredData", labels: Mapping[str, Any]) -> Any:
        """A calibrator fitted to the data."""
        import calibrant
        from calibrant.cli._gather import in_memory

        if self.method in BINNING:
            return self._fit_bins(data, labels)
        kind = getattr(calibrant, _CLASSES[self.method])
        if data.columns.segment is not None:
            raise RefusedError(f"--segment is for --method binning and uniform; got {self.method}")
        parameters: dict[str, Any] = dict(labels)
        if self.method == "scaling-binning":
            parameters |= {
                "n_bins": self.bins,
                "confidence_level": self.confidence,
                "interval": self.interval or "clopper-pearson",
                "split": 0.5 if self.split is None else self.split,
                "value": self.value,
                "random_state": self.seed,
            }
        rows = in_memory(data)
        return kind(**parameters).fit(rows.scores, rows.labels)

    def _fit_bins(self, data: "ScoredData", labels: Mapping[str, Any]) -> Any:
        from calibrant import BinningCalibrator, ShiftCalibrator
        from calibrant.cli._gather import in_memory

        parameters: dict[str, Any] = {
            **labels,
            "n_bins": self.bins,
            "strategy": "uniform" if self.method == "uniform" else "quantile",
            "confidence_level": self.confidence,
            "value": self.value,
            "split": self.split,
            "score_range": self.score_range,
            "random_state": self.seed,
        }
        if not self.weighted:
            return BinningCalibrator(**parameters, interval=self.interval or "clopper-pearson").fit(data)
        interval = self.interval or "empirical-bernstein"
        calibrator = ShiftCalibrator(**parameters, interval=interval, weight_bound=self.weight_bound)
        if interval != "betting":
            return calibrator.fit(data)
        rows = in_memory(data)
        return calibrator.fit(rows.scores, rows.labels, importance_weight=rows.weights, segments=rows.segments)
