"""Trains a model of a run once more: on the treebank's sentences, and on as much sampled text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.chain.models.stage import resolved
from truesource.chain.treebank.text import TreebankText
from truesource.evaluators.treebank_baseline.budget import budget
from truesource.evaluators.treebank_baseline.records import EQUAL, REAL, Trained
from truesource.evaluators.treebank_baseline.settings import TreebankBaselineSettings
from truesource.grammar.support.files import digest_file, digest_json, write_json
from truesource.grammar.support.records import read_records
from truesource.lmtrain.training_record import MetricsRow

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.folder import RunFolder

REMEDY = "run the experiment again"


@dataclass(frozen=True)
class TextInMemory:
    """Sentences as a corpus that a model is trained on."""

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
    """The first sentences of sampled text, with as many words and ends as the real train split, and a dev split.

    None where the sampled text has no more than that.
    """
    wanted = sum(len(sentence) + 1 for sentence in real.train)
    sizes = accumulate(len(sentence) + 1 for sentence in sampled)
    n = next((i for i, size in enumerate(sizes, start=1) if size >= wanted), len(sampled))
    rest = sampled[n : n + len(real.dev)]
    if n == len(sampled) or len(rest) < len(real.dev):
        return None
    return TextInMemory(sampled[:n], rest)


def folder_of(run: RunFolder, entry: ModelEntry) -> Path:
    """Where the further models of an entry stand."""
    return run.folder / "treebank_baseline" / "models" / entry.name


def train_again(run: RunFolder, entry: ModelEntry) -> str:
    """Train the further models of an entry, and write ``trained.json``; the digest of all of it."""
    from truesource.lmtrain.trained_models import shared_tokenizer

    settings = run.settings(TreebankBaselineSettings)
    text = TreebankText.load(run.folder / "treebank_baseline" / "text")
    real = TextInMemory(text.sentences("train"), text.sentences("dev") if "dev" in text.splits else [])
    sources = {REAL: real}
    if settings.equal_text and (part := equal_part(run.corpus.sentences("train"), real)) is not None:
        sources[EQUAL] = part
    shared = shared_tokenizer(run.model_folder(entry), resolved(run, entry)[0])
    place = folder_of(run, entry)
    made: dict[str, Trained] = {}
    for name, source in sources.items():
        made[name] = _train(run, entry, source, place / name, shared)
    write_json(place / "trained.json", made)
    files = [path for path in sorted(place.rglob("*")) if path.suffix in (".safetensors", ".npz")]
    return digest_json([made, {path.relative_to(place).as_posix(): digest_file(path) for path in files}])


def _train(run: RunFolder, entry: ModelEntry, source: TextInMemory, out: Path, shared: Any) -> Trained:
    """Train one; what it came to."""
    from truesource.lmtrain.snapshots import FOLDER
    from truesource.lmtrain.subwords import encoder_of
    from truesource.lmtrain.training import train
    from truesource.lmtrain.training_record import read_finished

    settings = run.settings(TreebankBaselineSettings)
    shape, training = resolved(run, entry)
    if training is not None:
        earlier = read_finished(run.model_folder(entry))
        seen = list(metrics(run.model_folder(entry)))[-1]
        available = sum(len(row) + 1 for row in encoder_of(shared).encode(source.train))
        training = budget(
            training,
            steps=earlier.steps or 1,
            tokens=seen.get("tokens") or 1,
            available=available,
            max_epochs=settings.max_epochs,
            snapshots=settings.stopping == "best" and bool(source.dev),
        )
    train(source, shape, training, out, seed=run.seed_of(entry), tokenizer=shared, force=True)
    rows = list(metrics(out))
    step, folder = best_state(out, rows)
    for path in set((out / FOLDER).glob("*")) - {folder}:  # a snapshot each time the loss was measured
        shutil.rmtree(path)
    return {
        "sentences": len(source.train),
        "words": sum(map(len, source.train)),
        "steps": rows[-1]["step"],
        "epochs": rows[-1].get("epoch"),
        "scored_step": step,
        "folder": folder.relative_to(out.parent).as_posix(),
    }


def metrics(folder: Path) -> Iterator[MetricsRow]:
    """The lines of ``metrics.jsonl`` of a model."""
    return (row for _, row in read_records(folder / "metrics.jsonl", MetricsRow, remedy=REMEDY))


def best_state(folder: Path, rows: list[MetricsRow]) -> tuple[int, Path]:
    """The step and the folder of the snapshot of the lowest dev loss; without snapshots, the finished model."""
    from truesource.lmtrain.snapshots import snapshots

    kept = dict(snapshots(folder))
    losses = {row["step"]: loss for row in rows if (loss := row.get("dev_loss")) is not None and row["step"] in kept}
    if not losses:
        return rows[-1]["step"], folder
    step = min(losses, key=lambda step: (losses[step], step))
    return step, kept[step]
