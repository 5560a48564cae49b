"""A guarantee as text and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant._numbers import limits, nearest, upper
from calibrant._text import PlainText, Setting, render
from calibrant.cli._output import note, paragraph, say, shortened, table
from calibrant.cli._words import in_options

if TYPE_CHECKING:
    from calibrant.calibrators.base import ScoreCalibrator

_OFF = (
    "Off by at most: how far the average prediction of new rows can be from the true rate. New rows may lie elsewhere "
    "in a region than these, so it can be more than the limits show."
)


def promise_json(calibrator: "ScoreCalibrator") -> dict[str, Any]:
    """What is guaranteed, as plain values; documented on the page of the command line."""
    return calibrator.guarantee_.to_dict(_words_for(calibrator))


def show_sentence(calibrator: "ScoreCalibrator", *, bold: bool = True) -> None:
    """The sentence and the remarks."""
    guarantee, words = calibrator.guarantee_, _words_for(calibrator)
    paragraph(guarantee.sentence(words), bold=bold and guarantee.is_proved)
    for text in guarantee.remarks:
        note(render(text, words))


def show_promise(calibrator: "ScoreCalibrator", notes: tuple[str, ...] = ()) -> None:
    """The sentence, the remarks, the notes and the regions."""
    show_sentence(calibrator)
    for text in notes:
        note(text)
    rows: list[Sequence[str]] = [
        (
            region["region"],
            f"{region['rows']:,}",
            f"{region['positives']:,}",
            nearest(region["calibrated"]),
            limits(region["lower"], region["upper"]),
            upper(region["epsilon"]),
        )
        for region in promise_json(calibrator)["regions"]
    ]
    if rows:
        from calibrant.guarantee.statement import Claim

        say()
        said = getattr(calibrator.guarantee_, "statement", None)
        averaged = said is not None and said.claim is Claim.AVERAGE
        names = ["region", "rows", "positive", "average prediction" if averaged else "calibrated", "true rate lies in"]
        if averaged:
            names.append("off by at most")
        table(names, shortened([row[: len(names)] for row in rows]))
        if averaged:
            say()
            paragraph(_OFF)


def _words_for(calibrator: "ScoreCalibrator") -> PlainText:
    """How settings are written in what is said of a calibrator."""
    from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator

    def for_other_method(setting: Setting) -> str:
        """Its own split fits the curve and cuts no bin, so that a split is advice for the other method."""
        return f"{'--method binning ' if setting.parameter == 'split' else ''}{in_options(setting)}"

    return for_other_method if isinstance(calibrator, ScalingBinningCalibrator) else in_options
