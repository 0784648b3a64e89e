"""Stage: a causal model of pieces, its probabilities summed over the ways to cut a text, and set against the truth."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from evaluation.tokenisation.documents import documents
from evaluation.tokenisation.estimate import Settings
from grammar.files import digest_json, write_json
from lmtrain.catalogue import MASKED
from truesource.stages.inputs import of_model
from truesource.tokenisation import (
    builder_for,
    fitting_documents,
    impossible_exact,
    measure,
    partly_read,
    require_pieces,
    write_rows,
)
from truesource.tokenisation_tables import Wanted, make_tables

if TYPE_CHECKING:
    from truesource.config.sources import ModelEntry
    from truesource.config.tokenisation import TokenisationConfig
    from truesource.runner import Run

log = logging.getLogger("truesource")


def applies(model: ModelEntry) -> bool:
    """Whether a model gives a probability to every way to cut a text: it is causal, and of pieces."""
    shape, _ = model.resolve()
    return shape.tokenizer != "word" and shape.architecture not in MASKED


def inputs(run: Run, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, and the trained model."""
    return {"tokenisation": _config(run).model_dump(mode="json"), **of_model(run, model)}


def make(run: Run, model: ModelEntry) -> str:
    """Write ``tokenisation/<name>.json`` and, with a row a sentence and estimator, ``.parquet``."""
    from lmtrain.models import load_model

    config = _config(run)
    folder = run.folder / "models" / model.name
    trained = require_pieces(load_model(folder), folder)
    texts = [" ".join(sentence) for sentence in run.corpus.sentences(run.config.evaluation.split)]
    settings = Settings(
        config.samples,
        config.inverse_temperature,
        run.config.seed,
        config.candidates,
        config.particles,
        tail=config.tail,
        replicates=config.replicates,
        most_prefixes=config.most_prefixes,
        tolerance=config.tolerance,
    )
    builder, proposal = builder_for(trained.pieces, texts, config.proposal)
    found = documents(trained, texts[: config.sentences], builder)
    estimators = list(config.estimators)
    wanted = Wanted(equal_cost=config.equal_cost, changes=config.out_of_domain)
    found = fitting_documents(trained, found, leave_out=True)
    if found.too_long:
        log.info(
            "%s: %d of %d sentences have more tokens than the %s that it reads; they are left out",
            model.name,
            len(found.too_long),
            len(found) + len(found.too_long) + len(found.unreadable),
            trained.longest,
        )
    if (partly := partly_read(trained, found)) is not None:
        log.info("%s: %s", model.name, partly)
    if "exact" in estimators and impossible_exact(trained, found, settings) is not None:
        estimators.remove("exact")
        log.info("%s: too many ways to cut these sentences to add them all up; exact is left out", model.name)
        estimators = estimators or ["dpf"]
    lengths = run.corpus.lengths
    measured = measure(
        trained,
        found,
        estimators,
        settings,
        proposal=proposal,
        truth=run.pcfg,
        lengths=lengths,
        per_document=config.per_document,
    )
    if measured.warning is not None:
        log.warning("%s: %s", model.name, measured.warning)
    tables = make_tables(
        trained, found, builder, settings, wanted, measured, truth=run.pcfg, lengths=lengths, leave_out_long=True
    )
    record = {
        "model": model.name,
        "marginal": measured.marginal,
        "bound": measured.evaluation.total(measured.marginal).bound,
        "documents": len(measured.evaluation.documents),
        "left_out": measured.evaluation.reasons(),
        "records": measured.records() + tables.records(),
        "gaps": [] if measured.gaps is None else measured.gaps.records(),
    }
    write_rows(run.folder / "tokenisation" / f"{model.name}.parquet", measured.rows())
    write_json(run.folder / "tokenisation" / f"{model.name}.json", record)
    return digest_json(record)


def _config(run: Run) -> TokenisationConfig:
    config = run.config.evaluation.tokenisation
    assert config is not None
    return config
