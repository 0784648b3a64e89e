"""Sums over segmentations in one call: marginal probabilities of texts by a causal model of pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from truesource.evaluation.core.differences import notes_on
from truesource.evaluation.core.given import as_setting, as_text
from truesource.evaluation.core.score import Score, read_score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.text import Text
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.show.result import Result
from truesource.evaluation.sources import named
from truesource.evaluation.tokenisation import measure as engine
from truesource.evaluation.tokenisation import preparation
from truesource.evaluation.tokenisation.evaluator import TokenisationSettings
from truesource.evaluation.tokenisation.figures import tokenisation_figure
from truesource.evaluation.tokenisation.measure_sets import (
    MeasuredSets,
    Tables,
    check_set_names,
    check_tables,
    make_tables,
    measure_sets,
)
from truesource.evaluation.tokenisation.report import costs_table, estimators_table, further_tables, measures_table
from truesource.evaluation.tokenisation.texts import (
    TextSet,
    Warn,
    is_treebank,
    possible_estimators,
    read_text,
    sentences_of_trees,
)
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords
from truesource.lmtrain.references import ModelReference

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.evaluation.show.table import ReportTable
    from truesource.generator.language_model import LanguageModel
    from truesource.generator.piece_model import TokenisedModel
    from truesource.generator.plan import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth

KIND = "evaluate tokenisation"
MAIN_TABLES = 2  #: the first tables of a result, which the estimates alone give


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(ResultRecords):
    """The measurement of one model."""

    measured: engine.Measured  #: results on the first text
    tables: Tables | None = None
    sets: MeasuredSets | None = None  #: results on all texts; None for a single text

    @override
    def as_scores(self) -> list[Score]:
        parts = (self.measured, self.tables, self.sets)
        return [score for part in parts if part is not None for score in part.as_scores()]

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each document and estimator; of several texts, also the name of the text."""
        return (self.measured if self.sets is None else self.sets).rows()

    def word_rows(self) -> list[dict[str, object]]:
        """Return a row for each word with its surprisals; empty if they were not requested."""
        return [] if self.tables is None or self.tables.words is None else self.tables.words.rows()

    def as_record(self) -> dict[str, Any]:
        """Return all results as the stage writes them, see `truesource.evaluation.tokenisation.report`."""
        measured = self.measured
        gaps = (measured if self.sets is None else self.sets.pooled).gaps
        return {
            "model": measured.model,
            "marginal": measured.marginal,
            "bound": measured.evaluation.total(measured.marginal).bound,
            "documents": len(measured.evaluation.documents),
            "left_out": measured.evaluation.reasons(),
            "records": self.records(),
            "gaps": [] if gaps is None else gaps.rows(),
        }


def evaluate(
    model: LanguageModel | str | Path,
    text: Any,
    oracle: Truth | str | Path | bool = True,
    *,
    settings: TokenisationSettings,
    split: str = "eval",
    lengths: LengthRange | tuple[int, int] | str | None = None,
    seed: int,
    words: bool = False,
    after_estimates: Callable[[Measurement], None] | None = None,
    warn: Warn | None = None,
) -> Result:
    """Sum the probability of a text over its segmentations, and decompose the distance from a known truth.

    Args:
        model: causal model of pieces, or its reference.
        text: a corpus, its folder, a text file with one document per line, or documents; ``NAME=PATH`` gives a name.
        oracle: grammar that the text was sampled from; True: the grammar in the corpus folder; False: none.
        settings: settings of the evaluator.
        split: name of the split of a corpus.
        lengths: the condition of the truth; None: the condition of the corpus.
        seed: random seed of the estimators and of the intervals.
        words: also compute the surprisals of words.
        after_estimates: is called with the estimates of the first text, before tables and further texts.
        warn: is called with each warning at once; None: warnings are notes of the result.

    Returns:
        A result whose ``detail`` is `Measurement`.

    Raises:
        InputError: model, text and settings do not fit, or no document is left to measure.
    """
    texts, first = _read(text, settings, split)
    if not settings.end and (words or not isinstance(oracle, bool)):
        raise InputError("--oracle and --word-table need the end of a text; remove --no-end")
    setting = as_setting(first, oracle if settings.end else False, lengths=lengths, seed=seed)
    for option, is_set in {
        "--out-of-domain": settings.out_of_domain,
        "--per-document": settings.per_document > 1,
    }.items():
        if is_set and setting.language is None:
            raise InputError(f"{option} needs the grammar of the text; add it with --oracle")
    notes: list[str] = []
    steps = measure(
        load(model, settings),
        texts,
        settings,
        seed=seed,
        truth=setting.language,
        lengths=setting.lengths,
        excluded=setting.excluded,
        transform=setting.transform,
        words=words,
        warn=warn or notes.append,
    )
    measurement = next(steps)
    if after_estimates is not None:
        after_estimates(measurement)
    measurement = next(steps)
    return _result(measurement, setting, notes)


