"""Reading a run folder: the required and the optional parts of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.signature import SignatureKey
from truesource.evaluation.core.token_table import read_token_record, read_token_table
from truesource.evaluation.core.vocabulary import VocabularyRecord
from truesource.evaluation.show.records import (
    REMEDY,
    ComparedRow,
    ConfigRecord,
    DiagnosisRecord,
    ProvenanceRecord,
    Record,
    ResultRow,
    StagesShown,
    TreebankRecord,
)
from truesource.generator.abilities import offers
from truesource.generator.corpus import Corpus
from truesource.grammar.diagnostics import diagnose
from truesource.grammar.estimate.split_merge.result import TraceRow
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.folders import require_run
from truesource.grammar.support.records import STRICT, read_record, read_records
from truesource.grammar.truth import Truth, load_truth
from truesource.lmtrain.training_record import MetricsRow, training_seconds

OVER_SEEDS = ("ppl", "bound", "relative_ppl")  #: measures with an interval over sentences and seeds
AGREEMENT = ("rho", "r2_pearson", "r2_identity")  #: measures whose mean has no interval
SPREAD = ("ppl", "relative_ppl", *AGREEMENT)  #: measures whose spread over seeds is shown
SAME = ("parameters", "tokenizer", "loaded", "excluded", "sentences", "tokens", "impossible_model", "impossible_oracle")
PROVENANCE = (
    "truesource",
    "commit",
    "python",
    "platform",
    "cores",
    "seed",
    "seeds",
    "command",
    "started",
    "finished",
    "packages",
)
STAGE = ("seconds", "finished", "skipped", "output", "unmeasured")
MEASURES = ("ppl", "bound", "relative_ppl", "rho", "r2_pearson", "r2_identity")
ENDS = tuple(f"{name}_{end}" for name in (*MEASURES, "bound_unconditioned") for end in ("low", "high"))
OPTIONAL = (
    *ENDS,
    *("bound_unconditioned", "sentences", "excluded", "impossible_model", "impossible_oracle"),
    *("parameters", "tokenizer", "replicate_of", "seed", "loaded"),
)
COMPARISON = "comparison.json"  #: in a run folder, where models have several seeds
COMPARED = "comparison/{}.parquet"  #: scores of a model in the vocabulary of the comparison, if that is not its own
VOCABULARY = "comparison/vocabulary.json"  #: the vocabulary that models of each objective are compared in
SENTENCES = 50_000  #: at most so many are read for the figures of the corpus


def summarised(rows: Sequence[Record], comparison: Sequence[Record]) -> list[Record]:
    """Merge the rows of all seeds of a model into one.

    Args:
        rows: of ``results.json``.
        comparison: records of `ModelComparison.records`.

    Returns:
        Rows as before; one of several seeds has them as ``replicates``, and the standard deviation of each measure over
        seeds as ``sd``.
    """
    by_measure = {(r["model"], r["name"]): r for r in comparison if "seeds" in r}
    groups: dict[str, list[Record]] = {}
    for row in rows:
        groups.setdefault(f"{row['objective']}:{row.get('replicate_of') or row['model']}", []).append(row)
    return [_summary(of, by_measure) if _replicated(of, by_measure) else of[0] for of in groups.values()]


def _replicated(rows: Sequence[Record], by_measure: Mapping[tuple[str, str], Record]) -> bool:
    return rows[0].get("replicate_of") is not None and (rows[0]["replicate_of"], "relative_ppl") in by_measure


def _summary(rows: Sequence[Record], by_measure: Mapping[tuple[str, str], Record]) -> Record:
    name = rows[0]["replicate_of"]
    summary: dict[str, object] = {**dict.fromkeys(rows[0]), "model": name, "objective": rows[0]["objective"]}
    summary |= {key: rows[0].get(key) for key in SAME if len({row.get(key) for row in rows}) == 1}
    summary["tokens"] = rows[0]["tokens"]
    sd: dict[str, float | None] = {}
    for measure in OVER_SEEDS:
        record = by_measure[name, measure]
        summary[measure], sd[measure] = record["value"], record["sd"]
        summary[f"{measure}_low"], summary[f"{measure}_high"] = record["low"], record["high"]
    for measure in (*AGREEMENT, "bound_unconditioned"):
        values = [row[measure] for row in rows if row.get(measure) is not None]
        summary[measure] = fmean(values) if values else None
        sd[measure] = stdev(values) if len(values) > 1 else None
    times = [row["training_seconds"] for row in rows if row.get("training_seconds") is not None]
    sd = {measure: value for measure, value in sd.items() if measure in SPREAD}
    summary["training_seconds"] = fmean(times) if times else None
    summary["signature"] = by_measure[name, "relative_ppl"]["signature"]
    return {**summary, "sd": {**dict.fromkeys(("bound", "bound_unconditioned")), **sd}, "replicates": list(rows)}


def with_models(rows: Sequence[Record], unscored: Sequence[Record] = ()) -> list[Record]:
    """Return the rows without oracles of objectives that no model has; all of them if there are no models.

    Args:
        rows: of ``results.json`` or `summarised`.
        unscored: rows of models that can make no sentence.
    """
    objectives = {row["objective"] for row in (*rows, *unscored) if row["model"] != "oracle"}
    return [row for row in rows if row["objective"] in objectives or not objectives]


def differences(comparison: Sequence[Record], objective: str) -> list[Record]:
    """Return the paired differences of all pairs of models of one objective, those to their baseline first."""
    return [r for r in comparison if r["name"] == "kl_difference" and r["objective"] == objective]


T = TypeVar("T")


@with_config(STRICT)
class ScoresRecord(TypedDict):
    """A model in the metadata of ``scores/<model>.parquet``."""

    record: ResultRow
    parts: dict[SignatureKey, Any]  #: of the signature, without the version; empty of a model that can make no sentence
    seed: int  #: of the intervals


@dataclass(frozen=True)
class FinishedRun:
    """The contents of a run folder; optional parts, and optional entries of records, are None or empty where absent."""

    path: Path
    config: Record
    provenance: Record
    stages: Record
    treebank: Record | None
    truth: Truth
    diagnosis: Record  #: empty for a process
    trace: Sequence[Record]
    corpus: Corpus
    results: Sequence[Record]  #: of models that can make some sentence, each in its own vocabulary
    metrics: Mapping[str, Sequence[Record]]  #: training curves by model
    scores: Mapping[str, Mapping[str, np.ndarray]]  #: per-token log probabilities by model, nats, in its own vocabulary
    names: Sequence[str]  #: of all models
    unscored: Sequence[Record]  #: results of models that can make no sentence
    comparison: Sequence[Record] = ()  #: means over seeds and paired differences, where models have several seeds
    #: results in the vocabulary that models are compared in, of objectives for which that is not the models' own
    compared: Sequence[Record] = ()
    compared_scores: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)  #: tokens of these

    @property
    def kind(self) -> str:
        """Kind of the truth: a ``grammar``, or a ``process``."""
        return "grammar" if offers(self.truth, "parses") else "process"

    def asks(self, key: str) -> bool:
        """Return True if the configuration asks for an evaluator."""
        return self.config.get("evaluation", {}).get(key) not in (None, False)

    def record(self, name: str, model: type[Any]) -> Record | None:
        """Return the record that a stage wrote to a file; None if it is absent.

        Args:
            name: of the file, relative to the folder of the run.
            model: type of the record.

        Raises:
            InputError: it is damaged.
        """
        return _optional(self.path / name, model)

    def of_models(self, folder: str, model: type[Any] = dict[str, object]) -> dict[str, Record]:
        """Return the records that a stage wrote of models, as `record`: the existing files ``folder/<model>.json``."""
        read = {name: self.record(f"{folder}/{name}.json", model) for name in self.names}
        return {name: record for name, record in read.items() if record is not None}

    @property
    def models(self) -> list[Record]:
        """The results without the rows of the oracle: one a model, see `truesource.report.finished_run.summarised`."""
        return [row for row in self.summaries if row["model"] != "oracle"]

    @property
    def compared_objectives(self) -> set[str]:
        """Objectives whose models are compared in another vocabulary than their own."""
        return {row["objective"] for row in self.compared}

    @property
    def checked_models(self) -> list[Record]:
        """Rows that must not lie below their bound, in compared and in own vocabularies."""
        others = (row for row in self.results if row["objective"] in self.compared_objectives)
        own_rows = [row for row in others if row["model"] != "oracle"]
        return [*self.models, *({**row, "model": f"{row['model']} in its own vocabulary"} for row in own_rows)]

    @cached_property
    def summaries(self) -> list[Record]:
        """The results that compare, one row for all seeds of a model, in one vocabulary for each objective.

        Oracles are there only for objectives that a model has.
        """
        others = [row for row in self.results if row["objective"] not in self.compared_objectives]
        return with_models(summarised([*others, *self.compared], self.comparison), self.unscored)

    def own_bound(self, row: Record) -> float:
        """Return the bound of a model in its own vocabulary; of the first seed, if there are several."""
        first = row["replicates"][0]["model"] if "replicates" in row else row["model"]
        return next(float(each["bound"]) for each in self.results if each["model"] == first)

    def tokens_of(self, model: str) -> Mapping[str, np.ndarray] | None:
        """Return the compared scores of tokens of a model; None if it has none."""
        return self.compared_scores.get(model, self.scores.get(model))


def read_run(path: Path) -> FinishedRun:
    """Read a run folder.

    Raises:
        InputError: a required file (configuration, grammar, corpus, results) is missing, any file is damaged,
            or the corpus was drawn from another grammar.
    """
    require_run(path)
    config = _read(path / "config.json", ConfigRecord)
    truth = load_truth(_present(path / "grammar" / "grammar.npz"))
    corpus = Corpus.load(path / "corpus")
    if corpus.grammar_digest != truth.digest:
        raise InputError(
            "the corpus was drawn from another grammar than the one next to it; run the experiment again", path
        )
    everyone = read_results(path)
    names = [row["model"] for row in everyone if row["model"] != "oracle"]
    trained = [row["model"] for row in everyone if row["model"] != "oracle" and row["loaded"] is None]
    results = [row for row in everyone if row["relative_ppl"] is not None]
    compared = [row for row in (_compared(path, each) for each in everyone) if row is not None]
    stages = (_optional(path / "stages.json", StagesShown) or {"stages": {}})["stages"]
    diagnosis = path / "grammar" / "diagnosis.json"
    return FinishedRun(
        path,
        config,
        {**dict.fromkeys(PROVENANCE), **(_optional(path / "provenance.json", ProvenanceRecord) or {})},
        {name: {**dict.fromkeys(STAGE), **stage} for name, stage in stages.items()},
        _optional(path / "treebank" / "statistics.json", TreebankRecord),
        truth,
        _optional(diagnosis, DiagnosisRecord) or (asdict(diagnose(truth)) if isinstance(truth, PCFG) else {}),
        _lines(path / "grammar" / "trace.jsonl", TraceRow),
        corpus,
        results,
        {name: rows for name in trained if (rows := _lines(path / "models" / name / "metrics.jsonl", MetricsRow))},
        {name: table for name in names if (table := _scores(path / "scores" / f"{name}.parquet")) is not None},
        names,
        [row for row in everyone if row["relative_ppl"] is None],
        _optional(path / COMPARISON, list[ComparedRow]) or (),
        [row for row in compared if row["relative_ppl"] is not None],
        {name: table for name in names if (table := _scores(path / COMPARED.format(name))) is not None},
    )


def _compared(run: Path, row: Record) -> Record | None:
    """Return the row of a model in the vocabulary that it is compared in; None if it is the model's own."""
    name = f"oracle-{row['objective']}" if row["model"] == "oracle" else row["model"]
    path = run / COMPARED.format(name)
    if not path.is_file():
        return None
    base = {key: None if key in (*ENDS, "bound_unconditioned") else value for key, value in row.items()}
    return {**base, **read_token_record(path, ScoresRecord)["record"]}


