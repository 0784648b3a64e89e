"""Stages: sentences of the treebank as text; models trained on it; scores on real and sampled text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import override

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.treebank_baseline.evaluator import TreebankBaselineSettings
from truesource.evaluation.treebank_baseline.measure import Kind, TextScores, score_on_text
from truesource.evaluation.treebank_baseline.report import EQUAL, REAL, SAMPLED, Trained
from truesource.generator.language_model import preset_frame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import digest_file, digest_json
from truesource.grammar.support.records import read_record, read_records
from truesource.grammar.treebank import Treebank
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.training_record import MetricsRow, read_finished
from truesource.run.cells import TrainingCells
from truesource.run.models.stage import resolved
from truesource.run.stage import Stage, of_model, of_settings
from truesource.run.treebank.text import HELD_OUT, TreebankText, write_text_folder

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.pcfg import PCFG
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry

TEXT = ("treebank_baseline/text/*.txt", "treebank_baseline/text/text.json")
MODELS = tuple(
    f"treebank_baseline/models/{{}}/{pattern}"
    for pattern in ("trained.json", "*/*.json", "*/metrics.jsonl", "**/model.safetensors", "*/*.npz")
)
REMEDY = "run the experiment again"


@dataclass(frozen=True)
class TextToMeasure:
    """A text to score, with its length condition."""

    sentences: Sequence[Sequence[str]]
    lengths: LengthRange | None
    excluded: Exclusion | None = None


def measure(
    models: Mapping[str, LanguageModel],
    pcfg: PCFG | None,
    texts: Mapping[Kind, TextToMeasure],
    *,
    frame: Literal["default", "paper"],
    seed: int,
) -> dict[Kind, TextScores]:
    """Score all models on each text; see `truesource.evaluation.treebank_baseline.measure.score_on_text`."""
    objective = next(iter(models.values())).objective
    return {
        kind: score_on_text(
            models,
            Setting(
                pcfg,
                text.sentences,
                lengths=text.lengths,
                frame=preset_frame(frame, objective),
                seed=seed,
                excluded=text.excluded,
            ),
            kind=kind,
        )
        for kind, text in texts.items()
    }


def records_of(text_scores: Mapping[Kind, TextScores]) -> list[Mapping[str, object]]:
    """Return the records of all texts."""
    return [record for scores in text_scores.values() for record in scores.records]


def stages(config: RunConfig) -> list[Stage]:
    """Return the stages of the text, of retraining each model of the run, and of its scores."""
    models = [model for model in config.entries if not model.loaded]
    trained = [Stage.of_model("treebank_train", model, MODELS, train_inputs, make_model) for model in models]
    files = ("treebank_baseline/{}.json",)
    scored = [Stage.of_model("treebank_baseline", model, files, inputs, make) for model in models]
    return [Stage("treebank_baseline", TEXT, text_inputs, make_text), *trained, *scored]


def text_inputs(run: RunFolder) -> Any:
    """Return the inputs: share of dev, disjointness, seed, treebank, lengths."""
    lengths = _lengths(run)
    return {
        "settings": run.settings(TreebankBaselineSettings).model_dump(mode="json", include={"dev", "disjoint"}),
        "seed": run.config.seed,
        "treebank": run.outputs["treebank"],
        "lengths": None if lengths is None else str(lengths),
    }


def make_text(run: RunFolder) -> str:
    """Write ``treebank_baseline/text/``, like `truesource split`."""
    settings = run.settings(TreebankBaselineSettings)
    held_out = run.folder / "treebank" / "held_out.mrg.gz"
    if not held_out.is_file():
        raise InputError(
            "evaluation.treebank_baseline needs held-out trees, but the treebank is too small for the share"
            " treebank.held_out; raise it, or name held_out_files"
        )
    text = write_text_folder(
        run.folder / "treebank_baseline" / "text",
        Treebank.read(run.folder / "treebank" / "treebank.mrg.gz", None),
        Treebank.read(held_out, None),
        lengths=_lengths(run),
        dev=settings.dev,
        seed=run.config.seed,
        disjoint=settings.disjoint,
    )
    return text.digest


def _lengths(run: RunFolder) -> LengthRange | None:
    """Return the lengths of the corpus; for all lengths, the lengths that every model reads."""
    if run.config.corpus.lengths is not None:
        return run.config.corpus.lengths
    shapes = [resolved(run, model)[0] for model in run.config.entries if not model.loaded]
    longest = [shape.longest for shape in shapes if shape.longest is not None]
    return LengthRange(1, min(longest) - 2) if longest else None


def train_inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs: settings, seed, text, corpus, and the original model, for tokeniser and duration."""
    shape, training = resolved(run, model)
    return {
        **of_settings(run, TreebankBaselineSettings),
        "seed": run.seed_of(model),
        "text": run.outputs["treebank_baseline"],
        "corpus": run.outputs["corpus"],
        "model": run.model_digest(model),
        "shape": shape.model_dump(mode="json"),
        "training": None if training is None else training.model_dump(mode="json"),
    }


