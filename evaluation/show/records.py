"""Records of a run folder, as its stages write them and the report reads them; other keys are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, NotRequired

from pydantic import BaseModel, with_config
from typing_extensions import TypedDict

from truesource.generator.objectives import Objective
from truesource.grammar.support.records import STRICT, Count, FileName, InnerPath

Record = Mapping[str, Any]
REMEDY = "delete it and run the experiment again"  #: a run passes over stages whose files are there


def nested(
    records: Iterable[Record], row: Callable[[Record], Any], column: Callable[[Record], Any] = itemgetter("name")
) -> dict[Any, dict[Any, Record]]:
    """Return records by row and column of a table, rows in the order of their first records."""
    table: dict[Any, dict[Any, Record]] = {}
    for record in records:
        table.setdefault(row(record), {})[column(record)] = record
    return table


@with_config(STRICT)
class ResultRow(TypedDict):
    """A row of ``results.json``, see `truesource.evaluation.core.comparison.Comparison.as_record`."""

    model: FileName
    objective: Objective
    tokens: Count
    signature: str
    ppl: float | None
    bound: float | None
    relative_ppl: float | None
    rho: float | None
    r2_pearson: float | None
    r2_identity: float | None
    ppl_low: NotRequired[float | None]
    ppl_high: NotRequired[float | None]
    bound_low: NotRequired[float | None]
    bound_high: NotRequired[float | None]
    relative_ppl_low: NotRequired[float | None]
    relative_ppl_high: NotRequired[float | None]
    rho_low: NotRequired[float | None]
    rho_high: NotRequired[float | None]
    r2_pearson_low: NotRequired[float | None]
    r2_pearson_high: NotRequired[float | None]
    r2_identity_low: NotRequired[float | None]
    r2_identity_high: NotRequired[float | None]
    bound_unconditioned: NotRequired[float | None]
    bound_unconditioned_low: NotRequired[float | None]
    bound_unconditioned_high: NotRequired[float | None]
    sentences: Count
    excluded: Count
    impossible_model: Count
    impossible_oracle: Count
    parameters: NotRequired[Count | None]
    tokenizer: NotRequired[str | None]
    replicate_of: NotRequired[FileName | None]  # the model of the configuration, trained with ``seed``
    seed: NotRequired[int | None]
    loaded: NotRequired[str | None]  # the reference, of a model that was not trained here


@with_config(STRICT)
class HeldOutFit(TypedDict):
    """Log probabilities of held-out sentences, nats a token."""

    sentences: Count
    impossible: Count
    log_prob_per_token: float | None
    truth_log_prob_per_token: float | None


@with_config(STRICT)
class DiagnosisRecord(TypedDict):
    """``grammar/diagnosis.json``: the shown entries of a `truesource.grammar.diagnostics.Diagnosis`."""

    total_mass: float
    spectral_radius: float
    mean_length: float | None
    derivational_entropy: float | None
    held_out: HeldOutFit | None


@with_config(STRICT)
class _TreebankCounts(TypedDict):
    trees: Count
    tokens: Count


@with_config(STRICT)
class _TreebankReading(TypedDict):
    summary: list[str]


@with_config(STRICT)
class TreebankTruth(TypedDict):
    """The truth about the source of a sampled treebank."""

    grammar: dict[str, Count]
    mean_length: float
    derivational_entropy: NotRequired[float]


@with_config(STRICT)
class TreebankRecord(TypedDict):
    """The shown entries of ``treebank/statistics.json``."""

    source: str
    statistics: _TreebankCounts
    lengths: list[Count]
    reading: _TreebankReading
    truth: TreebankTruth | None


class LoadedRecord(BaseModel):
    """``loaded/<model>.json``: properties of a loaded model."""

    model_config = STRICT

    reference: str
    name: str
    objective: Objective
    parameters: Count | None
    tokenizer: str | None


@with_config(STRICT)
class ComparedRow(TypedDict):
    """A record of ``comparison.json``, see `truesource.evaluation.comparing.records`."""

    model: str
    objective: Objective
    name: str
    value: float | None
    signature: str
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    sd: NotRequired[float | None]
    seeds: NotRequired[Count]
    baseline: NotRequired[str]
    p: NotRequired[float | None]
    p_adjusted: NotRequired[float | None]


@with_config(STRICT)
class ConfigRecord(TypedDict):
    """``config.json``, the resolved configuration; a run checks all of it when it reads the YAML file."""

    name: NotRequired[str | None]
    title: NotRequired[str | None]
    evaluation: NotRequired[dict[str, object]]


@with_config(STRICT)
class ProvenanceRecord(TypedDict):
    """``provenance.json``, see `truesource.run.runner`."""

    truesource: NotRequired[str | None]
    commit: NotRequired[str | None]
    python: NotRequired[str | None]
    platform: NotRequired[str | None]
    cores: NotRequired[Count | None]
    seed: NotRequired[int | None]
    seeds: NotRequired[list[int] | None]
    command: NotRequired[str | None]
    started: NotRequired[str | None]
    finished: NotRequired[str | None]
    packages: NotRequired[dict[str, str] | None]


@with_config(STRICT)
class NoteRecord(TypedDict):
    """Reason why a stage found nothing to measure."""

    code: NotRequired[str]
    reason: str


@with_config(STRICT)
class _StageTimes(TypedDict):
    seconds: NotRequired[float | None]
    finished: NotRequired[str | None]
    skipped: NotRequired[bool | None]
    unmeasured: NotRequired[NoteRecord | None]


@with_config(STRICT)
class StageRecord(_StageTimes):
    """A stage in ``stages.json``: digests of what went in and came out, and the sizes of its files in bytes."""

    inputs: str
    output: str
    files: dict[InnerPath, Count]
    depends: dict[str, object]  #: of which ``inputs`` is the digest


@with_config(STRICT)
class StageShown(_StageTimes):
    """The entries of a stage that the report shows."""

    output: NotRequired[str | None]


@with_config(STRICT)
class StagesRecord(TypedDict):
    """``stages.json``."""

    stages: dict[str, StageRecord]


@with_config(STRICT)
class StagesShown(TypedDict):
    """``stages.json`` as the report reads it."""

    stages: dict[str, StageShown]
