"""The cells of a sweep: models that differ in corpus size, shape and seed, trained and scored against one truth."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.exclusion import disjoint_part
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import digest_sentences
from truesource.evaluation.core.text import Text
from truesource.evaluation.core.transformed import require_tokens, require_whole, transform_parts
from truesource.evaluation.core.windows import window_lines
from truesource.evaluation.measures.bootstrap import perplexities
from truesource.evaluation.measures.paired import Paired
from truesource.generator.abilities import require
from truesource.grammar.support.atomic_files import all_at_once, atomic_path, write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file, digest_json
from truesource.run.cells import WEIGHTS, TrainingCells, is_trained
from truesource.studies.scaling.plan import Data, PlannedCell
from truesource.studies.scaling.results import MEASURES, Point, read_scores

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus
    from truesource.grammar.truth import Truth
    from truesource.studies.scaling.config import SweepConfig


class SweepCells(TrainingCells[PlannedCell]):
    """The cells of a sweep, and their snapshots, scored against one truth, which is computed once."""

    def __init__(self, folder: Path, config: SweepConfig, source: Truth, corpus: Corpus, data: Data) -> None:
        """Take the evaluation sentences.

        Raises:
            InputError: the corpus has no such split, or too few sentences in it; or its text is transformed, and the
                frame leaves out positions.
        """
        if config.evaluation.split not in corpus.splits:
            raise InputError(
                f"the corpus has no split {config.evaluation.split!r}; it has {', '.join(corpus.splits)}", corpus.path
            )
        number, text = config.evaluation.sentences, Text.of(corpus, config.evaluation.split)
        if number is not None and number > len(text.sentences):
            raise InputError(
                f"evaluation.sentences asks for {number:,} sentences, but the split {config.evaluation.split} has"
                f" {len(text.sentences):,}",
                corpus.path,
            )
        self.folder, self._config, self._data = folder, config, data
        setting = Setting.of(text.first(number), source, frame=config.evaluation.frame, seed=config.seed)
        self._setting, truth, transform = setting, setting.known, setting.transform
        objective = config.base.resolve({})[0].objective
        require_whole(transform, objective, self._setting.frame_of(objective))
        if objective == "masked":
            require(truth, "masked", "a sweep of masked models")
        if config.evaluation.lines:
            require(truth, "windows", "evaluation.lines")
            require_tokens(transform, "causal", "evaluation.lines")
        #: of all that decides the numbers but the weights
        self.digest = digest_json(
            {
                "version": version("truesource"),
                "sentences": digest_sentences(self._setting.sentences),
                "grammar": source.digest,
                "lengths": None if corpus.lengths is None else str(corpus.lengths),
                **disjoint_part(setting.excluded),
                **transform_parts(truth, transform, objective),
                "frame": config.evaluation.frame,
                "seed": config.seed,
                "tokenizer": data.tokenizer_digest,
            }
        )

    def lines(self) -> list[dict[str, object]]:
        """Return records of the best predictors that see 0, 1, 2, ... words, with their perplexity over the truth's."""
        lines, bound = window_lines(self._setting, self._config.evaluation.lines or 0)
        return [{**line.as_record(), "relative_ppl": line.value / bound} for line in lines]

    @override
    def is_finished(self, cell: PlannedCell) -> bool:
        with suppress(InputError):  # making the cell raises it again
            return is_trained(self.place(cell), cell.request) and self._is_scored(cell)
        return False

    def _is_scored(self, cell: PlannedCell) -> bool:
        """Return True if the scores of these weights, on these sentences, are in the folder of the sweep.

        Raises:
            InputError: they are damaged.
        """
        scores = read_scores(self.results(cell)[1])
        if scores is None or scores["evaluation"] != self.digest:
            return False
        return bool(scores["weights"] == digest_file(self.place(cell) / WEIGHTS))

    @override
    def results(self, cell: PlannedCell) -> tuple[Path, Path]:
        record = self.folder / "scores" / f"{cell.id}.json"
        return record.with_suffix(".npz"), record

    @override
    def train(self, cell: PlannedCell) -> None:
        from truesource.lmtrain.training import train

        place, data = self.place(cell), self._data
        if not is_trained(place, cell.request):
            of_cell = data.of(cell)
            train(of_cell, cell.model, cell.training, place, seed=cell.seed, tokenizer=data.tokenizer, force=True)

    @override
    def score(self, cell: PlannedCell) -> None:
        from truesource.lmtrain.flops import training_cost
        from truesource.lmtrain.models import load_trained
        from truesource.lmtrain.snapshots import snapshots

        if self._is_scored(cell):
            return
        model_folder = self.place(cell)
        numbers, target = self.results(cell)
        weights = digest_file(model_folder / WEIGHTS)
        train = self._data.of(cell).train
        cost = training_cost(cell.model, cell.training, train, self._data.tokenizer, seed=cell.seed)
        steps = [*((step, path) for step, path in snapshots(model_folder) if step < cost.steps)]
        finished = score_both(load_trained(model_folder, cell.model), self._setting)
        earlier = [(step, score_both(load_trained(path, cell.model), self._setting)) for step, path in steps]
        measured = perplexities(finished.paired, self._config.seed)
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
            "parts": dict(finished.parts),
            "curve": [_point(step, cost.flops_per_step * step, both.paired) for step, both in earlier],
        }
        with all_at_once([numbers, target]):  # older numbers never remain with a newer record, whatever is killed
            with atomic_path(numbers) as temporary, temporary.open("wb") as stream:
                np.savez_compressed(stream, sums=finished.paired.table())
            write_json(target, record)


def _point(step: int, flops: int, paired: Paired) -> Point:
    return {"step": step, "flops": flops, "kl": float(np.mean(paired.oracle - paired.model))}
