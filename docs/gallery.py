"""For mkdocs: pictures are made by the code beside them, and every script of the gallery is a
section of its page.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import indent
from typing import Any

from mkdocs.structure.files import File, InclusionLevel

sys.path.append(str(Path(__file__).parents[1] / "tools"))
import notebooks
from dark import dark_name
from examples import FENCE, ROOT, pictures_of, pictures_of_script, place_of

DOCS, MADE, TOOLS = ROOT / "docs", ROOT / "out" / "docs", ROOT / "tools"
DATA_IN_REPOSITORY = "](../../tools/realdata.py)"
DATA_ON_SITE = "](../assets/realdata.py)"
CARDS = re.compile(r"<!-- cards: ([\w ]+) -->")
CARD = (
    '<a href="#{name}"><img src="{name}-small.png#only-light" alt="{picture}" loading="lazy">'
    '<img src="{name}-small-dark.png#only-dark" alt="{picture}" loading="lazy">'
    "<span>{title}</span></a>"
)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([\w-]+)\.png\)")
STYLE = """<style>
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: 0.8rem; }
.cards a { border: 1px solid var(--md-default-fg-color--lightest); border-radius: 0.2rem; padding: 0.4rem; }
.cards img { width: 100%; aspect-ratio: 4 / 3; object-fit: contain; }
.cards span { display: block; font-size: 0.7rem; line-height: 1.3; padding-top: 0.3rem; }
</style>"""  # noqa: E501


@dataclass(frozen=True)
class Script:
    """A script of the gallery.

    Its docstring is a title, an explanation, and what the picture shows.
    """

    path: Path
    text: str
    title: str
    explanation: str
    picture: str

    @classmethod
    def read(cls, path: Path) -> Script:
        """Read a script, and take its docstring apart."""
        text = path.read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(text)) or ""
        title, explanation, picture = (" ".join(part.split()) for part in docstring.split("\n\n"))
        return cls(path, text, title.rstrip("."), explanation, picture.removeprefix("Picture: "))

    def section(self) -> str:
        """The picture with its explanation, and the code without the docstring, to unfold."""
        name, code = self.path.stem, self.text.split('"""', 2)[2].strip("\n")
        picture = two_pictures(f"![{self.picture}]({name}.png)", self.path)
        note = f"To run it, save [{name}.py]({name}.py) or the [notebook]({name}.ipynb)"
        if "realdata" in code:
            note += f" and [realdata.py{DATA_ON_SITE}, which downloads the data, in the same folder"
        folded = indent(f"```python\n{code}\n```\n\n{note}.", "    ")
        head = f"### {self.title} {{ #{name} }}\n\n{self.explanation}\n\n{picture}"
        return f'{head}\n\n??? example "Code"\n{folded}\n'

    def card(self) -> str:
        """The picture and the title, as a link to the section."""
        return CARD.format(
            name=self.path.stem, picture=escape(self.picture), title=escape(self.title)
        )


def scripts() -> dict[str, Script]:
    """All scripts, by name."""
    return {path.stem: Script.read(path) for path in sorted((DOCS / "gallery").glob("*.py"))}


def chapters() -> list[Path]:
    """The chapters of Learn calibration: its pages with code."""
    return [
        page for page in sorted((DOCS / "learn").glob("*.md")) if "```python" in page.read_text()
    ]


def on_files(files: Any, config: Any) -> None:
    """Run the examples that changed, and add their pictures and files to download."""
    pages = {DOCS / file.src_uri: file for file in files.documentation_pages()}
    examples = {page: pictures_of(page) for page in pages if FENCE.search(page.read_text())}
    examples |= {script.path: pictures_of_script(script.path) for script in scripts().values()}
    subprocess.run(
        [sys.executable, str(TOOLS / "examples.py"), str(MADE), *map(str, examples)], check=True
    )

    def add(uri: str, **content: Any) -> None:
        if (
            found := files.get_file_from_path(uri)
        ) is not None:  # the script itself, which the page shows
            files.remove(found)
        files.append(File.generated(config, uri, inclusion=InclusionLevel.INCLUDED, **content))

    for example, names in examples.items():
        for name in with_dark(example, names):
            made = MADE / place_of(example) / name
            add((example.parent.relative_to(DOCS) / name).as_posix(), abs_src_path=str(made))
    for name, script in scripts().items():
        add(f"gallery/{name}.py", content=script.text)
        add(f"gallery/{name}.ipynb", content=notebooks.of_script(script.text))
    for page in chapters():
        text = page.read_text(encoding="utf-8")
        add(f"learn/{page.stem}.ipynb", content=notebooks.of_page(text))
    add("assets/realdata.py", abs_src_path=str(TOOLS / "realdata.py"))


def with_dark(example: Path, names: list[str]) -> list[str]:
    """The pictures of an example, and those of the dark site that were made."""
    folder = MADE / place_of(example)
    dark = [dark_name(name).name for name in names]
    return [*names, *(name for name in dark if (folder / name).exists())]


def two_pictures(markdown: str, example: Path) -> str:
    """Show each picture that an example makes as it is for the scheme of the site."""
    folder = MADE / place_of(example)

    def both(found: re.Match[str]) -> str:
        alt, name = found.groups()
        if not (folder / f"{name}-dark.png").exists():
            return found[0]
        return f"![{alt}]({name}.png#only-light)![{alt}]({name}-dark.png#only-dark)"

    return PICTURE.sub(both, markdown)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put cards and sections on the page of the gallery, and notebooks under chapters.

    Links to `tools/realdata.py`, which is not part of the site, lead to the copy that is.
    """
    source = DOCS / page.file.src_uri
    markdown = two_pictures(markdown, source).replace(DATA_IN_REPOSITORY, DATA_ON_SITE)
    if source in chapters():
        return f"{markdown}\n\n*Download this chapter as a [notebook]({source.stem}.ipynb).*\n"
    if page.file.src_uri != "gallery/index.md":
        return markdown
    found = scripts()

    def shown(names: re.Match[str]) -> str:
        here = [found[name] for name in names[1].split()]
        cards = "\n".join(script.card() for script in here)
        sections = "\n".join(script.section() for script in here)
        return f'<div class="cards">\n{cards}\n</div>\n\n{sections}'

    return f"{CARDS.sub(shown, markdown)}\n{STYLE}\n"
