"""`truesource cite`: list the works to cite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.report.works import TOPICS, topics_of, works
from truesource.report.works import bibtex as bibtex_of
from truesource.terminal.console import echo
from truesource.terminal.inputs import grammar_inside

if TYPE_CHECKING:
    from truesource.grammar.truth import Truth


def command(
    subject: Annotated[
        str | None,
        typer.Argument(help="Run, corpus, model, grammar or language whose works to list (default: all works)."),
    ] = None,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print BibTeX entries.")] = False,
    methods: Annotated[bool, typer.Option("--methods", help="Print the methods paragraph of a run.")] = False,
) -> None:
    """List the publications that a paper which uses truesource should cite.

    Example: truesource cite runs/demo

    Example: truesource cite corpus/ --bibtex

    Example: truesource cite runs/demo --methods
    """
    from importlib.metadata import version

    from truesource.grammar.languages import languages

    if methods:
        echo(_methods(subject, bibtex=bibtex))
        return
    topics, sources = list(TOPICS), {name: each.citation for name, each in languages().items()}
    if subject is not None:
        topics, sources, sentence = _used(subject)
        if sentence and not bibtex:
            echo(sentence)
    if bibtex:
        echo(bibtex_of(topics, sources, version("truesource")))
        return
    echo(f"truesource {version('truesource')}; see CITATION.cff. Please also cite, for")
    for topic in topics:
        echo(f"  * {TOPICS[topic]}: {'; '.join(str(work) for work in works() if work.topic == topic)}.")
    names_by_citation: dict[str, list[str]] = {}
    for name, citation in sources.items():
        names_by_citation.setdefault(citation, []).append(name)
    for citation, names in names_by_citation.items():
        echo(f"  * the language{'s' if len(names) > 1 else ''} {', '.join(names)}: {citation}.")


def _methods(subject: str | None, *, bibtex: bool) -> str:
    """Return the methods paragraph of a run.

    Raises:
        InputError: no run is named, or it has no results.
    """
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.folders import require_run
    from truesource.report.methods import methods

    if bibtex or subject is None:
        raise InputError("--methods prints a paragraph about one run; name the run, and remove --bibtex")
    require_run(Path(subject))
    return methods(Path(subject))


def _used(subject: str) -> tuple[list[str], dict[str, str], str | None]:
    """Return the topics that a subject uses, the citation of its language by name, and a sentence about this language.

    Raises:
        InputError: it is not a run, corpus, model, grammar or language.
    """
    from truesource.grammar.languages import is_reference, languages, parse, reference
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.truth import load_truth

    path = Path(subject)
    if is_reference(subject):
        name, settings = parse(subject)
        citation = languages()[name].citation
        return topics_of(path, {}), {name: citation}, f"For the language {reference(name, settings)} cite {citation}."
    if not path.is_dir():
        return _of_grammar(subject, path, load_truth(path))
    inside = grammar_inside(path)
    if inside is not None:
        return _of_grammar(subject, path, load_truth(inside))
    if (path / "config.json").is_file():  # a model, or a run that has no grammar yet
        return topics_of(path, None), {}, None
    raise InputError("this folder is not a run, corpus or model; name one of these, a grammar or a language", path)


def _of_grammar(subject: str, path: Path, truth: Truth) -> tuple[list[str], dict[str, str], str]:
    topics, language = topics_of(path, truth.meta), truth.meta.get("language")
    if language is None:
        sentence = f"The grammar of {subject} is not a language that comes with truesource; cite its source."
        return topics, {}, sentence
    name = truth.identity.removeprefix("changed ").partition(":")[0]
    return topics, {name: language["citation"]}, f"For the language {truth.identity} cite {language['citation']}."
