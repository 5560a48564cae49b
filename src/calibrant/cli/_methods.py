"""The methods of `fit`: the calibrator and the parameters of each."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.cli._errors import RefusedError
from calibrant.cli._signature import Declared
from calibrant.cli._words import in_options
from calibrant.text.sentences import Setting

if TYPE_CHECKING:
    from calibrant.sample.rows import Rows


BINS = Declared("calibrators.regions.parameters", "BinParameters")
VALUE = Declared("calibrators.regions.parameters", "ValueParameters")
WORK = Declared("calibrators.regions.parameters", "LabelParameters")
STATED = Declared("calibrators.regions.parameters", "Stated")
"""What every calibrator with regions takes, and what its `fit` is told about the data."""


class _Method(NamedTuple):
    """A calibrator by name, its fixed parameters, and what the method does not offer.

    The settings of a method are the parameters of its calibrator; whether it takes segments, groups
    and weights is in the signature of `fit`. Both are read from there, and written nowhere else.
    """

    calibrator: str
    fixed: Mapping[str, Any] = {}
    without: tuple[str, ...] = ()


_OF_GROUPS = ("max_group_size", "group_target")
_BY_SHIFT = ("target_prior", "sampling_rates")
_STATED = (
    *_OF_GROUPS,
    *_BY_SHIFT,
    "score_range",
    "weight_bound",
)  # about the data, and passed to fit
_OF_SEGMENTS = ("min_rows", "keep_segments")
_SETTINGS = (
    "bins",
    "interval",
    "confidence",
    "seed",
    "pilot",
    "value",
    "score_range",
    *_OF_SEGMENTS,
    *_OF_GROUPS,
)
_METHODS = {
    "anchored": _Method("AnchoredCalibrator", {}, ("score_range",)),
    "binning": _Method("BinningCalibrator", {"partition": "quantile"}, ("score_range",)),
    "uniform": _Method("BinningCalibrator", {"partition": "uniform"}, ("pilot",)),
    "scaling-binning": _Method("ScalingBinningCalibrator"),
    "blend": _Method("BlendCalibrator"),
    "platt": _Method("PlattCalibrator"),
    "temperature": _Method("TemperatureCalibrator"),
    "beta": _Method("BetaCalibrator"),
    "isotonic": _Method("IsotonicCalibrator"),
    "venn-abers": _Method("VennAbersCalibrator"),
}
METHODS = tuple(_METHODS)
_BY_LABEL = ("binning", "uniform")
PARAMETERS = {
    "bins": "n_bins",
    "confidence": "confidence_level",
    "keep_segments": "segment_rule",
    "min_rows": "segment_rule",
    "seed": "random_state",
}
"""The parameter of a setting, if it has another name."""


def _kind(method: str) -> Any:
    """The class of a method's calibrator."""
    from calibrant import calibrators

    return getattr(calibrators, _METHODS[method].calibrator)


def settings_taken(method: str) -> tuple[str, ...]:
    """The settings that are parameters of a method's calibrator, or arguments of its fit."""
    kind = _kind(method)
    known = {field.name for field in fields(kind)} | set(signature(kind.fit).parameters)
    without = _METHODS[method].without
    return tuple(
        name for name in _SETTINGS if PARAMETERS.get(name, name) in known and name not in without
    )


