"""`truesource demo`: the whole chain on the embedded English grammar."""

from __future__ import annotations

from pathlib import Path

from truesource.cli.options import Json, Rebuild, Runs


def command(
    runs: Runs = Path("runs"),
    json: Json = None,
    force: Rebuild = False,
) -> None:
    """Run the whole chain on the embedded English grammar; it takes a few minutes on two cores.

    This is `truesource run` demo; to change its settings, truesource new demo my-demo.

    Example: truesource demo
    """
    from truesource.cli import run
    from truesource.grammar.support.files import data_folder

    run.command(str(data_folder() / "demo.yaml"), None, runs, json=json, force=force)
