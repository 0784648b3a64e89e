"""Stage: a causal model of pieces, its probabilities summed over the ways to cut a text, and set against the truth."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.further_tables import Wanted, make_tables
from truesource.evaluation.tokenisation.measure import (
    builder_for,
    fitting_documents,
    impossible_exact,
    measure,
    partly_read,
    require_pieces,
    with_marks,
    write_rows,
)
from truesource.evaluation.tokenisation.measure_sets import measure_sets
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluators.tokenisation.settings import TokenisationSettings
from truesource.generator.text import read_documents
from truesource.grammar.files import digest_file, digest_json, write_json
from truesource.run.inputs import of_model
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.evaluation.tokenisation.builder import LatticeBuilder
    from truesource.evaluation.tokenisation.documents import Documents
    from truesource.generator.piece_model import TokenisedModel
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder

log = logging.getLogger("truesource")


def stages(config: RunConfig) -> list[Stage]:
    """Every model of pieces."""
    made = ("tokenisation/{}.json", "tokenisation/{}.parquet")
    models = (model for model in config.models if model.of_pieces)
    return [Stage.of_model("tokenisation", model, made, inputs, make) for model in models]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, the trained model, and other texts."""
    return {
        "tokenisation": run.config.evaluation.of(TokenisationSettings).model_dump(mode="json"),
        **of_model(run, model),
        "also": {name: digest_file(path) for name, path in _others(run).items()},
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``tokenisation/<name>.json`` and, with a row a sentence and estimator, ``.parquet``."""
    from truesource.lmtrain.models import load_model

    config = run.settings(TokenisationSettings)
    folder = run.folder / "models" / model.name
    trained = require_pieces(with_marks(load_model(folder), config.before, config.end, folder), folder)
    texts = [" ".join(sentence) for sentence in run.corpus.sentences(run.config.evaluation.split)]
    settings = EstimatorSettings(
        samples=config.samples,
        b=config.inverse_temperature,
        seed=run.config.seed,
        candidates=config.candidates,
        particles=config.particles,
        tail=config.tail,
        replicates=config.replicates,
        most_prefixes=config.most_prefixes,
        tolerance=config.tolerance,
    )
    others = [read_documents(path) for path in _others(run).values()]
    every = [*texts, *(text for other in others for text in other)]
    builder, proposal = builder_for(trained.pieces, every, config.proposal)
    found = _readable(trained, texts[: config.sentences], builder, model.name)
    more = {
        name: _readable(trained, given[: config.sentences], builder, f"{model.name}, {name}", path)
        for (name, path), given in zip(_others(run).items(), others, strict=True)
    }
    estimators = list(config.estimators)
    wanted = Wanted(grid=config.grid, equal_cost=config.equal_cost, changes=config.out_of_domain)
    impossible = (impossible_exact(trained, each, settings) for each in (found, *more.values()))
    if "exact" in estimators and any(number is not None for number in impossible):
        estimators.remove("exact")
        log.info("%s: too many ways to cut these sentences to add them all up; exact is left out", model.name)
        estimators = estimators or ["dpf"]
    lengths = run.corpus.lengths
    truth = run.pcfg if config.end else None
    measured = measure(
        trained,
        found,
        estimators,
        settings,
        proposal=proposal,
        truth=truth,
        lengths=lengths,
        per_document=config.per_document,
    )
    if measured.warning is not None:
        log.warning("%s: %s", model.name, measured.warning)
    tables = make_tables(
        trained, found, builder, settings, wanted, measured, truth=truth, lengths=lengths, leave_out_long=True
    )
    sets = None
    if more:
        split = run.config.evaluation.split
        sets = measure_sets(
            trained, split, measured, more, builder, settings, proposal=proposal, wanted=wanted, tables=tables
        )
    gaps = (measured if sets is None else sets.pooled).gaps
    record = {
        "model": model.name,
        "marginal": measured.marginal,
        "bound": measured.evaluation.total(measured.marginal).bound,
        "documents": len(measured.evaluation.documents),
        "left_out": measured.evaluation.reasons(),
        "records": measured.records() + tables.records() + ([] if sets is None else sets.records()),
        "gaps": [] if gaps is None else gaps.records(),
    }
    rows = measured.rows() if sets is None else sets.rows()
    write_rows(run.folder / "tokenisation" / f"{model.name}.parquet", rows)
    write_json(run.folder / "tokenisation" / f"{model.name}.json", record)
    return digest_json(record)


def _readable(
    trained: TokenisedModel, texts: list[str], builder: LatticeBuilder, what: str, path: Path | None = None
) -> Documents:
    """The texts that a model can read, with a word about the others."""
    found = fitting_documents(trained, documents(trained, texts, builder, path), leave_out=True)
    if found.too_long:
        log.info(
            "%s: %d of %d sentences have more tokens than the %s that it reads; they are left out",
            what,
            len(found.too_long),
            len(found) + len(found.too_long) + len(found.unreadable),
            trained.longest,
        )
    if (partly := partly_read(trained, found)) is not None:
        log.info("%s: %s", what, partly)
    return found


def _others(run: RunFolder) -> dict[str, Path]:
    """Files of other texts by name."""
    return {name: Path(run.resolve(given)) for name, given in run.settings(TokenisationSettings).also.items()}
