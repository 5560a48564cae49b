"""Show any result on a terminal or as JSON, whatever the command."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.cli._output import is_quiet, note, paragraph, say, table
from calibrant.cli._words import in_options
from calibrant.text.result import ROWS_SHOWN, Result, assumed_lines, is_shown
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
    """Show the short answer, the result's sentence and explanation, its tables, assumptions and
    notes.

    `notes` are additional notes.

    `sentence` replaces the result's own, for example by the answer to a question about the result,
    and `short` replaces its plain words. `brief` omits the plain words, tables and assumptions, for
    a result that is not the answer itself. --quiet omits the plain words, and the result's own
    notes unless they belong to the answer (`always`).
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
        show_tables(result)
        assumed = result.assumptions
        if assumed and not is_quiet():
            for line in assumed_lines("Assumed:", [render(text, words) for text in assumed]):
                paragraph(line)
    own = result.notes if always or not is_quiet() else ()
    for text in (*own, *notes):
        note(render(text, words))


def show_tables(result: Result) -> None:
    """Show the tables of a result that are for people."""
    shown = [one for one in result.tables() if is_shown(one)]
    for one in shown:
        say()
        table(*one.text(most=ROWS_SHOWN))
        if one.about:
            paragraph(one.about)
    if shown:
        say()


def result_json(result: Result, words: PlainText = in_options) -> dict[str, Any]:
    """What `--json` prints for a result: `to_dict`, with parameters written as options."""
    found: dict[str, Any] = rendered(result.to_dict(), words)
    return found


def show_guarantee(calibrator: "ScoreCalibrator", **how: Any) -> None:
    """Show a calibrator's guarantee; `how` as for `show`."""
    show(calibrator.guarantee_, words=_words_for(calibrator), always=True, **how)


def guarantee_json(calibrator: "ScoreCalibrator") -> dict[str, Any]:
    """A calibrator's guarantee as plain values."""
    return result_json(calibrator.guarantee_, _words_for(calibrator))


def _words_for(calibrator: "ScoreCalibrator") -> PlainText:
    """How settings are written in texts about a calibrator."""

    def for_other_method(setting: Setting) -> str:
        """Write settings for the binning method: this method's own pilot rows fit the curve and cut
        no bin, so advice on pilot rows is about binning.
        """
        return f"{'--method binning ' if setting.parameter == 'pilot' else ''}{in_options(setting)}"

    return in_options if getattr(calibrator, "bins_of_score", True) else for_other_method
