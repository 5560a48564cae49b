"""The checks that every estimator must pass: one function, one invariant, said in one sentence.

`CALIBRATORS`, in `calibrators.py`, lists those that calibrate one score per row, `OTHERS` the other
estimators of the package, each with the data it takes. `CHECKS` lists the invariants;
`test_checks.py` runs every pair that fits, and fails if a public estimator is in neither list. A
check that is about one ability (scores, intervals, ranks, counts) names the ability it `needs`, so
that an estimator without it has no such test, rather than a skipped one.
"""

from calibrator_checks import contract, numbers  # noqa: F401  they fill the list
from calibrator_checks.calibrators import ABILITIES, CALIBRATORS, INPUT_PATHS, OTHERS
from calibrator_checks.data import answers, assert_same, fitted, make_data
from calibrator_checks.forms import LABEL_FORMS, NAMED_LABEL_FORMS, PROBABILITY_FORMS, SCORE_FORMS
from calibrator_checks.registry import CHECKS

__all__ = [
    "ABILITIES",
    "CALIBRATORS",
    "CHECKS",
    "INPUT_PATHS",
    "LABEL_FORMS",
    "NAMED_LABEL_FORMS",
    "OTHERS",
    "PROBABILITY_FORMS",
    "SCORE_FORMS",
    "answers",
    "assert_same",
    "fitted",
    "make_data",
]
