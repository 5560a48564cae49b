"""What mkdocs does beyond its plugins: formulas as MathML, which needs no script, the changelog as
a page, guides before the API in searches, and the version and addresses of the project.
"""

from __future__ import annotations

import html
import logging
import re
import tomllib
from pathlib import Path
from typing import Any

try:
    from latex2mathml.converter import convert
except ModuleNotFoundError:  # the other pages are checked all the same
    convert = None

LOG = logging.getLogger("mkdocs.hooks")  # a warning fails a strict build
ROOT = Path(__file__).parents[1]
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[([](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: Any) -> None:
    """Show the version below each page, and link to the addresses that pyproject.toml has."""
    version = re.search(r'"(.+)"$', (ROOT / "src/calibrant/_version.py").read_text("utf-8").strip())
    config.copyright = f"calibrant {version[1] if version else ''}, Apache-2.0"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    addresses = project.get("urls", {})
    config.site_url = addresses.get("Documentation", "")
    config.repo_url = addresses.get("Source")
    if config.site_url:
        picture = f"{config.site_url.rstrip('/')}/assets/social-card.png"
        config.extra["social_card"] = picture


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
    "guides/": 4.0,
    "use/": 4.0,
    "start/": 4.0,
    "cases/": 2.0,
    "learn/": 2.0,
    "reference/command-line.md": 3.0,
    "reference/api/": 0.1,
    "reference/changelog.md": 0.25,
}
"""By how much a match counts more in a search, by the start of a page's path; others 1."""


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


def on_post_page(output: str, config: Any, **_: Any) -> str:
    """Name the search dialog for screen readers, and the picture that shared links show.

    The theme does neither. A picture needs an address.
    """
    if picture := config.extra.get("social_card"):
        output = output.replace(
            "</head>", f'<meta property="og:image" content="{picture}"></head>', 1
        )
    return output.replace(
        'data-md-component="search" role="dialog"',
        'data-md-component="search" role="dialog" aria-label="Search"',
    )
