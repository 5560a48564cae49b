"""The wording of a guarantee: functions that put its numbers and facts into words.

User data, such as class labels and names of segments, never pass through a template.
"""

from typing import TYPE_CHECKING

import numpy as np

from calibrant._typing import BoolArray
from calibrant.guarantee.relative import TELLING
from calibrant.guarantee.statement import (
    Edges,
    Event,
    GroupFacts,
    ImportanceWeights,
    Population,
    Statement,
)
from calibrant.text.numbers import (
    above_cap,
    counted,
    factor_limits,
    lower,
    nearest,
    percent,
    points,
    upper,
)
from calibrant.text.result import said_of_file
from calibrant.text.sentences import Setting, Text, in_words, is_true, joined, listed, render

if TYPE_CHECKING:
    from calibrant.guarantee.guarantee import Guarantee

MOST_WORDS = 35
"""Maximum number of words in a sentence."""
OFF_BY = (
    "Bound: how far the average prediction for new rows can be from the true rate. Their scores"
    " within a range may differ from these, so it can be more than the limits show."
)
_OVER_SEED = (
    "rows take only a few different values, so many data sets share one random draw for a given"
    " seed: the probability is over the rows and a seed that was chosen at random"
)
_NOT_FOR_ONE = "nothing is guaranteed for one score, one prediction, or part of a score range"


def guarantee_sentence(guarantee: "Guarantee") -> Text:
    """What is guaranteed, with its assumption; or why nothing is."""
    statement = guarantee.statement
    if statement.caveats:
        return not_guaranteed(tuple(caveat.reason for caveat in statement.caveats))
    return claim(guarantee)


def claim(guarantee: "Guarantee") -> str:
    """What is guaranteed, with its assumption, whatever the caveats are.

    If it is too long, it leaves out the regions without relative limits, then the name of the class,
    and then how groups count; the notes have them.
    """
    text = ""
    parts = ("elsewhere", "event", "counting")
    for number in range(len(parts) + 1):
        text = _claim(guarantee, frozenset(parts[:number]))
        if n_words(text) <= MOST_WORDS:
            break
    return text


def not_guaranteed(reasons: tuple[Text, ...], opening: str = "Nothing is guaranteed") -> Text:
    """Why nothing is guaranteed: as many reasons as fit.

    >>> render(not_guaranteed(("the weights were guessed", " ".join(["word"] * 40))))
    'Nothing is guaranteed: the weights were guessed.'
    """
    text: Text = ""
    for number in range(1, len(reasons) + 1):
        longer = joined(f"{opening}: ", listed(reasons[:number], "; and "), ".")
        if n_words(render(longer)) <= MOST_WORDS:
            text = longer
    return text or f"{opening}; the details say why."


def n_words(text: str) -> int:
    """Number of words in a text."""
    return len(text.split())


def sure(guarantee: "Guarantee", together: str, *, counting: bool = True) -> str:
    """How sure a guarantee is, and on which assumption, in brackets."""
    statement = guarantee.statement
    over = " over rows and seed" if statement.over_seed else ""
    counted_as = _counting(statement) if counting else ""
    return (
        f"({percent(guarantee.confidence_level)} confidence{over}{together}, if"
        f" {assumption_of(guarantee)}{counted_as})"
    )


def event_of(guarantee: "Guarantee") -> str:
    """The event whose rate is meant; empty for a label that only says yes."""
    if guarantee.statement.event is Event.CORRECT_PREDICTION:
        return " of correct predictions"
    return "" if is_true(guarantee.positive_label) else f" of {guarantee.positive_label!r}"


def rate_of(guarantee: "Guarantee", *, named: bool = True) -> str:
    """Which rate the guarantee is about."""
    statement = guarantee.statement
    event = event_of(guarantee) if named else ""
    weighted = statement.groups is not None and statement.groups.max_weight is not None
    if statement.population in (Population.LABEL_SHIFT, Population.COVARIATE_SHIFT):
        return f"the true rate{event} in the target population"
    if weighted or statement.population is Population.WEIGHTED:
        return f"the true weighted rate{event}"
    return f"the true rate{event}"


