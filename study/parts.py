"""The parts of the study. Each takes a set and a model, and gives lines of its table."""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from few_labels import JUDGES, LABELS, QUESTIONS_DRAWN, RATES, rate_groups_part, rate_part
from first_pass import ROWS, WORLDS, loose_end_part
from judging import average_gap, is_broken, proved_distance, regions
from known_truth import CELLS, coverage_part
from methods import OURS
from sets import BY_NAME, SETS, RealSet, generator, load, score, scored
from unseen import UNSEEN_PARTS, unseen_units
from unseen_sets import UNSEEN_BY_NAME

from calibrant import BinningCalibrator, Calibrator, DriftMonitor, check

Line = dict[str, Any]
SPLITS = 3  # of the rows of each set
DRAWS = 5  # of each split: samples from a known population
ORDER_TIMES = 3  # as many rows in order as at random
BATCH = 200  # rows that a monitor sees at a time, later or elsewhere
CLUSTER_DRAWS = 16  # of each model: samples of whole groups
CLUSTERS = 800  # drawn each time


def rows_part(real: RealSet, model: str, split: str, cache: Path) -> Iterator[Line]:
    """Rows split at random: calibrant, and whether its guarantees hold.

    *Known population*: all rows that did not train the model are the population, and rows drawn
    from it with replacement calibrate. So the rows are independent draws, as the guarantee assumes,
    and the truth is known exactly. *New rows*: the guarantee of a fit on the calibration rows is
    tested by the test rows.
    """
    scores, y, n = scored(real, model, int(split), cache)
    for method, make in OURS.items():
        fitted = make().fit(scores[:n], y[:n])
        broken = 0
        rng = generator(real.name, model, "draws", int(split))
        for _ in range(DRAWS):
            drawn = rng.integers(0, len(y), n)
            broken += is_broken(make().fit(scores[drawn], y[drawn]), scores, y)
        yield {
            "set": real.name,
            "model": model,
            "method": method,
            "rows": n,
            "epsilon": fitted.guarantee_.epsilon,
            "refuted": int(proved_distance(fitted, scores[n:], y[n:]) > 0),
            "splits": 1,
            "draws": DRAWS,
            "broken": broken,
        }


COUNTED = ("refuted", "splits", "draws", "broken")


def over_splits(lines: pd.DataFrame) -> pd.DataFrame:
    """One line for each set, model and method: what is counted is added, the mean is taken of the
    rest.
    """
    keys = ["set", "model", "method"]
    how = {column: "sum" if column in COUNTED else "mean" for column in lines if column not in keys}
    table = lines.groupby(keys, sort=False).agg(how).reset_index()
    return table.assign(rows=table.rows.astype(int))


def moments(real: RealSet, by: str, table: pd.DataFrame) -> np.ndarray:
    """What rows are ordered by: the time; or 0 at the site that has most rows, and 1 elsewhere.

    NaN where unknown.
    """
    column = table[getattr(real, by)]
    if by == "site":
        return (column != column.mode()[0]).astype(float).where(column.notna()).to_numpy()
    if not pd.api.types.is_numeric_dtype(column):
        column = pd.to_datetime(column, utc=True, format="mixed").astype("int64")
    return column.to_numpy(float)


