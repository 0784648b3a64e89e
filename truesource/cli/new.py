"""`truesource new`: a folder with a configuration of one's own."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force

CONFIG = "experiment.yaml"
SCHEMA = "experiment.schema.json"  #: beside it, so that editors complete keys and check values
EXAMPLE_TREES = 1000  #: of the embedded grammar, in ``trees/example.mrg``


class Kind(StrEnum):
    """The start of an experiment: the demo, a grammar, a treebank or languages."""

    DEMO = "demo"
    GRAMMAR = "grammar"
    TREEBANK = "treebank"
    LANGUAGES = "languages"


def command(
    kind: Annotated[Kind, typer.Argument(help="Start from the demo, a grammar, a treebank, or a known language.")],
    folder: Annotated[Path, typer.Argument(help="Folder to make; its name becomes the name of the run.")],
    force: Force = False,
) -> None:
    """Write a commented configuration of your own, with what belongs to it, and say what to do next.

    demo: the configuration of truesource demo. grammar: a toy grammar to change. treebank: a folder for your trees,
    with examples. languages: a language whose grammar comes with truesource.

    Example: truesource new grammar my-grammar
    """
    from truesource.cli.output import claim_files
    from truesource.grammar.support.files import write_text

    files = {folder / name: text for name, text in contents(kind, run_name(folder)).items()}
    with claim_files(folder=folder, force=force).together(*files):
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
    echo(f"Wrote {', '.join(map(str, files))}.")
    echo(f"Next: {_first_step(kind, folder)}; then")
    echo(f"  truesource run {folder / CONFIG} --dry-run    # lists what would be done")
    echo(f"  truesource run {folder / CONFIG}")


def run_name(folder: Path) -> str:
    """The name of a folder, as the name of a run: letters, digits, dots, hyphens and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).lstrip("._-") or "experiment"


def contents(kind: Kind, name: str) -> dict[str, str]:
    """The files of a kind of experiment, by their path in the folder."""
    from truesource.cli.schema import editor_line, schema_text
    from truesource.grammar.support.files import data_folder

    data = data_folder()
    packaged = {Kind.DEMO: data / "demo.yaml", Kind.LANGUAGES: data / "language.yaml"}
    text = packaged.get(kind, data / "new" / f"{kind}.yaml").read_text(encoding="utf-8")
    named = re.sub(r"^name: .*$", f"name: {name}", text, count=1, flags=re.MULTILINE)
    if kind in packaged:  # a comment says how to run the one that comes with truesource
        named = named.replace(f"truesource run {packaged[kind].stem}", f"truesource run {CONFIG}")
    files = {CONFIG: f"{editor_line(SCHEMA)}\n{named}", SCHEMA: schema_text()}
    if kind is Kind.GRAMMAR:
        files["grammar.txt"] = (data / "new" / "grammar.txt").read_text(encoding="utf-8")
    if kind is Kind.TREEBANK:
        files["trees/example.mrg"] = _example_trees()
    return files


def _example_trees() -> str:
    """Penn bracketings of the embedded English grammar, one tree per line."""
    from truesource.embedded import english
    from truesource.generator.sampler import sample_treebank

    return "".join(f"( {tree} )\n" for tree in sample_treebank(english(), EXAMPLE_TREES, 1))


def _first_step(kind: Kind, folder: Path) -> str:
    config = folder / CONFIG
    return {
        Kind.DEMO: f"change {config}",
        Kind.GRAMMAR: f"change {folder / 'grammar.txt'} and check it with truesource inspect {folder / 'grammar.txt'}",
        Kind.TREEBANK: f"put Penn bracketings into {folder / 'trees'} in place of example.mrg",
        Kind.LANGUAGES: f"choose a language (truesource languages) and name it in {config}",
    }[kind]
