"""The command: its verbs, each imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import message
from truesource.terminal.console import echo
from truesource.terminal.logs import LogSettings, begin_logs
from truesource.terminal.verb import ConfiguredVerb, DeviceVerb, NetworkVerb, Verb

#: module (or ``module:function``) and summary of each verb, in the order of the list of verbs
VERBS = {
    "new": ("truesource.cli.new", "Write a commented configuration to edit, or the JSON Schema of all keys."),
    "run": ("truesource.cli.run", "Run an experiment: demo, or a configuration of your own."),
    "language": ("truesource.cli.language", "List the languages with an exact grammar, or describe one."),
    "split": ("truesource.cli.split", "Split a treebank into text to train on and text to hold out."),
    "induce": ("truesource.cli.induce", "Induce a grammar from a treebank."),
    "sample": ("truesource.cli.sample", "Sample a corpus from a grammar."),
    "parse": ("truesource.cli.parse", "Write the best tree of every sentence."),
    "bound": ("truesource.cli.bound", "Compute the exact perplexity of a language."),
    "train": ("truesource.cli.train", "Train a language model on a corpus."),
    "score": ("truesource.cli.score", "Compare a model with the exact truth."),
    "compare": ("truesource.cli.compare", "Compare several models, or the models of runs, in one table."),
    "explain": ("truesource.cli.explain", "Explain why a model is off, and what would help most."),
    "benchmark": ("truesource.cli.benchmark", "Compare a model with usual architectures on many languages."),
    "known-answers": (
        "truesource.cli.known_answers",
        "Write models with known perplexities, to test an evaluation.",
    ),
    "reproduce": ("truesource.cli.reproduce", "Recompute a table or figure of a published paper."),
    "generate": ("truesource.cli.generate", "Sample sentences from a trained model."),
    "report": ("truesource.cli.report", "Rebuild the HTML report of a run, or draw one of its figures."),
    "convert": (
        "truesource.cli.convert",
        "Convert a grammar, a corpus or a treebank to another format.",
    ),
    "infill": ("truesource.cli.infill", "Fill the gaps of a sentence, with exact probabilities."),
    "vary": ("truesource.cli.vary", "Make controlled variants of a grammar."),
    "tilt": ("truesource.cli.tilt", "Reweight a grammar by a reward, or condition it on an event; write a grammar."),
    "inspect": ("truesource.cli.inspect", "Check a grammar, and how much of a text it covers."),
    "cite": ("truesource.cli.cite", "List the publications to cite."),
    "evaluate": ("truesource.cli.app:evaluators", "Measure one property of a model or corpus, such as memory."),
}
#: Python call equivalent to each verb, and the function that does the work of both
CALLS = {
    "run": ("truesource.run.experiment.execute", "truesource.run.experiment.execute"),
    "language": ("truesource.grammar.truth.load_truth", "truesource.grammar.truth.load_truth"),
    "split": ("truesource.run.treebank.text.write_text_folder", "truesource.run.treebank.text.write_text_folder"),
    "induce": ("truesource.run.grammar.induce.induce", "truesource.run.grammar.induce.induce"),
    "sample": ("truesource.sample", "truesource.generator.corpus_builder.make_corpus"),
    "parse": ("truesource.studies.parsing.build.make_trees", "truesource.studies.parsing.build.make_trees"),
    "bound": ("truesource.bound", "truesource.evaluation.bounds.result_of"),
    "train": ("truesource.train", "truesource.lmtrain.training.train"),
    "score": ("truesource.compare", "truesource.studies.compare.calls.score"),
    "compare": ("truesource.compare", "truesource.studies.compare.calls.result_of"),
    "explain": ("truesource.explain", "truesource.run.stages.explain.call.result_of"),
    "benchmark": ("truesource.studies.benchmark.run.execute", "truesource.studies.benchmark.run.execute"),
    "known-answers": (
        "truesource.known_answers",
        "truesource.evaluation.known_answers.kit.known_answers",
    ),
    "reproduce": (
        "truesource.studies.reproduce.reproduction.reproduce",
        "truesource.studies.reproduce.reproduction.reproduce",
    ),
    "generate": (
        "truesource.lmtrain.decoding.sample_builder.make_samples",
        "truesource.lmtrain.decoding.sample_builder.make_samples",
    ),
    "report": ("truesource.run.experiment.build_report", "truesource.run.experiment.build_report"),
    "convert": ("truesource.grammar.formats.save_grammar", "truesource.grammar.formats.save_grammar"),
    "infill": ("truesource.infill", "truesource.evaluation.diffusion.infill.infill"),
    "vary": ("truesource.grammar.variants.parse_variant", "truesource.grammar.variants.parse_variant"),
    "tilt": ("truesource.grammar.tilting.tilt.Tilting", "truesource.grammar.tilting.tilt.Tilting"),
    "inspect": ("truesource.grammar.diagnostics.diagnose", "truesource.grammar.diagnostics.diagnose"),
    "cite": ("truesource.report.works.works", "truesource.report.works.works"),
}
EVALUATE = "truesource.evaluate"  #: Python call equivalent to every verb below ``evaluate``
GROUP = "evaluate"  #: a verb that is a group of verbs, which its function returns
#: groups of verbs in the help, in the order in which a newcomer needs them
GROUPS = {
    "Start here": ("run", "new", "report"),
    "From a treebank to a model, step by step": ("split", "induce", "sample", "train", "generate"),
    "Compare with the truth": (
        "bound",
        "score",
        "compare",
        "explain",
        "evaluate",
        "benchmark",
        "known-answers",
        "reproduce",
    ),
    "Grammars and languages": ("language", "inspect", "parse", "infill", "convert", "vary", "tilt"),
    "Reference": ("cite",),
}


#: verbs that run networks
NETWORKS = {
    "run": ConfiguredVerb,
    "reproduce": DeviceVerb,
    "train": DeviceVerb,
    "generate": DeviceVerb,
    "benchmark": DeviceVerb,
    "score": NetworkVerb,
    "compare": NetworkVerb,
    "explain": NetworkVerb,
}
WITHOUT_NETWORKS = ("naturalness", "tendencies")  #: evaluators whose verbs run no networks


def function_of(name: str) -> Callable[..., Any]:
    """Import the module of a verb and return its function."""
    module, _, function = VERBS[name][0].partition(":")
    result: Callable[..., Any] = getattr(import_module(module), function or "command")
    return result


def load(name: str) -> Any:
    """Import the module of a verb and return the verb, ready to be called."""
    if name == GROUP:
        return typer.main.get_command(function_of(name)())
    app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    app.command(name, cls=NETWORKS.get(name, Verb))(function_of(name))
    return typer.main.get_command(app)


def evaluators() -> typer.Typer:
    """Return the verbs below ``evaluate``: one for each evaluator without a separate verb."""
    from truesource.cli import evaluate
    from truesource.evaluation.evaluators import EVALUATORS

    group = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", add_completion=False)
    group.callback(help="Measure one property of a model or corpus. The help of each has examples.")(lambda: None)
    for evaluator in (each for each in EVALUATORS if not each.verb):
        kind = Verb if evaluator.name in WITHOUT_NETWORKS else NetworkVerb
        group.command(evaluator.name, cls=kind, short_help=evaluator.summary)(evaluate.verb_of(evaluator))
    return group


UsageError: Any = typer.BadParameter.__base__


@contextmanager
def _in_one_sentence() -> Iterator[None]:
    """Report a wrong option or argument in one sentence.

    Raises:
        InputError: an option or argument is unknown, missing or out of range.
    """
    try:
        yield
    except UsageError as error:
        if "\n" in error.message:  # it is the help
            raise
        text = message(error.format_message()).removesuffix(".")
        path = "truesource" if error.ctx is None else error.ctx.command_path
        raise InputError(f"{text[:1].lower()}{text[1:]}; see {path} --help") from error


class Verbs(TyperGroup):
    """A group of verbs; only the module of the called verb is imported."""

    def __init__(self, **options: Any) -> None:
        groups = {name: group for group, names in GROUPS.items() for name in names if name in VERBS}
        lines = {
            name: TyperCommand(name, help=VERBS[name][1], rich_help_panel=groups.get(name))
            for name in dict.fromkeys((*groups, *VERBS))
        }
        super().__init__(**{**options, "commands": lines})

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Return the context of a call."""
        with _in_one_sentence():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Call a verb."""
        with _in_one_sentence():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and its arguments."""
        name, verb, rest = super().resolve_command(ctx, args)
        return name, verb if name is None else load(name), rest


app = typer.Typer(
    cls=Verbs,
    name="truesource",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="""Compare language models with the exact distribution of the language they were trained on.

    Start with **truesource run demo**. Every verb has examples: **truesource score --help**.

    The first four options may also follow the verb. Environment variables such as TRUESOURCE_LOG_FILE set them too.
    """,
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        echo(f"truesource {version('truesource')}")
        raise typer.Exit


@app.callback()
def _root(
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", envvar="TRUESOURCE_QUIET", show_envvar=False, help="Show only warnings and errors."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", envvar="TRUESOURCE_VERBOSE", show_envvar=False, help="Also show debug messages."
        ),
    ] = False,
    log_file: Annotated[
        Path | None,
        typer.Option(
            envvar="TRUESOURCE_LOG_FILE", show_envvar=False, help="Append all messages to this file, with their times."
        ),
    ] = None,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback", envvar="TRUESOURCE_TRACEBACK", show_envvar=False, help="Show the traceback of every error."
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    begin_logs(LogSettings(quiet=quiet, verbose=verbose, traceback=traceback, file=log_file))
