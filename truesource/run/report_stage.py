"""Stage: the table of results and the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.files import digest_file, write_json
from truesource.grammar.support.records import read_record
from truesource.report.finished_run import COMPARISON
from truesource.report.page import write_page
from truesource.report.records import REMEDY, ResultRow
from truesource.run.cards import write_cards
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.run.config import RunConfig
    from truesource.run.evaluator import Evaluator
    from truesource.run.folder import RunFolder


def stages(config: RunConfig, evaluators: Sequence[Evaluator]) -> list[Stage]:
    """The last one of every run."""
    compared = (COMPARISON,) if config.seeds is not None else ()
    cards = (f"models/{model.name}/README.md" for model in config.entries if not model.loaded)
    made = ("results.json", *compared, "report.html", "corpus/README.md", *cards)
    return [Stage("report", made, inputs, partial(make, evaluators=evaluators))]


def inputs(run: RunFolder) -> Any:
    """The configuration and everything made before."""
    return {"config": run.config.model_dump(mode="json"), "outputs": dict(run.outputs)}


def make(run: RunFolder, evaluators: Sequence[Evaluator]) -> str:
    """Write ``results.json``, the cards of corpus and models, and ``report.html``."""
    names = ["oracle-causal", "oracle-masked", *(model.name for model in run.config.entries)]
    files = [run.folder / "scores" / f"{name}.json" for name in names]
    records = [read_record(file, ResultRow, remedy=REMEDY) for file in files]
    write_json(run.folder / "results.json", sorted(records, key=lambda r: (r["objective"], r["model"] != "oracle")))
    (run.folder / COMPARISON).unlink(missing_ok=True)  # of an earlier configuration
    if run.config.seeds is not None:
        write_json(run.folder / COMPARISON, compared(run))
    write_cards(run)
    return digest_file(write_page(run.folder, evaluators))


def compared(run: RunFolder) -> list[dict[str, Any]]:
    """Means over seeds, and paired differences to the first model of the configuration."""
    from truesource.comparing.runs import read_runs
    from truesource.evaluation.comparing import compare_models, grouped

    groups = grouped(read_runs([run.folder]).models)
    return [
        record
        for models in groups
        for record in compare_models(models, seed=run.config.seed).records()
        if record["model"] != "oracle"
    ]
