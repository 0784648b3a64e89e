"""What can be set of the evaluator `pairs`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from truesource.evaluation.pairs.settings import PHENOMENA, PairSettings
from truesource.grammar.errors import InputError
from truesource.grammar.settings import Settings


class PairsSettings(Settings):
    """Minimal pairs from the grammar, and what the models prefer; see docs/pairs.md."""

    number: int | None = Field(None, ge=1)  #: at most so many pairs of each phenomenon; None: 200, or all of ``file``
    phenomena: list[str] | None = None  #: None: all, or all of ``file``
    tries: int = Field(10, ge=1)  #: at most so many sentences are drawn for each pair wanted
    tolerance: float = Field(0.5, gt=0.0, allow_inf_nan=False)  #: nats between frequencies of exchanged words, at most
    attached: float = Field(0.8, ge=0.5, lt=1.0)  #: posterior from which an attachment is nearly sure
    possible: bool = False  #: only pairs of which the grammar can make both sentences
    forms: str | None = None  #: file of forms that differ in number, relative to the configuration; None: English ones
    file: str | None = None  #: pairs to score in place of drawn ones, JSON lines, relative to the configuration

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        if self.file is None:
            try:
                PairSettings(phenomena=PHENOMENA if self.phenomena is None else tuple(self.phenomena))
            except InputError as error:
                raise ValueError(str(error)) from error
            return self
        fields = type(self).model_fields
        told = [n for n in ("tolerance", "tries", "attached", "forms") if getattr(self, n) != fields[n].default]
        if told:
            names, they, them = " and ".join(told), *(("is", "it") if len(told) == 1 else ("are", "them"))
            raise ValueError(f"{names} {they} for making pairs, and file has them made; leave {them} out")
        return self
