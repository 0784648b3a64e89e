"""Stage: marginal probabilities of a causal model of pieces, compared with the truth."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.show.declared import under_name
from truesource.evaluation.show.table_files import as_columns, write_columns
from truesource.evaluation.tokenisation import measure as engine
from truesource.evaluation.tokenisation import preparation
from truesource.evaluation.tokenisation.evaluator import TokenisationSettings
from truesource.evaluation.tokenisation.measure_sets import (
    MeasuredSets,
    Tables,
    check_tables,
    make_tables,
    measure_sets,
)
from truesource.evaluation.tokenisation.texts import (
    TextSet,
    Warn,
    is_treebank,
    possible_estimators,
    read_text,
    sentences_of_trees,
)
from truesource.generator.text_files import read_documents
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.files import digest_json
from truesource.lmtrain.references import ModelReference
from truesource.run.stage import Stage, of_model

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.generator.piece_model import TokenisedModel
    from truesource.generator.plan import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry


@dataclass(frozen=True, eq=False)
class Measurement:
    """The measurement of one model."""

    measured: engine.Measured  #: of the first text
    tables: Tables | None = None
    sets: MeasuredSets | None = None  #: of all texts; None of one alone

    def records(self) -> list[dict[str, Any]]:
        """One record a number, for JSON."""
        parts = (self.measured, self.tables, self.sets)
        return [record for part in parts if part is not None for record in part.records()]

    def rows(self) -> list[dict[str, Any]]:
        """One row a document and estimator, with its set where there are several."""
        return (self.measured if self.sets is None else self.sets).rows()

    def word_rows(self) -> list[dict[str, Any]]:
        """One row a word, with its surprisals; none where they were not asked for."""
        return [] if self.tables is None or self.tables.words is None else self.tables.words.rows()

    def as_record(self) -> dict[str, Any]:
        """All of it, as the stage leaves it: see `truesource.evaluation.tokenisation.report`."""
        measured = self.measured
        gaps = (measured if self.sets is None else self.sets.pooled).gaps
        return {
            "model": measured.model,
            "marginal": measured.marginal,
            "bound": measured.evaluation.total(measured.marginal).bound,
            "documents": len(measured.evaluation.documents),
            "left_out": measured.evaluation.reasons(),
            "records": self.records(),
            "gaps": [] if gaps is None else gaps.records(),
        }


def load(reference: str | Path | ModelReference, settings: TokenisationSettings) -> TokenisedModel:
    """A model of pieces, with the tokens around a text that the settings ask for.

    Raises:
        InputError: it is no causal model of pieces, or has no such tokens.
    """
    from truesource.lmtrain.models import load_model  # torch

    model = preparation.with_marks(load_model(reference), settings.before, settings.end)
    return preparation.require_pieces(model, reference.text if isinstance(reference, ModelReference) else reference)


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
    """Measure a model; yields twice: the estimators on the first text, then the further tables and texts too.

    Args:
        model: whose probabilities are summed.
        texts: the first is set against the truth, the others are measured beside it.
        settings: what to measure.
        seed: of the estimators and of the bootstraps.
        truth: the grammar that the first text, a sentence a document, was sampled from.
        lengths: the length condition that it was sampled under.
        excluded: sentences that the first text leaves out, and so does the truth.
        transform: of the first text; its words have no truth then.
        words: measure surprisals of words too.
        warn: says what is left out, and which totals are too low.

    Raises:
        InputError: the texts, the model and the settings do not fit; or nothing is left to measure.
    """
    estimation, wanted = settings.engine(seed), settings.wanted(words=words)
    if settings.out_of_domain:
        require_order(transform, "out_of_domain")
    every = [document for text in texts for document in text.documents]
    builder, proposal = preparation.builder_for(model.pieces, every, settings.proposal)
    check_tables(wanted, builder, estimation)
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
        model, first, builder, estimation, wanted, measured, truth=of_words, lengths=lengths, excluded=excluded
    )
    sets = None
    if len(texts) > 1:
        sets = measure_sets(model, read, measured, tables, builder, estimation, wanted)
        for text in texts[1:]:
            _warn_of(sets.sets[text.name], text, warn)
    yield Measurement(measured, tables, sets)


def _warn_of(measured: engine.Measured, text: TextSet, warn: Warn) -> None:
    """Warn of documents that are in no sum, of a total that is too low, and of sentences without a truth."""
    for reason, number in measured.evaluation.reasons(unreadable=False).items():  # of the others `read_text` warned
        warn(f"{number:,} of {len(text.documents):,} documents of {text.path} are left out; {reason}")
    if measured.warning is not None:
        warn(f"{text.path}: {measured.warning}")
    if measured.decomposition is not None:
        parts = measured.decomposition
        for numbers, what in ((parts.impossible, "the grammar cannot make"), (parts.altered, "the tokeniser alters")):
            if numbers:
                warn(f"{len(numbers):,} sentences of {text.path} that {what} are left out of the distance to the truth")


log = logging.getLogger("truesource")


def stages(config: RunConfig) -> list[Stage]:
    """One for each causal model of pieces."""
    made = ("tokenisation/{}.json", "tokenisation/{}.parquet")
    models = (model for model in config.entries if model.of_pieces)
    return [Stage.of_model("tokenisation", model, made, inputs, make) for model in models]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, the trained model, and other texts."""
    return of_model(run, model, TokenisationSettings)


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``tokenisation/<name>.json`` and, with a row for each sentence and estimator, ``.parquet``."""
    settings = run.settings(TokenisationSettings)
    split = run.config.evaluation.split
    sentences = [" ".join(sentence) for sentence in run.corpus.sentences(split)]
    texts = [TextSet(split, run.folder / "corpus", sentences)]
    for name, path in settings.also.items():
        texts.append(TextSet(name, path, sentences_of_trees(path) if is_treebank(path) else read_documents(path)))
    truth, transform = run.text_truth
    trained = load(run.reference(model), settings)
    *_, found = measure(
        trained,
        texts,
        settings,
        seed=run.config.seed,
        truth=truth if settings.end else None,
        lengths=run.corpus.lengths,
        excluded=run.excluded,
        transform=transform,
        warn=lambda warning: log.warning("%s: %s", model.name, warning),
    )
    record = under_name(found.as_record(), trained.name, model.name)
    rows = under_name(found.rows(), trained.name, model.name)
    write_columns(run.folder / "tokenisation" / f"{model.name}.parquet", as_columns(rows))
    write_json(run.folder / "tokenisation" / f"{model.name}.json", record)
    return digest_json(record)
