"""`calibrant demo`: check, audit, calibrate, judge and report, on real clients of a bank.

Will a credit-card client default next month?
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.cli import _cards
from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import Files
from calibrant.cli._model import provenance_of
from calibrant.cli._output import is_quiet, paragraph, print_json, remark, saved, say
from calibrant.cli._show import result_json, show
from calibrant.cli.audit import event_facts

if TYPE_CHECKING:
    from calibrant import Audit

_FILES = {
    "report": "report.html",
    "model": "model.json",
    "scores": "clients.csv",
    "unseen": "new-clients.csv",
}


@option.command("demo", "See it work on real clients of a bank, offline.")
def command(output: str, **options: Any) -> None:
    """Train a model of credit-card defaults, check the rows, audit it, calibrate it, and judge it on
    clients that nothing has seen.

    Gradient boosting learns from 9,000 of 30,000 clients. It is calibrated on 12,000 others, and
    judged on the last 9,000. Nothing is downloaded, and no window opens.

    Examples
    --------
    calibrant demo
    calibrant demo -o clients --json
    """
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise RefusedError("--output", "be a folder", got=repr(output))
    if not options["as_json"]:
        say("Which clients will default on their credit card next month? Taiwan, 2005.\n")
    with step("read 30,000 clients"):
        clients = _cards.load_cards()
    with step("train gradient boosting on 9,000 clients, and score the others"):
        calibration, unseen = _cards.scored_cards(clients)
    folder.mkdir(parents=True, exist_ok=True)
    _calibrate(folder, calibration, unseen, options)


def _calibrate(folder: Path, calibration: Any, unseen: Any, options: dict[str, Any]) -> None:
    """Check the rows, audit the scores, calibrate, audit again on new clients, write the files."""
    from calibrant import audit, check

    paths = {name: str(folder / file) for name, file in _FILES.items()}
    positive = _cards.DEFAULT
    with step("check that rows are i.i.d."):
        checked = check(calibration["outcome"], calibration["score"], pos_label=positive)
    with step("audit the model on 9,000 clients that it has not seen"):
        before = audit(unseen["outcome"], unseen["score"], pos_label=positive)
    with step("calibrate on 12,000 other clients"):
        _write_csv(calibration, paths["scores"])
        _write_csv(unseen, paths["unseen"])
        calibrator, fingerprint = _fitted(paths)
    with step("audit the calibrated probabilities on the same 9,000"):
        predicted = calibrator.predict(unseen["score"])
        after = audit(unseen["outcome"], predicted, pos_label=positive)
    with step("write report and picture"):
        _report(paths["report"], calibrator, before, after, unseen, fingerprint)
        picture = _picture(folder, calibrator, unseen)
    losses = _log_losses(calibrator, unseen)
    results = {
        "check": ("Are the rows i.i.d.?", checked),
        "audit_before": ("Before: the model's own probabilities, on 9,000 new clients", before),
        "guarantee": ("After: what is guaranteed", calibrator.guarantee_),
        "audit_after": (
            "Does it hold? The calibrated probabilities, on the same 9,000 new clients",
            after,
        ),
    }
    if options["as_json"]:
        found = {name: result_json(result) for name, (_, result) in results.items()}
        print_json({"command": "demo", **paths, "picture": picture, "log_loss": losses, **found})
        return
    for title, result in results.values():
        say(f"\n{title}\n", bold=True, fg="cyan")
        show(result, options)
    paragraph(
        f"Log loss on these clients: {losses['before']:.4f} before, {losses['after']:.4f} after."
    )
    say()
    saved(paths["report"])
    _show_next(paths, folder)


def _fitted(paths: dict[str, str]) -> tuple[Any, str]:
    """Fit and save, as `calibrant fit` does; return the calibrator and the fingerprint of its rows."""
    from calibrant import Calibrator, Sample, save_model

    source = Files([paths["scores"]], quiet=True)
    data = source.scored({"score": "score", "label": "outcome"})
    calibrator = Calibrator(pos_label=_cards.DEFAULT).fit(Sample(data))
    provenance, _ = provenance_of(source, data, {"random_state": 0})
    columns = data.columns.named
    save_model(calibrator, paths["model"], columns=columns, provenance=provenance, overwrite=True)
    return calibrator, provenance["fingerprint"]


def _log_losses(calibrator: Any, unseen: Any) -> dict[str, float]:
    """The log loss of the model's probabilities, and of the calibrated ones."""
    from calibrant.assess.metrics.proper_scores import log_loss

    scores = {"before": unseen["score"], "after": calibrator.predict(unseen["score"])}
    return {
        name: float(log_loss(unseen["outcome"], each, pos_label=_cards.DEFAULT).value)
        for name, each in scores.items()
    }


def _write_csv(rows: Any, path: str) -> None:
    from calibrant._file import draft_of

    with draft_of(path, overwrite=True) as draft:
        rows.to_csv(draft, index=False)


def _report(
    path: str, calibrator: Any, before: "Audit", after: "Audit", unseen: Any, fingerprint: str
) -> None:
    from calibrant import Partition, Tally
    from calibrant.cli._report import write_report

    is_default = unseen["outcome"] == _cards.DEFAULT
    facts = {
        **event_facts(before, "outcome", _cards.DEFAULT),
        "data": _cards.SOURCE,
        "calibrated on": f"{calibrator.guarantee_.n_rows:,} clients",
        "fingerprint": fingerprint,
    }
    write_report(
        path,
        before,
        facts,
        overwrite=True,
        calibrator=calibrator,
        title="Credit-card defaults",
        histogram=Tally.from_data(Partition.fixed_width(50), unseen["score"], is_default),
        audit_after=after,
    )


def _picture(folder: Path, calibrator: Any, unseen: Any) -> str | None:
    """Draw the model before and after, if matplotlib is installed."""
    from calibrant._file import draft_of

    try:
        figure = _cards.before_and_after(calibrator, unseen)
    except ImportError:
        return None
    path = folder / "before_and_after.png"
    with draft_of(path, overwrite=True) as draft:
        figure.savefig(draft, dpi=110, format="png")
    return str(path)


def _show_next(paths: dict[str, str], folder: Path) -> None:
    """Show commands to continue with."""
    model = paths["model"]
    columns = "--score score --label outcome --pos-label default"
    say("\nNext, with the same scores:")
    say(f"  calibrant audit {paths['unseen']} {columns} --attribute sex --attribute education")
    say(f"  calibrant verify {model} {paths['scores']}")
    say(f"  calibrant apply {model} {paths['unseen']} -o {folder / 'calibrated.csv'}")
    say(f"  calibrant export {model} --to sql --dialect duckdb --table clients")


@contextmanager
def step(text: str) -> Iterator[None]:
    """Show what is being done, and how long it took."""
    start = time.perf_counter()
    if is_quiet() or not sys.stderr.isatty():
        yield
    else:
        from rich.console import Console

        with Console(stderr=True).status(f"{text} ..."):
            yield
    remark(f"{text} ({time.perf_counter() - start:.1f} s)")
