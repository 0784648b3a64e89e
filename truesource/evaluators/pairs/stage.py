"""Stages: minimal pairs from the grammar, and what each model prefers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.pairs.evaluate import NoPairsError, PairEvaluation, evaluate_pairs
from truesource.evaluation.pairs.files import filter_pairs, read_pairs, write_pairs
from truesource.evaluation.pairs.generate import make_pairs
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.odds import with_truth
from truesource.evaluation.pairs.settings import NUMBER, PHENOMENA, PairSettings
from truesource.evaluators.pairs.settings import PairsSettings
from truesource.grammar.files import digest_file, digest_json, write_json
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder

log = logging.getLogger("truesource")


def stages(config: RunConfig) -> list[Stage]:
    """The pairs, then every model."""
    source = Stage("pairs", ("pairs/pairs.jsonl", "pairs/summary.json"), source_inputs, make_source)
    return [source, *(Stage.of_model("pairs", m, ("pairs/models/{}.json",), inputs, make) for m in config.models)]


def source_inputs(run: RunFolder) -> Any:
    """Settings, lengths, seed, grammar, and a file of pairs or forms where one is given."""
    config = run.settings(PairsSettings)
    return {
        "pairs": config.model_dump(mode="json"),
        "lengths": str(run.config.corpus.lengths),
        "seed": run.config.seed,
        "grammar": run.outputs["grammar"],
        "files": [None if file is None else digest_file(file) for file in _files(run)],
    }


def make_source(run: RunFolder) -> str:
    """Write ``pairs/pairs.jsonl`` and ``pairs/summary.json``."""
    config, lengths = run.settings(PairsSettings), run.config.corpus.lengths
    given, forms = _files(run)
    notes: list[str] = []
    if given is not None:
        pairs = with_truth(read_pairs(given, run.pcfg.terminals, lengths), Lexicon(run.pcfg, lengths))
        pairs = filter_pairs(pairs, given, phenomena=config.phenomena, number=config.number, possible=config.possible)
    else:
        settings = PairSettings(
            NUMBER if config.number is None else config.number,
            PHENOMENA if config.phenomena is None else tuple(config.phenomena),
            run.config.seed,
            config.tries,
            config.tolerance,
            attached=config.attached,
            possible=config.possible,
            forms=forms,
        )
        made = make_pairs(run.pcfg, lengths, settings)
        pairs, notes = made.pairs, made.notes
    for note in notes:
        log.info("%s", note)
    phenomena = list(dict.fromkeys(pair.phenomenon for pair in pairs))
    best = sorted(pairs, key=lambda pair: not pair.possible)  # a pair of two possible sentences, where there is one
    examples = [next(pair for pair in best if pair.phenomenon == name).as_record() for name in phenomena]
    truth = evaluate_pairs(
        Oracle(run.pcfg, "causal", lengths=lengths), pairs, run.pcfg, lengths=lengths, seed=run.config.seed
    )
    summary = {"notes": notes, "examples": examples, "pairs": len(pairs), "oracle": _record("oracle", truth)}
    write_pairs(run.folder / "pairs" / "pairs.jsonl", pairs)
    write_json(run.folder / "pairs" / "summary.json", summary)
    return digest_file(run.folder / "pairs" / "pairs.jsonl")


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """The pairs, the seed, and the trained model."""
    return {
        "pairs": run.outputs["pairs"],
        "lengths": str(run.config.corpus.lengths),
        "seed": run.config.seed,
        "grammar": run.outputs["grammar"],
        "model": run.outputs[f"train:{model.name}"],
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``pairs/models/<name>.json``; where no pair counts for the model, that says so, and has no records."""
    from truesource.lmtrain.models import load_model

    lengths = run.config.corpus.lengths
    pairs = read_pairs(run.folder / "pairs" / "pairs.jsonl", run.pcfg.terminals, lengths)
    pairs = with_truth(pairs, Lexicon(run.pcfg, lengths))
    trained = load_model(run.folder / "models" / model.name)
    try:
        record = _record(model.name, evaluate_pairs(trained, pairs, run.pcfg, lengths=lengths, seed=run.config.seed))
    except NoPairsError as error:
        log.info("%s: %s", model.name, error)
        record = {
            "model": model.name,
            "objective": error.objective,
            "left_out": error.left_out,
            "records": [],
            "points": [],
        }
    write_json(run.folder / "pairs" / "models" / f"{model.name}.json", record)
    return digest_json(record)


def _record(name: str, found: PairEvaluation) -> dict[str, Any]:
    return {
        "model": name,
        "objective": found.objective,
        "left_out": found.left_out,
        "records": found.records(),
        "points": found.points(),
    }


def _files(run: RunFolder) -> tuple[Path | None, Path | None]:
    """The files of pairs and of forms that the configuration names."""
    config = run.settings(PairsSettings)
    given, forms = (None if name is None else Path(run.resolve(name)) for name in (config.file, config.forms))
    return given, forms
