"""What mkdocs does beyond its plugins: the changelog as a page of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the changelog on its page; its links start from the root of the repository."""
    if page.file.src_uri != "reference/changelog.md":
        return markdown
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](../")
