"""`truesource bound`: the exact perplexity of a language, which no model can beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

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
    from truesource.evaluation.core.score import Score
    from truesource.evaluation.core.setting import Setting
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth
    from truesource.terminal.output import OutputFiles


class BoundSettings(Settings):
    """Settings of `truesource bound`: the scores to compute, and the positions that count."""

    advanced: ClassVar = frozenset({"precision", "device", "vocabulary", "definitions", "token_scores"})
    causal: bool = Field(True, description="Score each word given the words before it.")
    masked: bool = Field(True, description="Score each word given all other words.")
    any_order: bool = Field(False, description="Score words one by one in a random order, given the words so far.")
    next: bool = Field(False, description="Also write all next-word distributions to --json; small inputs only.")
    precision: Literal["float64", "float32"] = Field(
        "float64", description="Number type; float32 is faster and accurate to 1e-4 nats per token."
    )
    device: str | None = Field(None, pattern=DEVICE, description="Where networks run, or the charts of bound.")
    frame: Literal["default", "paper"] = Field(
        "default", description="Which positions count; paper: no end, no first word, no <unk>."
    )
    vocabulary: Path | None = Field(None, description="Known words for --frame paper: JSON, or one word per line.")
    definitions: Literal["default", "paper"] = Field(
        "default", description="Definition of masked scores; paper: as in Jumelet and Zuidema (2023)."
    )
    lines: int = Field(0, ge=0, le=20, description="Lines of the best predictors that see 0, 1, ..., N - 1 words.")
    token_scores: Path | None = Field(
        None, description="Published token scores (Jumelet and Zuidema 2023), instead of a grammar."
    )

    sentences: int | None = Field(None, ge=2, description="Number of sentences to use, from the first (default: all).")

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        if self.vocabulary is not None and self.frame != "paper":
            raise ValueError("--vocabulary needs --frame paper, which leaves out unknown words")
        if not self.causal and not self.masked and not self.any_order:
            raise ValueError("--no-causal and --no-masked together leave nothing to measure; use only one of them")
        if self.lines and (not self.causal or self.frame != "default"):
            raise ValueError("--lines are causal bounds in the default frame; remove --no-causal and --frame")
        return self


@with_options(BoundSettings)
def command(
    grammar: Annotated[
        Path | None,
        typer.Argument(
            help="Grammar file in any format, or a language such as dyck:k=2 (default: that in the corpus folder).",
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
        Path | None, typer.Option("-o", "--output", help="Folder for the scores of all tokens; resumable.")
    ] = None,
    shard: Shard = None,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    seed: IntervalSeed = DEFAULT_SEED,
    json: Json = None,
    token_table: TokenTable = None,
    force: Force = False,
) -> None:
    """Score sentences exactly: the perplexity that no model can beat in the long run.

    That is a bound for a corpus folder that was sampled from the grammar. Of any other text it is the perplexity of the
    grammar on this text, and named so; a grammar of induce --lexicon parse reads unknown words as parse does.

    The causal bound includes sentence ends; the masked bound is a pseudo-perplexity. That in any order, for diffusion
    models, is of the words given their number. With -o, large corpora are scored
    in parts, by several --workers, a Dask cluster (--scheduler) or several jobs (--shard). --lines adds the bounds of
    models that see only the last k words.

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
            raise InputError("--token-scores are such a table; remove --token-table")
        if grammar is not None or corpus is not None:
            raise InputError("--token-scores replaces the grammar and the corpus; remove those arguments")
        _published(settings.token_scores, settings.frame, words, seed, files)
        return
    if corpus is None:
        grammar, corpus = None, grammar
    if corpus is None or not (grammar or corpus.is_dir()):
        raise InputError("name a corpus folder, or a grammar and a text; truesource bound --help shows how")
    if settings.next and json is None:
        raise InputError("--next needs --json FILE for the distributions; add it")
    if settings.next and output is not None:
        raise InputError("--next is for small inputs, which need no -o; remove -o")
    score = _scoring(settings, output, shard, workers, scheduler)
    records = _bounds(grammar, corpus, settings, words, score, lengths, longest, split, seed)
    if records is None:
        echo(f"Wrote this job's parts to {output}. Next: the other jobs; the last one prints the bounds.")
        return
    sentences = records["sentences"]
    files.finish(
        f"truesource score MODEL {corpus}{oracle_option(grammar, corpus)}",
        folder=output,
        json=json_of(records),
        token_table=columns_of(lambda: token_columns(sentences)),
    )


