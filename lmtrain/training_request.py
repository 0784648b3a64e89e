"""The request of a training: all that decides the weights of a model, as ``training.json`` begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from truesource.generator.columns import CodedSentences
from truesource.generator.corpus import Corpus
from truesource.generator.text_files import TextSplits
from truesource.grammar.support.call_arguments import as_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.processes import world_size
from truesource.lmtrain.training_record import weights_digest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class SentenceSource(Protocol):
    """The parts of a corpus that training reads.

    If it also has ``coded(split)``, which returns `CodedSentences`, that is read instead, without a Python object for
    each token.
    """

    def sentences(self, split: str) -> Sequence[Sequence[str]]:
        """Return the tokens of the sentences of a split."""


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """All that decides the weights of a model."""

    model: ModelConfig
    training: TrainConfig | None  #: None: the model counts
    seed: int
    corpus_digest: str  #: of the train and dev sentences
    processes: int = 1  #: number of processes that train together
    tokenizer_digest: str | None = None  #: of an existing tokeniser; None: it is made from the train split
    expected_digest: str | None = None  #: of expected tokens, trained on in place of the tokens that occurred
    weights_digest: str | None = None  #: of the weights that it starts from; None: random ones

    @classmethod
    def of(
        cls,
        corpus: object,
        model: ModelConfig,
        training: TrainConfig | None,
        *,
        seed: int,
        tokenizer: PreTrainedTokenizerFast | None = None,
        expected_digest: str | None = None,
        weights: Path | str | None = None,
        splits: Sequence[CodedSentences] | None = None,
    ) -> TrainingRequest:
        """Make the request of a call of `truesource.lmtrain.training.train`.

        Args:
            corpus: as for `train`, like the arguments below.
            model: with all its settings.
            training: duration, optimiser, batches.
            seed: of weights, batches, masks and dropout.
            tokenizer: existing tokeniser, if any.
            expected_digest: of expected tokens.
            weights: folder of a model.
            splits: train and dev sentences of the corpus; None: read here, if the corpus has no digest.

        Raises:
            InputError: the corpus has no train split, or there are no weights.
        """
        from truesource.lmtrain.tokenizer import digest_tokenizer

        recorded = getattr(corpus, "digest", None)
        text = recorded if isinstance(recorded, str) else digest_json([list(s) for s in splits or splits_of(corpus)])
        return cls(
            model=model,
            training=training,
            seed=seed,
            processes=world_size(),
            corpus_digest=text,
            tokenizer_digest=None if tokenizer is None else digest_tokenizer(tokenizer),
            expected_digest=expected_digest,
            weights_digest=None if weights is None else weights_digest(Path(weights)),
        )

    def as_record(self) -> dict[str, object]:
        """Return the request as ``training.json`` has it, without missing digests."""
        digests = ("tokenizer_digest", "expected_digest", "weights_digest")
        return {
            "model": self.model.model_dump(mode="json"),
            "training": None if self.training is None else self.training.model_dump(mode="json"),
            "seed": self.seed,
            "processes": self.processes,
            "corpus_digest": self.corpus_digest,
            **{key: digest for key in digests if (digest := getattr(self, key)) is not None},
        }


def splits_of(corpus: object) -> tuple[CodedSentences, CodedSentences]:
    """Return the train and dev sentences of a source, or of train sentences themselves; dev may be empty.

    Raises:
        InputError: the corpus has no train split.
    """
    read = getattr(corpus, "coded", None) or getattr(corpus, "sentences", None)
    if not callable(read):  # sentences, or a text with them
        return CodedSentences.of(corpus if read is None else read), CodedSentences.of([])  # type: ignore[arg-type]
    available = getattr(corpus, "splits", None)
    if available is not None and "train" not in available:
        raise InputError(f"the corpus has no train split; it has {', '.join(available) or 'none'}")
    dev = read("dev") if available is None or "dev" in available else []
    return CodedSentences.of(read("train")), CodedSentences.of(dev)


def text_source(corpus: Any) -> Any:
    """Return a source of splits: of the corpus folder or text file at a path; anything else unchanged.

    Raises:
        InputError: there is nothing at the path, or it cannot be read.
    """
    if not isinstance(corpus, str | PathLike):
        return corpus
    path = as_path(corpus, "a corpus or text file")
    if not path.exists():
        raise InputError("there is no such file or folder; pass sentences as a list", path, code="missing")
    return TextSplits({"train": path}) if path.is_file() else Corpus.load(path)