def in_order(moment: np.ndarray, by: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that train, calibrate, and come later.

    At the main site half of the rows train and half calibrate.
    """
    order = np.argsort(moment, kind="stable")
    if by == "site":
        home = int((moment == 0).sum())
        return order[: home // 2], order[home // 2 : home], order[home:]
    first, second, third = np.array_split(order, 3)
    return first, second, third


def order_part(real: RealSet, by: str, model: str, cache: Path) -> Iterator[Line]:
    """Rows split by time or site.

    And the same rows, shuffled, where the guarantee must hold and no alarm is right.
    """
    table, y = load(real, times=ORDER_TIMES)
    moment = moments(real, by, table)
    table = table[~np.isnan(moment)]
    y = y[~np.isnan(moment)]
    moment = moment[~np.isnan(moment)]
    for shuffled in (False, True):
        if shuffled:
            moment = generator(real.name, by, "shuffled").permutation(moment)
        train, known, later = in_order(moment, by)
        scores = score(real, model, table, y, train, drop=(getattr(real, by),))
        fitted = Calibrator().fit(scores[known], y[known])
        both = np.concatenate([known, later])
        found = check(y[both], scores[both], time=moment[both])
        monitor = DriftMonitor(fitted)
        for start in range(0, len(later), BATCH):
            batch = later[start : start + BATCH]
            monitor.update(scores[batch], y[batch])
        yield {
            "set": real.name,
            "by": by,
            "column": getattr(real, by),
            "model": model,
            "shuffled": shuffled,
            "rows": len(known),
            "later": len(later),
            "epsilon": fitted.guarantee_.epsilon,
            "gap": average_gap(fitted, scores[later], y[later]),
            "distance": proved_distance(fitted, scores[later], y[later]),
            "check": bool(found.causes),
            "causes": " ".join(found.causes),
            "monitor": monitor.alarm,
        }


def capped(calibrator: Any, scores: np.ndarray, group: np.ndarray) -> np.ndarray | None:
    """The weight of each row, where a group counts as at most `max_size` rows of a region."""
    said = calibrator.guarantee_.statement.groups
    if said is None:
        return None
    pair = pd.DataFrame({"region": regions(calibrator, scores)[0], "group": group})
    size = pair.groupby(["region", "group"]).group.transform("size").to_numpy()
    return np.minimum(size, said.max_size) / size


def clusters_part(real: RealSet, model: str, cache: Path) -> Iterator[Line]:
    """Whole groups of rows, drawn from a known population of groups: guarantees with and without
    `groups=`.

    Half of the groups train the model. The others are the population. Groups are drawn from it with
    replacement, and all their rows calibrate. With `groups=`, a group counts as at most `max_size`
    rows, as the guarantee says.
    """
    table, y = load(real, times=2, whole_groups=True)
    group = pd.factorize(table[real.group])[0]
    n_groups = group.max() + 1
    rng = generator(real.name, model, "clusters")
    train = (rng.permutation(n_groups) < n_groups // 2)[group]
    scores = score(real, model, table, y, np.flatnonzero(train), drop=(real.group,))[~train]
    order = np.argsort(group[~train], kind="stable")
    scores = scores[order]
    y = y[~train][order]
    group = group[~train][order]
    _, first, size = np.unique(group, return_index=True, return_counts=True)
    samples = [rng.integers(0, first.size, min(CLUSTERS, first.size)) for _ in range(CLUSTER_DRAWS)]
    for method, make in {"binning": BinningCalibrator, "curve": Calibrator}.items():
        for grouped in (True, False):
            broken = 0
            epsilon = []
            for sample in samples:
                rows = np.concatenate(
                    [np.arange(first[one], first[one] + size[one]) for one in sample]
                )
                groups = np.repeat(np.arange(sample.size), size[sample]) if grouped else None
                fitted = make(n_bins=5).fit(scores[rows], y[rows], groups=groups)
                broken += is_broken(fitted, scores, y, capped(fitted, scores, group))
                epsilon.append(fitted.guarantee_.epsilon)
            yield {
                "set": real.name,
                "column": real.group,
                "model": model,
                "method": method,
                "grouped": grouped,
                "groups": first.size,
                "rows": len(y),
                "draws": CLUSTER_DRAWS,
                "broken": broken,
                "epsilon": float(np.mean(epsilon)),
            }


Unit = tuple[str, str, tuple[str, ...]]
"""A part, the name of a set or of a simulated world, and what else the part takes."""
OF_SETS: dict[str, Callable[..., Iterator[Line]]] = {
    "rows": rows_part,
    "order": order_part,
    "clusters": clusters_part,
    **UNSEEN_PARTS,
}
SIMULATED: dict[str, Callable[..., Iterator[Line]]] = {
    "coverage": coverage_part,
    "rate": rate_part,
    "rate_groups": rate_groups_part,
    "loose_end": loose_end_part,
}
PARTS = (*OF_SETS, *SIMULATED)
"""Each part has a table of the same name in docs/study."""
ORDER_MODELS = ("lightgbm", "logistic")
CLUSTER_MODELS = ("logistic", "lightgbm")


def lines_of(unit: Unit, cache: Path) -> list[Line]:
    """Do a unit."""
    part, name, names = unit
    if part in SIMULATED:
        return list(SIMULATED[part](name, *names))
    return list(OF_SETS[part]({**BY_NAME, **UNSEEN_BY_NAME}[name], *names, cache))


def units(parts: Iterable[str], sets: tuple[RealSet, ...] = SETS) -> list[Unit]:
    """What there is to do; simulated parts have no sets, and are done with all of them alone."""
    todo = of_sets(tuple(real for real in sets if real.name in BY_NAME))
    todo |= unseen_units([real.name for real in sets if real.name in UNSEEN_BY_NAME])
    if sets == SETS:
        todo |= simulated() | unseen_units(list(UNSEEN_BY_NAME))
    return [unit for part in parts for unit in todo.get(part, [])]


def of_sets(sets: tuple[RealSet, ...]) -> dict[str, list[Unit]]:
    """What there is to do with data."""
    todo: dict[str, list[Unit]] = {part: [] for part in OF_SETS}
    for real in sets:
        for model in real.models:
            for split in map(str, range(SPLITS)):
                todo["rows"].append(("rows", real.name, (model, split)))
        for by in ("time", "site"):
            if getattr(real, by):
                models = (
                    *ORDER_MODELS,
                    *(name for name in real.more if name == "predicted_probability"),
                )
                todo["order"] += [("order", real.name, (by, model)) for model in models]
        if real.group:
            todo["clusters"] += [("clusters", real.name, (model,)) for model in CLUSTER_MODELS]
    return todo


def simulated() -> dict[str, list[Unit]]:
    """What there is to do without data."""
    cells = {
        "coverage": [(question, *cell) for question, each in CELLS.items() for cell in each],
        "rate": product(map(str, RATES), JUDGES, map(str, LABELS)),
        "rate_groups": product(JUDGES, map(str, QUESTIONS_DRAWN)),
        "loose_end": product(WORLDS, map(str, ROWS)),
    }
    return {
        part: [(part, name, tuple(names)) for name, *names in each] for part, each in cells.items()
    }
