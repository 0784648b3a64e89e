"""Settings of parsing a corpus, and the outcomes of a sentence."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from truesource.generator.text import Splitting
from truesource.grammar.parsing import ParseMethod
from truesource.grammar.support.settings import DEFAULT_SEED, Settings

SHARD_SIZE = 1000  #: sentences


class ParseOutcome(StrEnum):
    """The outcome of parsing a sentence."""

    PARSED = "parsed"  #: it has a tree
    IMPOSSIBLE = "impossible"  #: the grammar cannot make it
    TOO_LONG = "too_long"  #: its chart does not fit into memory
    SKIPPED = "skipped"  #: it has more words than the call allowed
    EMPTY = "empty"  #: it has no words


class ParseSettings(Settings):
    """All settings that determine the trees of a corpus, in addition to the grammar."""

    method: ParseMethod = Field(
        ParseMethod.VITERBI,
        description="Criterion: most probable derivation, rules (best for split grammars), or spans.",
    )
    exact: bool = Field(False, description="Never prune: look at the whole chart of every sentence (slow).")
    longest: int = Field(300, ge=1, description="Skip sentences with more words, also when computing F1.")
    shard_size: int = Field(SHARD_SIZE, ge=1, description="Number of sentences per file of a folder.")
    raw: bool = Field(False, description="The input is raw text: split it into sentences and Penn tokens.")
    splitting: Splitting | None = Field(
        None, description="Sentences of --raw: punkt, or lines (default: punkt if its data is there)."
    )
    language: str = Field("english", description="Language of punkt's data for --raw, as NLTK names it.")
    best: int | None = Field(
        None, ge=1, le=1000, description="Also write the N best trees of a sentence, as JSON lines."
    )
    samples: int | None = Field(
        None, ge=1, le=1000, description="Also write N trees sampled from the posterior, as JSON lines."
    )
    seed: int = Field(DEFAULT_SEED, ge=0, le=2**32 - 1, description="Random seed of --samples and of intervals.")
    keep_missing: bool = Field(False, description="In a folder, write () for a sentence without a tree.")

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        raw_options = {"--splitting": self.splitting is not None, "--language": self.language != "english"}
        wrong = next((option for option, is_set in raw_options.items() if is_set and not self.raw), None)
        if wrong is not None:
            raise ValueError(f"{wrong} needs --raw; add --raw or remove {wrong}")
        if self.best is not None and self.samples is not None:
            raise ValueError("--best and --samples each need a folder of their own; give one of them")
        if self.best is not None and self.method is ParseMethod.MAX_SPAN:
            raise ValueError("--best needs --method viterbi or max-rule; choose one of them")
        return self
