"""Stage: the table of results and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.grammar.files import digest_file, write_json
from truesource.grammar.records import read_record
from truesource.report.records import REMEDY, ResultRow

if TYPE_CHECKING:
    from truesource.run.folder import RunFolder


def inputs(run: RunFolder) -> Any:
    """The configuration and everything made before."""
    return {"config": run.config.model_dump(mode="json"), "outputs": dict(run.outputs)}


def make(run: RunFolder) -> str:
    """Write ``results.json`` and ``report.html``."""
    from truesource.report import build_report

    names = ["oracle-causal", "oracle-masked", *(model.name for model in run.config.models)]
    files = [run.folder / "scores" / f"{name}.json" for name in names]
    records = [read_record(file, ResultRow, remedy=REMEDY) for file in files]
    write_json(run.folder / "results.json", sorted(records, key=lambda r: (r["objective"], r["model"] != "oracle")))
    return digest_file(build_report(run.folder))
