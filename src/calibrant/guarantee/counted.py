"""Counts belong to the regions that they were taken over."""

from calibrant.cells.partition import Partition, check_partition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.params.rules import check_type


def check_tally(partition: Partition, tally: Tally) -> None:
    """Check that a tally was taken over this partition."""
    check_partition(partition)
    check_type("tally", tally, Tally, "a Tally")
    if tally.n_regions != partition.n_regions:
        rule = f"have one entry per region, {partition.n_regions}"
        raise InvalidValueError("tally", rule, got=str(tally.n_regions))
    if tally.partition is not None and tally.partition != partition.fingerprint:
        raise InvalidValueError(
            "tally", "have been taken over this partition", got="one taken over another"
        )
