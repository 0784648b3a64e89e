"""Stage: the table of results and the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.token_table import read_token_record
from truesource.evaluation.show.records import ResultRow
from truesource.generator.abilities import offers
from truesource.generator.corpus_card import corpus_card
from truesource.grammar.support.atomic_files import write_json, write_text
from truesource.grammar.support.files import digest_file
from truesource.grammar.support.records import read_record
from truesource.report.finished_run import COMPARED, COMPARISON, ScoresRecord
from truesource.report.page import write_page
from truesource.run.sections import contents
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from truesource.evaluation.core.evaluator import Evaluator
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry


METRICS = {
    "ppl": ("perplexity", "perplexity"),
    "relative_ppl": ("relative-perplexity", "perplexity, divided by the perplexity of the exact distribution"),
    "bound": ("perplexity-bound", "perplexity of the exact distribution"),
}  #: by key of a score: type and name of the metric


def write_cards(run: RunFolder) -> None:
    """Write ``README.md`` of the corpus, and of every model that the run has trained."""
    licence = {} if run.config.license is None else {"license": run.config.license}
    card = corpus_card("corpus", run.corpus.record, license=run.config.license)
    write_text(run.folder / "corpus" / "README.md", card)
    for entry in run.config.entries:
        if not entry.loaded:
            _write_model_card(run, entry, licence)


def _write_model_card(run: RunFolder, entry: ModelEntry, licence: dict[str, str]) -> None:
    from truesource.lmtrain.card import folder_card
    from truesource.lmtrain.training_record import FILE, REMEDY, WHAT

    folder = run.model_folder(entry)
    record = read_record(folder / FILE, dict[str, object], what=WHAT, remedy=REMEDY)
    write_text(folder / "README.md", folder_card({**record, **licence}, results_of(run, entry)))


def results_of(run: RunFolder, entry: ModelEntry) -> list[EvalResult]:
    """Return the results of a model in the run, with intervals; empty if nothing was compared."""
    from huggingface_hub import EvalResult

    row: Any = _result(run, entry.name)
    result = partial(
        EvalResult,
        task_type="text-generation" if row["objective"] == "causal" else "fill-mask",
        dataset_type=f"{run.config.name}-corpus",
        dataset_name=f"corpus of the run {run.config.name}",
        dataset_split=run.config.evaluation.split,
        dataset_revision=run.corpus.digest,
    )
    results = []
    for key, (kind, name) in METRICS.items():
        if row[key] is None:
            continue
        interval = [row.get(f"{key}_low"), row.get(f"{key}_high")]
        about = {"signature": row["signature"], **({} if None in interval else {"interval_95": interval})}
        results.append(result(metric_type=kind, metric_name=name, metric_value=row[key], metric_args=about))
    return results


def _result(run: RunFolder, name: str) -> ResultRow:
    return read_token_record(run.folder / "scores" / f"{name}.parquet", ScoresRecord)["record"]


def stages(config: RunConfig, evaluators: Sequence[Evaluator]) -> list[Stage]:
    """Return the last stage of every run."""
    compared = (COMPARISON,) if config.seeds is not None else ()
    cards = (f"models/{model.name}/README.md" for model in config.entries if not model.loaded)
    files = ("results.json", *compared, "report.html", "corpus/README.md", *cards)
    return [Stage("report", files, inputs, partial(make, evaluators=evaluators))]


def inputs(run: RunFolder) -> Any:
    """Return the inputs: configuration and all earlier outputs."""
    return {"config": run.config.model_dump(mode="json"), "outputs": dict(run.outputs)}


def make(run: RunFolder, evaluators: Sequence[Evaluator]) -> str:
    """Write ``results.json``, the cards of corpus and models, and ``report.html``."""
    oracles = [f"oracle-{objective}" for objective in run.config.objectives if offers(run.truth, objective)]
    names = [*oracles, *(model.name for model in run.config.entries)]
    records = [_result(run, name) for name in names]
    write_json(run.folder / "results.json", sorted(records, key=lambda r: (r["objective"], r["model"] != "oracle")))
    (run.folder / COMPARISON).unlink(missing_ok=True)  # file of an earlier configuration
    for path in run.folder.glob(COMPARED.format("*")):
        stage = "vocabulary" if path.stem.startswith("oracle-") else f"compare:{path.stem}"
        if stage not in run.outputs:  # likewise
            path.unlink()
    if run.config.seeds is not None:
        write_json(run.folder / COMPARISON, compared(run))
    write_cards(run)
    return digest_file(write_page(run.folder, partial(contents, evaluators=evaluators)))


def compared(run: RunFolder) -> list[dict[str, object]]:
    """Compute means over seeds, and paired differences to the first model of the configuration."""
    from truesource.evaluation.comparing import compare_models, grouped
    from truesource.run.model_scores import read_runs

    groups = grouped(read_runs([run.folder]).models)
    return [
        record
        for models in groups
        for record in compare_models(models, seed=run.config.seed).records()
        if record["model"] != "oracle"
    ]
