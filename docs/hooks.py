"""What mkdocs does beyond its plugins: formulas as MathML, which needs no script, the changelog as
a page, how-tos before the API in searches, and old addresses that lead to the new ones.
"""

from __future__ import annotations

import html
import logging
import re
from pathlib import Path
from typing import Any

try:
    from latex2mathml.converter import convert
except ModuleNotFoundError:  # the other pages are checked all the same
    convert = None

LOG = logging.getLogger("mkdocs.hooks")  # a warning fails a strict build
ROOT = Path(__file__).parents[1]
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[([](.*?)\\[)\]]</\1>', re.DOTALL)


def mathml(found: re.Match[str]) -> str:
    """One formula; its source is the alternative text."""
    tag = found[1]
    source = html.unescape(found[2]).strip()
    display = "block" if tag == "div" else "inline"
    formula = convert(source, display=display).replace(
        "<math ", f'<math alttext="{html.escape(source)}" ', 1
    )
    return f'<div class="formula" tabindex="0">{formula}</div>' if tag == "div" else formula


BOOSTS = {
    "how-to/": 4.0,
    "tutorials/": 2.0,
    "learn/": 2.0,
    "explanation/design.md": 0.5,
    "reference/api/": 0.25,
    "reference/changelog.md": 0.25,
}
"""By how much a match counts more in a search, by the start of a page's path; others 1."""


MOVED = {
    "how-to/active-labels": "streams.html#active-learning-ask-for-the-right-labels",
    "how-to/audit-segments": "segments.html",
    "how-to/compare-live": "compare-models.html#two-models-in-production",
    "how-to/conformal-sets": "several-classes.html#conformal-prediction-sets",
    "how-to/estimated-weights": "covariate-shift.html#when-the-weights-must-be-estimated",
    "how-to/from-mapie": "from-others.html#mapie",
    "how-to/from-probcal": "from-others.html#probcal",
    "how-to/guardrail": "thresholds.html#guardrails-act-or-hold",
    "how-to/install": "troubleshooting.html#install-offline-without-internet-access",
    "how-to/label-shift": "covariate-shift.html#label-prior-shift-a-different-share-of-positives",
    "how-to/late-labels": "watch.html#late-labels-count-each-row-once-at-a-fixed-age",
    "how-to/one-row-per-group": "groups.html#one-row-from-each-group",
    "how-to/pipelines": "classifier.html#pipelines",
    "how-to/refer": "thresholds.html#act-leave-alone-or-refer",
    "how-to/regulator": "manager.html#to-a-regulator",
    "how-to/release-gate": "few-labels.html#release-gate-ship-or-not",
    "how-to/ties": "bins-and-intervals.html#tied-scores",
    "how-to/validation": "metrics.html#the-validation-table-slope-intercept-expected-observed",
    "how-to/venn-abers": "other-calibrators.html#venn-abers-two-probabilities",
    "how-to/weighted-metrics": "weights.html#metrics-and-audits-with-weights-or-groups",
}
"""Pages that are part of another page now, and where, seen from their folder."""

MOVED_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Moved</title>
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="0; url={target}">
</head>
<body><main><h1>Moved</h1><p>This page is now <a href="{target}">here</a>.</p></main></body>
</html>
"""


def boost_of(uri: str) -> float:
    """By how much a match on a page counts more in a search."""
    return next((boost for start, boost in BOOSTS.items() if uri.startswith(start)), 1.0)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rank the page in searches; put the changelog on its page.

    The changelog's links start from the root of the repository.
    """
    page.meta.setdefault("search", {}).setdefault("boost", boost_of(page.file.src_uri))
    if page.file.src_uri != "reference/changelog.md":
        return markdown
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](../")


def on_page_content(content: str, **_: Any) -> str:
    """Turn the formulas that the Markdown extension has marked into MathML."""
    if convert is None and FORMULA.search(content):
        LOG.warning("formulas stay as they are: pip install latex2mathml; make docs does so")
        return content
    return FORMULA.sub(mathml, content)


def on_post_page(output: str, **_: Any) -> str:
    """Name the search dialog for screen readers; the theme does not."""
    return output.replace(
        'data-md-component="search" role="dialog"',
        'data-md-component="search" role="dialog" aria-label="Search"',
    )


def on_post_build(config: Any, **_: Any) -> None:
    """Leave a page at each old address that leads to the new one."""
    for old, target in MOVED.items():
        path = Path(config.site_dir) / f"{old}.html"
        path.write_text(MOVED_PAGE.format(target=target), encoding="utf-8")
