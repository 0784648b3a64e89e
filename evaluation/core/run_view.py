"""A run as evaluators see it: the request of its configuration, and the records of finished measurements.

Evaluators do not import runs, so these are protocols: `truesource.run.config.RunConfig` and
`truesource.report.finished_run.FinishedRun` have these members and more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from truesource.grammar.support.settings import Settings

S = TypeVar("S", bound=Settings)


class ModelRequest(Protocol):
    """A requested model of a configuration; abilities of a model to be loaded are unknown, and True."""

    @property
    def name(self) -> str:
        """Name in the run."""

    @property
    def loaded(self) -> bool:
        """True if it is loaded instead of trained."""

    @property
    def is_network(self) -> bool:
        """True if it has layers."""

    @property
    def is_causal(self) -> bool:
        """True if it is a distribution over sentences."""

    @property
    def fills_gaps(self) -> bool:
        """True if it predicts words at any gaps."""

    @property
    def of_words(self) -> bool:
        """True if it predicts whole words."""

    @property
    def of_pieces(self) -> bool:
        """True if it is causal and reads pieces of words."""

    @property
    def keeps_snapshots(self) -> bool:
        """True if it saves snapshots during training."""


class EvaluationRequest(Protocol):
    """The key ``evaluation`` of a configuration."""

    @property
    def split(self) -> str:
        """Split of the corpus that models are compared on."""

    @property
    def frame(self) -> str:
        """Name of the preset of positions that count."""

    def of(self, kind: type[S]) -> S:
        """Return the settings of an evaluator that the configuration asks for."""


class CorpusRequest(Protocol):
    """The key ``corpus`` of a configuration."""

    @property
    def splits(self) -> Mapping[str, int]:
        """Sentences by split."""

    @property
    def trees(self) -> str:
        """Form of the trees: ``ids``, ``text`` or ``none``."""

    @property
    def transform(self) -> object | None:
        """Order of the words, if it differs from the order of the grammar."""


class TreebankRequest(Protocol):
    """The key ``treebank`` of a configuration."""

    @property
    def held_out(self) -> float:
        """Share of the trees that is held out."""

    @property
    def held_out_files(self) -> object | None:
        """Files of held-out trees; None if a share of the trees is held out."""


class RunRequest(Protocol):
    """A configuration."""

    @property
    def models(self) -> Sequence[ModelRequest]:
        """Models as the configuration lists them."""

    @property
    def entries(self) -> Sequence[ModelRequest]:
        """Models with a replicate for each seed."""

    @property
    def evaluation(self) -> EvaluationRequest:
        """Settings of what is measured."""

    @property
    def corpus(self) -> CorpusRequest:
        """The text that is sampled."""

    @property
    def treebank(self) -> TreebankRequest | None:
        """The trees that the grammar is induced from; None if the grammar is given."""


class MeasuredRun(Protocol):
    """A run whose measurements are finished."""

    @property
    def path(self) -> Path:
        """Folder of the run."""

    def record(self, name: str, model: type[Any]) -> Mapping[str, Any] | None:
        """Read the record in a file of the run; None if it is absent.

        Raises:
            InputError: the record is damaged.
        """

    def of_models(self, folder: str, model: type[Any] = dict[str, object]) -> dict[str, Mapping[str, Any]]:
        """Read the records ``folder/<model>.json``, by model.

        Raises:
            InputError: a record is damaged.
        """
