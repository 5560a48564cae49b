"""A guarantee from counts alone."""

from calibrant import Guarantee, Partition, Tally


def guarantee(counts, positives, **options) -> Guarantee:
    partition = Partition.fixed_width(len(counts))
    return Guarantee.from_tally(
        partition, Tally.from_counts(counts, positives, partition=partition), **options
    )