def methods_with(column: str) -> tuple[str, ...]:
    """The methods whose calibrator can be fitted with this column: "segments", "groups" or
    "importance_weight".
    """
    found = []
    for method, (_, _, without) in _METHODS.items():
        if column in signature(_kind(method).fit).parameters and column not in without:
            found.append(method)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a calibrator is made. Saved with the model, for readers and for the seed."""

    method: str = "anchored"
    bins: int | str = BINS.default("n_bins")
    confidence: float = BINS.default("confidence_level")
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
    seed: int = WORK.default("random_state")
    skip_missing: bool = False
    holdout: str | None = None
    time: str | None = None
    calibration_size: float | None = None

    def saved(self) -> dict[str, Any]:
        """As plain JSON values, with the current rule for drawing rows."""
        from calibrant.params.random import DRAW_RULE

        return {**asdict(self), "draw": DRAW_RULE}

    def check(self, segment: str | None = None, group: str | None = None) -> None:
        """Reject options that the method does not have, rather than ignore them."""
        self._check_options()
        self._check_method(segment, group)
        self._check_together(group)
        self._check_needed(segment, group)

    def _check_options(self) -> None:
        """Reject settings of other methods."""
        default = Settings()
        taken = (
            *settings_taken(self.method),
            "seed",
        )  # a seed has no effect if nothing is drawn
        for name in sorted(set(_SETTINGS).difference(taken)):
            if getattr(self, name) != getattr(default, name):
                option = in_options(
                    Setting(name if name in _OF_SEGMENTS else PARAMETERS.get(name, name))
                )
                rule = f"be left out with --method {self.method}, which has no such option"
                raise RefusedError(option, rule)

    def _check_method(self, segment: str | None, group: str | None) -> None:
        """Reject segments, groups, weights or sampling by label if the method does not support
        them.
        """
        uses = []
        if segment is not None:
            uses.append(("--segment", methods_with("segments")))
        if group is not None:
            uses.append(("--group", methods_with("groups")))
        if self.weighted:
            uses.append(("--weight", methods_with("importance_weight")))
        if self.by_label:
            uses.append((self._by_label_option, _BY_LABEL))
        for option, methods in uses:
            if self.method not in methods:
                *most, last = methods
                rule = f"be used with --method {', '.join(most)} or {last}"
                raise RefusedError(option, rule, got=f"--method {self.method}")

    def _check_together(self, group: str | None) -> None:
        """Reject options that exclude each other."""
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
            rule = "be left out with --weight, for which limits always come from bets"
            raise RefusedError("--interval", rule)

    def _check_needed(self, segment: str | None, group: str | None) -> None:
        """Reject options without the option they depend on."""
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
            (
                "--calibration-size",
                self.calibration_size is not None,
                held_out,
                "--holdout last",
            ),
        )
        for option, given, possible, other in needed:
            if given and not possible:
                raise RefusedError(option, f"be used with {other}")

    @property
    def _by_label_option(self) -> str:
        return "--prior" if self.sampling_rates is None else "--sampling-rates"

    @property
    def by_label(self) -> bool:
        """Whether rows were sampled by their label, which the calibrator corrects."""
        return self.target_prior is not None or self.sampling_rates is not None

    def _takes(self) -> tuple[str, ...]:
        """The settings that the calibrator, or its fit, takes."""
        takes = settings_taken(self.method)
        if self.weighted and takes:  # a curve without a guarantee needs no bound
            takes = (*(part for part in takes if part != "interval"), "weight_bound")
        if self.by_label:
            takes = (
                *(part for part in takes if part not in _OF_GROUPS),
                *_BY_SHIFT,
            )
        return takes

    def calibrator(self, pos_label: Any = None) -> Any:
        """The calibrator, not yet fitted."""
        import calibrant

        fixed = _METHODS[self.method].fixed
        given = [
            (PARAMETERS.get(part, part), getattr(self, part))
            for part in self._takes()
            if part not in _STATED
        ]
        chosen = {
            parameter: None if value == "none" else value
            for parameter, value in given
            if value is not None
        }
        kind = calibrant.LabelShiftCalibrator if self.by_label else _kind(self.method)
        return kind(**{**fixed, **chosen, "pos_label": pos_label})

    def stated(self) -> dict[str, Any]:
        """What `fit` is told about the data."""
        given = {part: getattr(self, part) for part in self._takes() if part in _STATED}
        return {part: value for part, value in given.items() if value is not None}

    def fit(self, data: "Rows", labels: Mapping[str, Any]) -> Any:
        """A calibrator fitted to the data."""
        from calibrant.calibrators.regions.weakness import reported_by_caller

        calibrator = self.calibrator(labels.get("pos_label"))
        with reported_by_caller():
            return calibrator.fit(data, classes=labels.get("classes"), **self.stated())
