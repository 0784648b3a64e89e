"""Pruning: what is left, and its exact price against plain sums."""

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_grammars import small_pcfgs

from truesource.grammar.diagnostics import diagnose
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.train import split_merge
from truesource.grammar.pcfg import PCFG
from truesource.grammar.restrict import prune
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

Rule = tuple[str, ...]


def rules(pcfg: PCFG) -> dict[Rule, float]:
    found: dict[Rule, float] = {}
    for table, logp in ((pcfg.binary, pcfg.binary_logp), (pcfg.unary, pcfg.unary_logp)):
        for rule, p in zip(table.tolist(), logp.tolist(), strict=True):
            found[tuple(pcfg.symbols[i] for i in rule)] = math.exp(p)
    for (a, w), p in zip(pcfg.lexical.tolist(), pcfg.lexical_logp.tolist(), strict=True):
        found[pcfg.symbols[a], repr(pcfg.vocabulary[w])] = math.exp(p)
    return found


def children(rule: Rule) -> list[str]:
    return [name for name in rule[1:] if not name.startswith("'")]


def ending(table: dict[Rule, float], symbols: tuple[str, ...]) -> dict[str, float]:
    """P(each symbol's derivation ends), by repeated substitution from zero."""
    mass = dict.fromkeys(symbols, 0.0)
    for _ in range(3000):
        after = dict.fromkeys(symbols, 0.0)
        for rule, p in table.items():
            after[rule[0]] += p * math.prod(mass[child] for child in children(rule))
        if all(abs(after[s] - mass[s]) < 1e-17 for s in symbols):
            break
        mass = after
    return mass


def uses(table: dict[Rule, float], start: str, symbols: tuple[str, ...]) -> dict[str, float]:
    """Expected number of each symbol in a derivation, by adding up generation after generation."""
    total, now = dict.fromkeys(symbols, 0.0), {start: 1.0}
    for _ in range(20_000):
        after: dict[str, float] = {}
        for symbol, n in now.items():
            total[symbol] += n
        for rule, p in table.items():
            if rule[0] in now:
                for child in children(rule):
                    after[child] = after.get(child, 0.0) + now[rule[0]] * p
        now = after
        if sum(now.values()) < 1e-17:
            break
    return total


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(small_pcfgs(), st.sampled_from([0.0, 0.05, 0.15, 0.3]))
def test_what_is_left_and_what_it_cost(pcfg: PCFG, threshold: float) -> None:
    whole = rules(pcfg)
    kept = {rule: p for rule, p in whole.items() if p >= threshold}
    while True:
        able = {rule[0] for rule in kept if all(c in {r[0] for r in kept} for c in children(rule))}
        finite = {s for s, p in ending(dict.fromkeys(kept, 0.001), pcfg.symbols).items() if p > 0.0} & able
        smaller = {rule: p for rule, p in kept.items() if rule[0] in finite and set(children(rule)) <= finite}
        if len(smaller) == len(kept):
            break
        kept = smaller
    start = pcfg.symbols[pcfg.start]
    if not any(rule[0] == start for rule in kept):
        with pytest.raises(InputError, match="has no sentence; lower the threshold"):
            prune(pcfg, threshold)
        return
    reached, before = {start}, 0
    while before < len(reached):
        before = len(reached)
        reached |= {child for rule in kept if rule[0] in reached for child in children(rule)}
    kept = {rule: p for rule, p in kept.items() if rule[0] in reached}
    sums = {s: sum(p for rule, p in kept.items() if rule[0] == s) for s in reached}
    expected = {rule: p / sums[rule[0]] for rule, p in kept.items()}
    try:
        pruned, cost = prune(pcfg, threshold)
    except InputError as error:
        assert "infinite derivations" in str(error)
        symbols = sorted(reached)
        mean = np.zeros((len(symbols),) * 2)
        for rule, q in expected.items():
            for child in children(rule):
                mean[symbols.index(rule[0]), symbols.index(child)] += q
        assert max(abs(np.linalg.eigvals(mean))) > 1.0 - 1e-6
        return
    assume(cost.spectral_radius < 0.97)  # the plain sums below converge
    assert rules(pruned) == pytest.approx(expected, rel=1e-12)
    assert set(pruned.symbols) == reached
    assert set(map(repr, pruned.vocabulary)) == {rule[1] for rule in kept if len(rule) == 2 and rule[1][0] == "'"}
    np.testing.assert_allclose(pruned.row_sums, 1.0, rtol=0, atol=1e-12)
    assert not diagnose(pruned).problems
    assert (cost.rules, cost.symbols) == (len(whole) - len(kept), len(pcfg.symbols) - len(reached))
    assert cost.words == len(pcfg.vocabulary) - len(pruned.vocabulary)
    assert cost.largest_row_loss == pytest.approx(1.0 - min(sums.values()), abs=1e-12)
    names = tuple(sorted(reached))
    assert cost.mass_lost == pytest.approx(1.0 - ending(kept, names)[start], abs=1e-10)
    counts = uses(expected, start, names)
    divergence = sum(counts[rule[0]] * q * math.log(q / kept[rule]) for rule, q in expected.items())
    tokens = sum(counts[rule[0]] * q for rule, q in expected.items() if not children(rule))
    assert cost.kl_per_sentence == pytest.approx(divergence, abs=1e-10)
    assert cost.kl_per_token == pytest.approx(divergence / tokens, abs=1e-10)
    assert cost.kl_per_sentence >= -math.log1p(-cost.mass_lost) - 1e-10  # the conditional of P is closer than Q
    assert pruned.meta["pruning"]["mass_lost"] == cost.mass_lost


