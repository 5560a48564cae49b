"""A GROUP BY of attributes and kinds of scores, as steps of expressions that engines run
themselves.

It uses only expressions that DuckDB, Spark and Polars share; `calibrant.sample.cross_key` explains
them. In all three, NaN is greater than every number and equal to itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from calibrant._optional import pa
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.score_kinds import N_KINDS
from calibrant.sample.cross_key import (
    FACTORS,
    HIGH_STEPS,
    LOW_STEPS,
    N_HALVES,
    PRIME,
    SCORE_STEPS,
    VARIANCE_STEPS,
    CrossKey,
    PlaceDraw,
)
from calibrant.sample.sql.dialects import Dialect

if TYPE_CHECKING:
    from calibrant.sample.cross_counts import CountCross

SUMS = {
    "n": "COUNT(*)",
    "high": "SUM(high)",
    "low": "SUM(low)",
    "variance": "SUM(variance)",
}
"""The sums in each group."""
_MOST_BRANCHES = 100  # of an attribute: each value is compared with all of them
KINDS = ("string", "bool", "number")
"""The column types that engines can count by themselves."""


@dataclass(frozen=True, slots=True)
class CrossSteps:
    """Successive projections, each a mapping from names to expressions.

    The first reads the columns `score`, `label` and `a0`, `a1`, ...; the last has `key`, `label`
    and the summands. `key` is null for a row that cannot be counted.

    Attributes
    ----------
    key : CrossKey
        The key whose parts make up the number of a group.
    dialect : Dialect
        How numbers and texts are written.
    kinds : tuple of str
        What each attribute's column holds: "string", "bool" or "number".
    """

    key: CrossKey
    dialect: Dialect
    kinds: tuple[str, ...]

    @property
    def is_possible(self) -> bool:
        """Whether the engine can do it: columns have the expected types, and not too many values."""
        pairs = zip(self.key.levels, self.kinds, strict=True)
        return all(kind in KINDS and _fits(level, kind) for level, kind in pairs)

    def steps(self) -> list[Mapping[str, str]]:
        """The projections."""
        return [self._read(), self._crossed(), self._mixed(), self._squared(), self._last()]

    def _double(self, text: str) -> str:
        return f"CAST({text} AS {self.dialect.double})"

    def _whole(self, text: str) -> str:
        return f"CAST(FLOOR({text}) AS BIGINT)"

    def _read(self) -> dict[str, str]:
        score = self._double("score")
        number = self.dialect.number
        inside = f"{score} >= {number(0.0)} AND {score} <= {number(1.0)}"
        found = {"label": "label", "s": f"CASE WHEN {inside} THEN {score} END"}
        for place, (level, kind) in enumerate(zip(self.key.levels, self.kinds, strict=True)):
            found[f"c{place}"] = self._level(level, kind, f"a{place}")
        return found

    def _level(self, level: AttributeLevels, kind: str, column: str) -> str:
        """The index of a level; one past the last for no level, null for an infinite number."""
        none = level.n_levels
        missing = none - 1 if level.with_missing else none
        if kind == "number":
            return self._range(level, self._double(column), missing)
        branches = [f"WHEN {column} IS NULL THEN {missing}"]
        for place, value in enumerate(level.values):
            equal = f"{column} = {self.dialect.text(value)}" if isinstance(value, str) else ""
            if kind == "bool":
                equal = column if value else f"NOT {column}"
            branches.append(f"WHEN {equal} THEN {place}")
        return f"CASE {' '.join(branches)} ELSE {none} END"

    def _range(self, level: AttributeLevels, column: str, missing: int) -> str:
        number = self.dialect.number
        infinite = number(float("inf"))
        branches = [f"WHEN {column} IS NULL OR {column} > {infinite} THEN {missing}"]
        branches.append(
            f"WHEN {column} = {infinite} OR {column} = {number(-float('inf'))} THEN NULL"
        )
        values = [float(str(value)) for value in level.values]
        for place, value in enumerate(values):
            branches.append(f"WHEN {column} = {number(value)} THEN {place}")
        for place, cut in enumerate(level.cuts, start=len(values)):
            branches.append(f"WHEN {column} <= {number(cut)} THEN {place}")
        last = len(values) + len(level.spans) - 1 if level.spans else level.n_levels
        return f"CASE {' '.join(branches)} ELSE {last} END"

    def _crossed(self) -> dict[str, str]:
        crossed = "CAST(0 AS BIGINT)"
        for place, size in enumerate(self.key.sizes[: len(self.kinds)]):
            crossed = f"({crossed} * {size} + c{place})"
        number = self.dialect.number
        root = f"SQRT(s / {number(2.0)})"
        other = f"SQRT(({number(1.0)} - s) / {number(2.0)})"
        kinds = number(float(N_KINDS))
        low = self._whole(f"{kinds} * {root}")
        high = self._whole(f"{kinds} * ({number(1.0)} - {other})")
        top = f"CASE WHEN s >= {number(1.0)} THEN {N_KINDS - 1} ELSE {high} END"
        return {
            "label": "label",
            "s": "s",
            "crossed": crossed,
            "kind": f"CASE WHEN s <= {number(0.5)} THEN {low} ELSE {top} END",
            "step": self._whole(f"s * {number(float(SCORE_STEPS))}"),
            "high": self._whole(f"s * {number(float(HIGH_STEPS))}"),
        }

    def _mixed(self) -> dict[str, str]:
        kept = {name: name for name in ("label", "s", "crossed", "kind", "high")}
        return {**kept, "m": f"(step * {FACTORS[0]} + crossed % {PRIME} * {FACTORS[1]}) % {PRIME}"}

    def _squared(self) -> dict[str, str]:
        kept = {name: name for name in ("label", "s", "crossed", "kind", "high", "m")}
        return {**kept, "q": f"(m * m + 1) % {PRIME}"}

    def _last(self) -> dict[str, str]:
        number = self.dialect.number
        left = f"s * {number(float(HIGH_STEPS))} - {self._double('high')}"
        spread = f"s * ({number(1.0)} - s) * {number(float(VARIANCE_STEPS))}"
        half = f"(q * q + m) % {PRIME} % {N_HALVES}"
        return {
            "key": f"(crossed * {N_KINDS} + kind) * {N_HALVES} + {half}",
            "label": "label",
            "high": "high",
            "low": self._whole(f"({left}) * {number(float(LOW_STEPS))}"),
            "variance": self._whole(spread),
        }


def _fits(level: AttributeLevels, kind: str) -> bool:
    if len(level.values) > _MOST_BRANCHES:
        return False
    if level.is_numeric or kind == "number":
        return level.is_numeric and kind == "number"
    wanted = bool if kind == "bool" else str
    return all(isinstance(value, wanted) for value in level.values)


def draw_steps(draw: PlaceDraw, kept: list[str]) -> tuple[list[Mapping[str, str]], str]:
    """Projections of the column `place`, alongside the `kept` columns, that determine which rows
    are drawn.
    """
    names = {name: name for name in kept}
    first = {**names, "p": f"CAST(place AS BIGINT) % {PRIME}"}
    second = {**names, "p": "p", "m": f"(p * {FACTORS[0]} + {draw.shift}) % {PRIME}"}
    third = {**names, "p": "p", "m": "m", "q": f"(m * m + 1) % {PRIME}"}
    fourth = {**names, "q": "q", "r": f"(q * m + p) % {PRIME}"}
    return [first, second, third, fourth], f"(r * r + q) % {PRIME} < {draw.limit}"


@dataclass(frozen=True, slots=True)
class CrossNames:
    """Columns of the data, their types, and the names under which the first step reads them.

    Attributes
    ----------
    names : dict
        The column names of "score", "label", "a0", "a1" and so on.
    kinds : dict
        The types of these columns.
    """

    names: Mapping[str, str]
    kinds: Mapping[str, str]

    @classmethod
    def of(cls, work: "CountCross", kind_of: Callable[[str], str]) -> Self:
        """The columns that `work` reads; `kind_of` gives the type of a column."""
        names = {"score": work.columns.score, "label": str(work.columns.label)}
        names |= {f"a{place}": name for place, name in enumerate(work.attributes)}
        return cls(names, {new: kind_of(name) for new, name in names.items()})

    def steps(self, work: "CountCross", dialect: Dialect) -> list[Mapping[str, str]] | None:
        """The projections; None if the engine cannot count by these columns."""
        of_attributes = [kind for new, kind in self.kinds.items() if new not in ("score", "label")]
        steps = CrossSteps(work.key, dialect, tuple(of_attributes))
        is_readable = self.kinds["score"] == "number" and self.kinds["label"] in KINDS
        return steps.steps() if is_readable and steps.is_possible else None


def arrow_kind(kind: Any) -> str:
    """The kind of an Arrow type: "string", "bool", "number", or something else."""
    types = pa.types
    if types.is_dictionary(kind):
        return "string" if arrow_kind(kind.value_type) == "string" else "other"
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind):
        return "number"
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return "string" if is_text else "other"


def not_missing(column: str, is_number: bool, dialect: Dialect) -> str:
    """Whether an entry is present: neither null nor NaN."""
    if not is_number:
        return f"{column} IS NOT NULL"
    number = f"CAST({column} AS {dialect.double})"
    return f"{column} IS NOT NULL AND NOT {number} > {dialect.number(float('inf'))}"
