"""Statistical tendencies of text (Meister & Cotterell 2021), compared with other text or with exact distributions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from truesource.evaluation.measures import DRAWS, PERMUTATIONS
from truesource.grammar.support.settings import DEFAULT_SEED


@dataclass(frozen=True)
class TendencySettings:
    """Settings: the comparisons, and their numbers of random samples; also the defaults of configuration and verb."""

    #: classes of words whose shares are measured, such as stopwords: which of some words belong to each
    classes: Mapping[str, Callable[[Sequence[str]], Sequence[str]]] = field(default_factory=dict)
    chance: int = 999  #: samples of the truth; p-values are 1 / (1 + chance) or more
    permutations: int = PERMUTATIONS  #: of sentences, against another text
    draws: int = DRAWS  #: of lengths and shares
    variant: Literal["default", "paper"] = "default"  #: ``paper``: published definitions, and algorithm 1 as printed
    seed: int = DEFAULT_SEED
