"""The sizes of the embedded English grammar: the full one is as it was, the others are parts of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from truesource.generator.sampler import Sampler
from truesource.grammar.embedded import english
from truesource.grammar.languages.english import SIZES
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.files import data_folder
from truesource.grammar.template import compile_template

SMALLER = {name: size for name, size in SIZES.items() if name != "full"}


def rules(grammar: PCFG) -> dict[tuple[str, ...], float]:
    """Every rule by the names of its parent and children."""
    names, words = grammar.symbols, grammar.vocabulary
    return (
        {tuple(names[i] for i in rule): p for rule, p in zip(grammar.binary, grammar.binary_logp, strict=True)}
        | {tuple(names[i] for i in rule): p for rule, p in zip(grammar.unary, grammar.unary_logp, strict=True)}
        | {(names[a], f"'{words[w]}'"): p for (a, w), p in zip(grammar.lexical, grammar.lexical_logp, strict=True)}
    )


@pytest.mark.long
def test_the_full_size_is_the_grammar_of_the_data_folder() -> None:
    full = language("english")
    assert full == english() == compile_template(data_folder() / "english")
    assert full.digest == "1e1c305d95294d6782a467274c16e7c4336ddcc72d59fd9a7f5bfff37e749de7"


@pytest.mark.parametrize("name", SMALLER)
def test_a_smaller_size_keeps_rules_in_proportion(name: str) -> None:
    """Hence all agreement: whatever a smaller size can make, the full grammar can."""
    full, part = rules(english()), rules(language("english", size=name))
    ratios: dict[str, list[float]] = {}
    for rule, logp in part.items():
        ratios.setdefault(rule[0], []).append(logp - full[rule])
    for parent, found in ratios.items():
        assert min(found) >= -1e-12, parent
        assert max(found) - min(found) < 1e-9, parent


@pytest.mark.parametrize(("name", "size"), SMALLER.items())
def test_a_smaller_size_keeps_what_its_rule_says(name: str, size: tuple[float, int, int]) -> None:
    """Frequent symbols and probable words, chosen here one by one."""
    full, part = english(), language("english", size=name)
    counts = dict(zip(full.symbols, full.exact.expected_symbols, strict=True))
    assert min(counts[symbol] for symbol in part.symbols) >= size[0]
    kept: dict[str, list[float]] = {}
    lost: dict[str, list[float]] = {}
    left = rules(part)
    for (a, w), logp in zip(full.lexical, full.lexical_logp, strict=True):
        if (symbol := full.symbols[a]) in part.symbol_ids:
            inside = (symbol, f"'{full.vocabulary[w]}'") in left
            (kept if inside else lost).setdefault(symbol, []).append(logp)
    for symbol, found in kept.items():
        assert len(found) == min(size[1], len(found) + len(lost.get(symbol, []))), symbol
        assert min(found) >= max(lost.get(symbol, [-math.inf])), symbol
    among = [rule for rule in rules(full) if all(symbol in part.symbol_ids for symbol in rule)]
    assert len(among) > 400 and all(rule in left for rule in among), "all rules of what is kept"


@pytest.mark.parametrize(("name", "size"), SMALLER.items())
def test_no_symbol_is_so_near_the_limit_that_rounding_would_decide(name: str, size: tuple[float, int, int]) -> None:
    assert np.abs(english().exact.expected_symbols / size[0] - 1.0).min() > 1e-6


@pytest.mark.long
@pytest.mark.parametrize("name", SMALLER)
def test_a_smaller_size_is_consistent_and_agrees(name: str) -> None:
    part = language("english", size=name)
    assert part.exact.spectral_radius < 0.9
    assert part.exact.total_mass == pytest.approx(1.0, abs=1e-12)
    sampler = Sampler(part)
    sentences = sampler.sentences(sampler.draw(300, random_state(5, 6)))
    assert (english().exact.string_log_probs(sentences) > -math.inf).all()
    pairs = part.exact.string_log_probs([["the", "children", verb, "happy", "."] for verb in ("were", "was")])
    assert pairs[0] > -math.inf == pairs[1]
