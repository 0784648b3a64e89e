"""Cards of the corpus and the models of a run, with its licence and its results; written at its end.

Cards are no part of what decides whether a stage is made again, nor of the digests of corpora and models.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from truesource.generator.corpus_record import corpus_card
from truesource.grammar.support.files import write_text
from truesource.grammar.support.records import read_record
from truesource.report.records import REMEDY, ResultRow

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from truesource.chain.models.config import ModelEntry
    from truesource.run.folder import RunFolder

log = logging.getLogger("truesource")
METRICS = {
    "ppl": ("perplexity", "perplexity"),
    "relative_ppl": ("relative-perplexity", "perplexity, divided by that of the exact distribution"),
    "bound": ("perplexity-bound", "perplexity of the exact distribution"),
}  #: by key of a score: type and name of the metric


def write_cards(run: RunFolder) -> None:
    """Write ``README.md`` of the corpus, and of every model that the run has trained."""
    licence = {} if run.config.license is None else {"license": run.config.license}
    write_text(run.folder / "corpus" / "README.md", corpus_card("corpus", {**run.corpus.record, **licence}))
    for entry in run.config.entries:
        if not entry.loaded:
            _write_model_card(run, entry, licence)


def _write_model_card(run: RunFolder, entry: ModelEntry, licence: dict[str, str]) -> None:
    from truesource.lmtrain.folder_card import folder_card
    from truesource.lmtrain.training_record import FILE, REMEDY, WHAT

    folder = run.model_folder(entry)
    record = read_record(folder / FILE, dict[str, Any], what=WHAT, remedy=REMEDY)
    try:
        card = folder_card({**record, **licence}, results_of(run, entry))
    except KeyError as error:
        log.info(
            "%s: its card stays as it is, the record of the training is of an earlier version, %s", entry.name, error
        )
        return
    write_text(folder / "README.md", card)


def results_of(run: RunFolder, entry: ModelEntry) -> list[EvalResult]:
    """What the run has measured of a model, with intervals; empty where there was nothing to compare."""
    from huggingface_hub import EvalResult

    row: Any = read_record(run.folder / "scores" / f"{entry.name}.json", ResultRow, remedy=REMEDY)
    where: dict[str, Any] = {
        "task_type": "text-generation" if row["objective"] == "causal" else "fill-mask",
        "dataset_type": f"{run.config.name}-corpus",
        "dataset_name": f"corpus of the run {run.config.name}",
        "dataset_split": run.config.evaluation.split,
        "dataset_revision": run.corpus.digest,
    }
    found = []
    for key, (kind, name) in METRICS.items():
        if row[key] is None:
            continue
        interval = [row.get(f"{key}_low"), row.get(f"{key}_high")]
        about = {"signature": row["signature"], **({} if None in interval else {"interval_95": interval})}
        found.append(EvalResult(**where, metric_type=kind, metric_name=name, metric_value=row[key], metric_args=about))
    return found