def test_the_price_by_hand() -> None:
    """S -> a a 0.9 | A b 0.1: without the second rule A and b go, a tenth of the sentences, and ln(1/0.9) nats."""
    pcfg = PCFG.from_text("S -> B B 0.9 | A C 0.1\nA -> a 1.0\nB -> a 1.0\nC -> b 1.0")
    pruned, cost = prune(pcfg, 0.2)
    assert pruned.symbols == ("S", "B")
    assert pruned.vocabulary == ("a",)
    assert (cost.rules, cost.symbols, cost.words) == (3, 2, 1)
    assert cost.mass_lost == pytest.approx(0.1, abs=1e-14)
    assert cost.kl_per_sentence == pytest.approx(math.log(1 / 0.9), abs=1e-14)
    assert cost.kl_per_token == pytest.approx(math.log(1 / 0.9) / 2, abs=1e-14)
    assert str(cost) == "3 rules below 0.2 dropped: 0.1 of the probability of derivations, 0.0527 nats per token"


def test_nothing_to_drop_costs_nothing() -> None:
    pcfg = PCFG.from_text("S -> S S 0.3 | a 0.7")
    pruned, cost = prune(pcfg, 1e-9)
    assert pruned == pcfg
    assert (cost.rules, cost.mass_lost, cost.kl_per_token, cost.largest_row_loss) == (0, 0.0, 0.0, 0.0)


def test_a_grammar_that_leaks_is_paid_by_the_sentences_it_has() -> None:
    """S -> S S 0.6 | a 0.39 | b 0.01 ends with probability 2/3; without b with t = 0.6 t^2 + 0.39."""
    pcfg = PCFG.from_text("S -> S S 0.6 | a 0.39 | b 0.01")
    with pytest.raises(InputError, match="infinite derivations"):
        prune(pcfg, 0.02)
    mended = PCFG.from_text("S -> L L 0.05 | a 0.9 | b 0.05\nL -> L L 1.0")
    pruned, cost = prune(mended, 0.01)
    assert pruned.symbols == ("S",)
    assert cost.mass_lost == pytest.approx(0.0, abs=1e-14)  # no sentence used L
    assert cost.kl_per_sentence == pytest.approx(math.log(1 / 0.95), abs=1e-14)
    assert prune(mended, 0.06).cost.mass_lost == pytest.approx(0.05 / 0.95, abs=1e-14)


@pytest.mark.parametrize("threshold", [-0.1, 1.0, math.nan, "much"])
def test_thresholds_out_of_range_are_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="pruning threshold must be 0 or more"):
        prune(PCFG.from_text("S -> a 1.0"), threshold)


def test_a_threshold_that_leaves_no_sentence_is_refused() -> None:
    with pytest.raises(InputError, match="no sentence; lower the threshold"):
        prune(PCFG.from_text("S -> S S 0.2 | a 0.4 | b 0.4"), 0.5)


@pytest.mark.long
def test_training_reports_the_price_of_its_filter() -> None:
    """The same training with and without a filter: its report is the price of pruning the unfiltered grammar."""
    trees = [
        Tree("ROOT", (Tree("S", (Tree("N", (noun,)), Tree("V", (verb,)))),))
        for noun, verb in (("he", "sees"), ("she", "sees"), ("we", "see"), ("they", "see"), ("we", "nap"))
    ] * 12
    trees += [Tree("ROOT", (Tree("S", (tree.children[0], Tree("V", ("nap",)))),)) for tree in trees[:10]]
    config = {"cycles": 2, "em_split": 20, "em_merge": 10, "em_smooth": 3, "smooth_lexicon": 0.01}
    whole = split_merge(trees, SplitMerge(**config, filter=0.0), seed=2).pcfg
    filtered = split_merge(trees, SplitMerge(**config, filter=0.009), seed=2).pcfg
    pruned, cost = prune(whole, 0.009)
    assert cost.rules > 0
    assert rules(filtered) == pytest.approx(rules(pruned), rel=1e-12)
    reported = filtered.meta["filter"]
    for name in ("mass_lost", "kl_per_sentence", "kl_per_token", "largest_row_loss", "spectral_radius"):
        assert reported[name] == pytest.approx(getattr(cost, name), rel=1e-9, abs=1e-14), name
    assert reported["mass_lost"] > 0.0
    assert reported["spectral_radius_before"] == pytest.approx(whole.exact.spectral_radius, abs=1e-12)
    assert whole.meta["filter"]["mass_lost"] == whole.meta["filter"]["kl_per_token"] == 0.0
    json.dumps(reported, allow_nan=False)
