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

Record = Mapping[str, Any]
PROVENANCE = ("truesource", "python", "platform", "cores", "seed", "command", "started", "finished", "packages")
STAGE = ("seconds", "finished", "skipped", "output")
MEASURES = ("ppl", "bound", "relative_ppl", "rho", "r2_pearson", "r2_identity")
OPTIONAL = (
    *(f"{name}_{end}" for name in (*MEASURES, "bound_unconditioned") for end in ("low", "high")),
    *("bound_unconditioned", "sentences", "excluded", "parameters", "training_seconds", "tokenizer"),
)
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
            InputError: it is damaged.
        """
        path = self.path / name
        if not path.is_file():
            return None
        text = path.read_text(encoding="utf-8")
        if not text.startswith("<svg") or not text.rstrip().endswith("</svg>"):
            raise InputError("this figure is damaged; run the experiment again", path)
        return text

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
        _tokenisation(path / "tokenisation", names) if config.get("evaluation", {}).get("tokenisation") else {},
        _tendencies(path / "tendencies" / "tendencies.json")
        if config.get("evaluation", {}).get("tendencies")
        else None,
        _pplu(path / "pplu", names) if config.get("evaluation", {}).get("pplu") else {},
        pairs=_pairs(path / "pairs", names) if config.get("evaluation", {}).get("pairs") else None,
        dynamics=_dynamics(path / "dynamics", names) if config.get("evaluation", {}).get("dynamics") else {},
        unscored=[row for row in everyone if row["relative_ppl"] is None],
        divergence=_divergence(path / "divergence", names) if config.get("evaluation", {}).get("divergence") else {},
        naturalness=_naturalness(path / "naturalness" / "naturalness.json")
        if config.get("evaluation", {}).get("naturalness")
        else None,
        probing=_probing(path / "probing", names) if config.get("evaluation", {}).get("probe") else {},
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


def _tokenisation(folder: Path, names: Sequence[str]) -> dict[str, Record]:
    """Sums over tokenisations of the models that have them."""
    found = {}
    for name in names:
        value = _optional(folder / f"{name}.json")
        if value is not None:
            needed = {"marginal", "bound", "documents", "left_out", "records", "gaps"}
            if not needed <= value.keys():
                raise InputError(
                    f"this file is damaged, expecting {', '.join(sorted(needed))}; run the experiment again",
                    folder / f"{name}.json",
                )
            found[name] = value
    return found


def _tendencies(path: Path) -> Record | None:
    """What sampled text looks like, where it was measured."""
    found = _optional(path)
    needed = {"against", "words", "collapsed", "samples", "notes", "records"}
    if found is not None and not needed <= found.keys():
        raise InputError(f"this file is damaged, expecting {', '.join(sorted(needed))}; run the experiment again", path)
    return found


def _pplu(folder: Path, names: Sequence[str]) -> dict[str, Record]:
    """Perplexities over those of word frequencies, of the models that have them."""
    found = {name: value for name in names if (value := _optional(folder / f"{name}.json")) is not None}
    for name, value in found.items():
        if not {"model", "objective", "records"} <= value.keys():
            raise InputError("this file is damaged; run the experiment again", folder / f"{name}.json")
    return found


def _pairs(folder: Path, names: Sequence[str]) -> Record | None:
    """Minimal pairs, and the models that were asked about them."""
    summary = _optional(folder / "summary.json")
    if summary is None:
        return None
    models = {name: _optional(folder / "models" / f"{name}.json") for name in names}
    found = {folder / "summary.json": (summary, {"notes", "examples", "pairs", "oracle"})}
    found |= {
        folder / "models" / f"{name}.json": (value, {"objective", "left_out", "records"})
        for name, value in models.items()
        if value is not None
    }
    for path, (value, needed) in found.items():
        if not needed <= value.keys():
            raise InputError(
                f"this file is damaged, expecting {', '.join(sorted(needed))}; run the experiment again", path
            )
    return {"summary": summary, "models": {name: value for name, value in models.items() if value is not None}}


def _divergence(folder: Path, names: Sequence[str]) -> dict[str, Record]:
    """Divergences of full distributions, of the models that have a list of words."""
    found = {name: value for name in names if (value := _optional(folder / f"{name}.json")) is not None}
    for name, value in found.items():
        if not {"model", "objective", "contexts", "excluded", "records"} <= value.keys():
            raise InputError("this file is damaged; run the experiment again", folder / f"{name}.json")
    return found


def _naturalness(path: Path) -> Record | None:
    """The corpus beside held-out trees, where they were compared."""
    found = _optional(path)
    if found is not None and not {"reference", "sentences", "records"} <= found.keys():
        raise InputError("this file is damaged; run the experiment again", path)
    return found


def _probing(folder: Path, names: Sequence[str]) -> dict[str, Record]:
    """What probes found, of the models that were probed."""
    found = {name: value for name in names if (value := _optional(folder / f"{name}.json")) is not None}
    for name, value in found.items():
        if not {"model", "targets"} <= value.keys():
            raise InputError("this file is damaged; run the experiment again", folder / f"{name}.json")
    return found


def _dynamics(folder: Path, names: Sequence[str]) -> dict[str, Record]:
    """Curves of the models that kept snapshots."""
    found = {}
    for name in names:
        value = _optional(folder / f"{name}.json")
        if value is not None:
            needed = {"model", "objective", "steps", "threshold", "contexts", "frame", "tags", "tokens", "excluded"}
            if not needed | {"signature", "curves", "findings"} <= value.keys():
                raise InputError("this file is damaged; run the experiment again", folder / f"{name}.json")
            found[name] = value
    return found


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
