"""What people search for on the site, the page that each search should find, and the site's own
search to try it with.

`make look` tries them on the built site; a test tries them on the pages alone.
"""

from __future__ import annotations

from typing import Any

SEARCHES = {
    "active learning": "how-to/streams.html",
    "big data": "how-to/any-size.html",
    "brier score": "how-to/metrics.html",
    "calibratedclassifiercv": "how-to/from-scikit-learn.html",
    "calibration curve": "how-to/diagrams.html",
    "calibration slope": "how-to/metrics.html",
    "calibrationdisplay": "how-to/diagrams.html",
    "class weight": "how-to/imbalanced.html",
    "clustered data": "how-to/groups.html",
    "concept drift": "how-to/drift.html",
    "confidence interval": "how-to/diagrams.html",
    "conformal": "how-to/several-classes.html",
    "covariate shift": "how-to/covariate-shift.html",
    "decision curve": "how-to/decisions.html",
    "drift monitoring": "how-to/drift.html",
    "duckdb": "how-to/any-size.html",
    "error message": "how-to/troubleshooting.html",
    "expected calibration error": "how-to/metrics.html",
    "fairness audit": "how-to/segments.html",
    "fairness": "tutorials/subgroups.html",
    "federated": "how-to/merging.html",
    "guardrail": "how-to/thresholds.html",
    "histogram binning": "how-to/bins-and-intervals.html",
    "hold out": "how-to/few-rows.html",
    "hosmer lemeshow": "how-to/hosmer-lemeshow.html",
    "imbalanced": "how-to/imbalanced.html",
    "isotonic": "how-to/other-calibrators.html",
    "label shift": "how-to/covariate-shift.html",
    "language model": "how-to/few-labels.html",
    "late labels": "how-to/watch.html",
    "lightgbm": "how-to/classifier.html",
    "llm judge": "how-to/few-labels.html",
    "multiclass": "how-to/several-classes.html",
    "net benefit": "how-to/decisions.html",
    "neural network": "how-to/neural-networks.html",
    "offline install": "how-to/troubleshooting.html",
    "onnx": "how-to/deploy.html",
    "out of distribution": "how-to/covariate-shift.html",
    "platt scaling": "how-to/other-calibrators.html",
    "prediction sets": "how-to/several-classes.html",
    "pytorch": "how-to/neural-networks.html",
    "regulator": "how-to/manager.html",
    "release gate": "how-to/few-labels.html",
    "reliability diagram": "how-to/diagrams.html",
    "sample weights": "how-to/weights.html",
    "small data": "how-to/few-rows.html",
    "smote": "how-to/imbalanced.html",
    "spark": "how-to/any-size.html",
    "sql": "how-to/deploy.html",
    "survey weights": "how-to/weights.html",
    "temperature scaling": "how-to/other-calibrators.html",
    "threshold precision recall": "how-to/thresholds.html",
    "tripod": "how-to/paper.html",
    "venn abers": "how-to/other-calibrators.html",
    "which method": "how-to/choose-a-method.html",
    "xgboost": "how-to/classifier.html",
}
"""A search, and its page, which must be among the first three."""

ASK = """async ([source, index, queries]) => {
    const worker = new Worker(URL.createObjectURL(new Blob([source])));
    const ask = message => new Promise(resolve => {
        worker.onmessage = event => resolve(event.data);
        worker.postMessage(message);
    });
    await ask({type: 0, data: {...index, options: {suggest: false}}});
    const found = {};
    for (const query of queries) {
        const answer = await ask({type: 2, data: query});
        found[query] = answer.data.items.map(page => page[0].location.split("#")[0]);
    }
    worker.terminate();
    return found;
}"""
"""The theme's search is a worker: 0 hands it the index, and 2 is a query."""


def found_by_search(
    tab: Any, worker: str, index: dict[str, Any], queries: list[str]
) -> dict[str, list[str]]:
    """Pages that the theme's own search finds for each query, best first.

    `tab` is a page of Playwright, `worker` the text of the theme's script for searches, and
    `index` the content of `search_index.json`.
    """
    found: dict[str, list[str]] = tab.evaluate(ASK, [worker, index, queries])
    return found


def missed(found: dict[str, list[str]]) -> list[str]:
    """Searches whose page is not among the first three, or has a page of the API before it."""
    wrong = []
    for query, page in SEARCHES.items():
        first = found[query][:3]
        if page not in first:
            wrong.append(f"a search for {query!r} finds {first}, not {page}")
        elif any("/api/" in other for other in first[: first.index(page)]):
            wrong.append(f"a search for {query!r} finds the API before {page}: {first}")
    return wrong
