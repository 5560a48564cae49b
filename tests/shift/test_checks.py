"""The checks of every calibrator, on ShiftCalibrator with weights of one."""

import numpy as np
import pytest

from calibrant import ShiftCalibrator
from calibrant.ratios import ULSIF
from calibrator_checks import CHECKS
from shift_worlds import BOUND, data, target


class Weighed(ShiftCalibrator):
    """Every row has weight 1, so that the checks of all calibrators can be run on this one."""

    def fit(self, scores, y, **options):
        n_rows = len(y) if hasattr(y, "__len__") else 1
        return super().fit(scores, y, **{**options, "importance_weight": np.ones(n_rows)})


NOT_MEANT = {
    "order_of_calibration_rows_does_not_matter": "bets are placed in an order; any order is valid",
    "doubled_data_equals_weight_two": "takes no sample_weight",
    "weights_equal_repeated_rows_and_zero_equals_removal": "takes no sample_weight",
    "arrays_of_the_caller_are_unchanged": "takes no sample_weight; tested below",
    "weights_are_refused_where_rows_are_drawn": "takes no sample_weight",
    "from_tally_equals_fit": "bets need rows; tested above for methods that do not",
    "region_without_rows_predicts_one_half_and_promises_nothing": "needs a tally with weights; tested below",
    "fit_and_predict_agree_on_the_side_of_every_edge": "makes a tally without weights where rows are drawn",
}
CONFIGURATIONS = {
    "betting": Weighed(n_bins=4, weight_bound=1.0),
    "sums": Weighed(n_bins=4, interval="hoeffding", weight_bound=1.0),
    "split": Weighed(n_bins=3, split=0.2, weight_bound=1.0),
    "uniform": Weighed(n_bins=3, strategy="uniform", value="midpoint"),
}
PAIRS = [
    pytest.param(check, calibrator, id=f"{check.name}-{name}")
    for check in CHECKS
    for name, calibrator in CONFIGURATIONS.items()
    if check.name not in NOT_MEANT and check.applies_to(calibrator)
]


@pytest.mark.parametrize(("check", "calibrator"), PAIRS)
def test_check(check, calibrator):
    check.run(calibrator)


def test_checks_left_out_are_checks():
    assert NOT_MEANT.keys() <= {check.name for check in CHECKS}


@pytest.mark.broad
def test_arrays_of_the_caller_and_numpys_error_state_are_unchanged():
    x, scores, y, w = data()
    copies = [array.copy() for array in (x, scores, y, w)]
    with np.errstate(all="raise"):
        ShiftCalibrator(n_bins=4, weight_bound=BOUND).fit(scores, y, importance_weight=w).predict(scores)
        ShiftCalibrator(n_bins=4, ratio=ULSIF()).fit(scores, y, X=x, X_target=target())
    for array, before in zip((x, scores, y, w), copies, strict=True):
        np.testing.assert_array_equal(array, before)
