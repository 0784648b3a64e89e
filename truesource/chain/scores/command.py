"""`truesource score`: a trained model against the truth."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from truesource.chain.lengths import length_condition
from truesource.cli.console import echo
from truesource.cli.options import (
    Before,
    Condition,
    FirstSentences,
    Force,
    IntervalSeed,
    Json,
    Longest,
    Model,
    SplitName,
    TextOrCorpus,
    TokenTable,
    WordTable,
    grammar_there,
)
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.generator.language_model import LanguageModel, ScoringFrame
    from truesource.generator.plan import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG


def command(
    model: Model,
    corpus: TextOrCorpus,
    oracle: Annotated[
        Path | None,
        typer.Option(
            help="Grammar of the text: a file, or a language (default: perplexity alone).", callback=grammar_there
        ),
    ] = None,
    split: SplitName = "eval",
    frame: Annotated[
        str, typer.Option(help="Which positions count; paper: no end, no first word, no <unk>.")
    ] = "default",
    sentences: FirstSentences = None,
    before: Before = None,
    lengths: Condition = None,
    longest: Longest = None,
    seed: IntervalSeed = DEFAULT_SEED,
    json: Json = None,
    token_table: TokenTable = None,
    word_table: WordTable = None,
    force: Force = False,
) -> None:
    """Compare the perplexity of a model with that of the truth on the same tokens.

    A model as good as the truth has a relative perplexity of 1. Intervals: 95%, from resampling sentences.

    Without --oracle, the perplexity of the model alone. The truth of real text is not known: for a text that
    `truesource split` wrote, the perplexity of the grammar is a reference, not a bound.

    --token-table has ln P and surprisal of every token, of the model and of the truth; --word-table sums over the
    tokens of each word.

    Example: truesource score model/ corpus/ --oracle grammar.npz --json scores.json

    Example: truesource score model/ corpus/ --oracle grammar.npz --token-table tokens.csv
    """
    from truesource.cli.output import OutputFiles, columns_of, json_of
    from truesource.evaluation.core.token_table import word_columns
    from truesource.generator.language_model import preset_frame

    preset_frame(frame, "causal")  # before anything is read
    files = OutputFiles(json=json, token_table=token_table, word_table=word_table, force=force)
    text = _TextToScore.read(corpus, split, oracle, lengths, longest, sentences)
    truth = None if oracle is None else _TruthOfText.read(text, oracle, model)
    from truesource.evaluation.tokenisation.measure import with_marks
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = with_marks(load_model(model), before, True)
    positions = preset_frame(frame, trained.objective)
    if truth is None:
        found = _alone(trained, text, positions, seed)
    elif text.real:
        found = _with_reference(trained, text, truth, positions, seed)
    else:
        found = _compare(trained, text, truth, positions, seed)
    files.finish(
        _next(trained, model, text, oracle),
        json=json_of(found.records),
        token_table=columns_of(found.tokens),
        word_table=columns_of(lambda: word_columns(found.tokens())),
    )


def _next(trained: LanguageModel, model: str, text: _TextToScore, oracle: Path | None) -> str:
    """The command that shows more of the same model."""
    from truesource.cli.inputs import oracle_option
    from truesource.generator.abilities import ABILITIES

    own, corpus = shlex.quote(model), shlex.quote(str(text.path))
    if oracle is None:
        return f"truesource score {own} {corpus} {oracle_option(text.path)}"
    truth = f"--oracle {shlex.quote(str(oracle))}"
    if text.real:
        return f"truesource evaluate treebank_baseline {own} OTHER_MODEL --held-out {corpus} {truth}"
    if any(ABILITIES[name].lacking(trained) for name in ("words", "distributions")):
        return f"truesource compare {own} OTHER_MODEL {corpus} {truth}"
    return f"truesource evaluate divergence {own} {corpus} {truth}"


class _Told(NamedTuple):
    """The output of `truesource score`."""

    records: list[dict[str, Any]]
    tokens: Callable[[], dict[str, Any]]  #: columns, see `truesource.evaluation.core.token_table.token_columns`


@dataclass(frozen=True)
class _TextToScore:
    """The sentences to score."""

    path: Path
    split: str
    sentences: list[list[str]]
    drawn: LengthRange | None  #: condition that they were drawn under, or are of
    condition: LengthRange | None  #: of the oracle
    longer: dict[str, int]  #: entries of the signature
    real: bool  #: they are from a treebank

    @classmethod
    def read(
        cls, path: Path, split: str, oracle: Path | None, lengths: str | None, longest: int | None, first: int | None
    ) -> _TextToScore:
        """Read them.

        Raises:
            InputError: they cannot be read, all are too long, or there is a condition without an oracle.
        """
        from truesource.chain.treebank.text import text_of_file
        from truesource.cli.inputs import at_most, read_sentences
        from truesource.grammar.conditioning import LengthRange
        from truesource.grammar.support.errors import InputError

        if oracle is None and lengths is not None:
            raise InputError("--lengths is the condition of the oracle; add --oracle GRAMMAR, or remove it")
        sentences, drawn = read_sentences(path, split)
        treebank = text_of_file(path)
        if treebank is not None and treebank.about["lengths"] is not None:
            drawn = LengthRange.parse(treebank.about["lengths"])
        condition = length_condition(lengths, drawn)
        kept, longer = at_most(sentences[:first], longest)
        return cls(path, split, kept, drawn, condition, longer, treebank is not None)


@dataclass(frozen=True)
class _TruthOfText:
    """The grammar to compare with."""

    pcfg: PCFG
    transform: Transform | None
    excluded: Exclusion | None

    @classmethod
    def read(cls, text: _TextToScore, oracle: Path, model: str) -> _TruthOfText:
        """Read it, and say on stderr in what the text and the model differ from what it is the truth of."""
        from truesource.cli.inputs import grammar_of_text, truth_of, warn_of_other_corpus

        pcfg, transform = grammar_of_text(text.path, oracle)
        excluded = truth_of(text.path, text.split, pcfg, text.drawn, text.condition)
        warn_of_other_corpus(model, text.path)
        return cls(pcfg, transform, excluded)


def _alone(trained: LanguageModel, text: _TextToScore, frame: ScoringFrame, seed: int) -> _Told:
    """The perplexity of the model, printed."""
    from truesource.chain.scores.tables import alone_table
    from truesource.cli.inputs import say_left_out
    from truesource.cli.output import show
    from truesource.evaluation.core.comparison import score_alone
    from truesource.evaluation.core.token_table import token_columns

    found = score_alone(trained, text.sentences, frame, seed=seed, left_out=text.longer)
    say_left_out(text.sentences, None, found.scores.impossible.tolist(), ())
    show(alone_table(found))
    echo(found.signature)
    return _Told(found.records(), lambda: token_columns(text.sentences, found.scores))


def _with_reference(
    trained: LanguageModel, text: _TextToScore, truth: _TruthOfText, frame: ScoringFrame, seed: int
) -> _Told:
    """The perplexity of the model on real text, and that of a grammar, which is no bound; printed."""
    from truesource.cli.inputs import announce_long
    from truesource.cli.output import show
    from truesource.evaluation.baseline import GRAMMAR, score_on_text
    from truesource.evaluation.core.token_table import token_columns
    from truesource.evaluators.treebank_baseline.section import baseline_table, coverage_line

    announce_long(truth.pcfg, text.sentences, text.condition, masked=trained.objective == "masked")
    found = score_on_text(
        {trained.name: trained},
        truth.pcfg,
        text.sentences,
        kind="real",
        lengths=text.condition,
        frame=frame,
        seed=seed,
        left_out=text.longer,
    )
    show(baseline_table({"": found.records}, title=f"{trained.name} ({trained.objective})"))
    echo(coverage_line(found.counts()))
    echo(found.records[0]["signature"])
    scores, grammar = found.sides[trained.name], found.sides[GRAMMAR]
    return _Told(found.records, lambda: token_columns(text.sentences, scores, grammar, other="grammar"))


def _compare(trained: LanguageModel, text: _TextToScore, truth: _TruthOfText, frame: ScoringFrame, seed: int) -> _Told:
    """The model compared with the truth, printed."""
    from truesource.chain.scores.tables import show_results
    from truesource.cli.inputs import announce_long, say_left_out
    from truesource.evaluation.core.comparison import compare

    pcfg = truth.pcfg
    announce_long(pcfg, text.sentences, text.condition, masked=trained.objective == "masked")
    found = compare(
        trained,
        pcfg,
        text.sentences,
        lengths=text.condition,
        frame=frame,
        seed=seed,
        excluded=truth.excluded,
        left_out=text.longer,
        transform=truth.transform,
    )
    record = found.as_record()
    say_left_out(text.sentences, pcfg, found.paired.impossible_model, found.paired.impossible_oracle)
    show_results([record])
    echo(record["signature"])
    return _Told(found.records(), found.token_columns)
