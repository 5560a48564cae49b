"""Finite partitions of the inputs: bins of a score, leaves of a tree, segments."""

from calibrant.partition.base import Partition
from calibrant.partition.bins import OTHER, Bins
from calibrant.partition.function import FunctionPartition
from calibrant.partition.scores import ScorePartition
from calibrant.partition.segments import SegmentedPartition

__all__ = ["OTHER", "Bins", "FunctionPartition", "Partition", "ScorePartition", "SegmentedPartition"]
