"""The methods of `fit`: the calibrator and the parameters of each."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.cli._errors import RefusedError
from calibrant.cli._words import in_options
from calibrant.text.sentences import Setting

if TYPE_CHECKING:
    from calibrant.sample.scored_data import ScoredData


class _Method(NamedTuple):
    """A calibrator by name, parameters that are fixed, and the settings that it takes."""

    calibrator: str
    fixed: Mapping[str, Any] = {}
    takes: tuple[str, ...] = ()


_OF_GROUPS = ("max_group_size", "group_target")
_OF_SEGMENTS = ("min_rows", "keep_segments")
_OF_BINS = ("bins", "interval", "confidence", "seed")
_METHODS = {
    "anchored": _Method("AnchoredCalibrator", {}, (*_OF_BINS, "split", *_OF_SEGMENTS, *_OF_GROUPS)),
    "binning": _Method(
        "BinningCalibrator", {"strategy": "quantile"}, (*_OF_BINS, "split", "value", *_OF_SEGMENTS, *_OF_GROUPS)
    ),
    "uniform": _Method(
        "BinningCalibrator", {"strategy": "uniform"}, (*_OF_BINS, "value", "score_range", *_OF_SEGMENTS, *_OF_GROUPS)
    ),
    "scaling-binning": _Method("ScalingBinningCalibrator", {}, (*_OF_BINS, "split", "value", *_OF_GROUPS)),
    "platt": _Method("PlattCalibrator"),
    "temperature": _Method("TemperatureCalibrator"),
    "beta": _Method("BetaCalibrator"),
    "isotonic": _Method("IsotonicCalibrator"),
    "venn-abers": _Method("VennAbersCalibrator"),
}
METHODS = tuple(_METHODS)
_IN_SEGMENTS = ("anchored", "binning", "uniform")
_GROUPED = (*_IN_SEGMENTS, "scaling-binning", "venn-abers")
_WEIGHTED = (*_IN_SEGMENTS, "scaling-binning", "platt", "temperature", "beta", "isotonic")
_BY_LABEL = ("binning", "uniform")
_PARAMETERS = {"bins": "n_bins", "confidence": "confidence_level", "seed": "random_state"}  # others have one name


@dataclass(frozen=True, slots=True)
class Settings:
    """How a calibrator is made. Saved with the model, for readers and for the seed."""

    method: str = "anchored"
    bins: int | str = "auto"
    confidence: float = 0.9
    interval: str | None = None
    split: float | str | None = None
    value: str | None = None
    score_range: tuple[float, float] | None = None
    min_rows: int | str | None = None
    keep_segments: tuple[Any, ...] | None = None
    weight_bound: float | None = None
    weighted: bool = False
    target_prior: float | None = None
    sampling_rates: tuple[float, float] | None = None
    max_group_size: int | None = None
    group_target: str | None = None
    seed: int = 0
    skip_missing: bool = False
    holdout: str | None = None
    time: str | None = None
    calibration_size: float | None = None

    def saved(self) -> dict[str, Any]:
        """As plain JSON values, with the rule by which rows are drawn now."""
        from calibrant.sample.draw import DRAW_RULE

        return {**asdict(self), "draw": DRAW_RULE}

    def check(self, segment: str | None = None, group: str | None = None) -> None:
        """Refuse options that the method does not have, rather than ignore them."""
        default, takes = Settings(), _METHODS[self.method].takes
        every = {name for method in _METHODS.values() for name in method.takes} - {"seed"}  # it decides nothing then
        for name in sorted(every - {*takes}):
            if getattr(self, name) != getattr(default, name):
                option = in_options(Setting(_PARAMETERS.get(name, name)))
                raise RefusedError(option, f"be left out with --method {self.method}, which has no such option")
        by_label = "--prior" if self.sampling_rates is None else "--sampling-rates"
        uses = (
            ("--segment", segment is not None, _IN_SEGMENTS),
            ("--group", group is not None, _GROUPED),
            ("--weight", self.weighted, _WEIGHTED),
            (by_label, self.by_label, _BY_LABEL),
        )
        for option, given, methods in uses:
            if given and self.method not in methods:
                *most, last = methods
                rule = f"go with --method {', '.join(most)} or {last}"
                raise RefusedError(option, rule, got=f"--method {self.method}")
        if self.by_label and self.weighted:
            raise RefusedError(by_label, "be left out with --weight", advice="multiply the weights instead")
        if group is not None and self.sampling_rates is not None:
            advice = "use --weight, one over the share of each row's class that was kept"
            raise RefusedError("--group", f"be left out with {by_label}", advice=advice)
        if self.by_label and (self.max_group_size is not None or self.group_target is not None):
            option = "--group-target" if self.max_group_size is None else "--max-group-size"
            raise RefusedError(option, f"be left out with {by_label}, for which one row of each group is drawn")
        if self.weighted and self.interval not in (None, "betting"):
            raise RefusedError("--interval", "be left out with --weight, whose interval is that of betting")
        segments = "--segment, the column of segments"
        needed = (
            ("--min-rows", self.min_rows is not None, segment is not None, segments),
            ("--keep-segment", self.keep_segments is not None, segment is not None, segments),
            ("--weight-bound", self.weight_bound is not None, self.weighted, "--weight, the column of weights"),
            ("--interval betting", self.interval == "betting", self.weighted, "--weight, the column of weights"),
            ("--max-group-size", self.max_group_size is not None, group is not None, "--group, the column of groups"),
            ("--group-target", self.group_target is not None, group is not None, "--group, the column of groups"),
            ("--time", self.time is not None, self.holdout is not None, "--holdout last"),
            ("--calibration-size", self.calibration_size is not None, self.holdout is not None, "--holdout last"),
        )
        for option, given, possible, other in needed:
            if given and not possible:
                raise RefusedError(option, f"go with {other}")

    @property
    def by_label(self) -> bool:
        """Whether rows were sampled by their label, which the calibrator undoes."""
        return self.target_prior is not None or self.sampling_rates is not None

    def calibrator(self, labels: Mapping[str, Any] | None = None) -> Any:
        """The calibrator, not yet fitted."""
        import calibrant

        name, fixed, takes = _METHODS[self.method]
        if self.weighted and takes:  # a curve without a guarantee needs no bound
            takes = (*(part for part in takes if part != "interval"), "weight_bound")
        if self.by_label:
            name = "LabelShiftCalibrator"
            takes = (*(part for part in takes if part not in _OF_GROUPS), "target_prior", "sampling_rates")
        given = {_PARAMETERS.get(part, part): getattr(self, part) for part in takes}
        chosen = {parameter: value for parameter, value in given.items() if value is not None}
        chosen = {parameter: None if value == "none" else value for parameter, value in chosen.items()}
        return getattr(calibrant, name)(**{**fixed, **chosen, **(labels or {})})

    def fit(self, data: "ScoredData", labels: Mapping[str, Any]) -> Any:
        """A calibrator fitted to the data."""
        return self.calibrator(labels).fit(data)
