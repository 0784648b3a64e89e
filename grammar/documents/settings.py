"""Settings that all languages of documents share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.grammar.documents.document import StringCount
from truesource.grammar.languages import LARGEST, LanguageSettings

STRINGS = 8  #: default number of strings of a document


class DocumentSettings(LanguageSettings):
    """Settings of the number of strings in a document."""

    strings: int = Field(STRINGS, ge=1, le=10**4, description="Strings of a document.")
    number: Literal["fixed", "geometric"] = Field(
        "fixed", description="Distribution of that number: constant (fixed), or geometric with that mean (geometric)."
    )

    def n_rules(self) -> int:
        """Return more rules than any grammar may have, since documents have none."""
        return LARGEST + 1

    @property
    def count(self) -> StringCount:
        """Distribution of the number of strings."""
        return StringCount(self.strings, self.number == "geometric")
