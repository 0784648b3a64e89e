"""What can be set of the evaluator `divergence`."""

from __future__ import annotations

from pydantic import Field

from truesource.grammar.settings import Settings


class DivergenceSettings(Settings):
    """All that the models expect beside all that the truth expects; see docs/models.md."""

    sentences: int = Field(300, ge=2)  #: the first so many of the split that is evaluated
    top: int = Field(10, ge=1)  #: size of the sets of most probable words
