"""For mkdocstrings: what follows `>>>` in a docstring is an example, also where no heading says so."""

import re
from typing import Any

from griffe import Extension

EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)


class Examples(Extension):
    """Put the heading that the parser needs before the first example."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of one module, class, function or attribute."""
        docstring = obj.docstring
        if docstring is None or "Examples\n---" in docstring.value:
            return
        if found := EXAMPLE.search(docstring.value):
            at = found.start()
            docstring.value = f"{docstring.value[:at]}Examples\n--------\n{docstring.value[at:]}"
