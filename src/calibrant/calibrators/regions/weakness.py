"""Warnings about a fit that guarantees little, unless the caller reports that."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from calibrant.calibrators.regions.parameters import NO_ASSUMPTIONS
from calibrant.errors import (
    GroupCapWarning,
    PooledSegmentsWarning,
    WeakGuaranteeWarning,
    warn_caller,
)
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.words import cap_matters
from calibrant.sample.facts import listed_names
from calibrant.text.numbers import counted, upper
from calibrant.text.sentences import Setting, words

_is_reported: ContextVar[bool] = ContextVar("whether the caller of fit reports", default=False)


@contextmanager
def reported_by_caller() -> Iterator[None]:
    """Suppress warnings of weak guarantees inside the block: the caller reports them or does not
    need them.
    """
    token = _is_reported.set(True)
    try:
        yield
    finally:
        _is_reported.reset(token)


def warn_if_weak(guarantee: Guarantee, of: str = "") -> None:
    """Warn if little is guaranteed, and say what to do."""
    little = guarantee.weakness
    if little is None or _is_reported.get():
        return
    epsilon = upper(guarantee.stated.epsilon)
    warn_caller(f"the guarantee{of} says {little}; epsilon is {epsilon}", WeakGuaranteeWarning)


def warn_without_subgroups() -> None:
    """Warn if a calibrator of subgroups got no attributes, and say what to do."""
    if _is_reported.get():
        return
    text = "the guarantee is about all rows only: without attributes there are no subgroups"
    advice = 'give them to fit, as in attributes={"sex": sex, "age": age}'
    warn_caller(f"{text}; {advice}", WeakGuaranteeWarning)


def warn_of_pooled(segments: tuple[str | int | float, ...]) -> None:
    """Warn that segments share the regions of "other" although nobody asked for it."""
    if _is_reported.get():
        return
    does = "shares" if len(segments) == 1 else "share"
    text = (
        f'{counted(len(segments), "segment")} {does} the regions of "other", so the guarantee is'
        f" about all rows there together: {listed_names(segments)}; too few of the rows drawn to"
        " choose segments were theirs; give all segments their own regions with "
    )
    keep_all = Setting("segment_rule", None)
    chosen = (keep_all, ", or some of them with a list of names as ", Setting("segment_rule"))
    warn_caller(PooledSegmentsWarning(words((text, *chosen)), segments))


def warn_of_cap(fitted: object, guarantee: Guarantee, of: str = "") -> None:
    """Warn if a learned cap on groups excludes the rate among all rows."""
    groups = guarantee.statement.groups
    assumptions = getattr(fitted, "assumptions_", NO_ASSUMPTIONS)
    if groups is None or not groups.n_apart or assumptions.max_group_size is not None:
        return
    if not _is_reported.get():
        text = (
            f"the guarantee{of} does not count all rows in full: {cap_matters(groups)}; choose the cap"
            " with "
        )
        target = Setting("group_target", "groups")
        either = (Setting("max_group_size"), ", or count groups equally with ", target)
        warn_caller(words((text, *either)), GroupCapWarning)
