"""Minimal pairs of sentences from a grammar, with exact log odds, and which sentence a model prefers."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from truesource.grammar.support.settings import Settings

PHENOMENA = ("subject-verb", "determiner-noun", "subcategorisation", "attachment", "word-order")
NUMBER = 200  #: default number of pairs of each phenomenon
GENERATING = ("tolerance", "tries", "attached", "forms")  #: settings that pairs of a file do not have
SURE = 0.9  #: posterior from which a tag or a phrase is nearly certain
MOVED = 0.7  #: posterior of the other attachment that an exchange must reach
FRAME_MARGIN = 1.0  #: nats that the context must add to the odds of a verb and one that does not fit its frame


class PairSettings(Settings):
    """Minimal pairs from the grammar, and which sentences the models prefer; see docs/howto/pairs.md."""

    advanced: ClassVar = frozenset({"tries", "tolerance", "attached", "possible", "forms"})
    number: int | None = Field(
        None, ge=1, description=f"Maximum number of pairs of each phenomenon (default: {NUMBER}, or all of --file)."
    )
    phenomena: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Phenomena: subject-verb, determiner-noun, subcategorisation, attachment, word-order.",
    )
    tries: int = Field(10, ge=1, description="Maximum number of sentences sampled for each pair wanted.")
    tolerance: float = Field(
        0.5,
        gt=0.0,
        allow_inf_nan=False,
        description="Maximum difference in log frequency (nats) of words that are exchanged.",
    )
    attached: float = Field(
        0.8, ge=0.5, lt=1.0, description="Posterior probability from which an attachment counts as certain."
    )
    possible: bool = Field(False, description="Use only pairs whose two sentences the grammar can generate.")
    forms: Path | None = Field(
        None, description="File of lines `noun SINGULAR PLURAL`, also verb or determiner (default: English)."
    )
    file: Path | None = Field(
        None, description="File of pairs to score in place of generated ones: JSON lines, as --output writes."
    )

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        named = self.phenomena or ()
        if len(set(named)) < len(named):
            raise ValueError("phenomena: name each phenomenon once")
        if self.file is None:
            unknown = [name for name in named if name not in PHENOMENA]
            if unknown:
                raise ValueError(f"phenomena: there is no phenomenon {unknown[0]!r}; there are {', '.join(PHENOMENA)}")
            return self
        fields = type(self).model_fields
        unused = [name for name in GENERATING if getattr(self, name) != fields[name].default]
        if unused:
            raise ValueError(f"{', '.join(unused)}: only used to generate pairs; leave out together with file")
        return self

    @property
    def size(self) -> int:
        """Pairs of each phenomenon that are generated."""
        return self.number or NUMBER
