"""`calibrant decide`: act, do not act, or too close to call, from a model file and the costs of
errors.
"""

from contextlib import nullcontext
from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import files
from calibrant.cli._model import read_model, rows_for
from calibrant.cli._report import facts_of, is_page
from calibrant.cli._show import answer
from calibrant.cli._target import check_escaping, check_target, kind_of
from calibrant.text.numbers import rows

_COLUMNS = ("action", "rate_lower", "rate_upper")


@option.command(
    "decide", "Act or not? Decide by costs and guaranteed rates.", option.model, option.data
)
def command(**options: Any) -> None:
    """Decide for the rows of DATA whether to act, from the guaranteed rates of a MODEL that fit has
    made.

    A row is acted on if the rate of its score range is guaranteed to be above the break-even rate,
    and not acted on if it is guaranteed to be below. Otherwise it is too close to call.

    Examples
    --------
    calibrant decide model.json new.csv --cost-false-alarm 1 --cost-miss 5
    calibrant decide model.json new.parquet --cost-false-alarm 1 --cost-miss 5 -o decided.parquet
    calibrant decide model.json new.csv --cost-false-alarm 1 --cost-miss 5 -o report.html
    """
    from calibrant.assess.decide import COST, decided_by_region, regions_of, weighed
    from calibrant.guarantee.guarantee import is_guarantee

    costs = [COST.check(name, cost) for name, cost in option.arguments("decide", options).items()]
    output = options["output"]
    if output == "-":
        raise RefusedError("-o", "name a file", got="-")
    check_escaping(options, None if output is None or is_page(output) else kind_of(output)[0])
    if output is not None:
        check_target(options)
    model = read_model(options["model"])
    calibrator = model.calibrator
    guarantee = calibrator.guarantee_
    if not is_guarantee(guarantee) or not calibrator.bins_of_score:
        got = type(calibrator).__name__
        advice = "fit with --method curve or binning"
        raise RefusedError(
            "the model", "have guaranteed rates for bins of the score", got=got, advice=advice
        )
    action, _ = weighed(guarantee.value, guarantee.lower, guarantee.upper, *costs)
    added = dict(
        zip(_COLUMNS, (tuple(action.tolist()), guarantee.lower, guarantee.upper), strict=True)
    )
    with files(options) as source:
        data = rows_for(model, source, options)
        reader = regions_of(calibrator, data, **added)
        counts, refused = _copied(reader, data, options, action.size)
        named = f"{options['model']} ({model.fingerprint})"
        facts = facts_of(source, **data.columns.named, model=named)
    found = decided_by_region(guarantee, counts, *costs)
    entries = {"n_rows": int(counts.sum()), "n_refused": refused, "model": model.fingerprint}
    refusal = f"{rows(refused)} without a decision: the model does not take the score or segment"
    notes = [refusal] if refused else []
    answer(found, options, facts, entries, notes=notes, entry="output", calibrator=calibrator)


def _copied(reader: Any, data: Any, options: dict[str, Any], n_regions: int) -> tuple[Any, int]:
    """Write the rows if an output file was given.

    Return the number of rows in each region, and in no region.
    """
    import numpy as np

    from calibrant.assess.decide import REGION
    from calibrant.cli._writer import opened

    output = options["output"]
    schema = reader.schema.remove(reader.schema.get_field_index(REGION))
    counts = np.zeros(n_regions, dtype=np.int64)
    refused = 0
    writes = output is not None and not is_page(output)
    with opened(options, schema, data) if writes else nullcontext(id) as write:
        for batch in reader:
            refused += batch.column(REGION).null_count
            counts += np.bincount(batch.column(REGION).drop_null().to_numpy(), minlength=n_regions)
            write(batch.drop_columns([REGION]))
    return counts, refused
