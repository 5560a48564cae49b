"""A short answer, as one would give it to a manager: what is known, and what it rests on.

The result's own sentence follows it, with every number. If no short wording is exact, as for a
guarantee about another population, nothing is said here.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from calibrant.assess.audit.findings import OVERCONFIDENT, UNDERCONFIDENT
from calibrant.guarantee.short import confidence_of, pooled_of
from calibrant.text.numbers import counted, limits, lower, nearest, percent, rows, upper
from calibrant.text.result import Result

_NEW_ROWS = "as long as new rows are like these"
_THESE_ROWS = "as long as the rows are i.i.d. and new to the model"
_MOST_WORDS = 45


def in_short(found: Result) -> str | None:
    """The answer in one or two plain sentences; None if the result's own sentence is the shortest."""
    for kind in type(found).__mro__:
        if kind.__name__ in _WORDINGS:
            return _WORDINGS[kind.__name__](found)
    return None


def points(share: str) -> str:
    """A share that is already rounded, in percentage points.

    >>> points("0.047"), points("0.01"), points("0.1")
    ('4.7 percentage points', '1 percentage point', '10 percentage points')
    """
    number = _hundredths(share)
    return f"{number} percentage point{'' if number == '1' else 's'}"


def _hundredths(share: str) -> str:
    return f"{(100 * Decimal(share)).normalize():f}"


def _of_guarantee(found: Any) -> str | None:
    statement = found.statement
    groups = statement.groups
    if groups is not None and (groups.target != "rows" or groups.above_cap > 0.0):
        return None
    plain = (
        found.is_proved
        and not found.is_vacuous
        and statement.population.name == "SAME"
        and statement.event.name == "POSITIVE_CLASS"
        and not statement.of_groups
    )
    if not plain:
        return None
    stated = found.stated
    average = "average " if statement.claim.name == "AVERAGE" else ""
    where = "in every score range simultaneously"
    if statement.n_segments:
        where = "in every score range of every segment simultaneously"
        where += pooled_of(statement)
    if not stated.kept.all():
        where = f"for at least {percent(stated.mass)} of the population"
    like = _NEW_ROWS if groups is None else "as long as new groups are like these"
    return (
        f"{confidence_of(found.confidence_level, statement)}, the {average}calibrated probability is"
        f" within {points(upper(stated.epsilon))} of the true rate {where}, {like}."
    )


def _of_no_guarantee(found: Any) -> str | None:
    return "Nothing is guaranteed with this method."


def _of_audit(found: Any) -> str | None:
    subgroups = found.by_attributes
    bounds = found.within_segments or found
    if subgroups is not None and subgroups.is_any_off:
        said = _of_subgroups(subgroups)
    elif found.worst is not None:
        said = _of_worst(found)
    elif bounds.is_nearly_calibrated:
        off = points(upper(bounds.upper_bound))
        seen = f"none of the observed scores is off by more than {off}"
        said = f"With {percent(found.confidence_level)} confidence, {seen}, {_THESE_ROWS}."
    else:
        return _of_nothing_proved(found)
    return None if found.population else said


def _of_worst(found: Any) -> str:
    """The scores with the largest proved error, and those that matter most if there is room."""
    worst = found.worst
    confidence = f"With {percent(found.confidence_level)} confidence"
    off = f"{_side(worst)} by at least {points(lower(worst.error))}"
    named = "some scores"
    unnamed = "some scores"
    if worst.segment is not None:
        named = f"some scores in {found.noun} {worst.segment!r}"
        unnamed = f"some scores in one {found.noun}"
    wordings = [(named, also) for also in _of_broadest(found)]
    wordings += [(named, ""), (unnamed, "")]
    return _shortest_needed(
        [f"{confidence}, {where} are {off}{also}, {_THESE_ROWS}." for where, also in wordings]
    )


def _shortest_needed(wordings: list[str]) -> str:
    """The first wording that is short enough; the last one if none is."""
    for said in wordings:
        if len(said.split()) <= _MOST_WORDS:
            return said
    return wordings[-1]


def _of_broadest(found: Any) -> list[str]:
    """The scores that matter most, by rows times error: in full, and without their range.

    Empty if they are the worst ones.
    """
    broad = found.broadest
    if broad is None:
        return []
    share = percent(float(nearest(broad.count / found.n_rows)))
    off = f"are {_side(broad)} by at least {points(lower(broad.error))}{broad.on_average}"
    return [
        f", and those of {broad.rows_in_words(found.n_rows)} {off}",
        f", and those of {rows(broad.count)} ({share}) {off}",
    ]


