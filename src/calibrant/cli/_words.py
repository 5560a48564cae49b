"""Names of the library's parameters on the command line.

Errors and guarantees carry the names of parameters as data (`calibrant.text.sentences.Setting`).
Here each name becomes an option, or a plain noun if there is no option. Nothing else in a message
changes.
"""

from calibrant.text.sentences import Setting

_OPTIONS = {  # with the same name
    "at_least",
    "at_most",
    "base_rate",
    "classes",
    "clip",
    "cost_false_alarm",
    "cost_miss",
    "coverage",
    "decimal",
    "dialect",
    "epsilon",
    "expected_rate",
    "format",
    "group",
    "group_size",
    "group_target",
    "holdout",
    "icc",
    "id",
    "interval",
    "label",
    "maturity",
    "max_group_size",
    "method",
    "min_rows",
    "name",
    "npv",
    "outputs",
    "overwrite",
    "pos_label",
    "precision",
    "prefix",
    "probability",
    "recall",
    "remember",
    "sampling_rates",
    "score",
    "segment",
    "sensitivity",
    "skip_missing",
    "pilot",
    "specificity",
    "start",
    "table",
    "target",
    "time",
    "tolerance",
    "value",
    "weight",
    "weight_bound",
    "width",
}
_OTHERS = {
    "calibrator": "the model",
    "confidence_level": "--confidence",
    "groups": "--group",
    "importance_weight": "--weight",
    "keep_segments": "--keep-segment",
    "n": "--rows",
    "n_bins": "--bins",
    "n_items": "--items",
    "n_jobs": "--threads",
    "n_labels": "--labels",
    "random_state": "--seed",
    "score_range": "--range",
    "target_prior": "--prior",
    "partition": "the bins",
    "scores": "the scores",
    "segment_rule": "--min-rows or --keep-segment",
    "segments": "the segments",
    "sequential": "--order",
    "unlabelled_scores": "--unlabelled",
    "y": "the labels",
}


def option_of(parameter: str) -> str:
    """The option for a parameter of the library.

    >>> option_of("n_bins"), option_of("weight_bound")
    ('--bins', '--weight-bound')
    """
    return _OTHERS.get(parameter, f"--{parameter.replace('_', '-')}")


def in_options(setting: Setting) -> str:
    """A setting as written on the command line.

    >>> [in_options(Setting(*pair)) for pair in (("n_bins", 10), ("classes", (0, 1)),
    ...     ("overwrite", True))]
    ['--bins 10', '--classes 0,1', '--overwrite']
    >>> in_options(Setting("method", "platt", python="PlattCalibrator()")), in_options(Setting("y"))
    ('--method platt', 'the labels')
    """
    name = _OTHERS.get(setting.parameter, setting.parameter)
    value = setting.value
    if name == "row" and isinstance(value, int):
        return f"row {value + 1:,}"  # people open files in editors, which count from 1
    if name in _OPTIONS:
        name = f"--{name.replace('_', '-')}"
    if not setting.has_value or value is True:
        return name
    if value is None:
        return f"no {name}"
    return f"{name} {','.join(map(str, value)) if isinstance(value, list | tuple) else value}"
