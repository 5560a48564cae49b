"""Finite partitions of the inputs: bins of a score, leaves of a tree, segments."""

from calibrant.cells.bins import OTHER, Bins
from calibrant.cells.function_partition import FunctionPartition
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition

__all__ = [
    "OTHER",
    "Bins",
    "FunctionPartition",
    "Partition",
    "ScorePartition",
    "SegmentedPartition",
]