def noun_of(guarantee: "Guarantee") -> str:
    """The noun for a region."""
    statement = guarantee.statement
    plain = (
        statement.edges is not Edges.FUNCTION and not statement.n_segments and not statement.n_atoms
    )
    return "score range" if plain else "region"


def prediction_of(guarantee: "Guarantee") -> str:
    """What the rate is compared with."""
    return "average prediction" if guarantee.predictions_vary else "prediction"


def assumption_of(guarantee: "Guarantee") -> str:
    """The sentence's assumption about new rows, to follow "if"."""
    statement = guarantee.statement
    groups = statement.groups
    units = "groups" if groups is not None or statement.of_groups else "rows"
    n_units = guarantee.n_rows if groups is None else groups.counted
    if statement.population is Population.STREAM:
        return f"{units} are i.i.d., labelled in order or at random"
    if groups is not None and statement.population is Population.COVARIATE_SHIFT:
        return "groups are i.i.d., P(label | inputs) unchanged, weights exact"
    if groups is not None or statement.population is Population.SAME:
        return f"new {units} are like these {n_units:,}"
    if statement.population is Population.LABEL_SHIFT:
        scores = "score, segment" if statement.n_segments else "score"
        return f"P({scores} | label) is unchanged"
    if statement.population is Population.WEIGHTED:
        return f"new {units} follow the weighted distribution of these {n_units:,}"
    return "weights are exact and P(label | inputs) unchanged"


def _counting(statement: Statement) -> str:
    """How much each group counts, if rows have groups."""
    groups = statement.groups
    if statement.of_groups or (groups is not None and groups.target == "groups"):
        return "; groups count equally"
    if groups is None:
        return ""
    if groups.max_weight is not None:
        return f"; groups capped at weight {upper(groups.max_weight)}"
    return f"; groups capped at {counted(groups.max_size, 'row')}"


def _claim(guarantee: "Guarantee", less: frozenset[str]) -> str:
    statement = guarantee.statement
    stated = guarantee.stated
    number = stated.kept.size
    pooled = f" ({counted(statement.n_pooled, 'segment')} pooled)" if statement.n_pooled else ""
    opinion = " of a first opinion" if statement.n_trained else ""
    noun = noun_of(guarantee)
    where = f"In each of {counted(number, noun)}{pooled}{opinion}"
    if number == 1:
        where = f"In the only {noun}{opinion}"
    if not stated.kept.all():
        of_all = f"In {int(stated.kept.sum()):,} of {counted(number, noun)}{pooled}{opinion}"
        where = f"{of_all}, with at least {percent(stated.mass)} of rows"
    if statement.population is Population.STREAM:
        # predictions move with the counts, so the bound of now is not one for earlier predictions
        where = f"Now, after {counted(guarantee.n_rows, 'label')}, {where[:1].lower()}{where[1:]}"
    rate = rate_of(guarantee, named="event" not in less)
    prediction = prediction_of(guarantee)
    together = "" if number == 1 else f", all {noun.split()[-1]}s together"
    how = sure(guarantee, together, counting="counting" not in less)
    telling = telling_regions(guarantee)
    if not telling.any():
        return (
            f"{where}, {rate} is within {points(upper(stated.epsilon))} of the {prediction} {how}."
        )
    relative = guarantee.relative
    factors = factor_limits(relative.lower[telling].min(), relative.upper[telling].max())
    if telling.all():
        return f"{where}, {rate} is {factors} times the {prediction} {how}."
    some = f"In {int(telling.sum()):,} of {counted(number, noun)}{pooled}{opinion}"
    most = float(guarantee.upper[~telling].max())
    rest = f", elsewhere at most {upper(most)}" if "elsewhere" not in less and most < 1.0 else ""
    return f"{some}, {rate} is {factors} times the {prediction}{rest} {how}."


def telling_regions(guarantee: "Guarantee") -> BoolArray:
    """The regions whose relative limits the sentence states; none, unless events are rare."""
    if not guarantee.is_rare or not guarantee.stated.kept.all():
        return np.zeros(guarantee.value.size, dtype=bool)
    relative = guarantee.relative
    return np.asarray((relative.lower >= 1.0 / TELLING) & (relative.upper <= TELLING))


