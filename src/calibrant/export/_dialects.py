"""How each SQL engine writes a name, a text, a double, and a cast: all that differs between them here."""

from collections.abc import Callable
from dataclasses import dataclass

from calibrant.errors import InvalidValueError

_WORD = 2**62  # the largest power of two that every engine holds in a whole number
_NOT_IN_COMMENTS = str.maketrans(dict.fromkeys("${}\\`", "?") | {";": ","})


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's spelling.

    Attributes
    ----------
    double : str
        Name of the type of doubles.
    name : callable
        Quotes a name of a column or table.
    text : callable
        Quotes a text.
    number : callable
        Writes a double so that the engine reads that very double.
    infinity : str
        An infinite double; `{}` is its sign.
    binary_text : str
        Makes a text column compare by its characters alone, whatever its collation; `{}` is the column.
    booleans : (str, str)
        False and True.
    guard : str
        A further condition on the score, `{}`, where a cast would take what is no number.
    most_nested : int or None
        The most cuts for a nested CASE; more are searched by halving an array.
    """

    double: str
    name: Callable[[str], str]
    text: Callable[[str], str]
    number: Callable[[float], str]
    infinity: str
    binary_text: str = "{}"
    booleans: tuple[str, str] = ("FALSE", "TRUE")
    guard: str = ""
    most_nested: int | None = None


def comment(text: str) -> str:
    """Return `text` as one safe line for a comment.

    A line break of any kind would end the comment. A semicolon, braces, a dollar sign and a backslash mean something,
    even inside comments, to tools that split, fill in or preprocess SQL.
    """
    return "".join(sign if sign.isprintable() else "?" for sign in text).translate(_NOT_IN_COMMENTS)


def _check(text: str, what: str) -> None:
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InvalidValueError(f"{what} must be text that SQL can hold, without NUL and half characters; got {text!r}")


def _doubled(quote: str) -> Callable[[str], str]:
    """Quote a name; the quote sign itself is doubled."""

    def quoted(name: str) -> str:
        _check(name, "a name")
        return quote + name.replace(quote, 2 * quote) + quote

    return quoted


def _spark_name(name: str) -> str:
    if "${" in name:
        raise InvalidValueError(f"a name must be without '${{', which Spark fills in before it reads SQL; got {name!r}")
    return _doubled("`")(name)


def _snowflake_name(name: str) -> str:
    """Quote a name. Snowflake reads bare names in capitals, so one in small letters means the name in capitals."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return _doubled('"')(name.upper() if plain and name == name.lower() else name)


def _bigquery_name(name: str) -> str:
    _check(name, "a name")
    return "`" + _escaped(name, "`") + "`"


def _plain_text(text: str) -> str:
    _check(text, "a text")
    return "'" + text.replace("'", "''") + "'"


def _postgres_text(text: str) -> str:
    """The E form where there is a backslash: there it means the same, whatever standard_conforming_strings says."""
    quoted = _plain_text(text)
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def _escaped_text(text: str) -> str:
    _check(text, "a text")
    return "'" + _escaped(text, "'") + "'"


def _escaped(text: str, quote: str) -> str:
    """Backslash before the quote and itself; what is not printable, and the dollar sign, by number."""
    return "".join(
        f"\\{sign}"
        if sign in (quote, "\\")
        else f"\\u{ord(sign):04x}"
        if sign == "$" or (not sign.isprintable() and ord(sign) < 0x10000)
        else sign
        for sign in text
    )


def _fraction(double: str) -> Callable[[float], str]:
    """Write a double as a whole number below 2**53, times or over powers of two: exact, however decimals are read."""

    def number(value: float) -> str:
        numerator, denominator = value.as_integer_ratio()
        shift = 1 - denominator.bit_length()
        while numerator and numerator % 2 == 0:
            numerator, shift = numerator // 2, shift + 1
        if shift > 0 and abs(numerator) << shift <= 2**53:
            numerator, shift = numerator << shift, 0
        parts = [f"CAST({numerator} AS {double})"]
        sign, left = (" * ", shift) if shift > 0 else (" / ", -shift)
        while left:
            step = min(left, 62)
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
        _plain_text,
        _duckdb_number,
        "CAST('{}inf' AS DOUBLE)",
        binary_text='CAST({} AS VARCHAR) COLLATE "binary"',
    ),
    "snowflake": Dialect(
        "DOUBLE",
        _snowflake_name,
        _escaped_text,
        _fraction("DOUBLE"),
        "CAST('{}inf' AS DOUBLE)",
        binary_text="COLLATE({}, '')",
    ),
    "bigquery": Dialect(
        "FLOAT64",
        _bigquery_name,
        _escaped_text,
        _fraction("FLOAT64"),
        "CAST('{}inf' AS FLOAT64)",
        binary_text="COLLATE({}, '')",
    ),
    "spark": Dialect(
        "DOUBLE",
        _spark_name,
        _escaped_text,
        lambda value: f"{value!r}D",
        "CAST('{}Infinity' AS DOUBLE)",
        most_nested=63,  # Spark compiles a CASE to Java: slow at hundreds of cuts, out of memory at thousands
    ),
    "sqlite": Dialect(
        "REAL",
        _doubled("`"),  # a name in double quotes that is no column would be taken for a text, without an error
        _plain_text,
        _fraction("REAL"),
        "{}9e999",
        binary_text="{} COLLATE BINARY",
        booleans=("0", "1"),
        guard="typeof({}) IN ('real', 'integer')",
    ),
}