def make_model(run: RunFolder, model: ModelEntry) -> str:
    """Write ``treebank_baseline/models/<name>/``."""
    _require_text(run)
    return train_again(run, model)


def _require_text(run: RunFolder) -> None:
    note = run.unmeasured.get("treebank_baseline")
    if note is not None:
        raise NothingToMeasureError(note["reason"], note["code"])


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs: split, sentences, frame, seed, corpus, grammar, text, and the models."""
    evaluation = run.config.evaluation
    return {
        **of_model(run, model),
        "sentences": evaluation.sentences,
        "frame": evaluation.frame,
        "text": run.outputs["treebank_baseline"],
        "trained": run.outputs[f"treebank_train:{model.name}"],
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``treebank_baseline/<name>.json``."""
    from truesource.lmtrain.models import load_trained

    evaluation, place = run.config.evaluation, folder_of(run, model)
    trained = read_record(place / "trained.json", dict[str, Trained], remedy=REMEDY)
    models = {name: load_trained(place / about["folder"], resolved(run, model)[0]) for name, about in trained.items()}
    text = TreebankText.load(run.folder / "treebank_baseline" / "text")
    lengths = run.corpus.lengths
    sampled = run.corpus.sentences(evaluation.split)[: evaluation.sentences]
    text_scores = measure(
        {**models, SAMPLED: run.model(model)},
        run.pcfg,
        {
            "real": TextToMeasure(text.sentences(HELD_OUT), lengths),
            "sampled": TextToMeasure(sampled, lengths, run.excluded),
        },
        frame=evaluation.frame,
        seed=run.config.seed,
    )
    record = {
        "model": model.name,
        "objective": next(iter(text_scores.values())).objective,
        "trained": trained,
        "texts": {kind: scores.counts() for kind, scores in text_scores.items()},
        "records": records_of(text_scores),
    }
    write_json(run.folder / "treebank_baseline" / f"{model.name}.json", record)
    return digest_json(record)


def budget(
    training: TrainConfig, *, steps: int, tokens: int, available: int, max_epochs: float, snapshots: bool
) -> TrainConfig:
    """Return the same training on a smaller text: as many optimiser steps, up to a number of passes.

    This is the rule of Jumelet and Zuidema (2023, section 5.4) for smaller corpora.

    Args:
        training: settings on the larger text.
        steps: number of optimiser steps on the larger text.
        tokens: tokens in these steps, including sentence ends.
        available: tokens of the smaller text, including sentence ends.
        max_epochs: maximum number of passes over the smaller text.
        snapshots: save the model at every step at which the loss on the dev split is measured.
    """
    passes = tokens / available
    duration = (
        {"max_steps": None, "epochs": max_epochs} if passes > max_epochs else {"max_steps": steps, "epochs": None}
    )
    saving = {"snapshots": "linear", "snapshot_every": training.eval_every} if snapshots else {"snapshots": "none"}
    return TrainConfig(**{**training.model_dump(), **duration, **saving})


@dataclass(frozen=True)
class TextInMemory:
    """A corpus of sentences in memory, for training."""

    train: list[list[str]]
    dev: list[list[str]]

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return ("train", "dev") if self.dev else ("train",)

    def sentences(self, split: str) -> list[list[str]]:
        """The words of every sentence of a split."""
        return self.train if split == "train" else self.dev


def equal_part(sampled: list[list[str]], real: TextInMemory) -> TextInMemory | None:
    """Return the first sampled sentences, with the size of the real train split, and a dev split.

    None if the sampled text is not larger.
    """
    size_of_train = sum(len(sentence) + 1 for sentence in real.train)
    sizes = accumulate(len(sentence) + 1 for sentence in sampled)
    n = next((i for i, size in enumerate(sizes, start=1) if size >= size_of_train), len(sampled))
    rest = sampled[n : n + len(real.dev)]
    if n == len(sampled) or len(rest) < len(real.dev):
        return None
    return TextInMemory(sampled[:n], rest)


def folder_of(run: RunFolder, entry: ModelEntry) -> Path:
    """Return the folder of the further models of an entry."""
    return run.folder / "treebank_baseline" / "models" / entry.name


