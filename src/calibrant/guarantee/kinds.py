"""Whether there is a guarantee: asked here alone."""

from typing import TYPE_CHECKING

from calibrant.guarantee.guarantee import Guarantee

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_guarantee(found: object) -> "TypeIs[Guarantee]":
    """Whether limits are proved for each region; not so of a `NoGuarantee`, nor of None."""
    return isinstance(found, Guarantee)