def training_of(guarantee: "Guarantee") -> str:
    """Which rows give the limits and which train the models, if regions are of a first opinion."""
    return (
        f"the first opinion is that of models that saw nothing of the {guarantee.n_rows:,}"
        f" calibration rows, which give the limits; all {guarantee.statement.n_trained:,} rows"
        " trained the models that predict"
    )


def _unproved(guarantee: "Guarantee") -> tuple[Text, ...]:
    """If nothing is guaranteed: the reasons that did not fit, and what the numbers mean if those
    reasons make no difference.
    """
    statement = guarantee.statement
    if not statement.caveats:
        return ()
    is_in_sentence = render(guarantee_sentence(guarantee)).endswith(f"{render(caveat(statement))}.")
    why = () if is_in_sentence else (joined("nothing is guaranteed: ", caveat(statement)),)
    return (*why, joined("if ", supposition(statement), ": ", claim(guarantee)))


def _more(guarantee: "Guarantee") -> tuple[Text, ...]:
    """What else is guaranteed, and what is not."""
    statement = guarantee.statement
    stated = guarantee.stated
    number = len(guarantee.regions)
    every = f"all {counted(number, noun_of(guarantee))}"
    bound = points(upper(guarantee.epsilon))
    texts: list[Text] = []
    if statement.over_seed:
        texts.append(_OVER_SEED)
    if statement.n_trained:
        texts.append(training_of(guarantee))
    if event_of(guarantee) not in claim(guarantee):
        texts.append(f"this is the rate{event_of(guarantee)}")
    if made_of := _made_of(guarantee):
        texts.append(f"the {number:,} regions are {made_of}")
    if telling_regions(guarantee).any() or not stated.kept.all():
        texts.append(f"over {every}, the bound is {bound}")
    if guarantee.predictions_vary:
        average = points(upper(guarantee.average_epsilon))
        if average != points(upper(stated.epsilon)):
            texts.append(f"averaged over the population in {every}, the bound is {average}")
        texts.append(_NOT_FOR_ONE)
    if statement.falls:
        texts.append("predictions fall as the score rises, because the rate does")
    if statement.population is Population.STREAM:
        texts.append("this holds at every moment of the stream, each time with that moment's bound")
    if statement.groups is not None:
        texts.extend(on_groups(statement.groups))
    if aside := _set_aside(statement):
        texts.append(aside)
    if statement.of_groups:
        texts.append(statement.of_groups.strip())
    if guarantee.is_weak:
        texts.append(joined("this guarantees ", weakness(guarantee)))
    if guarantee.read:
        texts.append(said_of_file(guarantee.read).strip())
    return tuple(texts)


def weakness(guarantee: "Guarantee") -> Text:
    """How weak the guarantee is, why, and what to do about it."""
    stated = guarantee.stated
    worst = int(np.where(stated.kept, guarantee.radius, -1.0).argmax())
    held = counted(int(guarantee.counts[worst]), "row") if guarantee.counts[worst] else "no rows"
    little = "almost nothing" if stated.epsilon >= 0.5 else "little"
    return joined(
        f"{little} so far: the {noun_of(guarantee)} {in_words(guarantee.regions[worst])!r} contains"
        f" {held}. ",
        advice(guarantee),
    )


def _made_of(guarantee: "Guarantee") -> str:
    """Why there are more regions than requested bins."""
    statement = guarantee.statement
    within = f"within {counted(statement.n_segments, 'segment')}" if statement.n_segments else ""
    if statement.n_atoms:
        bins = counted(len(guarantee.regions) - statement.n_atoms, "bin")
        atoms = counted(statement.n_atoms, "single score value")
        return f"{bins} and {atoms}{within and ', ' + within}"
    return f"bins {within}" if within else ""


