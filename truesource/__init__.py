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

    from truesource.evaluation.core.comparison import Comparison, compare
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.evaluation.core.oracle import Oracle
    from truesource.evaluation.core.score import Score
    from truesource.generator.corpus import Corpus
    from truesource.generator.language_model import LanguageModel, ScoringFrame, TokenScores, assemble_scores
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.embedded import english
    from truesource.grammar.estimate.split_merge import SplitMerge
    from truesource.grammar.estimate.split_merge.train import split_merge
    from truesource.grammar.pcfg import PCFG, language
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.tree import Tree
    from truesource.grammar.treebank import Binarisation, Normalisation, Treebank
    from truesource.lmtrain.config import ModelConfig, TrainConfig
    from truesource.lmtrain.function_model import FunctionModel
    from truesource.lmtrain.model_registry import model_settings, preset
    from truesource.lmtrain.models import load_model
    from truesource.lmtrain.training import train
    from truesource.studies.compare.scoring import ParallelText, compare_models, compare_parallel

_HOMES = {
    "Binarisation": "truesource.grammar.treebank",
    "Comparison": "truesource.evaluation.core.comparison",
    "Corpus": "truesource.generator.corpus",
    "Exclusion": "truesource.evaluation.core.exclusion",
    "FunctionModel": "truesource.lmtrain.function_model",
    "InputError": "truesource.grammar.support.errors",
    "LanguageModel": "truesource.generator.language_model",
    "LengthRange": "truesource.grammar.conditioning",
    "ModelConfig": "truesource.lmtrain.config",
    "Normalisation": "truesource.grammar.treebank",
    "Oracle": "truesource.evaluation.core.oracle",
    "ParallelText": "truesource.studies.compare.scoring",
    "PCFG": "truesource.grammar.pcfg",
    "Score": "truesource.evaluation.core.score",
    "ScoringFrame": "truesource.generator.language_model",
    "SplitMerge": "truesource.grammar.estimate.split_merge",
    "TokenScores": "truesource.generator.language_model",
    "TrainConfig": "truesource.lmtrain.config",
    "Tree": "truesource.grammar.tree",
    "Treebank": "truesource.grammar.treebank",
    "assemble_scores": "truesource.generator.language_model",
    "compare": "truesource.evaluation.core.comparison",
    "compare_models": "truesource.studies.compare.scoring",
    "compare_parallel": "truesource.studies.compare.scoring",
    "english": "truesource.grammar.embedded",
    "language": "truesource.grammar.pcfg",
    "load_model": "truesource.lmtrain.models",
    "model_settings": "truesource.lmtrain.model_registry",
    "preset": "truesource.lmtrain.model_registry",
    "split_merge": "truesource.grammar.estimate.split_merge.train",
    "train": "truesource.lmtrain.training",
}

__all__ = [
    "PCFG",
    "Binarisation",
    "Comparison",
    "Corpus",
    "Exclusion",
    "FunctionModel",
    "InputError",
    "LanguageModel",
    "LengthRange",
    "ModelConfig",
    "Normalisation",
    "Oracle",
    "ParallelText",
    "Score",
    "ScoringFrame",
    "SplitMerge",
    "TokenScores",
    "TrainConfig",
    "Tree",
    "Treebank",
    "__version__",
    "assemble_scores",
    "compare",
    "compare_models",
    "compare_parallel",
    "english",
    "language",
    "load_model",
    "model_settings",
    "preset",
    "split_merge",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a noun when it is first used, so that the command's help needs no heavy library."""
    if name == "__version__":
        from importlib.metadata import version

        return version("truesource")
    if name not in _HOMES:
        raise AttributeError(f"module 'truesource' has no attribute {name!r}")
    from truesource.grammar.support.errors import extras_for

    with extras_for(f"truesource.{name}"):
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
