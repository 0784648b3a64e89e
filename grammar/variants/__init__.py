"""Controlled variants: from a grammar P a grammar Q that differs in one thing, with the exact divergence."""

from grammar.variants.ablation import Ablation
from grammar.variants.branching import Branching
from grammar.variants.change import Chain, Change, Variant
from grammar.variants.divergence import Divergence
from grammar.variants.lexicon import Sharpen, Zipf
from grammar.variants.measures import Measures, measure
from grammar.variants.rule_map import RuleMap
from grammar.variants.spec import parse_variant
from grammar.variants.temperature import Temperature
from grammar.variants.vocabulary import Collapse, Vocabulary

__all__ = [
    "Ablation",
    "Branching",
    "Chain",
    "Change",
    "Collapse",
    "Divergence",
    "Measures",
    "RuleMap",
    "Sharpen",
    "Temperature",
    "Variant",
    "Vocabulary",
    "Zipf",
    "measure",
    "parse_variant",
]