def read_vocabularies(path: Path) -> Mapping[str, VocabularyRecord | None]:
    """Return the vocabulary that the models of each objective of a run are compared in; None: their own.

    Raises:
        InputError: the file is missing or damaged.
    """
    return _read(path, dict[str, VocabularyRecord | None])


def some_sentences(corpus: Corpus, split: str, most: int = SENTENCES) -> list[list[str]]:
    """Return the first sentences of a split, without reading shards that are not needed."""
    shards, n_sentences = [], 0
    for shard in corpus.record["shards"]:
        if shard["split"] == split and n_sentences < most:
            shards.append(shard)
            n_sentences += shard["sentences"]
    return replace(corpus, record={**corpus.record, "shards": shards}).sentences(split)[:most]


def shown_split(run: FinishedRun) -> str:
    """Return the split whose sentences and trees are shown: the evaluated one, if the run names it."""
    split = run.config.get("evaluation", {}).get("split")
    return split if split in run.corpus.splits else list(run.corpus.splits)[-1]


def evaluated(run: FinishedRun) -> str:
    """Return the split that the models were compared on, and how much of it also occurs in the training split."""
    split, reference = shown_split(run), run.corpus.record["overlap_with"]
    shares = run.corpus.record["splits"][split]["overlap"]
    if split == reference or shares is None:
        return f"of the split {split}"
    return f"of the split {split} ({shares['tokens']:.1%} of its sentences also occur in {reference})"


