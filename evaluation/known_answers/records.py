"""Content of ``answers.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswerKind = Literal["convention", "mistake", "combination"]


@dataclass(frozen=True)
class Answer:
    """A number that an evaluation gives on a text, and what it did."""

    name: str
    kind: AnswerKind
    value: float
    meaning: str = ""  #: empty for a combination, as its parts have meanings


@dataclass(frozen=True)
class SentenceAnswers:
    """Exact log probabilities of a sentence, nats."""

    tokens: list[str]
    log_probs: list[float]  #: of each token; of a masked twin, with this token masked
    log_prob: float  #: sum


@dataclass(frozen=True)
class TextAnswers:
    """Exact answers for a text; paths are relative to the kit."""

    file: str
    grammar: str
    objective: Literal["causal", "masked"]
    twins: list[str]
    sizes: dict[str, int]  #: sentences, tokens, words, characters, bytes
    perplexity: float  #: per token, everything scored
    sentences: list[SentenceAnswers]
    answers: list[Answer]  #: conventions and mistakes
    combinations: dict[str, float]  #: by name


@dataclass(frozen=True)
class KitAnswers:
    """Exact answers for all texts of a kit."""

    format: str
    version: int
    license: str
    texts: dict[str, TextAnswers]
