"""How each SQL engine writes names, texts, doubles and casts: all differences between dialects are
here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from calibrant.errors import InvalidValueError

_NOT_IN_COMMENTS = str.maketrans(dict.fromkeys("${}\\`", "?") | {";": ","})


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spelling of one engine.

    Attributes
    ----------
    double : str
        Name of the double type.
    quoted_name, quoted_text : callable
        Quote a column or table name, and a text. `name` and `text` first check that the engine can
        read it.
    finite : callable
        Writes a finite double so that the engine reads back exactly the same double.
    infinity : str
        An infinite double; `{}` is its sign.
    binary_text : str
        Compares a text column by its characters, not by its collation; `{}` is the column.
    booleans : (str, str)
        False and True.
    guard : str
        A further condition on the score column, `{}`, if a cast would accept values that are not
        numbers.
    substituted : str
        The start of a text that the engine substitutes before it reads SQL, so no name may contain
        it.
    extremes : (str, str)
        The functions for the smallest and the largest of their arguments.
    most_nested : int or None
        The largest number of cuts for a nested CASE; more are searched in an array.
    rows_in_from, rows_as_structs : bool
        How rows are written in a statement: VALUES alone, within FROM, or as an array of structs.
    """

    double: str
    quoted_name: Callable[[str], str]
    quoted_text: Callable[[str], str]
    finite: Callable[[float], str]
    infinity: str
    binary_text: str = "{}"
    booleans: tuple[str, str] = ("FALSE", "TRUE")
    guard: str = ""
    substituted: str | None = None
    extremes: tuple[str, str] = ("LEAST", "GREATEST")
    most_nested: int | None = None
    rows_in_from: bool = False
    rows_as_structs: bool = False

    def name(self, name: str) -> str:
        """A quoted column or table name."""
        _check_readable("a name", name)
        if self.substituted is not None and self.substituted in name:
            rule = f"not contain {self.substituted!r}, which Spark replaces before it reads SQL"
            raise InvalidValueError("a name", rule, got=repr(name))
        return self.quoted_name(name)

    def text(self, text: str) -> str:
        """A quoted text."""
        _check_readable("a text", text)
        return self.quoted_text(text)

    def number(self, value: float) -> str:
        """A double, written exactly."""
        return (
            self.infinity.format("-" if value < 0 else "")
            if math.isinf(value)
            else self.finite(value)
        )

    def literal(self, value: str | float) -> str:
        """A text, bool, whole number or double; the text is not checked."""
        if isinstance(value, str):
            return self.quoted_text(value)
        if isinstance(value, bool):
            return self.booleans[value]
        return str(value) if isinstance(value, int) else self.number(value)


def comment(text: str) -> str:
    """Return `text` as one safe line for a comment.

    A line break of any kind would end the comment. Semicolons, braces, dollar signs and backslashes
    have a meaning, even inside comments, for tools that split or preprocess SQL.
    """
    return "".join(sign if sign.isprintable() else "?" for sign in text).translate(_NOT_IN_COMMENTS)


def _check_readable(what: str, text: str) -> None:
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InvalidValueError(
            what, "not contain NUL or half of a surrogate pair, which SQL cannot hold", repr(text)
        )


def _doubled(quote: str) -> Callable[[str], str]:
    """Quote a name or text; quotes inside it are doubled."""
    return lambda text: quote + text.replace(quote, 2 * quote) + quote


def _snowflake_name(name: str) -> str:
    """Quote a name. Snowflake reads unquoted names as upper case, so a lower-case name means an
    upper-case one.
    """
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return _doubled('"')(name.upper() if plain and name == name.lower() else name)


def _escaped(quote: str) -> Callable[[str], str]:
    """Escape quotes and backslashes.

    Write nonprintable characters and the dollar sign as numeric escapes.
    """

    def sign_text(sign: str) -> str:
        if sign in (quote, "\\"):
            return f"\\{sign}"
        by_number = sign == "$" or (not sign.isprintable() and ord(sign) < 0x10000)
        return f"\\u{ord(sign):04x}" if by_number else sign

    return lambda text: quote + "".join(map(sign_text, text)) + quote


def _postgres_text(text: str) -> str:
    """Use the E form for a text with a backslash: it does not depend on
    standard_conforming_strings.
    """
    quoted = _doubled("'")(text)
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def _spark_text(text: str) -> str:
    """Write a text as bytes unless all characters are plain: the meaning of a backslash depends on
    settings.
    """
    plain = text.isprintable() and not set(text) & set("'\\$")
    return f"'{text}'" if plain else f"CAST(X'{text.encode().hex()}' AS STRING)"


def _fraction(double: str) -> Callable[[float], str]:
    """Write a double exactly, as a whole number below 2**53, multiplied or divided by powers of
    two.
    """

    def number(value: float) -> str:
        numerator, denominator = value.as_integer_ratio()
        shift = 1 - denominator.bit_length()
        while numerator and numerator % 2 == 0:
            numerator = numerator // 2
            shift = shift + 1
        if shift > 0 and abs(numerator) << shift <= 2**53:
            numerator = numerator << shift
            shift = 0
        parts = [f"CAST({numerator} AS {double})"]
        sign, left = (" * ", shift) if shift > 0 else (" / ", -shift)
        while left:
            step = min(
                left, 62
            )  # the largest power of two that every engine can hold in an integer is 2**62
            parts.append(f"{sign}{2**step}")
            left -= step
        return parts[0] if len(parts) == 1 else f"({''.join(parts)})"

    return number


def _duckdb_number(value: float) -> str:
    text = repr(value)
    return text if "e" in text else f"{text}e0"  # without an exponent it would be a DECIMAL


DIALECTS: dict[str, Dialect] = {
    "postgres": Dialect(
        "double precision",
        _doubled('"'),
        _postgres_text,
        lambda value: f"float8 '{value!r}'",
        "float8 '{}Infinity'",
        binary_text='CAST({} AS text) COLLATE "C"',
    ),
    "duckdb": Dialect(
        "DOUBLE",
        _doubled('"'),
        _doubled("'"),
        _duckdb_number,
        "CAST('{}inf' AS DOUBLE)",
        binary_text='CAST({} AS VARCHAR) COLLATE "binary"',
    ),
    "snowflake": Dialect(
        "DOUBLE",
        _snowflake_name,
        _escaped("'"),
        _fraction("DOUBLE"),
        "CAST('{}inf' AS DOUBLE)",
        binary_text="COLLATE({}, '')",
        rows_in_from=True,
    ),
    "bigquery": Dialect(
        "FLOAT64",
        _escaped("`"),
        _escaped("'"),
        _fraction("FLOAT64"),
        "CAST('{}inf' AS FLOAT64)",
        binary_text="COLLATE({}, '')",
        rows_as_structs=True,
    ),
    "spark": Dialect(
        "DOUBLE",
        _doubled("`"),
        _spark_text,
        lambda value: f"{value!r}D",
        "CAST('{}Infinity' AS DOUBLE)",
        substituted="${",
        # Spark compiles a CASE to Java: slow with hundreds of cuts, out of memory with thousands
        most_nested=63,
    ),
    "sqlite": Dialect(
        "REAL",
        _doubled("`"),  # SQLite would silently take an unknown name in double quotes for a text
        _doubled("'"),
        _fraction("REAL"),
        "{}9e999",
        binary_text="{} COLLATE BINARY",
        booleans=("0", "1"),
        extremes=("MIN", "MAX"),
        guard="typeof({}) IN ('real', 'integer')",
    ),
}
