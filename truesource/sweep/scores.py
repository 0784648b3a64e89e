"""What each cell costs and how far it is from the truth, kept in ``scores/`` of a sweep."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.comparison import BothScored, oracle_for, score_both
from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.signature import SignatureKey, digest_sentences
from truesource.evaluation.core.transformed import require_whole, text_grammar, transform_parts
from truesource.evaluation.measures.bootstrap import perplexities
from truesource.evaluation.measures.paired import Paired
from truesource.generator.language_model import preset_frame
from truesource.grammar.support.archives import ArrayKind, read_arrays
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import atomic_path, digest_file, digest_json, remove_leftovers, write_json
from truesource.grammar.support.records import STRICT, Count, FileName, read_record
from truesource.sweep.plan import Data, PlannedCell, cell_folder

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus
    from truesource.generator.language_model import TokenScores
    from truesource.grammar.pcfg import PCFG
    from truesource.sweep.config import SweepConfig

MEASURES = ("ppl", "bound", "relative_ppl", "kl")
_WHAT = "the file of the scores of this cell"


@with_config(STRICT)
class IntervalRecord(TypedDict):
    """An `truesource.evaluation.measures.bootstrap.Interval`."""

    value: float
    low: float | None
    high: float | None


@with_config(STRICT)
class Measures(TypedDict):
    """The measures of a cell."""

    ppl: IntervalRecord
    bound: IntervalRecord
    relative_ppl: IntervalRecord
    kl: IntervalRecord


@with_config(STRICT)
class ParametersRecord(TypedDict):
    """Counts of parameters."""

    total: Count
    without_embeddings: Count


@with_config(STRICT)
class CostRecord(TypedDict):
    """What training took, see `truesource.lmtrain.flops`."""

    parameters: ParametersRecord
    tokens: Count
    epochs: float
    steps: Count
    flops: Annotated[int, Field(ge=0)]
    rule: Annotated[float, Field(ge=0.0)]


@with_config(STRICT)
class Point(TypedDict):
    """A snapshot on the curve of a cell."""

    step: Count
    flops: Annotated[int, Field(ge=0)]
    kl: float


@with_config(STRICT)
class CellRecord(TypedDict):
    """``scores/<cell>.json``."""

    cell: FileName
    weights: str
    evaluation: str
    model: str
    sentences: Count
    seed: Count
    train_tokens: Count
    cost: CostRecord
    measures: Measures
    parts: dict[SignatureKey, Any]
    curve: list[Point]


class Scoring:
    """Scores cells and their snapshots against one truth, which is computed once."""

    def __init__(self, config: SweepConfig, pcfg: PCFG, corpus: Corpus, data: Data) -> None:
        """Take the evaluation sentences.

        Raises:
            InputError: the corpus has no such split, or too few sentences in it; or its text is transformed, and the
                frame leaves out positions.
        """
        if config.evaluation.split not in corpus.splits:
            raise InputError(
                f"the corpus has no split {config.evaluation.split!r}; it has {', '.join(corpus.splits)}", corpus.path
            )
        wanted, sentences = config.evaluation.sentences, corpus.sentences(config.evaluation.split)
        if wanted is not None and wanted > len(sentences):
            raise InputError(
                f"evaluation.sentences asks for {wanted:,} sentences, but the split {config.evaluation.split} has"
                f" {len(sentences):,}",
                corpus.path,
            )
        self._config, self._data = config, data
        self._pcfg, self._transform = text_grammar(pcfg, corpus.transform)
        objective = config.base.resolve({})[0].objective
        require_whole(self._transform, objective, preset_frame(config.evaluation.frame, objective))
        self._sentences = sentences[:wanted]
        self._lengths = corpus.lengths
        self._excluded = Exclusion.of(corpus, config.evaluation.split, self._pcfg, corpus.lengths)
        self._truth: TokenScores | None = None
        #: of all that decides the numbers besides the weights
        self.digest = digest_json(
            {
                "version": version("truesource"),
                "sentences": digest_sentences(self._sentences),
                "grammar": pcfg.digest,
                "lengths": None if self._lengths is None else str(self._lengths),
                **disjoint_part(self._excluded),
                **transform_parts(self._pcfg, self._transform, objective),
                "frame": config.evaluation.frame,
                "seed": config.seed,
                "tokenizer": data.tokenizer_digest,
            }
        )

    def keep(self, folder: Path, cell: PlannedCell) -> None:
        """Write ``scores/<cell>.json`` and ``.npz``, unless those of these weights and sentences stand there."""
        from truesource.lmtrain.flops import training_cost
        from truesource.lmtrain.snapshots import snapshots
        from truesource.lmtrain.trained_models import load_trained

        model_folder = cell_folder(folder, cell.id)
        target = folder / "scores" / f"{cell.id}.json"
        for file in (target, target.with_suffix(".npz")):
            remove_leftovers(file)
        weights = digest_file(model_folder / "model.safetensors")
        known = read_scores(target)
        if known is not None and known["weights"] == weights and known["evaluation"] == self.digest:
            return
        train = self._data.of(cell).train
        cost = training_cost(cell.model, cell.training, train, self._data.tokenizer, seed=cell.seed)
        steps = [*((step, path) for step, path in snapshots(model_folder) if step < cost.steps)]
        found = self._score(load_trained(model_folder, cell.model))
        earlier = [(step, self._score(load_trained(path, cell.model))) for step, path in steps]
        measured = perplexities(found.paired, self._config.seed)
        record = {
            "cell": cell.id,
            "weights": weights,
            "evaluation": self.digest,
            "model": cell.shape,
            "sentences": cell.sentences,
            "seed": cell.seed,
            "train_tokens": int(train.lengths.sum()) + len(train),
            "cost": {**asdict(cost), "flops": cost.flops, "rule": cost.rule},
            "measures": {name: measured[name]._asdict() for name in MEASURES},
            "parts": dict(found.parts),
            "curve": [_point(step, cost.flops_per_step * step, both.paired) for step, both in earlier],
        }
        with atomic_path(target.with_suffix(".npz")) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(stream, sums=found.paired.table())
        write_json(target, record)  # last: where it is, the rest is

    def _score(self, model: Any) -> BothScored:
        frame = preset_frame(self._config.evaluation.frame, model.objective)
        if self._truth is None:
            oracle = oracle_for(model, self._pcfg, self._lengths, frame, self._excluded, self._transform)
            self._truth = oracle.score(self._sentences, frame)
        return score_both(
            model,
            self._pcfg,
            self._sentences,
            lengths=self._lengths,
            frame=frame,
            seed=self._config.seed,
            truth=self._truth,
            excluded=self._excluded,
            transform=self._transform,
        )


def _point(step: int, flops: int, paired: Paired) -> dict[str, Any]:
    return {"step": step, "flops": flops, "kl": float(np.mean(paired.oracle - paired.model))}


def read_scores(target: Path) -> dict[str, Any] | None:
    """The record of a cell; None where there is none.

    Raises:
        InputError: it is damaged.
    """
    if not target.is_file():
        return None
    return dict(read_record(target, CellRecord, what=_WHAT, remedy="delete it and it will be written again"))


def read_sums(target: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The sums per sentence beside a record, (3, N): `truesource.evaluation.measures.paired.Paired.table`.

    Raises:
        InputError: it is missing or damaged.
    """
    path = target.with_suffix(".npz")
    remedy = "delete it and its .json, and they will be written again"
    sums = read_arrays(path, {"sums": ArrayKind("f", (3, None))}, what=_WHAT, remedy=remedy)["sums"]
    if not np.isfinite(sums).all():
        raise InputError(f"{_WHAT} is damaged: it has a number that is not finite; {remedy}", path)
    return sums.astype(np.float64)
