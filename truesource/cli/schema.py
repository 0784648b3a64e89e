"""`truesource schema`: the JSON Schema of configurations, for editors and checks."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force

if TYPE_CHECKING:
    from truesource.grammar.support.settings import Settings

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Of(StrEnum):
    """The kind of a configuration."""

    RUN = "run"
    SCALING = "scaling"
    BENCHMARK = "benchmark"


def command(
    of: Annotated[Of, typer.Argument(help="Verb that reads the configuration; scaling: evaluate scaling.")] = Of.RUN,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it to this file.")] = None,
    force: Force = False,
) -> None:
    """Print the JSON Schema of a configuration: all keys, what they mean, and which values they take.

    Editors with a YAML language server complete and check a configuration whose first line names the schema:
    # yaml-language-server: $schema=experiment.schema.json

    Example: truesource schema -o experiment.schema.json
    """
    if output is None:
        echo(schema_text(of).rstrip("\n"))
        return
    from truesource.cli.output import claim_files
    from truesource.grammar.support.files import write_text

    with claim_files(output, force=force).together():
        write_text(output, schema_text(of))
    echo(f"Wrote {output}. Next: make this the first line of a configuration beside it")
    echo(f"  {editor_line(output.name)}")


def editor_line(file: str) -> str:
    """The comment that names the schema of a configuration to editors."""
    return f"# yaml-language-server: $schema={file}"


def schema_text(of: Of = Of.RUN) -> str:
    """The JSON Schema (draft 2020-12) of a kind of configuration, as the text of a file."""
    import json

    return json.dumps(json_schema(of), indent=1, ensure_ascii=False) + "\n"


def json_schema(of: Of = Of.RUN) -> dict[str, Any]:
    """The same, as JSON values."""
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Fields are named by their keys alone."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            """No field has a title."""
            return False

    found = _settings(of).model_json_schema(schema_generator=Untitled)
    return {"$schema": DIALECT, **found, "title": f"configuration of truesource {of}"}


def _settings(of: Of) -> type[Settings]:
    from truesource.benchmark.suite import Suite
    from truesource.evaluators import EVALUATORS
    from truesource.run.config import config_class
    from truesource.sweep.config import SweepConfig

    kinds: dict[Of, type[Settings]] = {Of.RUN: config_class(EVALUATORS), Of.SCALING: SweepConfig, Of.BENCHMARK: Suite}
    return kinds[of]
