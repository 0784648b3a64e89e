"""Stage: the perplexity of one model over that of word frequencies, beside the same of the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.chain.scores import stage as score
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.evaluation.pplu.compare import compare_pplu
from truesource.generator.frame import preset_frame
from truesource.grammar.files import digest_json, write_json
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """Every model."""
    return [Stage.of_model("pplu", model, ("pplu/{}.json",), inputs, make) for model in config.models]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Those of its scores: settings, seed, corpus, grammar, and the trained model."""
    return score.inputs(run, model)


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``pplu/<name>.json``."""
    from truesource.lmtrain.models import load_model

    config = run.config.evaluation
    trained = load_model(run.folder / "models" / model.name)
    record: dict[str, Any] = {"model": model.name, "objective": trained.objective}
    try:
        found = compare_pplu(
            trained,
            run.pcfg,
            run.corpus.sentences(config.split)[: config.sentences],
            lengths=run.corpus.lengths,
            frame=preset_frame(config.frame, trained.objective),
            seed=run.config.seed,
        )
        record |= {"excluded": found.excluded, "records": found.records()}
    except NothingToCompareError as error:  # as the stage of its scores says
        record |= {"excluded": error.n_sentences, "records": []}
    write_json(run.folder / "pplu" / f"{model.name}.json", record)
    return digest_json(record)