def _bounds(
    grammar: Path | None,
    corpus: Path,
    settings: BoundSettings,
    vocabulary: frozenset[str] | None,
    score: Callable[..., list[dict[str, Any]] | None],
    lengths: str | None,
    longest: int | None,
    split: str,
    seed: int,
) -> dict[str, Any] | None:
    """Print the bounds; they and the scores of sentences for JSON, None while parts of other jobs are missing."""
    from truesource.evaluation.core.exact_bound import bound_records, unbounded
    from truesource.evaluation.core.windows import window_bounds
    from truesource.grammar.support.printable import no_interval_text
    from truesource.terminal.inputs import announce_long, asked_truth, read_setting, require_truth, warn

    how: dict[str, Any] = {"frame": settings.frame, "seed": seed, "first": settings.sentences, "longest": longest}
    setting = read_setting(corpus, split, asked_truth(grammar), lengths, **how)
    require_truth(setting, corpus)
    truth, condition, transform = setting.known, setting.lengths, setting.transform
    setting, reading = _read_words(setting, corpus)
    settings = _possible_settings(settings, setting)
    announce_long(setting, masked=settings.masked, dtype=settings.precision)
    given: dict[str, Any] = {"lengths": condition, "excluded": setting.excluded, "transform": transform}
    records = score(truth, setting.sentences, masked=settings.masked, any_order=settings.any_order, **given)
    if records is None:
        return None
    summary = bound_records(
        truth,
        records,
        **given,
        seed=seed,
        frame=settings.frame,
        vocabulary=vocabulary,
        variant=settings.definitions,
        left_out={**setting.left_out, **reading.parts},
        sampled=reading.sampled,
    )
    if settings.lines:
        possible = [sentence for sentence, record in zip(setting.sentences, records, strict=True) if record["possible"]]
        lines = window_bounds(setting, possible, settings.lines)
        summary += lines if reading.sampled else map(unbounded, lines)
    warn(reading.said)
    _say_impossible(truth, records, condition)
    show_bounds(summary)
    if said := no_interval_text([bound.no_interval for bound in summary if bound.no_interval]):
        echo(said, err=True)
    return {"sentences": records, "summary": [bound.as_record() for bound in summary]}


def _possible_settings(settings: BoundSettings, setting: Setting) -> BoundSettings:
    """Settings without the masked bound of a process.

    Raises:
        InputError: the truth or the transform of the text does not give what is asked for.
    """
    from truesource.evaluation.core.transformed import require_tokens, require_whole
    from truesource.generator.abilities import offers, require

    truth, transform = setting.known, setting.transform
    if settings.masked and not offers(truth, "masked"):
        if not settings.causal:
            require(truth, "masked", "a masked bound")
        echo(f"{truth.identity} is a process, which has no masked bound: this is the causal one alone.", err=True)
        settings = settings.model_copy(update={"masked": False})
    if settings.causal:
        require_whole(transform, "causal", setting.frame_of("causal"))
    if settings.next:
        require_tokens(transform, "causal", "--next")
    if settings.lines:
        require_tokens(transform, "causal", "--lines")
    if settings.any_order:
        require(truth, "any-order", "an any-order bound")
    return settings


class _Reading(NamedTuple):
    """How the words of a text are read, and what its perplexity is."""

    sampled: bool  #: the text is a corpus of this grammar, so there is a bound
    parts: dict[str, object]  #: of signatures
    said: list[str]  #: sentences about both