def whole_sentences(run: FinishedRun) -> bool:
    """Return True if the evaluation counts all words and the end of each sentence, as training does."""
    return bool(run.config.get("evaluation", {}).get("frame", "default") == "default")


def _present(path: Path) -> Path:
    if not path.is_file():
        raise InputError("the run is incomplete, this file is missing; run the experiment again", path)
    return path


def _read(path: Path, model: type[T]) -> T:
    """Return a required record."""
    return read_record(_present(path), model, remedy=REMEDY)


def _optional(path: Path, model: type[T]) -> T | None:
    """Return a record; None if the file is absent."""
    return _read(path, model) if path.is_file() else None


def read_results(run: Path) -> Sequence[Record]:
    """Return ``results.json`` of a run folder, with the time of training of each model.

    Raises:
        InputError: it is missing or damaged.
    """
    return [
        {**dict.fromkeys(OPTIONAL), **row, "training_seconds": _training_seconds(run, row)}
        for row in _read(run / "results.json", list[ResultRow])
    ]


def comparable(run: Path, results: Sequence[Record]) -> list[Record]:
    """Return the results of a run folder in the vocabularies that its models are compared in.

    Args:
        run: the folder.
        results: rows of its ``results.json``.

    Raises:
        InputError: scores are damaged.
    """
    return [_compared(run, row) or row for row in results]


def _training_seconds(run: Path, row: ResultRow) -> float | None:
    return None if row.get("loaded") else training_seconds(run / "models" / row["model"])


def _lines(path: Path, model: type[T]) -> list[T]:
    """Return the records of a ``.jsonl`` file; empty if it is absent."""
    if not path.is_file():
        return []
    return [row for _, row in read_records(path, model, remedy=REMEDY)]


def _scores(path: Path) -> dict[str, np.ndarray] | None:
    """Return the scores of tokens; None if there are none."""
    table = read_token_table(path) if path.is_file() else None
    return table if table is not None and len(table["sentence"]) else None


@dataclass(frozen=True)
class Part:
    """A section; the page writes its number, its title and its notes."""

    name: str  #: id of the section
    title: str
    template: Path  #: the body, which finds ``content`` as ``section``
    content: Any
    notes: Sequence[str] = ()  #: sentences below the body
    extent: str = ""  #: its sentences, if not all
