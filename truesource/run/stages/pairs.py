"""Stages: minimal pairs from the grammar, and preferences of each model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.pairs import PairSettings
from truesource.evaluation.pairs.call import examples, pairs_of
from truesource.evaluation.pairs.evaluate import OUTSIDE, NoPairsError, evaluate_pairs
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.odds import with_truth
from truesource.evaluation.pairs.pair import TaskFiles, read_pairs, write_pairs, write_reader
from truesource.evaluation.show.declared import under_name
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.files import digest_file, digest_json
from truesource.run.stage import Stage, of_settings

if TYPE_CHECKING:
    from truesource.evaluation.pairs.pair import Pair
    from truesource.generator.language_model import LanguageModel
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry


log = logging.getLogger("truesource")


def stages(config: RunConfig) -> list[Stage]:
    """Return the stage of the pairs, then of every model."""
    source = Stage(
        "pairs",
        ("pairs/pairs.jsonl", "pairs/summary.json", "pairs/pairs.yaml", "pairs/pairs.py"),
        source_inputs,
        make_source,
    )
    return [source, *(Stage.of_model("pairs", m, ("pairs/models/{}.json",), inputs, make) for m in config.entries)]


def source_inputs(run: RunFolder) -> Any:
    """Return the inputs: settings, lengths, seed and grammar."""
    return {
        **of_settings(run, PairSettings),
        "lengths": str(run.config.corpus.lengths),
        "seed": run.config.seed,
        "grammar": run.outputs["grammar"],
    }


def make_source(run: RunFolder) -> str:
    """Write ``pairs/pairs.jsonl`` with its task for lm-eval, and ``pairs/summary.json``."""
    lengths = run.config.corpus.lengths
    if run.config.corpus.transform is not None:
        raise NothingToMeasureError(
            "the sentences of minimal pairs have the order of the grammar, but the models read text transformed by"
            f" {run.config.corpus.transform}; remove corpus.transform or evaluation.pairs",
            "transformed",
        )
    collection = pairs_of(run.pcfg, run.settings(PairSettings), lengths=lengths, seed=run.config.seed)
    for note in collection.notes:
        log.info("%s", note)
    truth = _record(run, "oracle", Oracle(run.pcfg, "causal", lengths=lengths), collection.pairs)
    pairs = collection.pairs
    summary = {"notes": collection.notes, "examples": examples(pairs), "pairs": len(pairs), "oracle": truth}
    write_pairs(run.folder / "pairs" / "pairs.jsonl", collection.pairs)
    write_json(run.folder / "pairs" / "summary.json", summary)
    task = TaskFiles.of(run.folder / "pairs" / "pairs.jsonl")
    task.write_settings(task.settings, "pairs.jsonl")
    write_reader(task.reader)
    return digest_file(run.folder / "pairs" / "pairs.jsonl")


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs: pairs, seed, and the trained model."""
    return {
        "pairs": run.outputs["pairs"],
        "lengths": str(run.config.corpus.lengths),
        "seed": run.config.seed,
        "grammar": run.outputs["grammar"],
        "model": run.model_digest(model),
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``pairs/models/<name>.json``; if no pair can be compared, it has the reason and no records."""
    lengths = run.config.corpus.lengths
    pairs = read_pairs(run.folder / "pairs" / "pairs.jsonl", run.pcfg.vocabulary, lengths)
    trained = run.model(model)
    try:
        record = _record(run, model.name, trained, with_truth(pairs, Lexicon(run.pcfg, lengths)))
    except NoPairsError as error:
        log.info("%s: %s", model.name, error)
        record = {"model": model.name, "objective": error.objective, "left_out": error.left_out}
        record |= {"records": [], "points": []}
    write_json(run.folder / "pairs" / "models" / f"{model.name}.json", record)
    return digest_json(record)


def _record(run: RunFolder, name: str, model: LanguageModel, pairs: Sequence[Pair]) -> dict[str, object]:
    result = evaluate_pairs(model, pairs, run.pcfg, lengths=run.config.corpus.lengths, seed=run.config.seed)
    for reason, number in result.left_out.items():
        remedy = "; a lower model.min_count keeps more words" if reason == OUTSIDE else ""
        log.info("%s: %d of %d pairs excluded: %s%s", name, number, len(pairs), reason, remedy)
    return {
        "model": name,
        "objective": result.objective,
        "left_out": result.left_out,
        "records": under_name(result.records(), model.name, name),
        "points": result.points(),
    }
