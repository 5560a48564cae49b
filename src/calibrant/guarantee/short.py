"""The first sentence of a guarantee: what is proved, and on which assumption, in 35 words at most.

What does not fit goes into the details (`calibrant.guarantee.words`).
"""

from typing import TYPE_CHECKING

import numpy as np

from calibrant._typing import BoolArray
from calibrant.guarantee.relative import TELLING
from calibrant.guarantee.statement import Claim, Edges, Event, GroupFacts, Population, Statement
from calibrant.text.numbers import counted, factor_limits, percent, upper
from calibrant.text.sentences import Text, joined, render

if TYPE_CHECKING:
    from calibrant.guarantee.guarantee import Guarantee

MOST_WORDS = 35
"""Maximum number of words in a first sentence."""


def short_sentence(guarantee: "Guarantee") -> Text:
    """What is proved, with its assumption; or the reason why nothing is."""
    statement = guarantee.statement
    if statement.caveats:
        return not_proved(tuple(caveat.reason for caveat in statement.caveats))
    return proved_sentence(guarantee)


def proved_sentence(guarantee: "Guarantee") -> str:
    """What is proved, with its assumption, whatever the caveats are.

    If the sentence is too long, it does not name the class; if it still is, it leaves out the
    regions without relative limits, and then how groups are weighted. The details include all.
    """
    opening = (
        f"{confidence_of(guarantee.confidence_level, guarantee.statement)},"
        f" {assumption_of(guarantee.statement)}, then "
    )
    if guarantee.statement.population is Population.STREAM:
        # predictions move with the counts, so the bound of now is not one for earlier predictions
        opening += f"now, after {counted(guarantee.n_rows, 'label')}, "
    event = event_of(guarantee)
    shorter = event if guarantee.statement.event is Event.CORRECT_PREDICTION else ""
    said = f"{opening}{_claim(guarantee, event)}."
    if n_words(said) > MOST_WORDS:
        said = f"{opening}{_claim(guarantee, shorter)}."
    if n_words(said) > MOST_WORDS:
        said = f"{opening}{_claim(guarantee, shorter, elsewhere=False)}."
    if n_words(said) > MOST_WORDS:
        said = f"{opening}{_claim(guarantee, shorter, elsewhere=False, counting=False)}."
    return said


def not_proved(reasons: tuple[Text, ...], opening: str = "Nothing is proved") -> Text:
    """Why nothing is proved: as many reasons as fit.

    >>> render(not_proved(("the weights were guessed", " ".join(["word"] * 40))))
    'Nothing is proved: the weights were guessed.'
    """
    said: Text = ""
    for number in range(1, len(reasons) + 1):
        listed = joined(*(part for reason in reasons[:number] for part in ("; and ", reason)))[1:]
        longer = joined(f"{opening}: ", listed, ".")
        if n_words(render(longer)) <= MOST_WORDS:
            said = longer
    return said or f"{opening}; the details say why."


def n_words(text: str) -> int:
    """Number of words in a text."""
    return len(text.split())


def confidence_of(level: float, statement: Statement) -> str:
    """The confidence, and what it is a probability over if that is not only the rows."""
    over = " over rows and seed" if statement.over_seed else ""
    return f"With {percent(level)} confidence{over}"


def event_of(guarantee: "Guarantee") -> str:
    """The event whose rate is meant."""
    if guarantee.statement.event is Event.CORRECT_PREDICTION:
        return " of correct predictions"
    return f" of class {guarantee.positive_label!r}"


def noun_of(guarantee: "Guarantee") -> str:
    """The noun for a region."""
    statement = guarantee.statement
    plain = (
        statement.edges is not Edges.FUNCTION and not statement.n_segments and not statement.n_atoms
    )
    return "bin" if plain else "region"


def prediction_of(guarantee: "Guarantee") -> str:
    """What the rate is compared with."""
    return "average prediction" if guarantee.statement.claim is Claim.AVERAGE else "prediction"


