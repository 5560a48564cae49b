"""What people search for on the site, the page that each search should find, and the site's own
search to try it with.

`make look` tries them on the built site; a test tries them on the pages alone.
"""

from __future__ import annotations

from typing import Any

SEARCHES = {
    "a/b test": "guides/compare.html",
    "active learning": "guides/streams.html",
    "auc": "guides/metrics.html",
    "big data": "guides/big-data.html",
    "brier score": "guides/metrics.html",
    "calibratedclassifiercv": "guides/drop-in.html",
    "calibration curve": "guides/diagrams.html",
    "calibration slope": "guides/metrics.html",
    "calibrationdisplay": "guides/diagrams.html",
    "catboost": "guides/drop-in.html",
    "censored": "guides/monitoring.html",
    "class weight": "guides/small-samples.html",
    "clickhouse": "use/deploy.html",
    "clustered data": "guides/groups.html",
    "concept drift": "guides/monitoring.html",
    "conda": "start/install.html",
    "confidence interval": "guides/diagrams.html",
    "conformal": "guides/multiclass.html",
    "covariate shift": "guides/shift.html",
    "cross validation": "guides/drop-in.html",
    "dashboard": "guides/monitoring.html",
    "dbt": "use/deploy.html",
    "decimal comma": "reference/command-line.html",
    "decision curve": "guides/decisions.html",
    "docker": "start/install.html",
    "drift monitoring": "guides/monitoring.html",
    "duckdb": "guides/big-data.html",
    "epistemic uncertainty": "use/faq.html",
    "error message": "use/troubleshooting.html",
    "eu ai act": "use/paper.html",
    "evidently": "guides/other-calibrators.html",
    "excel": "reference/command-line.html",
    "expected calibration error": "guides/metrics.html",
    "fairness audit": "guides/subgroups.html",
    "fairness": "guides/subgroups.html",
    "federated": "guides/big-data.html",
    "find subgroups": "guides/subgroups.html",
    "glossary": "use/faq.html",
    "guardrail": "guides/decisions.html",
    "hallucination": "guides/judge.html",
    "histogram binning": "guides/binning.html",
    "hold out": "guides/small-samples.html",
    "hosmer lemeshow": "guides/metrics.html",
    "how to install": "start/install.html",
    "imbalanced": "guides/small-samples.html",
    "isotonic": "guides/other-calibrators.html",
    "json schema": "reference/json.html",
    "keras": "guides/neural-networks.html",
    "label noise": "use/faq.html",
    "label shift": "guides/shift.html",
    "langfuse": "guides/judge.html",
    "language model": "guides/judge.html",
    "late labels": "guides/monitoring.html",
    "license": "start/install.html",
    "lightgbm": "guides/drop-in.html",
    "llm judge": "guides/judge.html",
    "logprobs": "guides/neural-networks.html",
    "mlflow": "use/deploy.html",
    "model card": "use/report.html",
    "multiclass": "guides/multiclass.html",
    "net benefit": "guides/decisions.html",
    "neural network": "guides/neural-networks.html",
    "offline install": "start/install.html",
    "onnx": "use/deploy.html",
    "out of distribution": "guides/shift.html",
    "overfitting": "learn/why.html",
    "p-value": "guides/metrics.html",
    "platt scaling": "guides/other-calibrators.html",
    "prediction sets": "guides/multiclass.html",
    "prefit": "guides/drop-in.html",
    "probability of default": "cases/credit.html",
    "prometheus": "guides/monitoring.html",
    "pytorch": "guides/neural-networks.html",
    "rare events": "guides/small-samples.html",
    "regulator": "use/paper.html",
    "release gate": "guides/judge.html",
    "reliability diagram": "guides/diagrams.html",
    "sample weights": "guides/weights.html",
    "small data": "guides/small-samples.html",
    "smote": "guides/small-samples.html",
    "spark": "guides/big-data.html",
    "sql": "use/deploy.html",
    "survey weights": "guides/weights.html",
    "temperature scaling": "guides/other-calibrators.html",
    "threshold precision recall": "guides/decisions.html",
    "time series": "guides/iid.html",
    "tripod": "use/paper.html",
    "venn abers": "guides/other-calibrators.html",
    "warehouse": "use/deploy.html",
    "which method": "start/which-method.html",
    "xgboost": "guides/drop-in.html",
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
