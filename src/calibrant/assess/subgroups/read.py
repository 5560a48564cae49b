"""The settings of a subgroup audit, and the rows it is about."""

from typing import Any

import numpy as np

from calibrant.assess.metrics.bin_sums import read_forecasts, read_scored
from calibrant.assess.subgroups.audit_subgroups import Question, audit_subgroups
from calibrant.assess.subgroups.elsewhere import audit_subgroups_elsewhere, rows_elsewhere
from calibrant.assess.subgroups.result import TARGETS, SubgroupAudit
from calibrant.cells.subgroup_family import MOST_ORDERS
from calibrant.errors import InvalidValueError
from calibrant.params.rules import Choice, Integer, Number
from calibrant.sample.attribute_columns import attribute_columns

_SHARE = Number("a share above 0 and below 1", 0.0, 1.0, open_low=True, open_high=True)


def checked_question(order: Any, min_share: Any, target: Any, confidence_level: float) -> Question:
    """The settings of a subgroup audit, with its parameters checked."""
    number = Integer(1).check("order", order)
    if number > MOST_ORDERS:
        raise InvalidValueError("order", f"be at most {MOST_ORDERS}", got=str(number))
    share = _SHARE.check("min_share", min_share)
    about = Choice(TARGETS).check("target", target)
    return Question(number, share, about, float(confidence_level))


def read_and_audit_subgroups(
    y: Any, attributes: Any, question: Question, read: dict[str, Any], limits: dict[str, Any]
) -> SubgroupAudit:
    """Read rows and their attributes, and audit subgroups.

    `read` says how to read rows, and `limits` holds bounds on units.
    """
    elsewhere = rows_elsewhere(y, question)
    if elsewhere is not None and isinstance(attributes, list | tuple):
        labels = {name: read[name] for name in ("pos_label", "classes")}
        return audit_subgroups_elsewhere(*elsewhere, list(attributes), question, **labels)
    rows = read_forecasts(y, **read, weight_bound=limits["weight_bound"])
    whole = read_scored(y, **read) if rows.weights is not None else rows
    columns = attribute_columns(y, attributes, len(whole))
    if whole.weights is not None:
        positive = np.asarray(whole.weights > 0.0)
        columns = [column.take(positive) for column in columns]
    return audit_subgroups(rows, columns, question, **limits)
