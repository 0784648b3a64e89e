"""The cells of a sweep: what each is trained on and with, and a digest of all that decides its weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from truesource.generator.columns import CodedSentences, Rows
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.model_registry import with_code
from truesource.lmtrain.training_request import TrainingRequest
from truesource.run.cells import cell_id
from truesource.studies.scaling.config import SweepConfig, require_sentences

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from truesource.generator.corpus import Corpus
    from truesource.lmtrain.config import ModelConfig, TrainConfig


@dataclass(frozen=True)
class FirstSentences:
    """The first sentences of a train split, and the dev split, for `truesource.lmtrain.training.train`."""

    train: CodedSentences
    dev: CodedSentences
    digest: str  #: of the train sentences

    def coded(self, split: str) -> CodedSentences:
        """Return a split."""
        return self.train if split == "train" else self.dev

    def sentences(self, split: str) -> CodedSentences:
        """Return the coded sentences of a split."""
        return self.coded(split)


@dataclass(frozen=True)
class PlannedCell:
    """One model to train and to evaluate."""

    shape: str  #: name of its shape
    sentences: int
    seed: int
    model: ModelConfig
    training: TrainConfig
    data_digest: str
    tokenizer_digest: str

    @property
    def request(self) -> dict[str, object]:
        """All that decides its weights, as ``training.json`` has it."""
        return TrainingRequest(
            model=self.model,
            training=self.training,
            seed=self.seed,
            corpus_digest=self.data_digest,
            tokenizer_digest=self.tokenizer_digest,
        ).as_record()

    @property
    def id(self) -> str:
        """Name of its files; other settings or data give another."""
        return cell_id(f"{self.model.label}-n{self.sentences}", self.seed, self.request)

    def __str__(self) -> str:
        return f"{self.shape}, {self.sentences:,} sentences, seed {self.seed}"


def first_sentences(sentences: CodedSentences, n: int) -> CodedSentences:
    """Return the first n of some sentences, words numbered by first appearance."""
    rows = sentences.rows
    flat = rows.flat[: rows.offsets[n]]
    used, first, renumbered = np.unique(flat, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    words = [sentences.words[i] for i in used[order].tolist()]
    return CodedSentences(words, Rows(place[renumbered], sentences.lengths[:n]))


def digest_coded(sentences: CodedSentences) -> str:
    """Return the SHA-256 of sentences whose words are numbered by first appearance, hexadecimal."""
    sha = hashlib.sha256("\n".join(sentences.words).encode())
    sha.update(sentences.rows.flat.astype("<i4").tobytes())
    sha.update(sentences.rows.offsets.astype("<i8").tobytes())
    return sha.hexdigest()


class Data:
    """The data that the cells of a sweep are made from: the train sentences and the one tokeniser."""

    def __init__(self, config: SweepConfig, corpus: Corpus, base: Path | None = None) -> None:
        """Read the corpus and make the tokeniser; relative files of custom code start from ``base``.

        Raises:
            InputError: the corpus lacks a split or sentences, or has words that no tokeniser can keep.
        """
        from truesource.lmtrain.subwords import make_tokenizer
        from truesource.lmtrain.tokenizer import digest_tokenizer

        self.config, self._base = config, base
        train = _split(corpus, "train")
        try:
            require_sentences(config, len(train))
        except ValueError as error:
            raise InputError(str(error), corpus.path) from error
        self._train = train
        self._dev = corpus.coded("dev") if "dev" in corpus.splits else CodedSentences.of([])
        shape = config.shapes()[0][1]
        basis = first_sentences(train, config.vocabulary_sentences or max(config.axes.sentences))
        self.tokenizer: PreTrainedTokenizerFast = make_tokenizer(shape, basis, shape.objective)
        self.tokenizer_digest = digest_tokenizer(self.tokenizer)
        self._digests = {n: digest_coded(first_sentences(train, n)) for n in config.axes.sentences}

    def of(self, cell: PlannedCell) -> FirstSentences:
        """Return the data of a cell."""
        return FirstSentences(first_sentences(self._train, cell.sentences), self._dev, cell.data_digest)

    def cells(self) -> list[PlannedCell]:
        """Return all cells: models by corpus sizes by seeds."""
        return [
            PlannedCell(
                shape=name,
                sentences=n,
                seed=seed,
                model=with_code(shape, self._base),
                training=self.config.base.resolve(change)[1],
                data_digest=self._digests[n],
                tokenizer_digest=self.tokenizer_digest,
            )
            for name, shape, change in self.config.shapes()
            for n in self.config.axes.sentences
            for seed in self.config.axes.seeds
        ]


def _split(corpus: Corpus, name: str) -> CodedSentences:
    if name not in corpus.splits:
        raise InputError(f"the corpus has no split {name!r}; it has {', '.join(corpus.splits)}", corpus.path)
    return corpus.coded(name)
