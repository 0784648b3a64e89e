"""`truesource score`: compare a trained model with the truth."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import console, echo
from truesource.terminal.options import (
    Before,
    Condition,
    FirstSentences,
    Force,
    IntervalSeed,
    Json,
    Longest,
    Model,
    NoOracle,
    Oracle,
    SplitName,
    TextOrCorpus,
    TokenTable,
    WordTable,
)

if TYPE_CHECKING:
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.core.token_table import Column
    from truesource.generator.language_model import LanguageModel


def command(
    model: Model,
    corpus: TextOrCorpus,
    oracle: Oracle = None,
    no_oracle: NoOracle = False,
    split: SplitName = "eval",
    frame: Annotated[
        str, typer.Option(help="Positions that count: all (default), or all but end, first word and <unk> (paper).")
    ] = "default",
    sentences: FirstSentences = None,
    before: Before = None,
    lengths: Condition = None,
    longest: Longest = None,
    lines: Annotated[
        int,
        typer.Option(min=0, max=20, help="Also show the best predictors that see 0, 1, ..., N - 1 words."),
    ] = 0,
    seed: IntervalSeed = DEFAULT_SEED,
    json: Json = None,
    token_table: TokenTable = None,
    word_table: WordTable = None,
    force: Force = False,
) -> None:
    """Compare the perplexities of a model and of the truth on the same tokens.

    Relative perplexity is the perplexity of the model divided by the perplexity of the truth (the bound); a perfect
    model has 1. Its logarithm estimates the KL from the truth to the model, in nats per token. rho and R2 are
    correlations of the log probabilities of model and truth. Intervals are 95% bootstrap intervals over sentences.

    The truth of a corpus folder is the grammar in it; the truth of other text is the grammar that --oracle names. Text
    without a truth gets the perplexity of the model alone. The truth of real text is not known: for a text that
    `truesource split` wrote, the perplexity of the grammar (--oracle) is a reference, not a bound.

    --token-table has the log probability and the surprisal of every token under the model and under the truth, in nats;
    --word-table has their sums over the tokens of each word.

    Example: truesource score model/ corpus/ --json scores.json

    Example: truesource score model/ corpus/ --token-table tokens.csv
    """
    from truesource.evaluation.core.token_table import word_columns
    from truesource.generator.language_model import preset_frame
    from truesource.grammar.support.errors import InputError
    from truesource.terminal.inputs import announce_long, requested_truth, require_truth, warn_of_other_corpus
    from truesource.terminal.output import OutputFiles, columns_of, json_of

    preset_frame(frame, "causal")  # refuse it before reading any file
    if lines and frame != "default":
        raise InputError("--lines are causal bounds in the default frame; remove --frame")
    files = OutputFiles(json=json, token_table=token_table, word_table=word_table, force=force)
    truth = requested_truth(oracle, no_oracle)
    real, setting = _read(corpus, split, truth, lengths, frame=frame, seed=seed, first=sentences, longest=longest)
    if setting.language is not None:
        warn_of_other_corpus(model, setting.text)
    if lines:
        require_truth(setting, corpus)
        _check_lines(setting)
    from truesource.evaluation.tokenisation.preparation import with_marks
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = with_marks(load_model(model), before, True)
    if setting.language is not None:
        announce_long(setting, masked=trained.objective == "masked")
    output = _with_reference(trained, setting) if real and setting.language is not None else _scored(trained, setting)
    if lines:
        output = output._replace(records=[*output.records, *_lines(setting, lines)])
    files.finish(
        _next(trained, setting, model, corpus, oracle, real=real),
        json=json_of(output.records),
        token_table=columns_of(output.tokens),
        word_table=columns_of(lambda: word_columns(output.tokens())),
    )


def _read(path: Path, split: str, oracle: Path | bool, lengths: str | None, **how: Any) -> tuple[bool, Setting]:
    """Read the text with its truth; the first of the pair is True for a text from a treebank.

    Raises:
        InputError: the text cannot be read, all sentences are too long, or there is a condition without an oracle.
    """
    from truesource.grammar.support.errors import InputError
    from truesource.run.treebank.text import text_of_file
    from truesource.terminal.inputs import read_setting

    treebank = text_of_file(path)
    selected_lengths = None if treebank is None else treebank.lengths
    setting = read_setting(path, split, oracle, lengths, drawn=selected_lengths, **how)
    if lengths is not None and setting.language is None:
        raise InputError("--lengths is the condition of the oracle; add --oracle GRAMMAR, or remove it")
    return treebank is not None, setting


def _next(
    trained: LanguageModel, setting: Setting, model: str, corpus: Path, oracle: Path | None, *, real: bool
) -> str:
    """Return the next command: a closer look at the same model."""
    from truesource.generator.abilities import ABILITIES
    from truesource.terminal.inputs import oracle_option

    reference, truth = shlex.quote(model), oracle_option(oracle, corpus)
    text = f"{shlex.quote(str(corpus))}{truth}"
    if setting.language is None:
        return f"truesource score {reference} {text}"
    if real or any(ABILITIES[name].lacking(trained) for name in ("words", "distributions")):
        return f"truesource compare {reference} OTHER_MODEL {text}"
    if trained.objective == "any-order":
        return f"truesource evaluate diffusion {reference} {text}"
    return f"truesource evaluate divergence {reference} {text}"


def _check_lines(setting: Setting) -> None:
    """Refuse a text without lines before a model is loaded."""
    from truesource.evaluation.core.transformed import require_tokens
    from truesource.generator.abilities import require

    require_tokens(setting.transform, "causal", "--lines")
    require(setting.known, "windows", "--lines")


def _lines(setting: Setting, number: int) -> Sequence[Mapping[str, object]]:
    """Print the optimal predictors that see 0, 1, 2, ... words, and return their records."""
    from truesource.evaluation.core.windows import window_lines
    from truesource.evaluation.show.score_tables import lines_table
    from truesource.terminal.tables import show

    lines, bound = window_lines(setting, number)
    records = [line.as_record() for line in lines]
    show(lines_table(records, bound))
    return records


class _Output(NamedTuple):
    """The output of `truesource score`."""

    records: Sequence[Mapping[str, object]]
    tokens: Callable[[], dict[str, Column]]  #: columns, see `truesource.evaluation.core.token_table.token_columns`


def _with_reference(trained: LanguageModel, setting: Setting) -> _Output:
    """Print the perplexities of the model and of a grammar on real text; the grammar is not a bound."""
    from truesource.cli.real_text import score_real_text
    from truesource.evaluation.core.token_table import token_columns
    from truesource.evaluation.treebank_baseline.measure import GRAMMAR

    result = score_real_text({trained.name: trained}, setting, f"{trained.name} ({trained.objective})")
    echo(result.records[0]["signature"], grey=True)
    scores, grammar = result.sides[trained.name], result.sides[GRAMMAR]
    return _Output(result.records, lambda: token_columns(setting.sentences, scores, grammar, other="grammar"))


def _scored(trained: LanguageModel, setting: Setting) -> _Output:
    """Print the scores of the model, compared with the truth if it is known."""
    from truesource.evaluation.core.comparison import Comparison
    from truesource.evaluation.core.token_table import token_columns
    from truesource.studies.compare.calls import score
    from truesource.terminal.inputs import say_left_out
    from truesource.terminal.tables import show

    result = score(trained, setting)
    detail = result.detail
    if isinstance(detail, Comparison):
        say_left_out(setting, detail.paired.impossible_model, detail.paired.impossible_oracle)
    else:
        say_left_out(setting, detail.scores.impossible.tolist(), ())
    show(result.table())
    for note in result.notes:
        console().print(note)
    echo(detail.signature, grey=True)
    alone = not isinstance(detail, Comparison)
    columns = (lambda: token_columns(setting.sentences, detail.scores)) if alone else detail.token_columns
    return _Output(result.records(), columns)
