"""How the library's parameters are called on the command line.

Errors and guarantees carry the names of parameters as data (`calibrant._text.Setting`). Here each name is an option, or
a plain noun where no option stands behind it. Nothing else of a message is touched.
"""

from calibrant._text import Setting

_NAMES = {
    "base_rate": "--base-rate",
    "calibrator": "the model",
    "classes": "--classes",
    "confidence_level": "--confidence",
    "coverage": "--coverage",
    "cv": "--folds",
    "dialect": "--dialect",
    "epsilon": "--epsilon",
    "format": "--format",
    "id": "--id",
    "interval": "--interval",
    "label": "--label",
    "method": "--method",
    "n": "--rows",
    "n_bins": "--bins",
    "n_jobs": "--threads",
    "outputs": "--outputs",
    "overwrite": "--overwrite",
    "pos_label": "--pos-label",
    "prefix": "--prefix",
    "random_state": "--seed",
    "score": "--score",
    "score_range": "--range",
    "scores": "the scores",
    "segment": "--segment",
    "segments": "the segments",
    "split": "--split",
    "table": "--table",
    "value": "--value",
    "weight": "--weight",
    "weight_bound": "--weight-bound",
    "y": "the labels",
}


def in_options(setting: Setting) -> str:
    """A setting as it is written on the command line.

    >>> [in_options(Setting(*pair)) for pair in (("n_bins", 10), ("classes", (0, 1)), ("overwrite", True))]
    ['--bins 10', '--classes 0,1', '--overwrite']
    >>> in_options(Setting("method", "platt", python="PlattCalibrator()")), in_options(Setting("y"))
    ('--method platt', 'the labels')
    """
    name, value = _NAMES.get(setting.parameter, setting.parameter), setting.value
    if not setting.has_value or value is True:
        return name
    if value is None:
        return f"no {name}"
    return f"{name} {','.join(map(str, value)) if isinstance(value, list | tuple) else value}"