@dataclass(frozen=True)
class Twin:
    """A model of the run, retrained on another text."""

    text: str  #: name of the text, and of the folder
    source: TextInMemory
    shape: ModelConfig
    training: TrainConfig | None
    seed: int

    @property
    def id(self) -> str:
        """Name of its folder."""
        return self.text

    def __str__(self) -> str:
        return f"{self.shape.label} on {self.text}"


class Twins(TrainingCells[Twin]):
    """The twins of one model of a run; rerunning the stage retrains them."""

    models = "."

    def __init__(self, run: RunFolder, entry: ModelEntry) -> None:
        from truesource.lmtrain.trained_models import shared_tokenizer

        self.folder, self._run, self._entry = folder_of(run, entry), run, entry
        self._settings = run.settings(TreebankBaselineSettings)
        self._tokenizer = shared_tokenizer(run.model_folder(entry), resolved(run, entry)[0])
        self.records: dict[str, Trained] = {}

    def cells(self) -> list[Twin]:
        """Return one training on the treebank and, if there is enough sampled text, one on the same amount of it."""
        text = TreebankText.load(self._run.folder / "treebank_baseline" / "text")
        real = TextInMemory(text.sentences("train"), text.sentences("dev") if "dev" in text.splits else [])
        sources = {REAL: real}
        if self._settings.equal_text and (part := equal_part(self._run.corpus.sentences("train"), real)) is not None:
            sources[EQUAL] = part
        shape, seed = resolved(self._run, self._entry)[0], self._run.seed_of(self._entry)
        return [Twin(name, source, shape, self._training(source), seed) for name, source in sources.items()]

    def _training(self, source: TextInMemory) -> TrainConfig | None:
        from truesource.lmtrain.subword_vocabulary import encoder_of

        training, folder = resolved(self._run, self._entry)[1], self._run.model_folder(self._entry)
        if training is None:
            return None
        return budget(
            training,
            steps=read_finished(folder).steps or 1,
            tokens=list(metrics(folder))[-1].get("tokens") or 1,
            available=sum(len(row) + 1 for row in encoder_of(self._tokenizer).encode(source.train)),
            max_epochs=self._settings.max_epochs,
            snapshots=self._settings.stopping == "best" and bool(source.dev),
        )

    @override
    def is_finished(self, cell: Twin) -> bool:
        return False

    @override
    def results(self, cell: Twin) -> tuple[()]:
        return ()

    @override
    def train(self, cell: Twin) -> None:
        from truesource.lmtrain.training import train

        make = partial(train, tokenizer=self._tokenizer, weights=self._run.weights_of(self._entry), force=True)
        make(cell.source, cell.shape, cell.training, self.place(cell), seed=cell.seed)

    @override
    def score(self, cell: Twin) -> None:
        """Select the checkpoint to score, and remove the other snapshots."""
        from truesource.lmtrain.snapshots import FOLDER

        place = self.place(cell)
        rows = list(metrics(place))
        step, folder = best_state(place, rows)
        for path in set((place / FOLDER).glob("*")) - {folder}:  # one snapshot for each measured loss
            shutil.rmtree(path)
        self.records[cell.text] = {
            "sentences": len(cell.source.train),
            "words": sum(map(len, cell.source.train)),
            "steps": rows[-1]["step"],
            "epochs": rows[-1].get("epoch"),
            "scored_step": step,
            "folder": folder.relative_to(self.folder).as_posix(),
        }


def train_again(run: RunFolder, entry: ModelEntry) -> str:
    """Train the twins of an entry, and write ``trained.json``; return the digest of all of it."""
    twins = Twins(run, entry)
    for cell in twins.cells():
        twins.make(cell, wait=True)
    write_json(twins.folder / "trained.json", twins.records)
    files = [path for path in sorted(twins.folder.rglob("*")) if path.suffix in (".safetensors", ".npz")]
    digests = {path.relative_to(twins.folder).as_posix(): digest_file(path) for path in files}
    return digest_json([twins.records, digests])


def metrics(folder: Path) -> Iterator[MetricsRow]:
    """Yield the lines of ``metrics.jsonl`` of a model."""
    return (row for _, row in read_records(folder / "metrics.jsonl", MetricsRow, remedy=REMEDY))


def best_state(folder: Path, rows: list[MetricsRow]) -> tuple[int, Path]:
    """Return step and folder of the snapshot with the lowest dev loss; without snapshots, the finished model."""
    from truesource.lmtrain.snapshots import snapshots

    saved = dict(snapshots(folder))
    losses = {row["step"]: loss for row in rows if (loss := row.get("dev_loss")) is not None and row["step"] in saved}
    if not losses:
        return rows[-1]["step"], folder
    step = min(losses, key=lambda step: (losses[step], step))
    return step, saved[step]
