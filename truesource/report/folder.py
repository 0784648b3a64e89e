"""Reads a run folder: what the report must have, and what it may have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.token_table import read_token_table
from generator.corpus import Corpus
from grammar.doctor import diagnose
from grammar.errors import InputError
from grammar.pcfg import PCFG
from truesource.report.svg import read_svg

Record = Mapping[str, Any]
PROVENANCE = ("truesource", "python", "platform", "cores", "seed", "command", "started", "finished", "packages")
STAGE = ("seconds", "finished", "skipped", "output", "unmeasured")
MEASURES = ("ppl", "bound", "relative_ppl", "rho", "r2_pearson", "r2_identity")
OPTIONAL = (
    *(f"{name}_{end}" for name in (*MEASURES, "bound_unconditioned") for end in ("low", "high")),
    *("bound_unconditioned", "sentences", "excluded", "impossible_model", "impossible_oracle"),
    *("parameters", "training_seconds", "tokenizer"),
)
#: entries that records must have
TENDENCIES = {"against", "words", "collapsed", "samples", "notes", "records"}
DYNAMICS = {
    *("model", "objective", "steps", "threshold", "contexts", "frame", "tags", "tokens", "excluded"),
    *("signature", "curves", "findings"),
}
SENTENCES = 50_000  #: at most so many are read for the figures of the corpus


@dataclass(frozen=True)
class RunFolder:
    """What stands in a run folder; optional parts, and optional entries of records, are None or empty where absent."""

    path: Path
    config: Record
    provenance: Record
    stages: Record
    treebank: Record | None
    pcfg: PCFG
    diagnosis: Record
    trace: Sequence[Record]
    corpus: Corpus
    results: Sequence[Record]  #: of models that can make some sentence
    metrics: Mapping[str, Sequence[Record]]  #: training curves by model
    scores: Mapping[str, Mapping[str, np.ndarray]]  #: per-token log probabilities by model, nats
    tokenisation: Mapping[str, Record]  #: sums over tokenisations by model
    tendencies: Record | None = None  #: what sampled text looks like
    pplu: Mapping[str, Record] = field(default_factory=dict)  #: perplexities over those of word frequencies, by model
    pairs: Record | None = None  #: minimal pairs: ``summary``, and ``models`` by name
    dynamics: Mapping[str, Record] = field(default_factory=dict)  #: what models with snapshots learn when, by model
    probing: Mapping[str, Record] = field(default_factory=dict)  #: what probes found in the layers, by model

    unscored: Sequence[Record] = ()  #: results of models that can make no sentence
    divergence: Mapping[str, Record] = field(default_factory=dict)  #: full distributions against the truth, by model
    naturalness: Record | None = None  #: the corpus beside held-out trees

    def figure(self, name: str) -> str | None:
        """A figure that a stage drew, as ``<svg>``; None where it is absent.

        Raises:
            InputError: it is damaged, or holds what no figure of a stage has.
        """
        path = self.path / name
        return read_svg(path) if path.is_file() else None

    @property
    def models(self) -> list[Record]:
        """The results without the rows of the oracle."""
        return [row for row in self.results if row["model"] != "oracle"]


def read_run(path: Path) -> RunFolder:
    """Read a run folder.

    Raises:
        InputError: a required file (configuration, grammar, corpus, results) is missing, any file is damaged,
            or the corpus was drawn from another grammar.
    """
    if not path.is_dir():
        raise InputError("there is no such run folder", path)
    config = _mapping(_json(path / "config.json"), path / "config.json")
    pcfg = PCFG.load(_present(path / "grammar" / "grammar.npz"))
    corpus = Corpus.load(path / "corpus")
    if corpus.grammar_digest != pcfg.digest:
        raise InputError(
            "the corpus was drawn from another grammar than the one beside it; run the experiment again", path
        )
    everyone = _results(path / "results.json")
    names = [row["model"] for row in everyone if row["model"] != "oracle"]
    results = [row for row in everyone if row["relative_ppl"] is not None]
    stages = (_optional(path / "stages.json") or {}).get("stages", {})
    diagnosis = path / "grammar" / "diagnosis.json"
    asked = config.get("evaluation", {})

    def of_models(part: str, needed: set[str], *, key: str | None = None, told: bool = False) -> dict[str, Record]:
        """What a stage found, where the configuration asks for it (under ``key``, if that is not its folder's name)."""
        return _of_models(path / part, names, needed, told=told) if asked.get(key or part) else {}

    return RunFolder(
        path,
        config,
        {**dict.fromkeys(PROVENANCE), **(_optional(path / "provenance.json") or {})},
        {name: {**dict.fromkeys(STAGE), **stage} for name, stage in stages.items()},
        _optional(path / "treebank" / "statistics.json"),
        pcfg,
        _optional(diagnosis) or diagnose(pcfg).as_dict(),
        _lines(path / "grammar" / "trace.jsonl", ("cycle", "phase", "iteration", "log_likelihood")),
        corpus,
        results,
        {name: rows for name in names if (rows := _lines(path / "models" / name / "metrics.jsonl", ("step",)))},
        {name: table for name in names if (table := _scores(path / "scores" / f"{name}.parquet")) is not None},
        of_models("tokenisation", {"marginal", "bound", "documents", "left_out", "records", "gaps"}, told=True),
        tendencies=_checked(path / "tendencies" / "tendencies.json", TENDENCIES, told=True)
        if asked.get("tendencies")
        else None,
        pplu=of_models("pplu", {"model", "objective", "records"}),
        pairs=_pairs(path / "pairs", names) if asked.get("pairs") else None,
        dynamics=of_models("dynamics", DYNAMICS),
        probing=of_models("probing", {"model", "targets"}, key="probe"),
        unscored=[row for row in everyone if row["relative_ppl"] is None],
        divergence=of_models("divergence", {"model", "objective", "contexts", "excluded", "records"}),
        naturalness=_checked(path / "naturalness" / "naturalness.json", {"reference", "sentences", "records"})
        if asked.get("naturalness")
        else None,
    )


def some_sentences(corpus: Corpus, split: str, most: int = SENTENCES) -> list[list[str]]:
    """The first sentences of a split, without reading shards that are not needed."""
    kept, found = [], 0
    for shard in corpus.record["shards"]:
        if shard["split"] == split and found < most:
            kept.append(shard)
            found += shard["sentences"]
    return replace(corpus, record={**corpus.record, "shards": kept}).sentences(split)[:most]


def _present(path: Path) -> Path:
    if not path.is_file():
        raise InputError("the run is incomplete, this file is missing; run the experiment again", path)
    return path


def _json(path: Path) -> Any:
    try:
        return json.loads(_present(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("this file is damaged, it cannot be read as JSON; run the experiment again", path) from error


def _mapping(value: Any, path: Path) -> Record:
    if not isinstance(value, dict):
        raise InputError("this file is damaged, expecting a JSON object; run the experiment again", path)
    return value


def _optional(path: Path) -> Record | None:
    return _mapping(_json(path), path) if path.is_file() else None


def _results(path: Path) -> Sequence[Record]:
    rows: list[Record] = _json(path)
    needed = {"model", "objective", "tokens", "signature", *MEASURES}
    if not isinstance(rows, list) or not all(isinstance(row, dict) and needed <= row.keys() for row in rows):
        raise InputError(f"the results are damaged, expecting records with {', '.join(sorted(needed))}", path)
    return [{**dict.fromkeys(OPTIONAL), **row} for row in rows]


def _checked(path: Path, needed: set[str], *, told: bool = False) -> Record | None:
    """A record that must have some entries, None where the file is absent; ``told``: the message names them."""
    found = _optional(path)
    if found is not None and not needed <= found.keys():
        expecting = f", expecting {', '.join(sorted(needed))}" if told else ""
        raise InputError(f"this file is damaged{expecting}; run the experiment again", path)
    return found


def _of_models(folder: Path, names: Sequence[str], needed: set[str], *, told: bool = False) -> dict[str, Record]:
    """The records of the models that have one."""
    read = {name: _checked(folder / f"{name}.json", needed, told=told) for name in names}
    return {name: found for name, found in read.items() if found is not None}


def _pairs(folder: Path, names: Sequence[str]) -> Record | None:
    """Minimal pairs, and the models that were asked about them."""
    summary = _checked(folder / "summary.json", {"notes", "examples", "pairs", "oracle"}, told=True)
    if summary is None:
        return None
    models = _of_models(folder / "models", names, {"objective", "left_out", "records"}, told=True)
    return {"summary": summary, "models": models}


def _lines(path: Path, needed: tuple[str, ...]) -> list[Record]:
    """Records of a ``.jsonl`` file, none where it is absent."""
    if not path.is_file():
        return []
    rows: list[Record] = []
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            row = json.loads(line)
            if not isinstance(row, dict) or not set(needed) <= row.keys():
                raise InputError(f"this line is damaged, expecting a record with {', '.join(needed)}", path, number)
            rows.append(row)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("this file is damaged, it cannot be read as lines of JSON", path, len(rows) + 1) from error
    return rows


def _scores(path: Path) -> dict[str, np.ndarray] | None:
    import pyarrow as pa

    if not path.is_file():
        return None
    try:
        return read_token_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError("this table of scores is damaged; run the experiment again", path) from error
