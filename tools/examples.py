"""Run the examples of the documentation: the code of its pages, and the scripts of its gallery.

    python tools/examples.py out/docs                      # README, all pages and scripts
    python tools/examples.py out/docs docs/guides/audit.md # one page
    python tools/examples.py out/portable --perturbed      # a solver's last digits are changed
    python tools/examples.py out/renewed --renew docs/index.md src/calibrant/errors.py

Each example runs in a folder of its own below the first argument, where it leaves its pictures: a
page by `savefig`, a script by `plt.show()`; and of each picture a second one, for the dark site. A
script leaves a thumbnail, too. An example that has not changed, nor calibrant, is not run again.

`--renew` writes what examples print into pages and docstrings, where it has changed, and lists the
lines of prose that have a figure which is no longer printed.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import hashlib
import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(python|pycon|shell-session)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MADE = re.compile(r"\]\(([\w-]+\.(?:png|html))\)")
SMALL = (4.4, 3.3)  # inches of a thumbnail with one panel
LONGEST_TITLE = 12  # letters that fit above a panel of a thumbnail
LONGEST_LABEL = 40  # letters that fit below it
MOST_NAMES = 14  # on an axis, before they touch
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib")

sys.path.append(str(ROOT / "tools"))  # for `import realdata`, in examples


def pictures_of(page: Path) -> list[str]:
    """The pictures and reports that the code of a page makes: those that lie beside it, and not in
    git.
    """
    names = dict.fromkeys(MADE.findall(page.read_text(encoding="utf-8")))
    return [name for name in names if not (page.parent / name).exists()]


def run_page(page: Path) -> None:
    """Run the code of a page, in order, in the current folder.

    What it prints must be what the page says.
    """
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for fence in FENCE.finditer(text):
        kind, code = fence.groups()
        line = text[: fence.start()].count("\n") + 2
        if kind == "python":
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
        elif kind == "shell-session":
            run_commands(code)
        else:
            namespace = run_prompts(code, namespace, page, line)
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")
    if missing := [name for name in pictures_of(page) if not Path(name).exists()]:
        raise AssertionError(f"the code of {page.name} makes no {', '.join(missing)}")


def run_prompts(
    code: str, namespace: dict[str, object], page: Path, line: int
) -> dict[str, object]:
    """Run what follows `>>>`, and compare what it prints."""
    examples = doctest.DocTestParser().get_examples(code)
    test = doctest.DocTest(examples, namespace, page.name, str(page), line - 1, None)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=report.append, clear_globs=False)
    if runner.failures:
        raise AssertionError("".join(report))
    return test.globs


def run_commands(code: str) -> None:
    """Run each `$ calibrant ...`.

    The lines below it must be in what it prints, `...` standing for anything.
    """
    for command, shown in commands_of(code):
        printed = run_command(command)
        if not is_shown(shown, printed):
            raise AssertionError(f"{command}\nprints\n{printed}\nand not\n{shown}")


def commands_of(code: str) -> Iterator[tuple[str, str]]:
    """Each command, and what the page shows of its output."""
    for part in re.split(r"^\$ calibrant ", code, flags=re.MULTILINE)[1:]:
        command, shown = part.replace("\\\n", "").split("\n", 1)
        yield command, shown


def run_command(command: str) -> str:
    """What a command prints; it must succeed."""
    from click.testing import CliRunner

    from calibrant.cli._app import app

    result = CliRunner(env={"COLUMNS": "100"}).invoke(app, shlex.split(command))
    if result.exit_code:
        raise AssertionError(f"{command}\n{result.output}") from result.exception
    return str(result.output)


def is_shown(shown: str, printed: str) -> bool:
    """Whether the output has what the page shows, in order."""
    pieces = (
        r"\s+".join(map(re.escape, piece.split())) for piece in shown.split("...") if piece.strip()
    )
    return re.search(".*?".join(pieces), printed, re.DOTALL) is not None


@contextlib.contextmanager
def perturbed() -> Iterator[None]:
    """Within this, coefficients of logistic regression move a little, as on another processor.

    No figure on a page may be that near to a rounding edge. Other kernels of linear algebra moved
    scores by 2e-15. A change of 1e-6 would be another data set: 20 binary digits of each score
    decide which rows are drawn.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    generator = np.random.default_rng(1)
    solve = LogisticRegression.fit

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        solve(self, X, y, sample_weight)
        self.coef_ *= 1.0 + 1e-13 * generator.standard_normal(self.coef_.shape)
        self.intercept_ *= 1.0 + 1e-13 * generator.standard_normal(self.intercept_.shape)
        return self

    LogisticRegression.fit = fit
    try:
        yield
    finally:
        LogisticRegression.fit = solve


@contextlib.contextmanager
def twice() -> Iterator[None]:
    """Within this, a picture that is saved as PNG is saved for the dark site, too."""
    from dark import save_dark
    from matplotlib.figure import Figure

    save = Figure.savefig

    def save_both(figure: Any, name: Any, **options: Any) -> None:
        save(figure, name, **options)
        if isinstance(name, str | Path) and str(name).endswith(".png"):
            save_dark(figure, name, save, **options)

    Figure.savefig = save_both  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        Figure.savefig = save  # type: ignore[method-assign]