def _of_nothing_proved(found: Any) -> str:
    wrong = "wrong"
    if found.tolerance:
        wrong = f"wrong by more than {points(f'{found.tolerance:g}')}"
    which = "the scores are"
    if found.by_attributes is not None:
        which = "the scores, or those of a subgroup, are"
    return (
        f"These {found.n_rows:,} rows do not show that {which} {wrong}. That does not prove"
        " that they are right."
    )


def _of_subgroups(found: Any) -> str:
    """What is proved about subgroups, naming the first."""
    confidence = f"With {percent(found.confidence_level)} confidence"
    assumed = _THESE_ROWS
    if not found.findings:
        return (
            f"{confidence}, the scores of some subgroup are wrong, {assumed}. These rows do not"
            " show which."
        )
    worst = found.findings[0]
    more = _of_more_subgroups(found)
    named = "all rows"
    unnamed = "all rows"
    if worst.subgroup != "all rows":
        named = f"the subgroup {worst.subgroup}"
        unnamed = "one subgroup"
    some = "" if worst.tested_rows else "some "
    size = ""
    tested = ""
    if worst.tested_rows:
        size = f" by at least {points(lower(worst.error))} on average"
    if worst.tested_rows and worst.target == "rows":
        tested = f" in {worst.tested_rows:,} tested rows"
    off = f"are {_side(worst)}{size}{tested}"
    return _shortest_needed(
        [
            f"{confidence}, {some}scores of {named} {off}, {assumed}.{more}",
            f"{confidence}, {some}scores of {named} {off}, {assumed}.",
            f"{confidence}, {some}scores of {unnamed} {off}, {assumed}.{more}",
        ]
    )


def _of_more_subgroups(found: Any) -> str:
    """How many more subgroups are off than the first; all rows are not called a subgroup."""
    left = found.n_off - 1
    if found.whole_is_off() and found.findings[0].subgroup != "all rows":
        left -= 1
    if left < 1:
        return ""
    return f" {counted(left, 'more subgroup is', 'more subgroups are')} proved to be off."


def _side(finding: Any) -> str:
    """The direction in which the scores of a finding are off."""
    if finding.direction in (OVERCONFIDENT, UNDERCONFIDENT):
        return str(finding.direction)
    return "too high" if "high" in finding.direction else "too low"


def _of_threshold(found: Any) -> str | None:
    if found.is_weighted:
        return None
    like = _NEW_ROWS if found.max_group_size is None else "as long as new groups are like these"
    if found.above_cap:
        like = f"{_capped(found).strip()}, {like}"
    confidence = f"With {percent(found.confidence_level)} confidence"
    proved = [cut for cut in found.cuts if cut.threshold is not None]
    missed = [cut for cut in found.cuts if cut.threshold is None]
    if any(cut.segment is not None for cut in found.cuts):
        segments = f"{len(proved):,} of {counted(len(found.cuts), 'threshold')}"
        return f"{confidence}, {segments} by segment are proved simultaneously, {like}."
    unproved = " and ".join(f"{cut.target} of {percent(cut.level)}" for cut in missed)
    if not proved:
        return f"A {unproved} cannot be proved with these {rows(found.n_rows)}{_capped(found)}."
    said = f"{confidence}, {' and '.join(map(_of_cut, proved))}, {like}."
    return said if not missed else f"{said} A {unproved} cannot be proved."


def _capped(found: Any) -> str:
    """How groups count in a statement about thresholds; empty without groups."""
    if found.max_group_size is None:
        return ""
    return f" if a group counts as at most {rows(found.max_group_size)}"


def _of_cut(cut: Any) -> str:
    said = {
        "precision": "{share} of the rows with a score of about {cut} or more are positive",
        "recall": "{share} of the positive rows have a score of about {cut} or more",
        "npv": "{share} of the rows with a score below about {cut} are negative",
        "specificity": "{share} of the negative rows have a score below about {cut}",
    }[cut.target]
    return said.format(share=f"at least {percent(cut.level)}", cut=nearest(cut.threshold))


def _of_decisions(found: Any) -> str | None:
    counts = found.counts
    if not sum(counts.values()) or not found.is_proved:
        return None
    return (
        f"Act on {counts['act']:,} rows, leave {counts['do not act']:,} alone;"
        f" {counts['cannot tell']:,} are too close to call"
        f" ({percent(found.confidence_level)} confidence, as long as these rows are like those that"
        " the guarantee is about)."
    )


