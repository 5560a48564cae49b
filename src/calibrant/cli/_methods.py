"""The methods of `fit`: the calibrator and the parameters of each."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.cli._errors import RefusedError
from calibrant.cli._words import in_options
from calibrant.text.sentences import Setting

if TYPE_CHECKING:
    from calibrant.sample.sample import Sample


class _Method(NamedTuple):
    """A calibrator by name, parameters that are fixed, and the settings that it takes."""

    calibrator: str
    fixed: Mapping[str, Any] = {}
    takes: tuple[str, ...] = ()


_OF_GROUPS = ("max_group_size", "group_target")
_OF_SEGMENTS = ("min_rows", "keep_segments")
_OF_BINS = ("bins", "interval", "confidence", "seed")
_METHODS = {
    "anchored": _Method("AnchoredCalibrator", {}, (*_OF_BINS, "pilot", *_OF_SEGMENTS, *_OF_GROUPS)),
    "binning": _Method(
        "BinningCalibrator", {"partition": "quantile"}, (*_OF_BINS, "pilot", "value", *_OF_SEGMENTS, *_OF_GROUPS)
    ),
    "uniform": _Method(
        "BinningCalibrator", {"partition": "uniform"}, (*_OF_BINS, "value", "score_range", *_OF_SEGMENTS, *_OF_GROUPS)
    ),
    "scaling-binning": _Method("ScalingBinningCalibrator", {}, (*_OF_BINS, "pilot", "value", *_OF_GROUPS)),
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
PARAMETERS = {
    "bins": "n_bins",
    "confidence": "confidence_level",
    "keep_segments": "segment_rule",
    "min_rows": "segment_rule",
    "seed": "random_state",
}
"""The parameter that a setting is, where it has another name."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a calibrator is made. Saved with the model, for readers and for the seed."""

    method: str = "anchored"
    bins: int | str = "auto"
    confidence: float = 0.9
    interval: str | None = None
    pilot: float | str | None = None
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
        self._check_options()
        self._check_method(segment, group)
        self._check_together(group)
        self._check_needed(segment, group)

    def _check_options(self) -> None:
        """Refuse settings of other methods."""
        default = Settings()
        every = {name for method in _METHODS.values() for name in method.takes}
        every.remove("seed")  # it decides nothing where nothing is drawn
        for name in sorted(every.difference(_METHODS[self.method].takes)):
            if getattr(self, name) != getattr(default, name):
                option = in_options(Setting(name if name in _OF_SEGMENTS else PARAMETERS.get(name, name)))
                rule = f"be left out with --method {self.method}, which has no such option"
                raise RefusedError(option, rule)

    def _check_method(self, segment: str | None, group: str | None) -> None:
        """Refuse segments, groups, weights or sampling by label that the method cannot take."""
        uses = (
            ("--segment", segment is not None, _IN_SEGMENTS),
            ("--group", group is not None, _GROUPED),
            ("--weight", self.weighted, _WEIGHTED),
            (self._by_label_option, self.by_label, _BY_LABEL),
        )
        for option, given, methods in uses:
            if given and self.method not in methods:
                *most, last = methods
                rule = f"go with --method {', '.join(most)} or {last}"
                raise RefusedError(option, rule, got=f"--method {self.method}")

    def _check_together(self, group: str | None) -> None:
        """Refuse options that exclude each other."""
        by_label = self._by_label_option
        if self.by_label and self.weighted:
            advice = "multiply the weights instead"
            raise RefusedError(by_label, "be left out with --weight", advice=advice)
        if group is not None and self.sampling_rates is not None:
            advice = "use --weight, one over the share of each row's class that was kept"
            raise RefusedError("--group", f"be left out with {by_label}", advice=advice)
        if self.by_label and (self.max_group_size is not None or self.group_target is not None):
            option = "--group-target" if self.max_group_size is None else "--max-group-size"
            rule = f"be left out with {by_label}, for which one row of each group is drawn"
            raise RefusedError(option, rule)
        if self.weighted and self.interval not in (None, "betting"):
            rule = "be left out with --weight, whose interval is that of betting"
            raise RefusedError("--interval", rule)

    def _check_needed(self, segment: str | None, group: str | None) -> None:
        """Refuse options without the one that they belong to."""
        segmented = segment is not None
        grouped = group is not None
        held_out = self.holdout is not None
        segments = "--segment, the column of segments"
        weights = "--weight, the column of weights"
        groups = "--group, the column of groups"
        needed = (
            ("--min-rows", self.min_rows is not None, segmented, segments),
            ("--keep-segment", self.keep_segments is not None, segmented, segments),
            ("--weight-bound", self.weight_bound is not None, self.weighted, weights),
            ("--interval betting", self.interval == "betting", self.weighted, weights),
            ("--max-group-size", self.max_group_size is not None, grouped, groups),
            ("--group-target", self.group_target is not None, grouped, groups),
            ("--time", self.time is not None, held_out, "--holdout last"),
            ("--calibration-size", self.calibration_size is not None, held_out, "--holdout last"),
        )
        for option, given, possible, other in needed:
            if given and not possible:
                raise RefusedError(option, f"go with {other}")

    @property
    def _by_label_option(self) -> str:
        return "--prior" if self.sampling_rates is None else "--sampling-rates"

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
            takes = (*(part for part in takes if part not in _OF_GROUPS), "target_prior", "sampling_rates")
        given = [(PARAMETERS.get(part, part), getattr(self, part)) for part in takes]
        chosen = {parameter: None if value == "none" else value for parameter, value in given if value is not None}
        kind = calibrant.LabelShiftCalibrator if self.by_label else getattr(calibrant.calibrators, name)
        return kind(**{**fixed, **chosen, **(labels or {})})

    def fit(self, data: "Sample", labels: Mapping[str, Any]) -> Any:
        """A calibrator fitted to the data."""
        return self.calibrator(labels).fit(data)
