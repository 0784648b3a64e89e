"""Stage: scores of one model, or of the oracle, compared with the truth, with their most likely words."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import signature_parts
from truesource.evaluation.core.token_table import write_token_table
from truesource.evaluation.core.windows import window_lines
from truesource.evaluation.divergence.blocks import next_words, write_next_words
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.evaluation.show.records import REMEDY, LoadedRecord
from truesource.generator.abilities import offers
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.records import read_record
from truesource.report.finished_run import MEASURES
from truesource.run.models import ModelEntry, Replicate
from truesource.run.scores.section import LINES
from truesource.run.scores.token_view import LIKELY_SENTENCES
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.evaluation.core.comparison import Comparison
    from truesource.generator.language_model import LanguageModel
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


TOKENS = 1200  #: maximum number of tokens of the listed sentences, unless the first is longer
MADE = "scores/{}.parquet"


def write_likely_words(run: RunFolder, model: LanguageModel, name: str) -> None:
    """Write ``next_words/<name>.parquet``, see `truesource.evaluation.divergence.next_words`.

    There is no file if tokens have no truth, or if the model has no distributions: the report can do
    without it.
    """
    config, path = run.config.evaluation, run.folder / "next_words" / f"{name}.parquet"
    truth, transform = run.text_truth
    some = _first(run.corpus.sentences(config.split)[: config.sentences])
    path.unlink(missing_ok=True)
    try:
        rows = next_words(model, Setting(truth, some, lengths=run.corpus.lengths, transform=transform))
    except InputError as error:
        log.info("%s: no most likely words: %s", name, error.reason)
        return
    path.parent.mkdir(exist_ok=True)
    write_next_words(path, rows)


def _first(sentences: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    selected: list[Sequence[str]] = []
    for sentence in sentences[:LIKELY_SENTENCES]:
        if selected and sum(map(len, selected)) + len(sentence) > TOKENS:
            break
        selected.append(sentence)
    return selected


log = logging.getLogger("truesource")


def stages(config: RunConfig) -> list[Stage]:
    """Return the stages of the oracle and of every model."""
    oracle = tuple(MADE.format(f"oracle-{objective}") for objective in config.objectives)
    files = (MADE, "next_words/{}.parquet")
    models = [Stage.of_model("score", model, files, _inputs_of_all, make) for model in config.entries]
    return [Stage("score:oracle", (*oracle, LINES), _inputs_with_lines, make_oracle), *models]


def oracle_inputs(run: RunFolder) -> Any:
    """Return the inputs: settings, seed, corpus, grammar."""
    return {
        "evaluation": run.config.evaluation.model_dump(mode="json", include={"split", "sentences", "frame"}),
        "seed": run.config.seed,
        "corpus": run.outputs["corpus"],
        "grammar": run.outputs["grammar"],
    }


def _inputs_with_lines(run: RunFolder) -> Any:
    """Return the inputs of the oracle, and the number of lines."""
    lines, filled = run.config.evaluation.lines, "any-order" in run.config.objectives
    return {**oracle_inputs(run), **({"lines": lines} if lines else {}), **({"any-order": True} if filled else {})}


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs of the oracle, and the trained model."""
    return {**oracle_inputs(run), "model": run.model_digest(model)}


def _inputs_of_all(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs of the scores, and the number of sentences with most likely words."""
    return {**inputs(run, model), "likely": [LIKELY_SENTENCES, TOKENS]}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``scores/<name>.parquet``, without rows for a model that gives all sentences probability 0.

    Also write ``next_words/<name>.parquet``, see `write_likely_words`.
    """
    trained = run.model(model)
    write_likely_words(run, trained, model.name)
    return scored(run, trained, MADE.format(model.name), _origin(run, model), model)


def scored(
    run: RunFolder, model: LanguageModel, file: str, origin: Mapping[str, object], entry: ModelEntry | None = None
) -> str:
    """Compare a model with the truth, and write a table of its tokens.

    Args:
        run: run whose text is scored.
        model: model to compare.
        file: file to write, relative to the run folder.
        origin: further entries of the record.
        entry: entry of the model in the configuration; None: the truth.

    Returns:
        A digest of the record.
    """
    name = {} if entry is None else {"model": entry.name}
    try:
        result = compare_in(model, run.setting())
    except NothingToCompareError as error:  # unsmoothed counts of far too little text: the run continues
        if entry is None:
            raise
        log.info("%s: %s", entry.name, error)
        counts = {
            "tokens": 0,
            "sentences": 0,
            "excluded": error.n_sentences,
            "impossible_model": error.impossible_model,
            "impossible_oracle": error.impossible_oracle,
            "signature": "",
        }
        head = {**name, "objective": model.objective}
        return _write(run, file, {**head, **dict.fromkeys(MEASURES), **counts, **origin})
    return _write(run, file, {**result.as_record(), **origin, **name}, result)


def _origin(run: RunFolder, model: ModelEntry) -> dict[str, str | int | None]:
    """Return the origin of a model: size, source of a loaded model, and seed of a replicate."""
    from truesource.lmtrain.training_record import read_finished

    if model.loaded:
        record = read_record(run.folder / "loaded" / f"{model.name}.json", LoadedRecord, remedy=REMEDY)
        return {"parameters": record.parameters, "tokenizer": record.tokenizer, "loaded": record.reference}
    training = read_finished(run.model_folder(model))
    origin: dict[str, str | int | None] = {"parameters": training.parameters, "tokenizer": training.model.tokenizer}
    if isinstance(model, Replicate):
        origin |= {"replicate_of": model.replicate_of, "seed": model.seed}
    return origin


def make_oracle(run: RunFolder) -> str:
    """Score the truth like a model, for each objective, with all gaps zero; and score the optimal predictors."""
    truth, transform = run.text_truth
    lengths = run.corpus.lengths
    digests = [
        scored(
            run,
            Oracle(truth, objective, lengths=lengths, excluded=run.excluded, transform=transform),
            MADE.format(f"oracle-{objective}"),
            {},
        )
        for objective in run.config.objectives
        if offers(truth, objective)
    ]
    (run.folder / LINES).unlink(missing_ok=True)  # file of an earlier configuration
    if run.config.evaluation.lines:
        predictors, _ = window_lines(run.setting(), run.config.evaluation.lines)
        lines = [line.as_record() for line in predictors]
        write_json(run.folder / LINES, lines)
        digests.append(digest_json(lines))
    return digest_json(digests)


def _write(run: RunFolder, file: str, record: Mapping[str, object], result: Comparison | None = None) -> str:
    """Write a record, the parts of its signature, and the tokens if they have a truth."""
    paired = None if result is None or result.of_sentences else result.paired
    sentences = [] if result is None else result.sentences
    parts = {} if result is None else signature_parts(result.parts)
    about = {"record": record, "parts": parts, "seed": run.config.seed}
    write_token_table(run.folder / file, paired, sentences, about)
    return digest_json(record)