def pictures_of_script(script: Path) -> list[str]:
    """The picture of a script of the gallery, and its thumbnail."""
    return [f"{script.stem}.png", f"{script.stem}-small.png"]


def shrink(figure: Any) -> None:
    """Make a figure as small as a thumbnail, with letters of the size they had.

    Legends, titles and labels that do not fit are left out; many names on an axis are smaller.
    """
    panels = figure.axes
    figure.set_size_inches(SMALL if len(panels) == 1 else [1.3 * inches for inches in SMALL])
    for axes in panels:
        if (legend := axes.get_legend()) is not None:
            legend.remove()
        if len(axes.get_title()) > LONGEST_TITLE:
            axes.set_title("")
        if len(axes.get_xlabel()) > LONGEST_LABEL:
            axes.set_xlabel("")
        if len(axes.get_yticks()) > MOST_NAMES:
            axes.tick_params(axis="y", labelsize=6)
    for legend in list(figure.legends):
        legend.remove()


def run_script(script: Path) -> None:
    """Run a script of the gallery; the picture it shows becomes files, named like the script."""
    import matplotlib.pyplot as plt

    shown = []
    show = plt.show

    def save() -> None:
        figure = plt.gcf()
        picture, thumbnail = pictures_of_script(script)
        figure.savefig(picture, dpi=120)
        shrink(figure)
        figure.savefig(thumbnail, dpi=140)
        shown.append(figure)

    plt.show = save
    code = compile(script.read_text(encoding="utf-8"), str(script), "exec")
    try:
        with plt.rc_context():  # a script has its own style
            exec(code, {"__name__": "__main__"})
    finally:
        plt.show = show
        plt.close("all")
    if len(shown) != 1:
        raise AssertionError(f"{script.name} must show one picture; it shows {len(shown)}")


def excuse(error: Exception) -> str | None:
    """Why an example cannot run here, if that is not its own fault. In CI there is no excuse."""
    from realdata import DataNotFetchedError

    absent = isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("calibrant")
    return (
        str(error)
        if (absent or isinstance(error, DataNotFetchedError)) and not os.environ.get("CI")
        else None
    )


def stand_in(reason: str, names: list[str]) -> None:
    """Write pictures that say why the right ones are not here."""
    from matplotlib.figure import Figure

    figure = Figure((6, 3))
    figure.text(
        0.5, 0.5, f"not made on this machine:\n{reason}", ha="center", va="center", wrap=True
    )
    for name in names:
        figure.savefig(name)


@cache
def surroundings() -> bytes:
    """What all examples depend on: calibrant, the tools, and the libraries."""
    tools = [ROOT / "tools" / name for name in ("dark.py", "examples.py", "realdata.py")]
    sources = [*sorted((ROOT / "src").rglob("*.py")), *tools]
    versions = repr([metadata.version(name) for name in LIBRARIES])
    return hashlib.sha256(
        b"".join(source.read_bytes() for source in sources) + versions.encode()
    ).digest()


def key_of(example: Path) -> str:
    """What the result of an example depends on."""
    return hashlib.sha256(surroundings() + example.read_bytes()).hexdigest()


def place_of(example: Path) -> str:
    """Name of the folder of an example."""
    return "-".join(example.relative_to(ROOT).with_suffix("").parts).removeprefix("docs-")


def run(example: Path, folder: Path, *, is_perturbed: bool = False) -> str:
    """Run an example if it changed; return what there is to say.

    Where it cannot run, its pictures say why.
    """
    os.environ["MPLBACKEND"] = "agg"
    place = folder / place_of(example)
    key = key_of(example)
    kept = place / "key.txt"
    if kept.exists() and kept.read_text() == key:
        return ""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    os.chdir(place)
    name = example.relative_to(ROOT).as_posix()
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            perturbed() if is_perturbed else twice(),
        ):
            (run_script if example.suffix == ".py" else run_page)(example)
    except Exception as error:
        if (reason := excuse(error)) is None:
            raise AssertionError(f"{name}: {error}") from error
        made = pictures_of_script if example.suffix == ".py" else pictures_of
        stand_in(reason, made(example))
        return f"ran {name}; its pictures cannot be made here: {reason}"
    kept.write_text(key)
    return f"ran {name}"


def every_example() -> list[Path]:
    """README, the pages with code, and the scripts of the gallery."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [page for page in pages if FENCE.search(page.read_text(encoding="utf-8"))]
    return [*found, *sorted((ROOT / "docs" / "gallery").glob("*.py"))]


def main() -> int:
    """Run the examples that changed, two at a time, or renew what they print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("examples", type=Path, nargs="*")
    parser.add_argument("--perturbed", action="store_true", help="change a solver's last digits")
    parser.add_argument("--renew", action="store_true", help="write what examples print")
    given = parser.parse_intermixed_args()
    examples = [name.absolute() for name in given.examples] or every_example()
    if given.renew:
        from renewal import renew

        work = partial(renew, folder=given.folder.absolute())
    else:
        work = partial(run, folder=given.folder.absolute(), is_perturbed=given.perturbed)
    failed = 0
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(work, example) for example in examples]):
            try:
                said = done.result()
            except Exception as error:
                failed += 1
                said = f"FAILED {error}"
            if said:
                print(said, flush=True)
    if failed:
        print(f"{failed} of {len(examples)} examples failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