def _result(measurement: Measurement, setting: Setting, notes: Sequence[str]) -> Result:
    record = measurement.as_record()
    further = [table for table in (*further_tables(record), costs_table(record)) if table.rows]
    return Result(
        kind=KIND,
        scores=[*map(read_score, record["records"])],
        tables=[*main_tables(record), *further],
        notes=[*notes_on(setting), *notes],
        draw=lambda: tokenisation_figure(record["records"], record["gaps"]),
        detail=measurement,
    )


def main_tables(record: Any) -> list[ReportTable]:
    """Return the `MAIN_TABLES` tables of the estimators and of the main measures, of `Measurement.as_record`."""
    return [estimators_table(record), measures_table({record["model"]: record})]


def _read(source: Any, settings: TokenisationSettings, split: str) -> tuple[list[TextSet], Text]:
    """Read the documents of the text and of the texts of ``also``; also return the first text itself."""
    title, source = named(str(source)) if isinstance(source, str | Path) else ("text", source)
    if settings.also:
        check_set_names([title, *settings.also])
    first = Text.read(source, split, lines=True) if isinstance(source, Path) else as_text(source, split)
    texts = [TextSet(title, first.path or Path(title), first.documents)]
    for name, other in settings.also.items():
        trees = is_treebank(other)
        documents = sentences_of_trees(other) if trees else Text.read(other, split, lines=True).documents
        texts.append(TextSet(name, other, documents))
    return texts, first


def load(reference: LanguageModel | str | Path | ModelReference, settings: TokenisationSettings) -> TokenisedModel:
    """Load a model of pieces, with the tokens around a text that the settings request.

    Raises:
        InputError: it is not a causal model of pieces, or lacks these tokens.
    """
    from truesource.lmtrain.models import as_loaded, load_model  # torch

    loaded = load_model(reference) if isinstance(reference, ModelReference) else as_loaded(reference)
    model = preparation.with_marks(loaded, settings.before, settings.end)
    name = reference.text if isinstance(reference, ModelReference) else reference
    return preparation.require_pieces(model, name if isinstance(name, str | Path) else model.name)


def measure(
    model: TokenisedModel,
    texts: Sequence[TextSet],
    settings: TokenisationSettings,
    *,
    seed: int,
    truth: Truth | None,
    lengths: LengthRange | None,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
    words: bool = False,
    warn: Warn,
) -> Iterator[Measurement]:
    """Measure a model, and yield twice: estimates on the first text, then also further tables and texts.

    Args:
        model: model whose probabilities are summed.
        texts: the first is compared with the truth, the others are measured next to it.
        settings: settings of the evaluator.
        seed: random seed of the estimators and of the bootstraps.
        truth: grammar that the first text was sampled from, with one sentence per document.
        lengths: length condition of the sample.
        excluded: sentences that the first text and the truth exclude.
        transform: transform of the first text, whose words then have no truth.
        words: also measure surprisals of words.
        warn: prints what is excluded, and which totals are too low.

    Raises:
        InputError: the texts, the model and the settings do not fit; or no document is left to measure.
    """
    estimation, requested = settings.engine(seed), settings.wanted(words=words)
    if settings.out_of_domain:
        require_order(transform, "out_of_domain")
    every = [document for text in texts for document in text.documents]
    builder, proposal = preparation.builder_for(model.pieces, every, settings.proposal)
    check_tables(requested, builder, estimation)
    texts = [replace(text, documents=text.documents[: settings.sentences]) for text in texts]
    read = {text.name: read_text(model, text, builder, settings.leave_out_long, warn) for text in texts}
    first = read[texts[0].name]
    measured = engine.measure(
        model,
        first,
        possible_estimators(model, zip(texts, read.values(), strict=True), settings, estimation, warn),
        estimation,
        proposal=proposal,
        truth=truth,
        lengths=lengths,
        per_document=settings.per_document,
        excluded=excluded,
        transform=transform,
    )
    _warn_of(measured, texts[0], warn)
    yield Measurement(measured)
    of_words = truth if transform is None else None
    tables = make_tables(
        model, first, builder, estimation, requested, measured, truth=of_words, lengths=lengths, excluded=excluded
    )
    sets = None
    if len(texts) > 1:
        sets = measure_sets(model, read, measured, tables, builder, estimation, requested)
        for text in texts[1:]:
            _warn_of(sets.sets[text.name], text, warn)
    yield Measurement(measured, tables, sets)


def _warn_of(measured: engine.Measured, text: TextSet, warn: Warn) -> None:
    """Warn of excluded documents, of a total that is too low, and of sentences without a truth."""
    for reason, number in measured.evaluation.reasons(unreadable=False).items():  # `read_text` has warned of others
        warn(f"{number:,} of {len(text.documents):,} documents of {text.path} are excluded; {reason}")
    if measured.warning is not None:
        warn(f"{text.path}: {measured.warning}")
    if measured.decomposition is not None:
        parts = measured.decomposition
        for numbers, what in ((parts.impossible, "have probability 0"), (parts.altered, "the tokeniser alters")):
            if numbers:
                warn(f"{len(numbers):,} sentences of {text.path} that {what} are not in the distance to the truth")