def on_groups(groups: GroupFacts) -> tuple[str, ...]:
    """Which rate it is if rows have groups, and how much the groups cost."""
    texts = []
    if groups.target == "groups":
        how = "by importance weight " if groups.max_weight is not None else ""
        texts.append(f"this is the rate of a row drawn {how}at random from a random group")
    elif groups.max_weight is not None:
        share = above_cap(groups.above_cap, "the weight").rstrip(".")
        most = upper(groups.max_weight)
        texts.append(f"a group's total weight in a region is capped at {most}{share}")
    else:
        share = above_cap(groups.above_cap).rstrip(".")
        most = counted(groups.max_size, "row")
        texts.append(f"in a region, a group counts as at most {most}{share}")
    if groups.aside:
        texts.append(f"{counted(groups.aside, 'pilot group')} not counted")
    if not np.isnan(groups.design_effect):
        texts.append(f"observed design effect: {nearest(groups.design_effect, 2)}")
    return tuple(texts)


def cap_matters(groups: GroupFacts) -> str:
    """What to say if rates that count all rows in full lie outside the limits.

    Empty if none does.
    """
    if not groups.n_apart:
        return ""
    cap = f"as at most {counted(groups.max_size, 'row')}"
    if groups.max_weight is not None:
        cap = f"by a weight of at most {upper(groups.max_weight)}"
    return (
        f"in {counted(groups.n_apart, 'region')}, the rate among all rows lies outside the limits,"
        f" which count a group {cap}; it differs from the capped rate by up to"
        f" {nearest(groups.farthest)}"
    )


def _set_aside(statement: Statement) -> str:
    """What was done with pilot rows that were checked for ties and not counted."""
    looked = f"{counted(statement.looked, 'pilot row')} checked for ties, not counted"
    cutting = (
        f"{counted(statement.cutting, 'pilot row')} used only to choose bins, because scores are"
        " tied"
    )
    both = (looked, statement.looked), (cutting, statement.cutting)
    return "; ".join(text for text, number in both if number)


def _precision(statement: Statement) -> str:
    error = 0.0 if statement.weights is None else statement.weights.error
    return f" up to a relative error of {lower(error)}" if error else ""


def advice(guarantee: "Guarantee") -> Text:
    """What to do about a region with too few rows."""
    statement = guarantee.statement
    if statement.to_do:
        return statement.to_do
    if statement.has_ties:
        return ("Scores are tied: use ", Setting("pilot", "auto"), " or fewer bins")
    more = "more rows" if statement.groups is None else "more groups"
    if len(guarantee.regions) == max(1, statement.n_segments):
        return f"Use {more}" if statement.n_segments < 2 else f"Use fewer segments or {more}"
    return f"Use fewer bins or {more}"


def caveat(statement: Statement) -> Text:
    """Why nothing is guaranteed; empty if something is."""
    return listed((caveat.reason for caveat in statement.caveats), "; and ")


def supposition(statement: Statement) -> Text:
    """What would have to be true for the numbers to hold despite the caveats."""
    return listed(dict.fromkeys(caveat.supposition for caveat in statement.caveats), " and ")


def assumptions(statement: Statement) -> tuple[Text, ...]:
    """What must be true for the guarantee to hold."""
    stated: list[Text] = [*_on_population(statement)]
    if statement.n_trained:
        stated.append("the models behind the first opinion saw nothing of the calibration rows")
    else:
        stated.append("the model behind the scores was not trained on the calibration rows")
    if statement.edges is Edges.FUNCTION:
        stated.append("the regions were fixed before the calibration labels were seen")
    elif statement.edges is Edges.OTHER_ROWS:
        parts = "rows" if statement.groups is None else "groups"
        stated.append(f"the bins were cut from pilot {parts}, drawn at random and not counted")
    if statement.n_uncounted:
        edges = (
            "the edge"
            if statement.n_uncounted == 1
            else f"one of the {statement.n_uncounted:,} edges"
        )
        stated.append(f"no future score equals {edges} exactly (true for continuous scores)")
    return (*stated, *statement.assumed)