def _read_words(setting: Setting, corpus: Path) -> tuple[Setting, _Reading]:
    """Read unknown words as `truesource parse` does, unless the text is a corpus of this grammar."""
    from truesource.evaluation.core.differences import is_sampled_from
    from truesource.generator.abilities import offers
    from truesource.grammar.unknown import read_words

    truth = setting.known
    if is_sampled_from(None if setting.text is None else setting.text.corpus, truth):
        return setting, _Reading(True, {}, [])
    said = [
        f"{corpus} is no corpus that truesource sampled from this grammar, so this is the perplexity of the grammar on"
        " this text. Other models may be better, unless the text was sampled from the grammar."
    ]
    as_it_is = setting, _Reading(False, {}, said)
    if not offers(truth, "parses") or "unknown_words" not in truth.meta:
        return as_it_is
    grammar = setting.grammar
    read = [read_words(grammar, sentence) for sentence in setting.sentences]
    unknown = sum(a != b for pair in zip(read, setting.sentences, strict=True) for a, b in zip(*pair, strict=True))
    if not unknown:
        return as_it_is
    tokens = sum(map(len, read))
    said.append(
        f"{unknown:,} of {tokens:,} words ({unknown / tokens:.1%}) are read as parse reads them: by the class of their"
        " form, or in lower case at the beginning. A class is more probable than a word of it."
    )
    return replace(setting, sentences=read), _Reading(False, {"unk": "form-class"}, said)


def show_bounds(bounds: Sequence[Score]) -> None:
    """Print bounds with their signatures, one a line."""
    from truesource.evaluation.show.table import ReportTable, TableRow, score_cell
    from truesource.terminal.tables import keep

    for bound in bounds:
        echo(str(bound))
    rows = [TableRow([bound.name, score_cell(bound.as_record(), ".4f")], bound.signature) for bound in bounds]
    keep(ReportTable(columns=("measure", "value"), rows=rows, note="95% intervals from resampling sentences"))


def _scoring(
    settings: BoundSettings, output: Path | None, shard: str | None, workers: int, scheduler: str | None
) -> Callable[..., list[dict[str, Any]] | None]:
    """How sentences are scored: at once, or in parts that are kept in a folder."""
    from functools import partial

    from truesource.evaluation.core.scores_on_disk import score_in_parts
    from truesource.evaluation.core.sentence_records import sentence_records
    from truesource.grammar.support.parallel import Share
    from truesource.grammar.support.parallel import Workers as Hands
    from truesource.terminal.output import hold

    how: dict[str, Any] = {
        "causal": settings.causal,
        "dtype": settings.precision,
        "variant": settings.definitions,
    }
    if settings.device is not None:
        from truesource.lmtrain.accelerated import Accelerated

        how["charts"] = partial(Accelerated, device=settings.device, dtype=settings.precision)
    if output is None:
        if shard is not None or workers > 1 or scheduler is not None:
            raise InputError("--shard, --workers and --scheduler need -o FOLDER for the parts they write")
        return partial(sentence_records, distributions=settings.next, **how)
    share = None if shard is None else Share.parse(shard)
    hands = Hands(workers, scheduler)
    if share is None:
        hold(output)
    return partial(score_in_parts, folder=output, share=share, workers=hands, device=settings.device, **how)


def _say_impossible(truth: Truth, records: Sequence[dict[str, Any]], condition: LengthRange | None) -> None:
    """Say on stderr which sentences have probability 0."""
    from truesource.evaluation.measures.paired import unknown_words, words_missing
    from truesource.grammar.support.printable import list_lines

    impossible = [number for number, record in enumerate(records, start=1) if not record["possible"]]
    if impossible:
        within = "" if condition is None else f" with {condition} tokens"
        unknown = unknown_words(truth, (records[number - 1]["tokens"] for number in impossible))
        why = f" ({words_missing(unknown)})" if unknown else ""
        echo(
            f"{len(impossible)} of {len(records)} sentences cannot be made by the grammar{within} and are left out:"
            f" {list_lines(impossible)}{why}",
            err=True,
        )


def _published(path: Path, frame: str, vocabulary: frozenset[str] | None, seed: int, files: OutputFiles) -> None:
    """Print (and write) the perplexity of token scores that others have published."""
    from truesource.evaluation.core.published_scores import published_bound, read_published
    from truesource.generator.language_model import preset_frame
    from truesource.terminal.output import json_of

    scores = read_published(path)
    bound = published_bound(scores, frame=preset_frame(frame, scores.objective), vocabulary=vocabulary, seed=seed)
    show_bounds([bound])
    files.finish("truesource cite", json=json_of({"summary": [bound.as_record()]}))
