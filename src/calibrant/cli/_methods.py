"""The methods of `fit`: the calibrator and the parameters of each."""

from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, fields
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.cli._errors import RefusedError
from calibrant.cli._options import BOUNDS, check_needed, default
from calibrant.cli._words import in_options
from calibrant.text.sentences import Setting

if TYPE_CHECKING:
    from calibrant.sample.rows import Rows


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
_STATED = (*_OF_GROUPS, *_BY_SHIFT, "score_range", "weight_bound")  # arguments of fit
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
    "curve": _Method("Calibrator", {}, ("score_range",)),
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
_COLUMNS = {"segment": "segments", "group": "groups", "weight": "importance_weight"}
"""The argument of `fit` for a column."""
_NEEDS = {
    "min_rows": "segment",
    "keep_segment": "segment",
    "interval betting": "weight",
    **BOUNDS,
    "group_target": "group",
    "time": "holdout",
    "calibration_size": "holdout",
}
"""The option that another one needs."""
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
    return tuple(method for method in METHODS if column in signature(_kind(method).fit).parameters)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a calibrator is made. Saved with the model, for readers and for the seed."""

    method: str = "curve"
    bins: int | str = default("fit", "n_bins")
    confidence: float = default("fit", "confidence_level")
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
    seed: int = default("fit", "random_state")
    skip_missing: bool = False
    holdout: str | None = None
    time: str | None = None
    calibration_size: float | None = None

    def check(self, segment: str | None = None, group: str | None = None) -> None:
        """Reject options that the method does not have, rather than ignore them."""
        columns = {"segment": segment, "group": group, "weight": self.weighted or None}
        self._check_options()
        self._check_method({name for name, given in columns.items() if given is not None})
        self._check_together(group)
        given = {**asdict(self), "keep_segment": self.keep_segments}
        given["interval betting"] = True if self.interval == "betting" else None
        check_needed({**given, **columns}, _NEEDS)

    def _check_options(self) -> None:
        """Reject settings of other methods."""
        usual = Settings()
        # a seed has no effect if nothing is drawn
        for name in sorted(set(_SETTINGS).difference(settings_taken(self.method), {"seed"})):
            if getattr(self, name) != getattr(usual, name):
                parameter = name if name in _OF_SEGMENTS else PARAMETERS.get(name, name)
                rule = f"be left out with --method {self.method}, which has no such option"
                raise RefusedError(in_options(Setting(parameter)), rule)

    def _check_method(self, columns: Set[str]) -> None:
        """Reject segments, groups, weights or sampling by label if the method does not support
        them.
        """
        uses = {
            f"--{column}": methods_with(argument)
            for column, argument in _COLUMNS.items()
            if column in columns
        }
        if self.by_label:
            uses[self._by_label_option] = _BY_LABEL
        for option, methods in uses.items():
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
            takes = (*(part for part in takes if part not in _OF_GROUPS), *_BY_SHIFT)
        return takes

    def calibrator(self, pos_label: Any = None) -> Any:
        """The calibrator, not yet fitted."""
        import calibrant

        fixed = _METHODS[self.method].fixed
        chosen = {
            PARAMETERS.get(part, part): None if value == "none" else value
            for part in self._takes()
            if part not in _STATED and (value := getattr(self, part)) is not None
        }
        kind = calibrant.LabelShiftCalibrator if self.by_label else _kind(self.method)
        return kind(**{**fixed, **chosen, "pos_label": pos_label})

    def stated(self) -> dict[str, Any]:
        """What `fit` is given about the data."""
        return {
            part: value
            for part in self._takes()
            if part in _STATED and (value := getattr(self, part)) is not None
        }

    def fit(self, data: "Rows", labels: Mapping[str, Any]) -> Any:
        """A calibrator fitted to the data."""
        from calibrant.calibrators.regions.weakness import reported_by_caller

        calibrator = self.calibrator(labels.get("pos_label"))
        with reported_by_caller():
            return calibrator.fit(data, classes=labels.get("classes"), **self.stated())
