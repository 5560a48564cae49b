"""The notebook view of a classifier: scikit-learn's diagram, with the models and the guarantee."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from calibrant.text.numbers import percent, upper

_MOST_MODELS = 10  # drawn individually


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the diagram, with the attributes that scikit-learn expects."""

    kind: str
    estimators: Any
    names: str | Sequence[str]
    name_details: str | Sequence[str | None]
    name_caption: str | None = None
    doc_link_label: str | None = None
    dash_wrapped: bool = True

    def _sk_visual_block_(self) -> Self:
        return self


def visual_block(classifier: Any) -> Block:
    """The block of a fitted classifier: its models side by side, then the guarantee."""
    models = getattr(classifier, "estimators_", None) or (classifier.estimator_,)
    drawn = models[:_MOST_MODELS]
    names = [f"model {number}: {_name(model)}" for number, model in enumerate(drawn, start=1)]
    if len(models) > len(drawn):
        names[-1] += f", and {len(models) - len(drawn)} more"
    members = Block("parallel", list(drawn), names, [str(model) for model in drawn])
    guarantee = classifier.guarantee_
    said = Block("single", "guarantee", _headline(guarantee), str(guarantee))
    return Block(
        "serial",
        [members, said],
        [_plural(len(models)), "guarantee"],
        [None, None],
        dash_wrapped=False,
    )


def _headline(guarantee: Any) -> str:
    """The guarantee in a few words."""
    if guarantee.epsilon is None:
        return "guarantee: none"
    if not guarantee.is_proved:
        return "nothing is guaranteed"
    level = percent(guarantee.confidence_level)
    return f"guarantee: within {upper(guarantee.epsilon)} in each bin, with {level} confidence"


def _plural(count: int) -> str:
    return "model" if count == 1 else f"{count} models, averaged"


def _name(model: Any) -> str:
    return (
        type(model).__name__
        if hasattr(model, "fit")
        else getattr(model, "__name__", type(model).__name__)
    )