def assumption_of(statement: Statement) -> str:
    """The sentence's assumption about new rows."""
    whole = statement.groups is not None or statement.of_groups
    units = "groups" if whole else "rows"
    if statement.population is Population.STREAM:
        return f"if {units} are i.i.d. and labelled in order or randomly"
    shifted = statement.population is Population.COVARIATE_SHIFT
    if statement.groups is not None and shifted:
        return "if groups are i.i.d., P(class | inputs) unchanged, weights exact"
    if statement.groups is not None or statement.population is Population.SAME:
        return f"if new {units} are i.i.d. with these"
    if statement.population is Population.LABEL_SHIFT:
        scores = "score, segment" if statement.n_segments else "score"
        return f"if P({scores} | class) is unchanged"
    if statement.population is Population.WEIGHTED:
        return f"if new {units} follow the weighted distribution of these"
    return "if P(class | inputs) is unchanged and weights are the density ratio"


def _claim(
    guarantee: "Guarantee", event: str, *, elsewhere: bool = True, counting: bool = True
) -> str:
    stated = guarantee.stated
    rate = f"{rate_of(guarantee.statement)}{event}"
    if counting:
        rate += counting_of(guarantee.statement)
    prediction = prediction_of(guarantee)
    number = stated.kept.size
    pooled = pooled_of(guarantee.statement) + opinion_of(guarantee.statement)
    regions = f"{counted(number, noun_of(guarantee))}{pooled}"
    each = f"in each of {regions}"
    if number == 1:
        each = f"in the only {noun_of(guarantee)}{pooled}"
    if not stated.kept.all():
        of_all = f"in {int(stated.kept.sum()):,} of {regions}"
        each = f"{of_all}, with at least {percent(stated.mass)} of rows,"
    telling = telling_regions(guarantee)
    if not telling.any():
        return f"{each} {rate} is within {upper(stated.epsilon)} of the {prediction}"
    factors = factor_limits(
        guarantee.relative.lower[telling].min(), guarantee.relative.upper[telling].max()
    )
    if telling.all():
        return f"{each} {rate} is {factors} times the {prediction}"
    some = f"in {int(telling.sum()):,} of {regions}"
    said = f"{some} {rate} is {factors} times the {prediction}"
    most = float(guarantee.upper[~telling].max())
    return f"{said}, elsewhere at most {upper(most)}" if elsewhere and most < 1.0 else said


def pooled_of(statement: Statement) -> str:
    """How many segments share regions, if any do."""
    if not statement.n_pooled:
        return ""
    return f" ({counted(statement.n_pooled, 'segment')} pooled)"


def opinion_of(statement: Statement) -> str:
    """What regions are bins of, if that is not the prediction or its score."""
    return " of a first opinion" if statement.n_trained else ""


def training_of(guarantee: "Guarantee") -> str:
    """Which rows give the limits and which train the models, if regions are of a first opinion."""
    n_trained = guarantee.statement.n_trained
    return (
        f"The first opinion is that of models that saw nothing of the {guarantee.n_rows:,} calibration"
        f" rows, which give the limits; all {n_trained:,} rows trained the models that predict."
    )


def telling_regions(guarantee: "Guarantee") -> BoolArray:
    """The regions whose relative limits the sentence states; none, unless events are rare."""
    if not guarantee.is_rare or not guarantee.stated.kept.all():
        return np.zeros(guarantee.value.size, dtype=bool)
    relative = guarantee.relative
    return np.asarray((relative.lower >= 1.0 / TELLING) & (relative.upper <= TELLING))


def rate_of(statement: Statement) -> str:
    """Which rate the sentence is about."""
    if statement.population in (Population.LABEL_SHIFT, Population.COVARIATE_SHIFT):
        return "the target population's rate"
    weighted = statement.groups is not None and statement.groups.max_weight is not None
    if weighted or statement.population is Population.WEIGHTED:
        return "the weighted rate"
    return "the true rate"


def counting_of(statement: Statement) -> str:
    """How much each group counts, if rows have groups."""
    if statement.of_groups:
        return " (groups weighted equally)"
    groups = statement.groups
    return "" if groups is None else _cap(groups)


def _cap(groups: GroupFacts) -> str:
    if groups.target == "groups":
        return " (groups weighted equally)"
    if groups.max_weight is not None:
        return f" (with groups capped at weight {upper(groups.max_weight)})"
    return f" (with groups capped at {counted(groups.max_size, 'row')})"
