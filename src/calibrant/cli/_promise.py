"""A guarantee as text and as JSON."""

import math
from typing import TYPE_CHECKING, Any

from calibrant.cli._output import note, paragraph, say, table
from calibrant.cli._words import in_options
from calibrant.text.numbers import factor_limits, limits, nearest, upper
from calibrant.text.result import shortened
from calibrant.text.sentences import PlainText, Setting, render

if TYPE_CHECKING:
    from calibrant.calibrators.score_calibrator import ScoreCalibrator

_OFF = (
    "Off by at most: how far the average prediction of new rows can be from the true rate. New rows may lie elsewhere "
    "in a region than these, so it can be more than the limits show."
)


def promise_json(calibrator: "ScoreCalibrator") -> dict[str, Any]:
    """What is guaranteed, as plain values; documented on the page of the command line."""
    return calibrator.guarantee_.to_dict(_words_for(calibrator))


def show_sentence(calibrator: "ScoreCalibrator", *, bold: bool = True) -> None:
    """The sentence, the details and the remarks."""
    guarantee, words = calibrator.guarantee_, _words_for(calibrator)
    paragraph(guarantee.sentence(words), bold=bold and guarantee.is_proved)
    paragraph(render(guarantee.explanation, words))
    for text in guarantee.remarks:
        note(render(text, words))


def show_promise(calibrator: "ScoreCalibrator", notes: tuple[str, ...] = ()) -> None:
    """The sentence, the remarks, the notes and the regions."""
    show_sentence(calibrator)
    for text in notes:
        note(text)
    regions = promise_json(calibrator)["regions"]
    if not regions:
        return
    averaged = calibrator.guarantee_.predictions_vary
    columns: dict[str, list[str]] = {
        "region": [one["region"] for one in regions],
        "rows": [f"{one['rows']:,}" for one in regions],
        "positive": [f"{one['positives']:,}" for one in regions],
        "average prediction" if averaged else "calibrated": [nearest(one["calibrated"]) for one in regions],
        "true rate lies in": [limits(one["lower"], one["upper"]) for one in regions],
    }
    if averaged:
        columns["off by at most"] = [upper(one["epsilon"]) for one in regions]
    if calibrator.guarantee_.is_rare:
        columns["rate / prediction"] = [_factors(one) for one in regions]
    say()
    table(list(columns), shortened([*zip(*columns.values(), strict=True)]))
    if averaged:
        say()
        paragraph(_OFF)


def _factors(region: dict[str, Any]) -> str:
    """Limits on how many times the prediction the rate of a region is."""
    most = region["relative_upper"]
    return factor_limits(region["relative_lower"], math.inf if most is None else most)


def _words_for(calibrator: "ScoreCalibrator") -> PlainText:
    """How settings are written in what is said of a calibrator."""
    from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator

    def for_other_method(setting: Setting) -> str:
        """Its own pilot rows fit the curve and cut no bin, so that pilot rows are advice for the other method."""
        return f"{'--method binning ' if setting.parameter == 'pilot' else ''}{in_options(setting)}"

    return for_other_method if isinstance(calibrator, ScalingBinningCalibrator) else in_options
