"""The report: one HTML file that says what is proved of a score, and of its calibration, and what no one can know."""

import base64
import hashlib
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from calibrant._audit import Audit
from calibrant._file import write_file
from calibrant._optional import needed
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, NoGuarantee
from calibrant.partition import Partition
from calibrant.tally import Tally
from calibrant.views.report.content import Inputs, Limits, collect

__all__ = ["render_report", "write_report"]

_MOST_BYTES = 1_000_000
# Tried in turn until the file is small enough; the first fits nearly always.
_LIMITS = (
    Limits(marks=1000, table_rows=1000, segments=1000, small_figures=12),
    Limits(marks=1000, table_rows=600, segments=1000, small_figures=12),
    Limits(marks=500, table_rows=300, segments=1000, small_figures=12),
    Limits(marks=250, table_rows=150, segments=1000, small_figures=12),
    Limits(marks=150, table_rows=100, segments=400, small_figures=8),
    Limits(marks=60, table_rows=60, segments=100, small_figures=4),
)


def render_report(
    audit: Audit,
    calibrator: ScoreCalibrator | None = None,
    *,
    title: str | None = None,
    source: Mapping[str, Any] | None = None,
    histogram: Tally | None = None,
    audit_after: Audit | None = None,
) -> str:
    """Return the report as the text of one HTML page, which needs nothing from outside.

    Every number in it is one of `audit`'s or of the calibrator's `guarantee_`; nothing is computed here. In texts and
    tables lower limits are rounded down and upper limits up, so that what is said stays true; the figures carry the
    exact numbers. The same results give the same text. It has less than a megabyte: of very many regions or segments
    the worst are shown, and it is said how many are left out.

    Parameters
    ----------
    audit : Audit
        From `calibrant.audit`, of the scores as they are.
    calibrator : fitted calibrator of scores, default=None
        Whose promise is shown beside them. None makes a report of the audit alone.
    title : str, default=None
        What the report is about.
    source : mapping, default=None
        Facts about the data, shown as they are: file names, columns, fingerprint, date.
    histogram : Tally, default=None
        Over `Partition.fixed_width(k)`, of the scores. None draws the regions of the audit as densities.
    audit_after : Audit, default=None
        Of the calibrated scores, on other rows than the calibrator was fitted on.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, audit, render_report
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=4_000)
    >>> y = rng.uniform(size=4_000) < scores**2
    >>> page = render_report(audit(y, scores), BinningCalibrator(10).fit(scores, y), title="Late flights")
    >>> "somewhere they are off by at least 0.17" in page
    True
    """
    inputs = _checked(audit, calibrator, title, source, histogram, audit_after)
    template = _template()
    style, script = _asset("style.css"), _asset("hover.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = ""
    for limits in _LIMITS:
        page = template.render(style=style, script=script, script_hash=digest, **collect(inputs, limits))
        if len(page.encode()) < _MOST_BYTES:
            break
    return page


def write_report(
    path: str | os.PathLike[str],
    audit: Audit,
    calibrator: ScoreCalibrator | None = None,
    *,
    title: str | None = None,
    source: Mapping[str, Any] | None = None,
    histogram: Tally | None = None,
    audit_after: Audit | None = None,
) -> Path:
    """Write the report to a file, whole or not at all, and return its path; see `render_report`.

    Parameters
    ----------
    path : path
        Of the HTML file; one that is there already is replaced.
    audit, calibrator, title, source, histogram, audit_after
        As in `render_report`.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from calibrant import audit, write_report
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=1_000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(f"{folder}/report.html", audit(rng.uniform(size=1_000) < scores, scores))
    ...     path.name, path.stat().st_size < 100_000
    ('report.html', True)
    """
    page = render_report(
        audit, calibrator, title=title, source=source, histogram=histogram, audit_after=audit_after
    )  # fmt: skip
    target = Path(path)
    write_file(page.encode(), target, overwrite=True)
    return target


def _checked(
    audit: Any, calibrator: Any, title: Any, source: Any, histogram: Any, audit_after: Any
) -> Inputs:  # fmt: skip
    if not isinstance(audit, Audit):
        raise InvalidTypeError(f"audit must be an Audit, from calibrant.audit; got {type(audit).__name__}")
    if audit_after is not None and not isinstance(audit_after, Audit):
        raise InvalidTypeError(
            f"audit_after must be an Audit, from calibrant.audit, or None; got {type(audit_after).__name__}"
        )
    if title is not None and not isinstance(title, str):
        raise InvalidTypeError(f"title must be text, or None; got {type(title).__name__}")
    if source is not None and not isinstance(source, Mapping):
        raise InvalidTypeError(f"source must be a mapping from names to facts, or None; got {type(source).__name__}")
    if histogram is not None:
        _check_histogram(histogram)
    guarantee = None
    if calibrator is not None:
        if not hasattr(calibrator, "get_params"):
            raise InvalidTypeError(
                f"calibrator must be a fitted calibrator of scores, or None; got {type(calibrator).__name__}"
            )
        check_is_fitted(calibrator)
        guarantee = getattr(calibrator, "guarantee_", None)
        if not isinstance(guarantee, Guarantee | NoGuarantee):
            raise InvalidTypeError(
                f"calibrator must have a guarantee_, as calibrators of scores have; got {type(calibrator).__name__}"
            )
    return Inputs(audit, guarantee, calibrator, title, source or {}, histogram, audit_after)


def _check_histogram(histogram: Any) -> None:
    if not isinstance(histogram, Tally):
        raise InvalidTypeError(f"histogram must be a Tally, or None; got {type(histogram).__name__}")
    expected = Partition.fixed_width(histogram.n_regions).fingerprint
    if histogram.partition not in (None, expected):
        raise InvalidValueError(
            f"histogram must be a Tally over Partition.fixed_width({histogram.n_regions}); got one over other regions"
        )


def _template() -> Any:
    jinja2 = needed("jinja2", "report", "the report is made")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("template.html.jinja")


def _asset(name: str) -> str:
    return resources.files("calibrant.views.report").joinpath(name).read_text(encoding="utf-8")
