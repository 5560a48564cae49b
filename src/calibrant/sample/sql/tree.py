"""A balanced search among cuts, as a tree whose depth is the logarithm of their number."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Node = TypeVar("Node")


def balanced(
    cuts: Sequence[float], leaves: Sequence[Node], fork: Callable[[float, Node, Node], Node]
) -> Node:
    """Join the leaves between the cuts into one node: `fork(cut, below, at_or_above)`.

    >>> balanced([1.0, 2.0, 3.0], ["a", "b", "c", "d"], lambda cut, low,
    ...     high: f"({low} <{cut:g}> {high})")
    '((a <1> b) <2> (c <3> d))'
    """
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    below = balanced(cuts[: middle - 1], leaves[:middle], fork)
    above = balanced(cuts[middle:], leaves[middle:], fork)
    return fork(cuts[middle - 1], below, above)
