"""Stage: marginal probabilities of a causal model of pieces, compared with the truth."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from truesource.evaluation.show.declared import under_name
from truesource.evaluation.show.table_files import as_columns, write_columns
from truesource.evaluation.tokenisation.call import load, measure
from truesource.evaluation.tokenisation.evaluator import TokenisationSettings
from truesource.evaluation.tokenisation.texts import TextSet, is_treebank, sentences_of_trees
from truesource.generator.text_files import read_documents
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.files import digest_json
from truesource.run.stage import Stage, of_model

if TYPE_CHECKING:
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry

log = logging.getLogger("truesource")


def stages(config: RunConfig) -> list[Stage]:
    """Return a stage for each causal model of pieces."""
    files = ("tokenisation/{}.json", "tokenisation/{}.parquet")
    models = (model for model in config.entries if model.of_pieces)
    return [Stage.of_model("tokenisation", model, files, inputs, make) for model in models]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs: settings, split, seed, corpus, grammar, the trained model, and other texts."""
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
    *_, measurement = measure(
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
    record = under_name(measurement.as_record(), trained.name, model.name)
    rows = under_name(measurement.rows(), trained.name, model.name)
    write_columns(run.folder / "tokenisation" / f"{model.name}.parquet", as_columns(rows))
    write_json(run.folder / "tokenisation" / f"{model.name}.json", record)
    return digest_json(record)
