"""More than two classes, reduced to binary calibration with one error budget: top-label and
class-wise.
"""

from calibrant.guarantee.class_wise import ClassWiseGuarantee
from calibrant.multiclass.class_wise import ClassWiseCalibrator
from calibrant.multiclass.top_label import TopLabelCalibrator

__all__ = ["ClassWiseCalibrator", "ClassWiseGuarantee", "TopLabelCalibrator"]
