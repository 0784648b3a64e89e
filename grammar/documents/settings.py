"""Settings that all languages of documents share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.grammar.documents.document import StringCount
from truesource.grammar.languages import LARGEST, LanguageSettings

STRINGS = 8  #: of a document, where none are asked for


class DocumentSettings(LanguageSettings):
    """Settings of the number of strings in a document."""

    strings: int = Field(STRINGS, ge=1, le=10**4, description="Strings of a document.")
    number: Literal["fixed", "geometric"] = Field(
        "fixed", description="Whether all documents have so many strings (fixed), or that is their mean (geometric)."
    )

    def n_rules(self) -> int:
        """More than any grammar: documents have no rules."""
        return LARGEST + 1

    @property
    def count(self) -> StringCount:
        """Both, as a law."""
        return StringCount(self.strings, self.number == "geometric")
