"""Sentences that name parameters. They stay data until printed, so that each reader sees the terms
of their own tool.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

_YES = ("1", "1.0", "true", "yes")
_LONGEST_NAME = 60
_MISTYPED = 2  # characters by which a mistyped word may be longer or shorter


class _NotGiven:
    """The value of a setting without a value: a class, so that copies and pickles of the setting
    keep it.
    """


@dataclass(frozen=True, slots=True)
class Setting:
    """A parameter, or a value for it, inside a sentence: `pilot=0.2` in Python, `--pilot 0.2` on
    the command line.

    Parameters
    ----------
    parameter : str
        Name of the parameter; "method" for a calibrator.
    value : object, optional
        The value, if the text is about one.
    python : str, optional
        How Python users write it, if not as `parameter=value`, such as "PlattCalibrator()".
    """

    parameter: str
    value: object = _NotGiven
    python: str | None = None

    @property
    def has_value(self) -> bool:
        """Whether there is a value, not only the parameter."""
        return self.value is not _NotGiven


Text: TypeAlias = str | tuple[str | Setting, ...]
"""A sentence, or its parts: words, with settings among them."""

PlainText: TypeAlias = Callable[[Setting], str]
"""A function that writes a setting as text."""


class TextTable(NamedTuple):
    """A table of text cells: the terminal and the report show the same."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def in_python(setting: Setting) -> str:
    """A setting as Python users write it.

    >>> in_python(Setting("pilot", 0.2)), in_python(Setting("pilot"))
    ('pilot=0.2', 'pilot')
    """
    if setting.python is not None:
        return setting.python
    return f"{setting.parameter}={setting.value!r}" if setting.has_value else setting.parameter


class Words(str):
    """A text in the terms of Python users that keeps its parts, so that `render` can use other
    terms.
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> Self:
        """Make the text from its parts."""
        text = super().__new__(cls, render(parts))
        text.parts = parts
        return text


class ScoreRange(str):
    """The exact name of a score range, such as "(-inf, 0.016895)", which also has a name for people,
    such as "below 0.017".
    """

    in_words: str

    def __new__(cls, exact: str, in_words: str = "") -> Self:
        """Make the name; a copy gets its name for people afterwards."""
        name = super().__new__(cls, exact)
        name.in_words = in_words
        return name


def in_words(name: str) -> str:
    """The name for people of a score range; any other name as it is.

    >>> in_words(ScoreRange("(-inf, 0.016895)", "below 0.017")), in_words("north")
    ('below 0.017', 'north')
    """
    return getattr(name, "in_words", name)


def words(text: Text) -> str:
    """A text as a str that `render` can still write in other terms.

    >>> advice = words(("use ", Setting("pilot", 0.2)))
    >>> advice
    'use pilot=0.2'
    >>> render(advice, lambda setting: f"--{setting.parameter} {setting.value}")
    'use --pilot 0.2'
    """
    return text if isinstance(text, str) else Words(*text)


def render(text: Text, setting: PlainText = in_python) -> str:
    """A text in its reader's words.

    >>> render(("use ", Setting("pilot", 0.2), " or fewer bins"))
    'use pilot=0.2 or fewer bins'
    """
    parts = _parts(text)
    if isinstance(parts, str):
        return parts
    return "".join(part if isinstance(part, str) else setting(part) for part in parts)


def _parts(text: Text) -> Text:
    """The parts of a text, if it has kept them; otherwise the text."""
    found: Text = getattr(text, "parts", text)
    return found


def rendered(value: Any, setting: PlainText) -> Any:
    """Plain JSON values, with every text in the terms of its reader.

    >>> rendered({"advice": [words(("use ", Setting("split", 0.2)))]},
    ...     lambda setting: f"--{setting.parameter}")
    {'advice': ['use --split']}
    """
    if isinstance(value, str):
        return render(value, setting)
    if isinstance(value, dict):
        return {name: rendered(entry, setting) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [rendered(entry, setting) for entry in value]
    return value


def joined(*parts: Text) -> Text:
    """Join several texts into one.

    >>> render(joined("drop ", (Setting("pilot"), " here")))
    'drop pilot here'
    """
    unpacked = map(_parts, parts)
    return tuple(
        piece for part in unpacked for piece in ((part,) if isinstance(part, str) else part)
    )


def listed(texts: Iterable[Text], between: str) -> Text:
    """Join texts with `between` as the separator.

    >>> render(listed(["a", "b"], ", "))
    'a, b'
    """
    return joined(*(part for text in texts for part in (between, text)))[1:]


def name_of(value: object, longest: int = _LONGEST_NAME) -> str:
    """A name for people, truncated if it is very long.

    A region's name is truncated in the middle, because it begins with a segment and ends with scores.

    >>> name_of("a very long name", 8)
    'a very …'
    """
    text = str(getattr(value, "in_words", value))
    if len(text) <= longest:
        return text
    kept = longest // 2 if hasattr(value, "in_words") else 0
    return f"{text[: longest - kept - 1]}…{text[len(text) - kept :]}"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A question that names the nearest known word, ignoring case; None if no word is near.

    >>> did_you_mean("Hoefding", ["hoeffding", "kl"])
    "did you mean 'hoeffding'?"
    >>> did_you_mean("target", ["age"])  # shares letters, but nobody mistypes one for the other
    """
    from difflib import get_close_matches

    asked = word.lower()
    names = {name.lower(): name for name in known}
    near = [
        name
        for name in get_close_matches(asked, names)
        if asked in name or name in asked or abs(len(asked) - len(name)) <= _MISTYPED
    ]
    return f"did you mean {names[near[0]]!r}?" if near else None


def sentence(text: str) -> str:
    """Capitalise the first letter and add a full stop.

    >>> sentence("the data cannot tell")
    'The data cannot tell.'
    >>> render(sentence(words(("use ", Setting("split", 0.2)))),
    ...     lambda setting: f"--{setting.parameter}")
    'Use --split.'
    """
    end = "" if text.endswith(".") else "."
    parts = _parts(text)
    if isinstance(parts, str):
        return f"{text[:1].upper()}{text[1:]}{end}"
    first, *others = parts
    if isinstance(first, str):
        first = f"{first[:1].upper()}{first[1:]}"
    return Words(first, *others, end)


def is_true(label: object) -> bool:
    """Whether a label only means yes, so that naming it would add nothing.

    >>> is_true(1), is_true("True"), is_true("late")
    (True, True, False)
    """
    return str(label).lower() in _YES


def shown(value: object) -> str:
    """A short repr of any value, for an error message.

    >>> shown("ten"), shown(range(3))
    ("'ten'", 'range(0, 3)')
    """
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
