"""A guarantee as text and as JSON."""

from typing import Any

from calibrant._numbers import limits
from calibrant.cli._errors import in_words
from calibrant.cli._output import note, paragraph, shortened, table

_SHARE_BINS = "--split 0.2"
_REPEATABLE = "; --id COLUMN makes the draw repeatable"


def promise_json(calibrator: Any) -> dict[str, Any]:
    """What is guaranteed, as plain values; documented in the guide."""
    guarantee = calibrator.guarantee_
    theorem = getattr(guarantee, "theorem", None)
    return {
        "sentence": sentence_of(calibrator),
        "remarks": remarks_of(calibrator),
        "proved": bool(guarantee.is_proved),
        "epsilon": guarantee.epsilon,
        "confidence_level": getattr(guarantee, "confidence_level", None),
        "interval": getattr(guarantee, "method", None),
        "theorem": None if theorem is None else in_words(theorem),
        "assumptions": [in_words(text) for text in getattr(guarantee, "assumptions", ())],
        "regions": _regions(guarantee),
    }


def sentence_of(calibrator: Any) -> str:
    """What is guaranteed, in one sentence."""
    return _told(calibrator, calibrator.guarantee_.sentence())


def remarks_of(calibrator: Any) -> list[str]:
    """What a reader should know besides the sentence."""
    told = [_told(calibrator, text) for text in getattr(calibrator.guarantee_, "remarks", ())]
    return [text + _REPEATABLE if _SHARE_BINS in text else text for text in told]


def _told(calibrator: Any, text: str) -> str:
    from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator

    text = in_words(text)
    # its split fits the curve and cuts no bin, so there the advice is for the other method
    other = isinstance(calibrator, ScalingBinningCalibrator)
    return text.replace(_SHARE_BINS, f"--method binning {_SHARE_BINS}") if other else text


def _regions(guarantee: Any) -> list[dict[str, Any]]:
    if not hasattr(guarantee, "regions"):
        return []
    columns = {"rows": "counts", "positives": "positives", "calibrated": "value", "lower": "lower", "upper": "upper"}
    values = {name: getattr(guarantee, attribute).tolist() for name, attribute in columns.items()}
    return [
        {"region": region, **{name: column[place] for name, column in values.items()}}
        for place, region in enumerate(guarantee.regions)
    ]


def show_sentence(calibrator: Any, *, bold: bool = True) -> None:
    """The sentence and the remarks."""
    paragraph(sentence_of(calibrator), bold=bold and bool(calibrator.guarantee_.is_proved))
    for text in remarks_of(calibrator):
        note(text)


def show_promise(calibrator: Any, notes: tuple[str, ...] = ()) -> None:
    """The sentence, the remarks, the notes and the regions."""
    show_sentence(calibrator)
    for text in notes:
        note(text)
    rows: list[Any] = [
        (
            region["region"],
            f"{region['rows']:,}",
            f"{region['positives']:,}",
            f"{region['calibrated']:.4g}",
            limits(region["lower"], region["upper"]),
        )
        for region in _regions(calibrator.guarantee_)
    ]
    if rows:
        print()
        table(("region", "rows", "positive", "calibrated", "true rate lies in"), shortened(rows))
