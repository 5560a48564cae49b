"""Reports read back as trees of tags, and the data that tests of reports share."""

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser

import numpy as np

from calibrant import Audit, BinningCalibrator, Partition, Tally, audit
from calibrant.text.numbers import lower, nearest, upper

VOID = {"meta", "br"}
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=6_000)
Y = (RNG.uniform(size=6_000) < SCORES + 0.15 * np.sin(2 * np.pi * SCORES)).astype(int)
SEGMENTS = np.where(
    RNG.uniform(size=6_000) < 0.3, "north & <b>south</b>", "</script><script>alert(1)</script>"
)
AUDIT = audit(Y, SCORES)
BY_SEGMENT = audit(Y, SCORES, segments=SEGMENTS)
CALIBRATOR = BinningCalibrator(12).fit(SCORES, Y)
HISTOGRAM = Tally.from_data(Partition.fixed_width(25), SCORES, Y)


@dataclass(repr=False)
class Node:
    tag: str
    attributes: dict[str, str]
    parent: "Node | None"
    children: list["Node"] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        return " ".join("".join(self._pieces()).split())

    def _pieces(self) -> list[str]:
        return [
            piece
            for part in self.words
            for piece in ([part] if isinstance(part, str) else [" ", *part._pieces()])
        ]

    def all(self, tag: str | None = None, kind: str | None = None) -> list["Node"]:
        found = []
        for child in self.children:
            if (tag is None or child.tag == tag) and (kind is None or kind in child.classes):
                found.append(child)
            found += child.all(tag, kind)
        return found

    def number(self, name: str) -> float:
        return float(self.attributes[f"data-{name}"])


class Reader(HTMLParser):
    """A strict reader: every tag that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.root = self.here = Node("document", {}, None)

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), f"an attribute twice in <{tag}>"
        node = Node(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(node)
        self.here.words.append(node)
        if tag not in VOID:
            self.here = node

    def handle_startendtag(self, tag, attrs):
        before = self.here
        self.handle_starttag(tag, attrs)
        self.here = before

    def handle_endtag(self, tag):
        assert self.here.tag == tag, f"</{tag}> closes <{self.here.tag}>"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.words.append(data)


@cache
def read(page: str) -> Node:
    """The page as a tree that stays as it is: read once for all tests that look at it."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.here is reader.root
    return reader.root


def chart(root: Node, name: str) -> Node:
    return next(
        node
        for node in root.all("svg", "chart")
        if node.attributes["aria-labelledby"].startswith(f"{name}-")
    )


def marks(node: Node) -> list[Node]:
    return node.all("g", "m")


def shown(nodes: list[Node], names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What the nodes say of themselves, sorted."""
    return sorted(tuple(node.attributes[f"data-{name}"] for name in names) for node in nodes)


def written(columns: dict, rows: np.ndarray) -> list[tuple[str, ...]]:
    """Columns of numbers as the report writes them: limits rounded outwards, estimates to the
    nearest, counts whole.
    """
    return sorted(
        zip(*(map(write, column[rows].tolist()) for column, write in columns.values()), strict=True)
    )


def whole(count: int) -> str:
    return f"{count:,}"


AUDIT_COLUMNS = {
    "low": nearest,
    "high": nearest,
    "counts": whole,
    "mean_score": nearest,
    "rate": nearest,
    "lower": lower,
    "upper": upper,
    "error": lower,
}
AUDIT_NAMES = ("low", "high", "count", "mean", "rate", "lower", "upper", "error")


def audit_lines(result: Audit, rows: np.ndarray) -> list[tuple[str, ...]]:
    return written(
        {name: (getattr(result.table, name), write) for name, write in AUDIT_COLUMNS.items()}, rows
    )


def finest(result: Audit) -> np.ndarray:
    everyone = np.array([segment is None for segment in result.table.segment])
    return np.flatnonzero(result.table.is_finest & everyone)


def table_rows(root: Node, caption: str) -> list[list[str]]:
    table = next(
        node
        for node in root.all("table")
        if any(c.attributes["id"] == caption for c in node.all("caption"))
    )
    return [[cell.text for cell in row.children] for row in table.all("tbody")[0].all("tr")]