def _on_population(statement: Statement) -> tuple[str, ...]:
    if statement.groups is not None and statement.population is Population.COVARIATE_SHIFT:
        return _on_shifted_groups(statement, statement.groups)
    if statement.groups is not None:
        groups = (
            "calibration groups and future groups are independent draws from one distribution of"
            " whole groups"
        )
        counts = (
            "future rows count in proportion to their weight: one over the probability of being"
            " sampled, or a multiple of it"
        )
        return (groups,) if statement.groups.max_weight is None else (groups, counts)
    if statement.population is Population.SAME:
        return ("calibration rows and future rows are independent draws from one distribution",)
    if statement.population is Population.STREAM:
        return (
            "within a region, labels are independent draws with one rate that never changes",
            "within a region, rows are labelled in order of arrival or at random",
            "when a label arrives does not depend on the label",
        )
    moved = (
        "calibration rows are independent draws from one population, future rows from another, the"
        " target"
    )
    if statement.population is Population.LABEL_SHIFT:
        scores = "pairs of score and segment" if statement.n_segments else "scores"
        return (
            moved,
            f"{scores} given the label have the same distribution in both populations (label shift)",
        )
    weights = statement.weights
    if statement.population is Population.WEIGHTED and weights is not None:
        return (
            (
                "calibration rows with their importance weights are independent draws from one"
                " distribution"
            ),
            (
                "future rows follow the distribution of the calibration rows, each weighted by its"
                " weight: one over the probability of being sampled, or another density ratio, or a"
                " multiple of it"
            ),
            _on_bound(weights),
        )
    alike = (moved, "labels given inputs have the same distribution in both populations")
    if weights is None:
        return alike
    return (*alike, _on_ratio(statement, weights, ""), _on_bound(weights))


def _on_shifted_groups(statement: Statement, groups: GroupFacts) -> tuple[str, ...]:
    moved = (
        "calibration groups are independent draws of whole groups from one population, and future"
        " rows come from another, the target"
    )
    of_rows = ", if the rows of all groups are pooled"
    if groups.target == "groups":
        of_rows = ", for a random row from a random group"
    alike = f"labels given inputs have the same distribution in both populations{of_rows}"
    weights = statement.weights
    if weights is None:
        return (moved, alike)
    stated = (moved, alike, _on_ratio(statement, weights, of_rows))
    return stated if groups.target == "rows" else (*stated, _on_bound(weights))


def _on_ratio(statement: Statement, weights: ImportanceWeights, of_rows: str) -> str:
    """What the importance weights are."""
    nature = (
        f"the {'' if weights.known else 'estimated '}importance weights are the density ratio of the"
        f" target over the calibration population{_precision(statement)}{of_rows}"
    )
    return f"{nature}, or a multiple of it" if weights.known else nature


def _on_bound(weights: ImportanceWeights) -> str:
    return f"no importance weight exceeds {lower(weights.bound)}"


def notes(guarantee: "Guarantee") -> tuple[Text, ...]:
    """What else a reader should know."""
    statement = guarantee.statement
    counts = guarantee.counts
    stated: list[Text] = []
    if n_empty := int(np.count_nonzero(counts == 0)):
        stated.append(
            f"{n_empty} of {counted(counts.size, 'region')} hold no rows: nothing is known there"
        )
    if statement.n_bins is not None and counts.size < statement.n_bins and not statement.n_segments:
        asked = counted(statement.n_bins, "bin")
        stated.append(
            f"scores are tied: {asked} asked for, {counted(counts.size, noun_of(guarantee))} made"
        )
    small = int(np.count_nonzero(counts < guarantee.n_rows / (4 * counts.size)))
    if statement.has_ties and small:
        single = counted(statement.n_atoms, "single score value")
        are = "is a region of its own" if statement.n_atoms == 1 else "are regions of their own"
        few = counted(small, "region")
        has = "has" if small == 1 else "have"
        pilot = Setting("pilot", "auto")
        stated.append(
            (
                f"scores are tied: {single} {are}, and {few} {has} few rows; ",
                pilot,
                " lets tied scores share a bin",
            )
        )
    if statement.groups is not None and statement.groups.n_apart:
        stated.append(cap_matters(statement.groups))
    return (*_unproved(guarantee), *statement.notes, *stated, *_more(guarantee))
