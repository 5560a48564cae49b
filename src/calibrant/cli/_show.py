"""Any result on a terminal, and as JSON: one function for each, whatever the command."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.cli._output import is_quiet, note, paragraph, say, table
from calibrant.cli._words import in_options
from calibrant.text.result import ROWS_SHOWN, Result, is_shown
from calibrant.text.sentences import PlainText, Setting, render, rendered

if TYPE_CHECKING:
    from calibrant.calibrators.score_calibrator import ScoreCalibrator


def show(
    result: Result,
    *,
    words: PlainText = in_options,
    sentence: str | None = None,
    short: str | None = None,
    notes: Sequence[str] = (),
    brief: bool = False,
    always: bool = False,
    bold: bool = True,
) -> None:
    """The answer in short, its sentence and explanation, the tables, the assumptions and the notes.

    `notes` are further ones.

    `sentence` stands in place of the result's own, such as the answer to a question that was asked
    of the result, and `short` in place of the plain words for it. `brief` leaves the plain words,
    tables and assumptions out, for a result that is not the answer itself. With --quiet the plain
    words are left out, and the result's own notes, unless they belong to the answer, `always`.
    """
    from calibrant.draw.report.in_short import in_short

    said = render(result.sentence if sentence is None else sentence, words)
    plainly = in_short(result) if short is None else short
    if brief or is_quiet() or plainly is None:
        paragraph(said, bold=bold)
    else:
        paragraph(plainly, bold=bold)
        say()
        paragraph(said)
    if result.explanation:
        paragraph(render(result.explanation, words))
    if not brief:
        _show_tables(result)
        if result.assumptions and not is_quiet():
            paragraph(
                "Assumed: " + "; ".join(render(text, words) for text in result.assumptions) + "."
            )
    own = result.notes if always or not is_quiet() else ()
    for text in (*own, *notes):
        note(render(text, words))


def _show_tables(result: Result) -> None:
    shown = [one for one in result.tables() if is_shown(one)]
    for one in shown:
        say()
        table(*one.text(most=ROWS_SHOWN))
        if one.about:
            paragraph(one.about)
    if shown:
        say()


def result_json(result: Result, words: PlainText = in_options) -> dict[str, Any]:
    """What `--json` prints of a result: `to_dict`, with parameters written as options."""
    found: dict[str, Any] = rendered(result.to_dict(), words)
    return found


def show_guarantee(calibrator: "ScoreCalibrator", **how: Any) -> None:
    """What is guaranteed of a calibrator; `how` as for `show`."""
    show(calibrator.guarantee_, words=_words_for(calibrator), always=True, **how)


def guarantee_json(calibrator: "ScoreCalibrator") -> dict[str, Any]:
    """What is guaranteed of a calibrator, as plain values."""
    return result_json(calibrator.guarantee_, _words_for(calibrator))


def _words_for(calibrator: "ScoreCalibrator") -> PlainText:
    """How settings are written in what is said of a calibrator."""

    def for_other_method(setting: Setting) -> str:
        """Its own pilot rows fit the curve and cut no bin, so that pilot rows are advice for the
        other method.
        """
        return f"{'--method binning ' if setting.parameter == 'pilot' else ''}{in_options(setting)}"

    return in_options if getattr(calibrator, "bins_of_score", True) else for_other_method
