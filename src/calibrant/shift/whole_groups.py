"""Groups counted whole under covariate shift: bets on the weight of a group in a region.

**Setting.** Calibration groups are i.i.d. draws of whole groups: a random number S of rows with
inputs X_i and labels Y_i, which may depend on each other, and on S, in any way. Given are a weight
w_i = w(X_i) for each row, regions of the inputs, and a cap M. Regions and cap are fixed before the
counted groups are seen: given, or set by pilot groups, which are not counted.

**What is covered.** In region b, a group has the weight W = sum of w_i over its rows in b, and the
positive weight T = sum of w_i Y_i. Let g = min(1, M / W). The limits are for

    theta_b = E[g T] / E[g W],

with all expectations over a new calibration group.

- ``group_target="rows"``: let P(A) be E[number of rows in A] / E[S], the distribution of a row if
  all rows of all groups are pooled, and let Q be the same in the target population. If w = c dQ/dP
  for the inputs, and if P and Q have the same distribution of the label given the inputs, then
  E[T] = c E[S] Q(b, Y = 1) and E[W] = c E[S] Q(b). So without the cap, theta_b is Q(Y = 1 | b), the
  rate among rows of the target population. Groups above the cap count less: each of their rows
  counts g times its weight.
- ``group_target="groups"``: let P(A) be E[share of the group's rows in A] instead, the distribution
  of a random row from a random group, and Q the same in the target population. Each weight is
  divided by S, and the rest is the same. With w at most U, a group's weight is a mean of numbers
  that are at most U, or less, so M = U caps nothing. `GroupDesign.cap` None would divide by
  the group's total weight instead. That is wrong here: if all rows of a group have the same weight, as
  when the share of each kind of customer has changed, the weights would cancel.

No assumption is made about rows of the same group in the target population: theta_b depends on P
and Q only.

**Proof of the limits.** Z(q) = g W (T / W - q) lies in [-qM, (1 - q)M], and E[Z(theta_b)] = 0. Where
W = 0, Z = 0. So given which groups have weight in b, their Z are i.i.d. with mean 0, and the bets of
`calibrant.limits.region_limits` are valid: each region's interval misses with probability at most
alpha / B, and all B hold simultaneously with probability at least 1 - alpha.

**No bound on the weights** is needed for "rows" if pilot groups set the cap: |Z(q)| <= M for any
weights, and given the pilot groups, M is a constant. The price is the target, which is the rate with
this cap. Weights that are rare and very large, and perhaps not in the data, can make the rate without
the cap a very different one. For "groups" there is no cap, so a bound must be given: the largest
weight of the counted rows does not bound the weight of a new one.

**Weights with an error.** For a fixed function w_hat with |w - w_hat| <= rho w_hat, let g be
computed from w_hat. The limits are for E[g T_hat] / E[g W_hat], with odds E[sum of g w_hat Y] /
E[sum of g w_hat (1 - Y)]. Replacing w_hat by w, and keeping g, changes numerator and denominator by
a factor in [1 - rho, 1 + rho] each, so limits widened as in `calibrant.limits.shift.shift_methods`
are for E[g T] / E[g W]. (If g were computed from w too, this would be false: rows of capped groups
could gain weight relative to the others.) If w_hat was estimated, it is a fixed function only if
no row of a counted group was used to estimate it.

**Estimated weights.** Averages over the rows of n i.i.d. groups converge, if E[S] is finite, to
averages over P. So a ratio that is fitted to all rows, each counted once, is fitted to the P of
"rows". For "groups", it is fitted to one row drawn at random from each group.

**Other intervals.** "empirical-bernstein", "oracle" and "paper" work with sums over rows, and these
are not sums of independent terms if rows have groups. They, and the values that are based on
relative masses, use one row of each group.
"""

from dataclasses import replace

from calibrant._typing import IndexArray, Seed
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.grouped_rows import cut_and_count_groups
from calibrant.calibrators.regions.parameters import CutParameters, DataAssumptions
from calibrant.calibrators.regions.weighted_rows import weights_of
from calibrant.errors import InvalidValueError
from calibrant.params.random import RandomSource
from calibrant.sample.reader import ONE_ROW_EACH
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import Setting


def cut_whole_groups(
    rows: MemoryRows, settings: CutParameters, assumptions: DataAssumptions, bound: float
) -> Binned:
    """Cut bins by pilot groups, and give the others the weights that they count by.

    `bound` is the bound on the weights.
    """
    # a group is one row, with the mean of its weights
    if assumptions.group_target == "groups" and rows.groups is not None:
        sizes = rows.groups.sizes[rows.groups.codes]
        rows = replace(rows, weights=weights_of(rows) / sizes)
        assumptions = replace(
            assumptions, group_target="rows", max_group_size=1, weight_bound=bound
        )
    return cut_and_count_groups(rows, settings, assumptions)


def check_one_row_each(max_group_size: int | None, group_target: str | None) -> None:
    """Raise an error for settings that do not work with one row from each group."""
    advice = (
        "use ",
        Setting("interval", "betting"),
        " and ",
        Setting("value", "mean"),
        ", which count whole groups",
    )
    reason = "where one row of each group is drawn"
    if max_group_size is not None:
        raise InvalidValueError(
            "max_group_size", f"be None {reason}", got=repr(max_group_size), advice=advice
        )
    if group_target == "rows":
        rule = f"be 'groups' {reason}"
        raise InvalidValueError("group_target", rule, got=repr(group_target), advice=advice)


def one_of_each(rows: MemoryRows, random_state: Seed) -> IndexArray | None:
    """One row of each group, drawn at random, as in `one_row_each`; None without groups."""
    if rows.groups is None:
        return None
    source = RandomSource.of(random_state, ONE_ROW_EACH, rows=rows.fingerprint())
    return rows.groups.one_row_each(source)
