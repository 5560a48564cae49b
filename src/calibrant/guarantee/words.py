"""The wording of a guarantee: functions that put its numbers and facts into words.

User data, such as class labels and names of segments, never pass through a template.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from calibrant.guarantee.short import (
    event_of,
    noun_of,
    proved_sentence,
    short_sentence,
    telling_regions,
    training_of,
)
from calibrant.guarantee.statement import (
    Claim,
    Edges,
    GroupFacts,
    ImportanceWeights,
    Population,
    Statement,
)
from calibrant.text.numbers import above_cap, counted, lower, nearest, percent, upper
from calibrant.text.result import said_of_file
from calibrant.text.sentences import Setting, Text, joined, render

if TYPE_CHECKING:
    from calibrant.guarantee.guarantee import Guarantee

OFF_BY = (
    "Off by at most: how far the average prediction for new rows can be from the true rate. New"
    " rows may have other scores within a region than these, so it can be more than the limits"
    " show."
)

_OVER_SEED = (
    "Rows take only a few different values, so many data sets share one random draw for a given"
    " seed: the probability is over the rows and a seed that was chosen at random."
)


def explanation(guarantee: "Guarantee") -> Text:
    """What the first sentence leaves out: what else is proved, for which rows, and what to do if it
    is little.
    """
    statement = guarantee.statement
    said = [*_unproved(guarantee), *_more(guarantee), *_on_averages(guarantee), _scope(guarantee)]
    text = joined(listed(said, " "), statement.of_groups)
    if guarantee.is_weak:
        text = joined(text, " This says ", weakness(guarantee), ".")
    return joined(text, said_of_file(guarantee.read))


def _unproved(guarantee: "Guarantee") -> tuple[Text, ...]:
    """If nothing is proved: the reasons that did not fit, and what the numbers mean if those
    reasons make no difference.
    """
    statement = guarantee.statement
    if not statement.caveats:
        return ()
    told = render(short_sentence(guarantee)).endswith(f"{render(caveat(statement))}.")
    why = () if told else (joined("The reasons: ", caveat(statement), "."),)
    numbers = joined(
        "The numbers hold if ", supposition(statement), ". ", proved_sentence(guarantee)
    )
    return (*why, numbers)


def _more(guarantee: "Guarantee") -> tuple[str, ...]:
    """The proved statements that the first sentence leaves out."""
    stated = guarantee.stated
    number = len(guarantee.regions)
    every = f"all {counted(number, noun_of(guarantee))}"
    said = []
    if guarantee.statement.over_seed:
        said.append(_OVER_SEED)
    if guarantee.statement.n_trained:
        said.append(training_of(guarantee))
    if event_of(guarantee) not in proved_sentence(guarantee):
        said.append(f"This is the rate{event_of(guarantee)}.")
    if made_of := _made_of(guarantee):
        said.append(f"The {number:,} regions are {made_of}.")
    if telling_regions(guarantee).any():
        said.append(f"In {every} the distance is at most {upper(guarantee.epsilon)}.")
    if not stated.kept.all():
        held = (
            f"These {int(stated.kept.sum()):,} contain at least {percent(stated.mass)} of the"
            " population"
        )
        said.append(f"{held}; over {every} the bound is {upper(guarantee.epsilon)}.")
    return tuple(said)


def weakness(guarantee: "Guarantee") -> Text:
    """How weak the guarantee is, why, and what to do about it."""
    stated = guarantee.stated
    worst = int(np.where(stated.kept, guarantee.radius, -1.0).argmax())
    held = counted(int(guarantee.counts[worst]), "row") if guarantee.counts[worst] else "no rows"
    little = "almost nothing" if stated.epsilon >= 0.5 else "little"
    return joined(
        f"{little} so far: region {guarantee.regions[worst]} contains {held}. ",
        advice(guarantee),
    )


def _on_averages(guarantee: "Guarantee") -> tuple[str, ...]:
    """What is and is not claimed if predictions vary within a region."""
    if guarantee.statement.claim is not Claim.AVERAGE:
        return ()
    average = upper(guarantee.average_epsilon)
    said = []
    if average != upper(guarantee.stated.epsilon):
        said.append(
            f"Averaged over the population in these regions, the distance is at most {average}."
        )
    if guarantee.statement.falls:
        said.append("Predictions fall as the score rises, because the rate does.")
    said.append(
        "There is no guarantee for a single score, a single predicted value, or part of a region."
    )
    return tuple(said)


def _made_of(guarantee: "Guarantee") -> str:
    """Why there are more regions than bins were asked for."""
    statement = guarantee.statement
    within = f"within {counted(statement.n_segments, 'segment')}" if statement.n_segments else ""
    if statement.n_atoms:
        bins = counted(len(guarantee.regions) - statement.n_atoms, "bin")
        return (
            f"{bins} and"
            f" {counted(statement.n_atoms, 'single score value')}{within and ', ' + within}"
        )
    return f"bins {within}" if within else ""


def _scope(guarantee: "Guarantee") -> str:
    statement = guarantee.statement
    n_rows = guarantee.n_rows
    rows = f"the {counted(n_rows, 'calibration row')}{_set_aside(statement)}"
    if statement.groups is not None:
        return _group_scope(statement, statement.groups, n_rows)
    if statement.population is Population.SAME:
        return (
            f"This holds for every distribution of the data, if future rows are i.i.d. with {rows}."
        )
    if statement.population is Population.STREAM:
        return (
            "This holds at every moment of the stream, each time with that moment's bound, for"
            " every distribution of the data, if all rows come from one population and rows in a"
            " region are labelled as they come or at random."
        )
    if statement.population is Population.LABEL_SHIFT:
        scores = "scores and segments" if statement.n_segments else "scores"
        alike = f"{scores} given the label are distributed"
        return f"This holds for rows from the target population, if {alike} as in {rows}."
    if statement.population is Population.WEIGHTED:
        return (
            "This holds for the weighted population, for every distribution of the data, if future"
            f" rows are i.i.d. draws from the distribution of {rows}, each weighted by its"
            " importance weight."
        )
    return (
        "This holds for rows from the target population, if labels given inputs are distributed as"
        f" in {rows} and the importance weights are the density ratio{_precision(statement)}."
    )


def _group_scope(statement: Statement, groups: GroupFacts, n_rows: int) -> str:
    aside = f" (and {counted(groups.aside, 'pilot group')}, not counted)" if groups.aside else ""
    these = f"the {counted(groups.counted, 'group')} of {counted(n_rows, 'calibration row')}{aside}"
    said = (
        "This holds for rows from new groups, for every distribution of the data, if new groups"
        f" are i.i.d. with {these}. "
    )
    if statement.population is Population.COVARIATE_SHIFT:
        said = (
            f"This holds for rows from the target population, if {these} are i.i.d., labels given"
            " inputs are distributed as in these groups, and the importance weights are the density"
            f" ratio{_precision(statement)}. "
        )
    said += _how_groups_count(statement, groups)
    effect = groups.design_effect
    return said if np.isnan(effect) else f"{said} Observed design effect: {nearest(effect, 2)}."


def _how_groups_count(statement: Statement, groups: GroupFacts) -> str:
    """Which rate it is: among rows, with a cap on groups, or of a row from a random group."""
    equally = "every group counts the same."
    if groups.target == "groups" and statement.population is Population.COVARIATE_SHIFT:
        return (
            f"This is the rate for a random row from a random group of that population: {equally}"
        )
    if groups.target == "groups" and groups.max_weight is not None:
        return (
            f"This is the rate for a row drawn by importance weight from a random group: {equally}"
        )
    if groups.target == "groups":
        return f"This is the rate for a random row from a random group: {equally}"
    if groups.max_weight is not None:
        return (
            "Each row counts in proportion to its importance weight; a group's total weight in a"
            f" region is capped at {upper(groups.max_weight)}"
            f"{above_cap(groups.above_cap, 'the weight')}"
        )
    return (
        "This is the rate among rows; a group counts as at most"
        f" {counted(groups.max_size, 'row')} in a region{above_cap(groups.above_cap)}"
    )


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
    looked = (
        f"{counted(statement.looked, 'pilot row')} checked for ties, not counted"
        if statement.looked
        else ""
    )
    n_cutting = counted(statement.cutting, "pilot row")
    cut = f"{n_cutting} used only to choose bins, because scores are tied"
    cutting = cut if statement.cutting else ""
    both = "; ".join(filter(None, (looked, cutting)))
    return f" (and {both})" if both else ""


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
    """Why nothing is proved; empty if something is."""
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
            "rows in a region are labelled as they come or at random",
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
    if not weights.any_multiple:
        return f"{nature} itself, not a multiple of it"
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
            f"{n_empty} of {counted(counts.size, 'region')} hold no rows: the interval there is"
            " [0, 1]"
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
    return (*statement.notes, *stated)


def listed(texts: Iterable[Text], between: str) -> Text:
    """Join texts with `between` as the separator."""
    return joined(*(part for text in texts for part in (between, text)))[1:]
