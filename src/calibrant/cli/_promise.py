"""A guarantee as text and as JSON."""

from typing import Any

from calibrant.cli._output import paragraph, shortened, table


def promise_json(calibrator: Any) -> dict[str, Any]:
    """What is promised, as plain values; documented in the guide."""
    guarantee = calibrator.guarantee_
    return {
        "sentence": str(guarantee),
        "proved": bool(guarantee.is_proved),
        "epsilon": guarantee.epsilon,
        "confidence_level": getattr(guarantee, "confidence_level", None),
        "interval": getattr(guarantee, "method", None),
        "theorem": getattr(guarantee, "theorem", None),
        "assumptions": list(getattr(guarantee, "assumptions", ())),
        "regions": _regions(guarantee),
    }


def _regions(guarantee: Any) -> list[dict[str, Any]]:
    if not hasattr(guarantee, "regions"):
        return []
    columns = {"rows": "counts", "positives": "positives", "calibrated": "value", "lower": "lower", "upper": "upper"}
    values = {name: getattr(guarantee, attribute).tolist() for name, attribute in columns.items()}
    return [
        {"region": region, **{name: column[place] for name, column in values.items()}}
        for place, region in enumerate(guarantee.regions)
    ]


def show_promise(calibrator: Any) -> None:
    """The sentence, and the regions."""
    guarantee = calibrator.guarantee_
    paragraph(str(guarantee), bold=bool(guarantee.is_proved))
    rows: list[Any] = [
        (
            region["region"],
            f"{region['rows']:,}",
            f"{region['positives']:,}",
            f"{region['calibrated']:.4f}",
            f"{region['lower']:.4f} to {region['upper']:.4f}",
        )
        for region in _regions(guarantee)
    ]
    if rows:
        print()
        table(("region", "rows", "positive", "calibrated", "true rate lies in"), shortened(rows))
