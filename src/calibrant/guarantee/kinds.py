"""The one place that decides whether an object is a guarantee."""

from typing import TYPE_CHECKING

from calibrant.guarantee.guarantee import Guarantee

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_guarantee(found: object) -> "TypeIs[Guarantee]":
    """Whether limits are proved for each region; False for a `NoGuarantee` and for None."""
    return isinstance(found, Guarantee)
