"""Writing the page: the sections of the chain and of the evaluators, and the sources of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from truesource.evaluation.show import words
from truesource.evaluation.show.figures import FigureFile, drawing_for, standalone, without_marks
from truesource.generator.objectives import OBJECTIVES
from truesource.grammar.support.atomic_files import write_text
from truesource.grammar.support.errors import InputError, require_extras
from truesource.report.environment import FOLDER, data_of_script, render, script_hash
from truesource.report.finished_run import COMPARISON, FinishedRun, Part, read_run
from truesource.report.shown_figures import ShownFigures
from truesource.report.works import bibtex, topics_of

#: files of a run, and their content; a star is the name of each model
FILES = (
    ("results.json", "every model against its bound, in its own vocabulary"),
    ("comparison/*.parquet", "ln Q and ln P of every token in the vocabulary of the comparison"),
    (COMPARISON, "means over seeds, and paired differences"),
    ("config.json", "the resolved configuration"),
    ("provenance.json", "versions, machine and command"),
    ("stages.json", "what each stage depended on and made"),
    ("grammar/grammar.npz", "the grammar, which is the truth"),
    ("corpus/README.md", "the corpus"),
    ("scores/*.parquet", "ln Q and ln P of every token"),
    ("next_words/*.parquet", "the most likely words of truth and model in the first sentences"),
    ("models/*", "the trained model"),
)
SCRIPTS = ("explore.js", "tokens.js")
STYLE = FOLDER / "explore.css"  #: of what the scripts make
FRAME = FOLDER / "frame.html.j2"  #: of pages with these scripts


def files_and_works(run: FinishedRun) -> dict[str, object]:
    """Return links, relative to the page, to existing files; and BibTeX entries of the works that the run used."""
    names = [*run.names, *(f"oracle-{objective}" for objective in OBJECTIVES)]
    files = []
    for pattern, what in FILES:
        for name in [pattern.replace("*", each) for each in names] if "*" in pattern else [pattern]:
            path = run.path / name
            if path.exists():
                label = f"{name}/" if path.is_dir() else name
                files.append((label, quote(label), what))
    return {"files": files, "bibtex": _bibtex(run)}


def _bibtex(run: FinishedRun) -> str:
    language = run.truth.meta.get("language")
    name = run.truth.identity.removeprefix("changed ").partition(":")[0]
    sources = {} if language is None else {name: str(language["citation"])}
    return bibtex(topics_of(Path(run.path), run.truth.meta), sources, version("truesource"))


def render_explorable(
    template: Path, place: Path, *, data: dict[str, object], templates: Mapping[str, Path] | None = None, **context: Any
) -> tuple[str, ShownFigures]:
    """Fill the template of a page with these scripts; return the page and its figures.

    Its Content-Security-Policy allows these scripts and nothing else.

    Args:
        template: as for `render`, like the arguments below.
        place: source of the page's data, for messages.
        data: data that the scripts read.
        templates: templates that the page includes.
        context: data that it shows.
    """
    texts = [(FOLDER / script).read_text(encoding="utf-8") for script in SCRIPTS]
    scripts = [Markup(f"//<![CDATA[\n{text}//]]>") for text in texts]  # so that the page is well-formed XML too
    figures = ShownFigures()
    page = render(
        template,
        place,
        templates={STYLE.name: STYLE, FRAME.name: FRAME, **(templates or {})},
        svg=figures,
        figures=figures,
        scripts=scripts,
        hashes=Markup(" ".join(f"'{script_hash(script)}'" for script in scripts)),
        data=data_of_script(data),
        **context,
    )
    return page, figures


@dataclass(frozen=True)
class Contents:
    """The contents of the page of a run."""

    parts: Sequence[Part]  #: in the order of the page
    answer: Sequence[str]  #: sentences on the models, which open the page


ContentsMaker = Callable[[FinishedRun], Contents]  #: makes the contents of a page; its figures are drawn then


def write_page(run: Path, contents: ContentsMaker) -> Path:
    """Write ``report.html`` into a run folder, atomically: one file without anything outside it.

    Args:
        run: a folder that `truesource run` made.
        contents: makes the contents, see `truesource.run.sections.contents`.

    Returns:
        The path of the page.

    Raises:
        InputError: the extra report is not installed, a required file of the run is missing or damaged, or the page
            cannot be written.
    """
    run = Path(run)
    target = run / "report.html"
    page, _ = rendered(run, contents)
    write_text(target, page)
    return target


def rendered(run: Path, contents: ContentsMaker) -> tuple[str, ShownFigures]:
    """Return the page of a run folder, and its figures; as `write_page`."""
    require_extras("a report", "report")
    run_data = read_run(run)
    name = run_data.config.get("name") or run.name
    layout = contents(run_data)
    opening = [
        line for part in layout.parts if isinstance(part.content, dict) for line in part.content.get("opening", ())
    ]
    return render_explorable(
        FOLDER / "page.html.j2",
        run,
        data={"runName": run.resolve().name, "models": _models(run_data)},
        templates={part.name: part.template for part in layout.parts},
        run=run_data,
        name=name,
        title=run_data.config.get("title") or f"Report of the run {name}",
        answer=[*layout.answer, *opening],
        verdict=words.verdict(run_data.checked_models),
        alarms=words.below_bound(run_data.checked_models),
        parts=layout.parts,
    )


def figure_of(
    run: Path,
    name: str,
    contents: ContentsMaker,
    *,
    kind: str,
    size: tuple[float, float] | None = None,
    font_size: float | None = None,
) -> bytes:
    """Return one figure as a file, for a paper.

    Args:
        run: a run folder.
        name: of the figure.
        contents: as for `write_page`.
        kind: svg, pdf or png (300 dots an inch).
        size: width and height in inches; None: as on the page.
        font_size: points of the usual text; other text keeps its ratio to it. None: as on the page.

    Raises:
        InputError: there is no such figure, or as `write_page`.
    """
    file = FigureFile(kind, size, font_size=font_size, only=name)
    with drawing_for(file):
        svgs = rendered(run, contents)[1].svgs
    if name not in svgs:
        raise InputError(
            f"the report has no figure {name!r}; it has {', '.join(svgs) or 'none'}", run, code="no-figure"
        )
    if kind != "svg":
        return file.data
    return standalone(without_marks(file.svg)).encode("utf-8")


def _models(run: FinishedRun) -> list[dict[str, object]]:
    """Return the models that the page may show or hide, each with the names of its seeds."""
    rows = [*run.models, *run.unscored]
    return [
        {
            "name": row["model"],
            "objective": row["objective"],
            "names": list(dict.fromkeys([row["model"], *(seed["model"] for seed in row.get("replicates", ()))])),
        }
        for row in rows
    ]
