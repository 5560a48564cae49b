"""Every snippet of the README and of the guide runs, and prints what the page says it prints."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [path for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))) if "```py" in path.read_text()]
FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.broad
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_snippets_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    namespace = {"__name__": "__main__"}
    for fence in FENCE.finditer(text):
        kind, code = fence.groups()
        line = text[: fence.start()].count("\n") + 2
        if kind == "python":
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
            continue
        test = doctest.DocTest(
            doctest.DocTestParser().get_examples(code), namespace, page.name, str(page), line - 1, None
        )
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
        runner.run(test, out=report.append, clear_globs=False)
        assert not runner.failures, "".join(report)
        namespace = test.globs
