"""Controlled variants: from a grammar P a grammar Q that differs in one thing, with the exact divergence."""

from truesource.grammar.variants.ablation import Ablation
from truesource.grammar.variants.branching import Branching
from truesource.grammar.variants.change import Chain, Change, Variant
from truesource.grammar.variants.divergence import DerivationDivergence
from truesource.grammar.variants.lexicon import Sharpen, Zipf
from truesource.grammar.variants.measures import GrammarMeasures, measure
from truesource.grammar.variants.rule_map import RuleMap
from truesource.grammar.variants.spec import parse_variant
from truesource.grammar.variants.temperature import Temperature
from truesource.grammar.variants.vocabulary import Collapse, Vocabulary

__all__ = [
    "Ablation",
    "Branching",
    "Chain",
    "Change",
    "Collapse",
    "DerivationDivergence",
    "GrammarMeasures",
    "RuleMap",
    "Sharpen",
    "Temperature",
    "Variant",
    "Vocabulary",
    "Zipf",
    "measure",
    "parse_variant",
]
