"""Compare language models with the exact distribution of the language they were trained on.

>>> from truesource import PCFG
>>> grammar = PCFG.from_text("S -> S S 0.3 | 'a' 0.7")
>>> round(grammar.next_token(["a"]).stop, 2)
0.7
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from evaluation.comparison import Comparison, compare
    from evaluation.oracle import Oracle
    from evaluation.score import Score
    from generator.corpus import Corpus
    from generator.frame import ScoringFrame
    from grammar.conditioning import LengthRange
    from grammar.errors import InputError
    from grammar.pcfg import PCFG
    from grammar.tree import Tree
    from grammar.treebank import Binarisation, Normalisation, Treebank
    from lmtrain.models import load_model
    from lmtrain.training import train
    from truesource.embedded import english

_HOMES = {
    "Binarisation": "grammar.treebank",
    "Comparison": "evaluation.comparison",
    "Corpus": "generator.corpus",
    "InputError": "grammar.errors",
    "LengthRange": "grammar.conditioning",
    "Normalisation": "grammar.treebank",
    "Oracle": "evaluation.oracle",
    "PCFG": "grammar.pcfg",
    "Score": "evaluation.score",
    "ScoringFrame": "generator.frame",
    "Tree": "grammar.tree",
    "Treebank": "grammar.treebank",
    "compare": "evaluation.comparison",
    "english": "truesource.embedded",
    "load_model": "lmtrain.models",
    "train": "lmtrain.training",
}

__all__ = [
    "PCFG",
    "Binarisation",
    "Comparison",
    "Corpus",
    "InputError",
    "LengthRange",
    "Normalisation",
    "Oracle",
    "Score",
    "ScoringFrame",
    "Tree",
    "Treebank",
    "__version__",
    "compare",
    "english",
    "load_model",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a noun when it is first used, so that the command's help needs no heavy library."""
    if name == "__version__":
        from importlib.metadata import version

        return version("truesource")
    if name not in _HOMES:
        raise AttributeError(f"module 'truesource' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
