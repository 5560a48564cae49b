"""For mkdocs: pages of the API, made from `__all__`.

There is one page for each public class, with the parts that it consists of, one for each function
of `calibrant` itself, and one for the functions of each other public module. Tests ask `pages` for
what is where.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

FOLDER = "reference/api"
INDEX = f"{FOLDER}/index.md"
MODULES = (
    "calibrant",
    "calibrant.calibrators",
    "calibrant.metrics",
    "calibrant.intervals",
    "calibrant.sequences",
    "calibrant.partition",
    "calibrant.monitor",
    "calibrant.multiclass",
    "calibrant.shift",
    "calibrant.ratios",
    "calibrant.export",
    "calibrant.tripod",
    "calibrant.adversary",
    "calibrant.errors",
)
"""Public modules. A name that several of them have is that of the first."""
PARTS = {
    "calibrant.Audit": (
        "calibrant.assess.audit.result.Bounds",
        "calibrant.assess.audit.findings.AuditTable",
        "calibrant.assess.audit.findings.Finding",
        "calibrant.assess.subgroups.result.SubgroupAudit",
        "calibrant.assess.subgroups.findings.SubgroupFinding",
        "calibrant.assess.subgroups.result.SubgroupTable",
    ),
    "calibrant.Exchangeability": (
        "calibrant.assess.check.exchangeability.ExchangeabilityTest",
        "calibrant.assess.check.exchangeability.GroupSign",
    ),
    "calibrant.Guarantee": (
        "calibrant.guarantee.guarantee.PartialGuarantee",
        "calibrant.guarantee.no_guarantee.WeakerGuarantee",
    ),
    "calibrant.ModelComparison": (
        "calibrant.assess.compare_models.model_comparison.Differences",
        "calibrant.assess.compare_models.model_comparison.PairedDifference",
    ),
    "calibrant.Rate": (
        "calibrant.assess.rates.result.SegmentRate",
        "calibrant.assess.rates.drawn.DrawCheck",
    ),
    "calibrant.Threshold": (
        "calibrant.assess.threshold.proved_threshold.Cut",
        "calibrant.assess.threshold.proved_threshold.Measured",
    ),
    "calibrant.Validation": (
        "calibrant.assess.validation.result.Measure",
        "calibrant.assess.validation.result.GradeTable",
    ),
    "calibrant.intervals.MonotoneBand": (
        "calibrant.assess.monotone.runs.Refutation",
        "calibrant.assess.monotone.monotone_band.ScoreFinding",
    ),
    "calibrant.shift": ("calibrant.limits.shift.paper.why_vacuous",),
}
"""What has no public name of its own, by the page that shows it."""


@dataclass(frozen=True)
class ApiPage:
    """A page: the class or module that it is about, and the names that it shows."""

    about: str
    summary: str
    names: tuple[str, ...]
    inherited: bool = False

    @property
    def uri(self) -> str:
        """Its path below docs."""
        return f"{FOLDER}/{self.about}.md"

    @property
    def title(self) -> str:
        """A class or function by its name, and a module by its path."""
        return self.about if self.about in MODULES else self.about.rpartition(".")[2]

    def markdown(self) -> str:
        """The page; mkdocstrings puts docstrings in it."""
        shown = "\n\n".join(f"::: {name}{self.options(name)}" for name in self.names)
        if self.about in MODULES:
            return f"# {self.title}\n\n{self.summary}\n\n{elsewhere(self)}{shown}\n"
        return f"{shown}\n"

    def options(self, name: str) -> str:
        """How mkdocstrings shows a name."""
        chosen = []
        if name == self.about:
            chosen += ["heading_level: 1", "show_root_full_path: true"]
        if self.inherited:
            chosen.append("inherited_members: true")
        if not callable(pkgutil.resolve_name(name)):  # a constant, of private things
            chosen.append("show_attribute_values: false")
        return "".join(["\n    options:" if chosen else "", *(f"\n      {one}" for one in chosen)])


def summary_of(found: Any) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())


def linked(listed: list[ApiPage]) -> str:
    """Pages as a list of links, each with what it is about."""
    return "\n".join(f"- [`{page.title}`]({page.about}.md): {page.summary}" for page in listed)


def elsewhere(page: ApiPage) -> str:
    """The names of a module that other pages show, with links."""
    module = importlib.import_module(page.about)
    shown = {id(pkgutil.resolve_name(name)): one for one in pages() for name in one.names}
    lines = []
    for name in sorted(public_names(module), key=str.lower):
        found = getattr(module, name)
        other = shown[id(found)]
        if callable(found) and other is not page:
            lines.append(f"- [`{name}`]({other.about}.md): {summary_of(found)}")
    return "".join(f"{line}\n" for line in lines) + "\n" if lines else ""


def public_names(module: ModuleType) -> list[str]:
    """Names of a public module; those of the errors, which has no `__all__`, are its classes."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, found in vars(module).items()
        if inspect.isclass(found) and found.__module__ == module.__name__ and name[0] != "_"
    ]


@cache
def pages() -> tuple[ApiPage, ...]:
    """All pages: for each module its own, and those of its classes."""
    return tuple(made_pages())


def made_pages() -> Iterator[ApiPage]:
    """Make them, the classes of a module before the module."""
    seen: set[int] = set()
    for path in MODULES:
        module = importlib.import_module(path)
        together = path == "calibrant.errors"
        others = []
        for name in sorted(public_names(module), key=str.lower):
            found = getattr(module, name)
            if callable(found) and id(found) in seen:
                continue
            seen.add(id(found))
            about = f"{path}.{name}"
            alone = inspect.isclass(found) or (path == "calibrant" and callable(found))
            if alone and not together:
                learns = hasattr(found, "fit") or hasattr(found, "partial_fit")
                names = (about, *PARTS.get(about, ()))
                yield ApiPage(about, summary_of(found), names, inherited=learns)
            else:
                others.append(about)
        yield ApiPage(path, summary_of(module), (*others, *PARTS.get(path, ())))


def kinds() -> dict[str, list[ApiPage]]:
    """Pages of functions and of classes, by name."""
    own = sorted(
        (page for page in pages() if page.about not in MODULES),
        key=lambda page: page.title.lower(),
    )
    of_classes = [page for page in own if inspect.isclass(pkgutil.resolve_name(page.about))]
    functions = [page for page in own if page not in of_classes]
    return {"Functions": functions, "Classes": of_classes}


def on_config(config: Any) -> None:
    """List the pages in the menu, below the index of the API."""
    for entries in (part["Reference"] for part in config.nav if "Reference" in part):
        (api,) = (entry["API"] for entry in entries if isinstance(entry, dict) and "API" in entry)
        api += [{page.title: page.uri} for page in pages() if page.about in MODULES]
        for heading, listed in kinds().items():
            api.append({heading: [{page.title: page.uri} for page in listed]})


def on_files(files: Any, config: Any) -> None:
    """Add the pages to the site."""
    from mkdocs.structure.files import File, InclusionLevel  # tests do without mkdocs

    for page in pages():
        content = page.markdown()
        files.append(
            File.generated(config, page.uri, content=content, inclusion=InclusionLevel.INCLUDED)
        )


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the list of all pages on the index of the API, where it is marked."""
    if page.file.src_uri != INDEX:
        return markdown
    modules = [page for page in pages() if page.about in MODULES]
    parts = {"Modules": modules, **kinds()}
    lists = "\n\n".join(f"## {heading}\n\n{linked(listed)}" for heading, listed in parts.items())
    return markdown.replace("<!-- list of pages -->", lists)
