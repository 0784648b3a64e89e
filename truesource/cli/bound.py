"""`truesource bound`: compute the exact perplexity of a language, which no model can beat."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import typer
from pydantic import Field, model_validator

from truesource.generator.computing import DEVICE
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED, Settings
from truesource.terminal.console import echo
from truesource.terminal.options import (
    Condition,
    Force,
    IntervalSeed,
    Json,
    Longest,
    Scheduler,
    Shard,
    SplitName,
    TokenTable,
    Workers,
    grammar_or_corpus_there,
    text_there,
)
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.evaluation.bounds import Bounds, Scoring
    from truesource.evaluation.core.score import Score
    from truesource.evaluation.core.sentence_records import SentenceRecord
    from truesource.evaluation.show.table import ReportTable
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth
    from truesource.terminal.output import OutputFiles


class BoundSettings(Settings):
    """Settings of `truesource bound`: which scores to compute, and which positions count."""

    advanced: ClassVar = frozenset({"precision", "device", "vocabulary", "definitions", "token_scores"})
    causal: bool = Field(True, description="Score each word given the words before it.")
    masked: bool = Field(True, description="Score each word given all other words.")
    any_order: bool = Field(False, description="Score words one by one in a random order, given the words so far.")
    next: bool = Field(False, description="Also write all next-word distributions to --json; small inputs only.")
    precision: Literal["float64", "float32"] = Field(
        "float64", description="Number type; float32 is faster and accurate to 1e-4 nats per token."
    )
    device: str | None = Field(None, pattern=DEVICE, description="Device: cpu, cuda, mps (default: compiled CPU code).")
    frame: Literal["default", "paper"] = Field(
        "default", description="Positions that count: all (default), or all but end, first word and <unk> (paper)."
    )
    vocabulary: Path | None = Field(None, description="Words for --frame paper: JSON, or one word per line.")
    definitions: Literal["default", "paper"] = Field(
        "default", description="Definition of masked scores; paper: as in Jumelet and Zuidema (2023)."
    )
    lines: int = Field(0, ge=0, le=20, description="Also show the best predictors that see 0, 1, ..., N - 1 words.")
    tokenizer: str | None = Field(
        None, description="Also bound causal models of pieces: a model, tokenizer.json, characters or bytes."
    )
    token_scores: Path | None = Field(
        None, description="Published token scores (Jumelet and Zuidema 2023), instead of a grammar."
    )

    sentences: int | None = Field(None, ge=2, description="Number of sentences to use, from the first (default: all).")

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        if self.vocabulary is not None and self.frame != "paper":
            raise ValueError("--vocabulary needs --frame paper, which excludes unknown words")
        if not self.causal and not self.masked and not self.any_order:
            raise ValueError("--no-causal and --no-masked together leave nothing to measure; use only one of them")
        if self.tokenizer is not None and (not self.causal or self.frame != "default"):
            raise ValueError("--tokenizer gives causal bounds in the default frame; remove --no-causal and --frame")
        if self.lines and (not self.causal or self.frame != "default"):
            raise ValueError("--lines are causal bounds in the default frame; remove --no-causal and --frame")
        return self


@with_options(BoundSettings)
def command(
    grammar: Annotated[
        Path | None,
        typer.Argument(
            help="Grammar file, or a language such as dyck:k=2 (default: the grammar in CORPUS).",
            callback=grammar_or_corpus_there,
        ),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Argument(help="Corpus folder, or text with one tokenised sentence per line.", callback=text_there),
    ] = None,
    *,
    settings: BoundSettings,
    lengths: Condition = None,
    longest: Longest = None,
    split: SplitName = "eval",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the scores of all tokens, to resume from.")
    ] = None,
    shard: Shard = None,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    seed: IntervalSeed = DEFAULT_SEED,
    json: Json = None,
    token_table: TokenTable = None,
    force: Force = False,
) -> None:
    """Compute the exact perplexity of sentences under a grammar.

    For a corpus that was sampled from the grammar, this is a bound: no model can have a lower expected perplexity. For
    other text, it is only the perplexity of the grammar on this text, and the output says so. A grammar that induce
    --lexicon parse wrote replaces unknown words by word classes.

    The causal bound includes sentence ends; the masked bound is a pseudo-perplexity. The any-order bound, for diffusion
    models, conditions on sentence length.

    With -o, several processes (--workers), a Dask cluster (--scheduler) or several jobs (--shard) can share the work on
    a large corpus.

    Example: truesource bound corpus/ --json bound.json

    Example: truesource bound grammar.npz text.txt
    """
    from truesource.evaluation.core.published_scores import read_words
    from truesource.evaluation.core.sentence_records import token_columns
    from truesource.terminal.inputs import oracle_option
    from truesource.terminal.output import OutputFiles, columns_of, json_of

    words = None if settings.vocabulary is None else read_words(settings.vocabulary)
    files = OutputFiles(json=json, token_table=token_table, force=force)
    if settings.token_scores is not None:
        if token_table is not None:
            raise InputError("--token-scores already is a table of tokens; remove --token-table")
        if grammar is not None or corpus is not None:
            raise InputError("--token-scores replaces the grammar and the corpus; remove these arguments")
        _published(settings.token_scores, settings.frame, words, seed, files)
        return
    grammar, corpus = _inputs(grammar, corpus)
    _check_next(settings, json, output)
    score = _scoring(settings, output, shard, workers, scheduler)
    bounds = _bounds(grammar, corpus, settings, words, score, lengths, longest, split, seed)
    if not bounds.complete:
        echo(f"Wrote this job's parts to {output}. Next: run the other jobs; the last one prints the bounds.")
        return
    sentences = list(bounds.sentences)
    files.finish(
        f"truesource score MODEL {corpus}{oracle_option(grammar, corpus)}",
        folder=output,
        json=json_of({"sentences": sentences, "summary": [each.as_record() for each in bounds.scores]}),
        token_table=columns_of(lambda: token_columns(sentences)),
    )


def _inputs(first: Path | None, second: Path | None) -> tuple[Path | None, Path]:
    """Return grammar and text; no grammar is returned if the corpus folder contains it.

    Raises:
        InputError: there is no text.
    """
    grammar, corpus = (None, first) if second is None else (first, second)
    if corpus is None or not (grammar or corpus.is_dir()):
        raise InputError("name a corpus folder, or a grammar and a text; truesource bound --help shows how")
    return grammar, corpus


def _check_next(settings: BoundSettings, json: Path | None, output: Path | None) -> None:
    """Refuse --next without a file for the distributions, or with a folder for parts."""
    if settings.next and json is None:
        raise InputError("--next needs --json FILE for the distributions; add it")
    if settings.next and output is not None:
        raise InputError("--next is for small inputs, which need no -o; remove -o")


def _bounds(
    grammar: Path | None,
    corpus: Path,
    settings: BoundSettings,
    vocabulary: frozenset[str] | None,
    score: Scoring,
    lengths: str | None,
    longest: int | None,
    split: str,
    seed: int,
) -> Bounds:
    """Compute the bounds, and print them unless parts of other jobs are missing."""
    from truesource.evaluation.bounds import BoundRequest, exact_bounds, result_of
    from truesource.evaluation.core.transformed import require_tokens
    from truesource.grammar.support.printable import no_interval_text
    from truesource.terminal.inputs import announce_long, read_setting, requested_truth, require_truth, warn

    read = partial(read_setting, frame=settings.frame, seed=seed, first=settings.sentences, longest=longest)
    setting = read(corpus, split, requested_truth(grammar), lengths)
    require_truth(setting, corpus)
    if settings.next:
        require_tokens(setting.transform, "causal", "--next")
    announce_long(setting, masked=settings.masked, dtype=settings.precision)
    request = BoundRequest(
        causal=settings.causal,
        masked=settings.masked,
        any_order=settings.any_order,
        lines=settings.lines,
        definitions=settings.definitions,
        vocabulary=vocabulary,
        tokenizer=settings.tokenizer,
    )
    bounds = exact_bounds(setting, request, score)
    if bounds.complete:
        warn(bounds.notes)
        _say_impossible(setting.known, bounds.sentences, setting.lengths)
        show_bounds(bounds.scores, result_of(bounds).table())
        if explanation := no_interval_text([each.no_interval for each in bounds.scores if each.no_interval]):
            echo(explanation, err=True)
    return bounds


def show_bounds(bounds: Sequence[Score], table: ReportTable) -> None:
    """Print a table of bounds, and their signatures."""
    from truesource.terminal.tables import show

    show(table)
    for bound in bounds:
        echo(f"{bound.name}|{bound.signature}", grey=True)


def _scoring(
    settings: BoundSettings, output: Path | None, shard: str | None, workers: int, scheduler: str | None
) -> Scoring:
    """Return the function that scores sentences: at once, or in parts stored in a folder."""
    from truesource.evaluation.core.scores_on_disk import score_in_parts
    from truesource.evaluation.core.sentence_records import sentence_records
    from truesource.grammar.support.parallel import Share
    from truesource.grammar.support.parallel import Workers as Hands
    from truesource.terminal.output import hold

    charts = None
    if settings.device is not None:
        from truesource.lmtrain.accelerated import Accelerated

        charts = partial(Accelerated, device=settings.device, dtype=settings.precision)
    if output is None:
        if shard is not None or workers > 1 or scheduler is not None:
            raise InputError("--shard, --workers and --scheduler need -o FOLDER for the parts they write")
        return partial(sentence_records, distributions=settings.next, dtype=settings.precision, charts=charts)
    share = None if shard is None else Share.parse(shard)
    processes = Hands(workers, scheduler)
    if share is None:
        hold(output)
    in_parts = partial(score_in_parts, folder=output, share=share, workers=processes, device=settings.device)
    return partial(in_parts, dtype=settings.precision, charts=charts)


def _say_impossible(truth: Truth, records: Sequence[SentenceRecord], condition: LengthRange | None) -> None:
    """Name the sentences with probability 0 on stderr."""
    from truesource.evaluation.measures.paired import unknown_words, words_missing
    from truesource.grammar.support.printable import list_lines

    impossible = [number for number, record in enumerate(records, start=1) if not record["possible"]]
    if impossible:
        within = "" if condition is None else f" with {condition} tokens"
        unknown = unknown_words(truth, (records[number - 1]["tokens"] for number in impossible))
        why = f" ({words_missing(unknown)})" if unknown else ""
        echo(
            f"{len(impossible)} of {len(records)} sentences have probability 0 in the grammar{within} and are excluded:"
            f" {list_lines(impossible)}{why}",
            err=True,
        )


def _published(path: Path, frame: str, vocabulary: frozenset[str] | None, seed: int, files: OutputFiles) -> None:
    """Print (and write) the perplexity of published token scores."""
    from truesource.evaluation.bounds import Bounds, result_of
    from truesource.evaluation.core.published_scores import published_bound, read_published
    from truesource.generator.language_model import preset_frame
    from truesource.terminal.output import json_of

    scores = read_published(path)
    bound = published_bound(scores, frame=preset_frame(frame, scores.objective), vocabulary=vocabulary, seed=seed)
    bounds = Bounds(sentences=(), scores=[bound], notes=())
    show_bounds([bound], result_of(bounds).table())
    files.finish("truesource cite", json=json_of({"summary": [bound.as_record()]}))