def _of_models(found: Any) -> str | None:
    if found.population:
        return None
    if found.best is None:
        proved = any(one.better is not None and one.is_proved for one in found.differences)
        return None if proved else "The data cannot tell which model is better."
    confidence = percent(found.confidence_level)
    sure = f"({confidence} confidence), {_THESE_ROWS}s"
    if len(found.models) > 2:
        return f"{found.best!r} is better than every other model {sure}."
    brier = next(one for one in found.differences if one.measure == "Brier score")
    low, high = sorted(map(abs, (brier.lower, brier.upper)))
    gain = f"its Brier score is lower by {lower(low)} to {upper(high)}"
    other = next(model for model in found.models if model != found.best)
    return f"{found.best!r} is better than {other!r}: {gain} {sure}."


def _of_rate(found: Any) -> str | None:
    if found.sequential or found.is_doubtful:
        return None
    share = " to ".join(map(_hundredths, limits(found.lower, found.upper).split(" to ")))
    whose = "these items" if found.target == "items" else "the population"
    positive = "are positive"
    if isinstance(found.positive_label, str):
        positive = f"have the label {found.positive_label!r}"
    if found.target == "items" and found.n_labels == found.n_items:
        n_positive = round(found.estimate * found.n_items)
        return (
            f"{n_positive:,} of {found.n_items:,} items {positive}"
            f" ({_hundredths(nearest(found.estimate))}%), by the labels of all items."
        )
    return (
        f"With {percent(found.confidence_level)} confidence, {share}% of {whose} {positive}, as"
        " long as the labelled items were drawn at random."
    )


def _of_plan(found: Any) -> str | None:
    size = f"{points(upper(found.epsilon))} of the true rate"
    within = f"within {size}"
    each = f"prediction in each of {found.n_bins:,} score ranges"
    ranges = f"the {each} is"
    sure = f"({percent(found.confidence_level)} confidence)"
    chance = f"The probability of reaching this is at least {percent(found.probability)}"
    if found.group_size is not None:
        groups = f"in {found.n // found.group_size:,} groups of {found.group_size:,}"
        return (
            f"Label {found.n:,} rows, {groups}, fit with binning, and {ranges} within about"
            f" {size} {sure}, if labels within a group have a correlation of {found.icc:g}."
            f" {chance}. This is an estimate."
        )
    if found.calibrator == "AnchoredCalibrator":
        return (
            f"Label {found.n:,} rows drawn at random, and in about 9 of 10 fits the average {each}"
            f" will be guaranteed {sure} to be {within}, if the rate rises smoothly and clearly"
            " with untied scores. This is an estimate."
        )
    supposed = "if no scores are tied"
    if found.base_rate is not None:
        supposed += f" and {percent(found.base_rate)} of rows are positive"
    labels = f"Label {found.n:,} rows drawn at random, fit with binning, and"
    said = f"{labels} {ranges} {within} {sure}, {supposed}."
    if found.probability < 1.0:
        said = f"{said} {chance}."
    return said + _of_default_fit(found)


def _of_default_fit(found: Any) -> str:
    """What the default method needs, for a plan that is for another one."""
    other = found.default_fit
    if other is None:
        return ""
    needs = f"needs about {other.n:,} rows"
    if other.n == found.n:
        needs = f"reaches about {points(upper(other.epsilon))}"
    return f" The default, anchored, {needs} if rates rise smoothly."


def _of_rows(found: Any) -> str | None:
    if found.alarm:
        return (
            f"These rows are not i.i.d. ({percent(found.confidence_level)} confidence), so a"
            " guarantee based on all of them does not hold."
        )
    most = percent(round(1.0 - found.confidence_level, 12))
    return (
        f"No sign that these {found.n_rows:,} rows are not i.i.d. (i.i.d. rows raise an alarm at"
        f" most {most} of the time)."
    )


def _of_monitor(found: Any) -> str | None:
    if found.alarm:
        if found.has_late_labels:
            late = f"{found.share_expired:.0%}"
            return (
                f"Alarm, but {late} of the labels came too late to count. Check the maturity first."
            )
        sure = f"{percent(found.confidence_level)} confidence"
        return f"Alarm ({sure}): the data have drifted. Look at what changed, and recalibrate."
    if not found.n_mature:
        return (
            f"Nothing is known about drift yet: no prediction counted, {found.n_pending:,} pending."
        )
    predictions = counted(found.n_mature, "prediction")
    return f"No alarm after {predictions}: no sign of drift."


_WORDINGS: dict[str, Callable[[Any], str | None]] = {
    "Audit": _of_audit,
    "Decisions": _of_decisions,
    "Differences": _of_models,
    "Exchangeability": _of_rows,
    "Guarantee": _of_guarantee,
    "MonitorSnapshot": _of_monitor,
    "NoGuarantee": _of_no_guarantee,
    "Plan": _of_plan,
    "Rate": _of_rate,
    "SubgroupGuarantee": lambda found: None,
    "Threshold": _of_threshold,
    "WeakerGuarantee": lambda found: None,
}
