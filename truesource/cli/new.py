"""`truesource new`: write a new configuration, or the JSON Schema of configurations."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.terminal.console import echo
from truesource.terminal.options import Force

if TYPE_CHECKING:
    from truesource.grammar.support.settings import Settings

CONFIG = "experiment.yaml"
SCHEMA = "experiment.schema.json"  #: next to the configuration, so that editors complete keys and check values
EXAMPLE_TREES = 1000  #: sampled from the embedded grammar, in ``trees/example.mrg``
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Kind(StrEnum):
    """The start of an experiment: the demo, a grammar, a treebank or languages."""

    DEMO = "demo"
    GRAMMAR = "grammar"
    TREEBANK = "treebank"
    LANGUAGES = "languages"


class Of(StrEnum):
    """A kind of configuration."""

    RUN = "run"
    SCALING = "scaling"
    BENCHMARK = "benchmark"


def command(
    kind: Annotated[
        Kind | None, typer.Argument(help="Start from the demo, a grammar, a treebank, or a known language.")
    ] = None,
    folder: Annotated[Path | None, typer.Argument(help="New folder; its name becomes the name of the run.")] = None,
    schema: Annotated[
        Of | None,
        typer.Option("--schema", help="Instead print the JSON Schema of this kind of configuration, for editors."),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the schema to this file.")] = None,
    force: Force = False,
) -> None:
    """Write a new commented configuration with the files that it needs, and say what to do next.

    demo: the configuration of truesource run demo. grammar: a toy grammar to change. treebank: a folder for your trees,
    with examples. languages: a language whose grammar comes with truesource.

    With --schema, print the JSON Schema of a configuration: all keys, what they mean, and which values they take.
    Editors with a YAML language server complete and check a configuration whose first line names the schema:
    # yaml-language-server: $schema=experiment.schema.json

    Example: truesource new grammar my-grammar

    Example: truesource new --schema run -o experiment.schema.json
    """
    from truesource.grammar.support.errors import InputError

    if schema is not None:
        if kind is not None:
            raise InputError("--schema prints a schema and writes no folder; use it without the other arguments")
        _write_schema(schema, output, force=force)
        return
    if kind is None or folder is None:
        raise InputError(f"name a kind ({', '.join(Kind)}) and a folder, as in truesource new grammar my-grammar")
    if output is not None:
        raise InputError("--output is for the file of --schema; remove it, and name the folder as an argument")
    _write_folder(kind, folder, force=force)


def _write_folder(kind: Kind, folder: Path, *, force: bool) -> None:
    from truesource.grammar.support.atomic_files import write_text
    from truesource.terminal.output import claim_files

    files = {folder / name: text for name, text in contents(kind, run_name(folder)).items()}
    with claim_files(folder=folder, force=force).together(*files):
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
    echo(f"Wrote {', '.join(map(str, files))}.")
    echo(f"Next: {_first_step(kind, folder)}; then")
    echo(f"  truesource run {folder / CONFIG} --dry-run    # lists what would be done")
    echo(f"  truesource run {folder / CONFIG}")


def _write_schema(of: Of, output: Path | None, *, force: bool) -> None:
    if output is None:
        echo(schema_text(of).rstrip("\n"))
        return
    from truesource.grammar.support.atomic_files import write_text
    from truesource.terminal.output import claim_files

    with claim_files(output, force=force).together():
        write_text(output, schema_text(of))
    echo(f"Wrote {output}. Next: make this the first line of a configuration in the same folder")
    echo(f"  {editor_line(output.name)}")


def run_name(folder: Path) -> str:
    """Turn the name of a folder into a name of a run: letters, digits, dots, hyphens and underscores."""
    from truesource.grammar.support.files import real_path

    return re.sub(r"[^A-Za-z0-9._-]+", "-", real_path(folder).name).lstrip("._-") or "experiment"


def contents(kind: Kind, name: str) -> dict[str, str]:
    """Return the contents of the files of a kind of experiment, by path in the folder."""
    from truesource.grammar.support.files import data_folder

    data = data_folder()
    packaged = {Kind.DEMO: data / "demo.yaml", Kind.LANGUAGES: data / "language.yaml"}
    text = packaged.get(kind, data / "new" / f"{kind}.yaml").read_text(encoding="utf-8")
    named = re.sub(r"^name: .*$", f"name: {name}", text, count=1, flags=re.MULTILINE)
    if kind in packaged:  # a comment in the packaged configuration says how to run it
        named = named.replace(f"truesource run {packaged[kind].stem}", f"truesource run {CONFIG}")
    files = {CONFIG: f"{editor_line(SCHEMA)}\n{named}", SCHEMA: schema_text()}
    if kind is Kind.GRAMMAR:
        files["grammar.txt"] = (data / "new" / "grammar.txt").read_text(encoding="utf-8")
    if kind is Kind.TREEBANK:
        files["trees/example.mrg"] = _example_trees()
    return files


def _example_trees() -> str:
    """Sample Penn bracketings from the embedded English grammar, one tree per line."""
    from truesource.generator.sampler import sample_treebank
    from truesource.grammar.embedded import english

    return "".join(f"( {tree} )\n" for tree in sample_treebank(english(), EXAMPLE_TREES, 1))


def _first_step(kind: Kind, folder: Path) -> str:
    config = folder / CONFIG
    return {
        Kind.DEMO: f"change {config}",
        Kind.GRAMMAR: f"change {folder / 'grammar.txt'} and check it with truesource inspect {folder / 'grammar.txt'}",
        Kind.TREEBANK: f"put Penn bracketings into {folder / 'trees'} in place of example.mrg",
        Kind.LANGUAGES: f"choose a language (truesource language lists them) and name it in {config}",
    }[kind]


def editor_line(file: str) -> str:
    """Return the comment that tells editors the schema of a configuration."""
    return f"# yaml-language-server: $schema={file}"


def schema_text(of: Of = Of.RUN) -> str:
    """Return the JSON Schema (draft 2020-12) of a kind of configuration, as the text of a file."""
    import json

    return json.dumps(json_schema(of), indent=1, ensure_ascii=False) + "\n"


def json_schema(of: Of = Of.RUN) -> dict[str, object]:
    """Return the schema as JSON values."""
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """A schema whose fields have no titles."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            """Return False: no field has a title."""
            return False

    schema = _settings(of).model_json_schema(schema_generator=Untitled)
    return {"$schema": DIALECT, **schema, "title": f"configuration of truesource {of}"}


def _settings(of: Of) -> type[Settings]:
    from truesource.evaluation.evaluators import EVALUATORS
    from truesource.run.config import config_class
    from truesource.studies.benchmark.suite import Suite
    from truesource.studies.scaling.config import SweepConfig

    kinds: dict[Of, type[Settings]] = {Of.RUN: config_class(EVALUATORS), Of.SCALING: SweepConfig, Of.BENCHMARK: Suite}
    return kinds[of]
