"""The report: one HTML file with what is known about a score and its calibration, and what cannot
be known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from calibrant._file import write_file
from calibrant.assess.audit.result import Audit
from calibrant.assess.validation.result import Validation
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.draw.report.html import filled_template
from calibrant.draw.report.page import Extras, Inputs, MostShown
from calibrant.draw.report.pages import result_page
from calibrant.draw.style import SCALES
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.rules import Choice, check_type
from calibrant.text.result import Result
from calibrant.text.sentences import PlainText, in_python

_MOST_BYTES = 1_000_000
_NOTHING = Extras()
# Tried in turn until the file is small enough; the first almost always is.
_SIZES = (
    MostShown(marks=1000, table_rows=1000, segments=1000, small_figures=12),
    MostShown(marks=1000, table_rows=600, segments=1000, small_figures=12),
    MostShown(marks=500, table_rows=300, segments=1000, small_figures=12),
    MostShown(marks=250, table_rows=150, segments=1000, small_figures=12),
    MostShown(marks=150, table_rows=100, segments=400, small_figures=8),
    MostShown(marks=60, table_rows=60, segments=100, small_figures=4),
)


@dataclass(frozen=True, eq=False, repr=False)
class Report(Inputs):
    """A report on any result: a single HTML page that loads nothing from elsewhere.

    Every report has the same parts: the sentence and its status, a sentence to copy, key numbers, a
    table of contents, figures, tables that can be downloaded as CSV, assumptions, what to do next,
    and how the report was made. An audit report also shows what cannot be known.

    Every number comes from the result or from the calibrator's `guarantee_`; nothing is computed
    here. Lower limits are rounded down and upper limits up, so every statement stays true. The same
    results always give the same page. It is smaller than a megabyte unless names are very long: if
    there are very many regions or segments, it shows the ones with the largest errors and says how
    many it leaves out.

    Parameters
    ----------
    result : Result
        The result of `audit`, `threshold`, `rate`, `check`, `compare_models`, `plan` or another
        function of calibrant, or the `guarantee_` of a calibrator.
    calibrator : fitted calibrator or classifier, default=None
        A calibrator whose guarantee is shown beside an audit, and drawn with decisions. None makes
        a report on the result alone.
    title : str, default=None
        Title of the page.
    source : mapping, default=None
        Facts about the data, shown as they are: file names, columns, fingerprint, date.
    command : str, default=None
        The command or the call that made the result, shown so that it can be copied.
    histogram : Tally, default=None
        Counts of the scores of an audit over `Partition.fixed_width(k)`. None draws the regions of
        the audit as densities.
    audit_after : Audit, default=None
        Audit of the calibrated scores, on rows that the calibrator was not fitted on.
    validation : Validation, default=None
        The validation table, from `calibrant.validation_table`, next to an audit.
    period : str, default=None
        What the segments of the audit are, such as "month", if they are periods of time: then they
        are shown in order.
    scale : {"linear", "logit"}, default="linear"
        The scale of the axes of the reliability diagrams, as in `ReliabilityDisplay.plot`. "logit"
        is for rare events.
    warnings : sequence of str, default=()
        Warnings to show first, above the verdict, such as the signs that `check` found.

    Attributes
    ----------
    html : str
        The page. It is made once.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, Report, audit, threshold
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=4_000)
    >>> y = rng.uniform(size=4_000) < scores**2
    >>> report = Report(audit(y, scores), BinningCalibrator(10).fit(scores, y), title="Late flights")
    >>> "Scores are too high" in report.html
    True
    >>> "What to do next" in Report(threshold(y, scores, precision=0.8)).html
    True
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = report.write(f"{folder}/report.html")
    ...     path.name, path.stat().st_size < 100_000
    ('report.html', True)
    """

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def html(self) -> str:
        """The text of the page."""
        return html_of(self)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write the page to a file, completely or not at all, and return its path.

        Parameters
        ----------
        path : path
            Where to write the HTML file.
        overwrite : bool, default=True
            Whether an existing file is replaced. False raises an error instead.

        Returns
        -------
        Path
        """
        write_file(self.html.encode(), path, overwrite=overwrite)
        return Path(path)


def html_of(inputs: Inputs, extras: Extras = _NOTHING, words: PlainText = in_python) -> str:
    """The text of a report that is small enough; `words` is how settings are written in it."""
    html = ""
    for sizes in _SIZES:
        page = result_page(inputs, sizes, extras)
        html = filled_template("report.html.jinja", page=page, words=words)
        if len(html.encode()) < _MOST_BYTES:
            break
    return html


_KINDS: dict[str, tuple[Any, str]] = {
    "audit_after": (Audit, "be an Audit, from calibrant.audit, or None"),
    "title": (str, "be text, or None"),
    "period": (str, "be text, such as 'month', or None"),
    "source": (Mapping, "be a mapping from names to facts, or None"),
    "command": (str, "be text, or None"),
    "histogram": (Tally, "be a Tally, or None"),
    "validation": (Validation, "be a Validation, from calibrant.validation_table, or None"),
    "warnings": (list | tuple, "be a list of texts"),
}


def _check(inputs: Inputs) -> None:
    for name, (kind, rule) in _KINDS.items():
        value = getattr(inputs, name)
        if value is not None and not isinstance(value, kind):
            raise InvalidTypeError(name, rule, got=type(value).__name__)
    Choice(SCALES).check("scale", inputs.scale)
    calibrator = inputs.calibrator
    histogram = inputs.histogram
    check_type("result", inputs.result, Result, "a Result, such as an Audit from calibrant.audit")
    if calibrator is not None:
        if hasattr(calibrator, "get_params"):
            check_is_fitted(calibrator)
        if not hasattr(getattr(calibrator, "guarantee_", None), "of_rows"):
            rule = "be a fitted calibrator with a guarantee_, or None"
            raise InvalidTypeError("calibrator", rule, got=type(calibrator).__name__)
    if histogram is not None and histogram.partition not in (
        None,
        Partition.fixed_width(histogram.n_regions).fingerprint,
    ):
        rule = f"be a Tally over Partition.fixed_width({histogram.n_regions})"
        raise InvalidValueError("histogram", rule, got="one over other regions")
