"""Variants of a grammar, and their divergences, against enumeration of every derivation."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_grammars import small_pcfgs
from reference_inference import all_strings, length_mass, rules_of

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.binarise import Binarisation, category
from truesource.grammar.treebank.head_rules import HeadRules
from truesource.grammar.variants import (
    EXAMPLES,
    Ablation,
    Branching,
    Chain,
    Collapse,
    DerivationDivergence,
    RuleMap,
    Sharpen,
    Temperature,
    Variant,
    Vocabulary,
    Zipf,
    parse_variant,
)
from truesource.grammar.variants.change import divergence, measure, rule_name
from truesource.grammar.variants.structure import NodeRules

#: heads for grammars of the symbols S, A, B, C, D
ANY_HEADS = HeadRules.parse([(f"{name}: right B D S A C", 1) for name in "SABCD"])
Node = tuple  # (rule number, subtrees ...)

ENGLISH = PCFG.from_text("""
    S -> NP VP 1.0
    NP -> DT NN 0.6 | NP PP 0.1 | 'he' 0.3
    VP -> VBD NP 0.5 | @VP PP 0.2 | 'slept' 0.3
    @VP -> @VP PP 0.6 | VBD NP 0.4
    PP -> IN NP 1.0
    DT -> 'the' 1.0
    NN -> 'dog' 0.5 | 'cat' 0.3 | 'fish' 0.2
    VBD -> 'saw' 0.7 | 'fish' 0.3
    IN -> 'in' 0.6 | 'of' 0.4
""")
MERGING = PCFG.from_text("PP -> IN NP 0.5 | NP IN 0.2 | 'x' 0.3\nIN -> 'in' 1.0\nNP -> 'a' 0.6 | 'b' 0.4")


def derivations(pcfg: PCFG, lengths: LengthRange) -> dict[Node, float]:
    """Every derivation of a length in the range, as rule numbers; for grammars without unary cycles."""
    n_binary, n_phrasal = len(pcfg.binary), len(pcfg.binary) + len(pcfg.unary)

    @cache
    def grow(symbol: int, n: int) -> list[tuple[Node, float]]:
        found: list[tuple[Node, float]] = []
        for r, ((a, b, c), logp) in enumerate(zip(pcfg.binary.tolist(), pcfg.binary_logp.tolist(), strict=True)):
            if a == symbol:
                for k in range(1, n):
                    found += [((r, x, y), math.exp(logp) * p * q) for x, p in grow(b, k) for y, q in grow(c, n - k)]
        for r, ((a, b), logp) in enumerate(zip(pcfg.unary.tolist(), pcfg.unary_logp.tolist(), strict=True), n_binary):
            if a == symbol:
                found += [((r, x), math.exp(logp) * p) for x, p in grow(b, n)]
        words = zip(pcfg.lexical.tolist(), pcfg.lexical_logp.tolist(), strict=True)
        for r, ((a, _), logp) in enumerate(words, n_phrasal):
            if a == symbol and n == 1:
                found.append(((r,), math.exp(logp)))
        assume(len(found) < 1_500)
        return found

    every = {d: p for n in range(lengths.low, lengths.high + 1) for d, p in grow(pcfg.start, n)}
    mass = sum(every.values())
    return {d: p / mass for d, p in every.items()} if every else {}


def names(pcfg: PCFG, node: Node) -> Node:
    return (rule_name(pcfg, node[0]), *(names(pcfg, below) for below in node[1:]))


def by_name(pcfg: PCFG, table: dict[Node, float]) -> dict[Node, float]:
    return {names(pcfg, node): p for node, p in table.items()}


def image(rule_map: RuleMap, node: Node) -> Node | None:
    below = [image(rule_map, child) for child in node[1:]]
    if rule_map.target[node[0]] < 0 or None in below:
        return None
    if len(below) == 2 and rule_map.swapped[node[0]]:
        below.reverse()
    return (int(rule_map.target[node[0]]), *below)


def kl(p: dict[Node, float], q: dict[Node, float]) -> float | None:
    if not set(p) <= set(q):
        return None
    return sum(x * math.log(x / q[d]) for d, x in p.items())


def tokens(node: Node) -> int:
    return 1 if len(node) == 1 else sum(map(tokens, node[1:]))


def agrees(found: float | None, reason: str | None, expected: float | None) -> None:
    if expected is None:
        assert found is None
        assert reason
    else:
        assert reason is None
        assert found == pytest.approx(expected, abs=1e-10)


CHANGES = [
    "mirror=all",
    "head-final=all",
    "head-initial=all",
    "zipf=1.3",
    "sharpen=0.5",
    "temperature=1.2",
    "temperature=0.9",
    "ablate=S -> 'a'",
    "ablate=* -> A",
    "ablate=B",
    "ablate=* -> * S",
    "vocabulary=2",
    "collapse=1",
    "mirror=all,zipf=0.7",
    "head-final=all,temperature=0.9",
    "zipf=1,mirror=all,ablate=S -> 'b'",
    "collapse=2,head-initial=all,sharpen=2",
]


@pytest.mark.long
@pytest.mark.parametrize("spec", CHANGES)
@settings(max_examples=15)
@given(pcfg=small_pcfgs(max_symbols=3, max_words=3, unary_cycles=False), high=st.integers(2, 4))
def test_divergences_are_those_of_enumerated_derivations(spec: str, pcfg: PCFG, high: int) -> None:
    lengths = LengthRange(high - 1, high)
    p = derivations(pcfg, lengths)
    assume(p)
    try:
        v = parse_variant(spec)(pcfg, lengths)
    except InputError:
        assume(False)
    np.testing.assert_allclose(v.pcfg.row_sums, 1.0, rtol=0, atol=1e-12)
    q = derivations(v.pcfg, lengths)
    mean = {"p": sum(x * tokens(d) for d, x in p.items()), "q": sum(x * tokens(d) for d, x in q.items())}
    named_p, named_q = by_name(pcfg, p), by_name(v.pcfg, q)
    found = v.divergence
    agrees(found.forward_per_sentence, found.forward_reason, kl(named_p, named_q))
    agrees(found.backward_per_sentence, found.backward_reason, kl(named_q, named_p))
    if found.forward_per_sentence is not None:
        assert found.forward_per_token == pytest.approx(found.forward_per_sentence / mean["p"], abs=1e-10)
    if found.backward_per_sentence is not None:
        assert found.backward_per_token == pytest.approx(found.backward_per_sentence / mean["q"], abs=1e-10)

    images: dict[Node, float] = defaultdict(float)
    lost = 0.0
    for d, x in p.items():
        there = image(v.rule_map, d)
        if there is None:
            lost += x
        else:
            images[there] += x
    assert set(images) >= set(q)  # nothing in a variant comes from nowhere
    agrees(v.aligned.forward_per_sentence, v.aligned.forward_reason, None if lost > 0.0 else kl(images, q))
    agrees(v.aligned.backward_per_sentence, v.aligned.backward_reason, kl(q, images))
    if v.rule_map.bijective:
        assert len(images) == len(p) == len(q)

    for table, measures in ((p, v.original), (q, v.measures)):
        entropy = -sum(x * math.log(x) for x in table.values())
        assert measures.entropy_per_sentence == pytest.approx(entropy, abs=1e-10)
    assert v.measures.mean_length == pytest.approx(mean["q"], abs=1e-10)
    if found.forward_per_sentence is not None:
        strings = divergence_of_strings(pcfg, v.pcfg, lengths)
        assert strings is not None
        assert strings <= found.forward_per_sentence + 1e-10
    json.dumps(v.as_dict(), allow_nan=False)


def divergence_of_strings(p: PCFG, q: PCFG, lengths: LengthRange) -> float | None:
    tables = []
    for pcfg in (p, q):
        found = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]]
        every = {s: x for n in range(lengths.low, lengths.high + 1) for s, x in found[n].items()}
        tables.append({s: x / sum(every.values()) for s, x in every.items()})
    return kl(*tables)


@pytest.mark.long
@given(pcfg=small_pcfgs(), spec=st.sampled_from(["zipf=0.5", "sharpen=1.7", "temperature=1.1", "vocabulary=2"]))
def test_without_a_length_range(pcfg: PCFG, spec: str) -> None:
    """Unconditioned: ``KL(Q || P)`` is cross entropy less entropy, both from symbol counts and rows."""
    try:
        v = parse_variant(spec)(pcfg)
    except InputError:
        assume(False)
    names_of = RuleMap.by_name(v.pcfg, pcfg)
    uses = np.concatenate(
        [v.pcfg.exact.expected_symbols[rules[:, 0]] * np.exp(logp) for rules, logp in v.pcfg.tables()]
    )
    logp = np.concatenate([logp for _, logp in pcfg.tables()])[names_of.target]
    cross = -float(uses @ logp)
    expected = cross - derivational_entropy(v.pcfg)
    assert v.divergence.backward_per_sentence == pytest.approx(expected, abs=1e-9)
    assert v.divergence.backward_per_token == pytest.approx(expected / v.pcfg.exact.mean_length, abs=1e-9)
    assert v.measures.entropy_per_sentence == pytest.approx(derivational_entropy(v.pcfg), abs=1e-9)


# -- order of children ------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs())
def test_mirrored_sentences_are_read_backwards(pcfg: PCFG) -> None:
    v = Branching("mirror")(pcfg)
    before, after = (all_strings(rules_of(g), 4)["S"] for g in (pcfg, v.pcfg))
    for n in range(1, 5):
        assert after[n] == pytest.approx({s[::-1]: p for s, p in before[n].items()}, abs=1e-12)
    assert v.rule_map.swapped.all()
    assert v.rule_map.bijective
    assert v.aligned.forward_per_sentence == v.aligned.backward_per_sentence == pytest.approx(0.0, abs=1e-12)
    assert v.measures.entropy_per_sentence == pytest.approx(v.original.entropy_per_sentence, abs=1e-10)


@pytest.mark.long
@given(small_pcfgs())
def test_mirroring_twice_is_the_identity(pcfg: PCFG) -> None:
    twice = parse_variant("mirror=all,mirror=all")(pcfg)
    assert twice.pcfg == pcfg
    assert not twice.rule_map.swapped.any()
    np.testing.assert_array_equal(twice.rule_map.target, np.arange(pcfg.n_rules))
    assert twice.divergence.forward_per_sentence == twice.divergence.backward_per_sentence == 0.0


@pytest.mark.long
@given(small_pcfgs(), st.sampled_from(["mirror=all", "head-initial=all", "head-final=all", "zipf=1.1", "sharpen=3"]))
def test_lengths_stay(pcfg: PCFG, spec: str) -> None:
    v = parse_variant(spec, ANY_HEADS)(pcfg)
    assert length_mass(rules_of(v.pcfg), 5) == pytest.approx(length_mass(rules_of(pcfg), 5), abs=1e-12)
    assert v.pcfg.exact.mean_length == pytest.approx(pcfg.exact.mean_length, rel=1e-10)


def phrasal(pcfg: PCFG, *parents: str) -> dict[str, float]:
    """Binary rules and their probabilities."""
    found = {rule_name(pcfg, r): math.exp(p) for r, p in enumerate(pcfg.binary_logp.tolist())}
    return {rule: round(p, 12) for rule, p in found.items() if not parents or rule.split()[0] in parents}


def test_heads_last_and_heads_first() -> None:
    last = Branching("head-final")(ENGLISH).pcfg
    assert phrasal(last) == {
        "S -> NP VP": 1.0,
        "NP -> DT NN": 0.6,
        "NP -> PP NP": 0.1,
        "VP -> NP VBD": 0.5,
        "VP -> PP @VP": 0.2,
        "@VP -> PP @VP": 0.6,
        "@VP -> NP VBD": 0.4,
        "PP -> NP IN": 1.0,
    }
    first = Branching("head-initial")(ENGLISH).pcfg
    assert phrasal(first) == {
        "S -> VP NP": 1.0,
        "NP -> NN DT": 0.6,
        "NP -> NP PP": 0.1,
        "VP -> VBD NP": 0.5,
        "VP -> @VP PP": 0.2,
        "@VP -> @VP PP": 0.6,
        "@VP -> VBD NP": 0.4,
        "PP -> IN NP": 1.0,
    }
    assert Branching("head-initial")(last).pcfg == first
    assert Branching("head-final")(last).pcfg.digest == last.digest


def nodes_of(pcfg: PCFG) -> dict[str, str]:
    """The node of each binary rule, with a star at its head, and a bar where the rule parts its children."""
    rules = NodeRules(pcfg)
    nodes, of_rule = rules.nodes
    found = {}
    for r, i in enumerate(of_rule.tolist()):
        node, head = nodes[i], rules.heads(HeadRules.of(pcfg))[i]
        children = [("*" if k == head else "") + name for k, name in enumerate(node.children)]
        parts = " ".join(children[: node.parting]), " ".join(children[node.parting :])
        found[rule_name(pcfg, r)] = f"{node.label} -> {parts[0]} | {parts[1]}"
    return found


def test_a_rule_belongs_to_the_most_probable_node_with_it() -> None:
    """The recursive expansion is more probable than each that ends it, but no derivation is made of it alone."""
    assert nodes_of(ENGLISH) == {
        "S -> NP VP": "S -> NP | *VP",
        "NP -> DT NN": "NP -> DT | *NN",
        "NP -> NP PP": "NP -> *NP | PP",
        "VP -> VBD NP": "VP -> *VBD | NP",
        "VP -> @VP PP": "VP -> *VBD NP | PP",
        "@VP -> @VP PP": "VP -> *VBD NP | PP PP",
        "@VP -> VBD NP": "VP -> *VBD | NP PP",
        "PP -> IN NP": "PP -> *IN | NP",
    }
    chain = PCFG.from_text(
        "NP -> @NP PP 1.0\n@NP -> @NP[X] JJ 1.0\n@NP[X] -> DT NN 0.6 | DT NNS 0.4\nPP -> a 1.0"
        "\nJJ -> a 1.0\nDT -> a 1.0\nNN -> a 1.0\nNNS -> a 1.0"
    )
    assert nodes_of(chain) == {
        "NP -> @NP PP": "NP -> DT *NN JJ | PP",
        "@NP -> @NP[X] JJ": "NP -> DT *NN | JJ PP",
        "@NP[X] -> DT NN": "NP -> DT | *NN JJ PP",
        "@NP[X] -> DT NNS": "NP -> DT | *NNS JJ PP",
    }
    endless = PCFG.from_text("NP -> @NP NN 0.5 | a 0.5\n@NP -> @NP NN 1.0\nNN -> a 1.0")
    assert nodes_of(endless) == {"NP -> @NP NN": "NP -> NP | *NN", "@NP -> @NP NN": "NP -> NP | NN *NN"}


def test_only_the_categories_asked_for_are_mirrored() -> None:
    v = parse_variant("mirror=VP+PP")(ENGLISH)
    assert phrasal(v.pcfg, "S", "NP") == phrasal(ENGLISH, "S", "NP")
    assert set(phrasal(v.pcfg, "VP", "@VP", "PP")) == {
        "VP -> NP VBD", "VP -> PP @VP", "@VP -> PP @VP", "@VP -> NP VBD", "PP -> NP IN",
    }  # fmt: skip
    assert v.rule_map.swapped.sum() == 5
    assert v.pcfg.meta["variant"]["original"] == ENGLISH.digest
    assert v.pcfg.meta["variant"]["spec"] == v.name == "mirror=VP+PP"
    again = Zipf(1.0)(v.pcfg)
    assert again.pcfg.meta["variant"]["before"] == v.pcfg.meta["variant"]


def test_reversed_nodes_of_a_treebank_are_reversed_nodes() -> None:
    """Mirrored and read n-ary, each NP has its children in reverse, and no other node has."""
    text = "S -> NP VP 1.0\nNP -> @NP NN 1.0\n@NP -> DT JJ 1.0\nVP -> VBD NP 1.0\nDT -> the 1.0\nJJ -> old 1.0"
    pcfg = PCFG.from_text(text + "\nNN -> dog 1.0\nVBD -> saw 1.0")
    v = Branching("mirror", ("NP",))(pcfg)
    tree, _ = v.pcfg.viterbi(["dog", "old", "the", "saw", "dog", "old", "the"])
    noun = "(NP (NN dog) (JJ old) (DT the))"
    assert str(Binarisation().unbinarise(tree)) == f"(S {noun} (VP (VBD saw) {noun}))"


@pytest.mark.parametrize(
    ("label", "expected"),
    [("NP", "NP"), ("@NP", "NP"), ("@NP[DT][JJ]", "NP"), ("NP^S", "NP"), ("@NP^S[DT]", "NP"), ("@", "@"), ("[", "[")],
)
def test_categories_of_labels(label: str, expected: str) -> None:
    assert category(label) == expected


def test_rules_that_meet_become_one() -> None:
    v = Branching("head-final")(MERGING)
    assert phrasal(v.pcfg) == {"PP -> NP IN": 0.7}
    assert v.description["details"] == {
        "rules_swapped": 1,
        "rules_merged": 1,
        "nodes_swapped": 1,
        "nodes_kept": 1,
        "swapped": ["PP -> *IN NP"],
        "kept": ["PP -> NP *IN"],
    }
    n = len(MERGING.binary)
    assert len(set(v.rule_map.target[:n].tolist())) == 1
    assert v.rule_map.swapped.sum() == 1
    assert not v.rule_map.bijective
    assert v.aligned.forward_per_sentence == pytest.approx(0.0, abs=1e-12)
    assert v.aligned.backward_per_sentence == pytest.approx(0.0, abs=1e-12)
    lost = 0.7 * (0.5 / 0.7 * math.log(0.7 / 0.5) + 0.2 / 0.7 * math.log(0.7 / 0.2))
    assert v.original.entropy_per_sentence - v.measures.entropy_per_sentence == pytest.approx(lost, abs=1e-12)
    assert v.divergence.forward_per_sentence is None
    assert v.divergence.backward_per_sentence == pytest.approx(0.7 * math.log(0.7 / 0.2), abs=1e-12)


def test_a_grammar_without_intermediate_nodes_or_binary_rules() -> None:
    v = parse_variant("head-final=all")(PCFG.from_text("S -> a 0.5 | A 0.5\nA -> b 1.0"))
    assert v.divergence == DerivationDivergence(0.0, 0.0, None, 0.0, 0.0, None)


# -- words, temperature -----------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs(), st.sampled_from(["zipf=0", "zipf=1.4", "sharpen=0", "sharpen=2.5"]))
def test_words_change_within_their_preterminal_only(pcfg: PCFG, spec: str) -> None:
    v = parse_variant(spec)(pcfg)
    for kind in ("binary", "unary", "lexical"):
        np.testing.assert_array_equal(getattr(v.pcfg, kind), getattr(pcfg, kind))
    np.testing.assert_array_equal(v.pcfg.binary_logp, pcfg.binary_logp)
    np.testing.assert_array_equal(v.pcfg.unary_logp, pcfg.unary_logp)
    np.testing.assert_allclose(v.pcfg.exact.lexical_sums, pcfg.exact.lexical_sums, rtol=1e-12)
    exponent = float(spec.partition("=")[2])
    for a in np.unique(pcfg.lexical[:, 0]):
        rules = np.flatnonzero(pcfg.lexical[:, 0] == a)
        p, q = np.exp(pcfg.lexical_logp[rules]), np.exp(v.pcfg.lexical_logp[rules])
        rank = np.empty(len(p))
        rank[np.argsort(-p, kind="stable")] = np.arange(1, len(p) + 1)
        wanted = rank**-exponent if spec.startswith("zipf") else p**exponent
        np.testing.assert_allclose(q, p.sum() * wanted / wanted.sum(), rtol=1e-12)


@pytest.mark.long
@given(small_pcfgs())
def test_neutral_values_change_nothing(pcfg: PCFG) -> None:
    for change in (Sharpen(1), Temperature(1.0), Vocabulary(99), Collapse(99)):
        v = change(pcfg)
        assert v.pcfg == pcfg
        assert v.divergence.forward_per_sentence == v.divergence.backward_per_sentence == 0.0
    once = Zipf(1.2)(pcfg).pcfg
    np.testing.assert_allclose(Zipf(1.2)(once).pcfg.lexical_logp, once.lexical_logp, rtol=0, atol=1e-12)
    back = parse_variant("sharpen=2,sharpen=0.5")(pcfg)
    np.testing.assert_allclose(back.pcfg.lexical_logp, pcfg.lexical_logp, rtol=0, atol=1e-12)
    assert back.divergence.forward_per_sentence == pytest.approx(0.0, abs=1e-12)


@pytest.mark.long
@given(small_pcfgs(), st.floats(0.7, 1.6))
def test_temperature_is_that_of_every_row(pcfg: PCFG, value: float) -> None:
    try:
        v = Temperature(value)(pcfg)
    except InputError as error:
        assert "may not end" in str(error)
        return
    for a in range(len(pcfg.symbols)):
        p, q = (np.concatenate([np.exp(y[x[:, 0] == a]) for x, y in g.tables()]) for g in (pcfg, v.pcfg))
        np.testing.assert_allclose(q, p ** (1 / value) / (p ** (1 / value)).sum(), rtol=1e-12)
    assert v.pcfg.exact.spectral_radius < 1.0


def test_the_same_seed_gives_the_same_trees_over_other_words() -> None:
    sharp = Sharpen(3.0)(ENGLISH).pcfg
    rows = []
    for lengths in (None, LengthRange(3, 9)):
        for pcfg in (ENGLISH, sharp):
            rows.append(Sampler(pcfg, lengths).draw(300, random_state(5)).rules)
        assert len(rows[-1]) == len(rows[-2])
        phrasal_rule = rows[-2] < len(ENGLISH.binary) + len(ENGLISH.unary)
        np.testing.assert_array_equal(rows[-1][phrasal_rule], rows[-2][phrasal_rule])
        parents = np.concatenate([rules[:, 0] for rules, _ in ENGLISH.tables()])
        np.testing.assert_array_equal(parents[rows[-1]], parents[rows[-2]])
        assert (rows[-1] != rows[-2]).any()


# -- fewer words ------------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs(max_words=4), st.integers(1, 4))
def test_a_smaller_vocabulary_keeps_the_trees(pcfg: PCFG, size: int) -> None:
    try:
        v = Vocabulary(size)(pcfg)
    except InputError as error:
        assert "would have none" in str(error)
        assert size < len(np.unique(pcfg.lexical[:, 0]))
        return
    assert len(v.pcfg.vocabulary) == min(size, len(pcfg.vocabulary))
    assert v.pcfg.symbols == pcfg.symbols
    np.testing.assert_allclose(v.pcfg.exact.lexical_sums, pcfg.exact.lexical_sums, rtol=1e-12)
    counts = pcfg.exact.expected_words
    kept = [pcfg.word_ids[word] for word in v.pcfg.vocabulary]
    if not v.description["details"].get("kept_for_a_preterminal"):
        dropped = np.setdiff1d(np.arange(len(counts)), kept)
        assert counts[dropped].max(initial=0.0) <= counts[kept].min()
        if len(dropped):
            assert v.description["details"]["tokens_kept"] == pytest.approx(counts[kept].sum() / counts.sum())
    for a in np.unique(pcfg.lexical[:, 0]):
        old = {pcfg.vocabulary[w]: p for (b, w), p in zip(pcfg.lexical, pcfg.lexical_logp, strict=True) if b == a}
        new = {v.pcfg.vocabulary[w]: p for (b, w), p in zip(v.pcfg.lexical, v.pcfg.lexical_logp, strict=True) if b == a}
        assert set(new) == set(old) & set(v.pcfg.vocabulary)
        np.testing.assert_allclose(np.ptp([new[word] - old[word] for word in new]), 0.0, atol=1e-12)


def test_a_preterminal_keeps_its_last_word() -> None:
    """The three most frequent words are a, b and c; N makes only y and z, so y takes the place of c."""
    pcfg = PCFG.from_text("S -> a 0.5 | b 0.2 | c 0.15 | N 0.15\nN -> y 0.6 | z 0.4")
    v = Vocabulary(3)(pcfg)
    assert set(v.pcfg.vocabulary) == {"a", "b", "y"}
    assert v.description["details"]["kept_for_a_preterminal"] == 1
    assert v.pcfg.log_prob(["y"]) == pytest.approx(math.log(0.15), abs=1e-12)
    assert v.pcfg.log_prob(["a"]) == pytest.approx(math.log(0.5 * 0.85 / 0.7), abs=1e-12)
    with pytest.raises(InputError, match=r"with 1 words some .* 'S'.* at least 2, or collapse=1"):
        Vocabulary(1)(pcfg)


def test_collapsed_words_are_merged() -> None:
    v = Collapse(2)(PCFG.from_text("S -> a 0.5 | b 0.25 | c 0.15 | d 0.1"))
    assert v.pcfg.log_prob(["<unk>"]) == pytest.approx(math.log(0.25), abs=1e-12)
    assert v.aligned.forward_per_sentence == pytest.approx(0.0, abs=1e-12)
    assert v.aligned.backward_per_sentence == pytest.approx(0.0, abs=1e-12)
    assert v.divergence.forward_per_sentence is None
    assert v.entropy_change_per_token == pytest.approx(
        0.15 * math.log(0.15 / 0.25) + 0.1 * math.log(0.1 / 0.25), abs=1e-12
    )


# -- fewer rules ------------------------------------------------------------------------------------


def test_a_rule_goes_with_all_its_substates() -> None:
    rules = [
        ("S", ("NP-0", "VP"), 1.0),
        ("NP-0", ("NP-1", "PP"), 0.2), ("NP-0", ("NP-0", "PP"), 0.1), ("NP-0", ("he",), 0.7),
        ("NP-1", ("NP-0", "PP"), 0.3), ("NP-1", ("she",), 0.7),
        ("VP", ("slept",), 1.0), ("PP", ("here",), 1.0),
    ]  # fmt: skip
    labels = {"NP-0": "NP", "NP-1": "NP"}
    pcfg = PCFG.from_rules(rules, start="S", words=lambda _, c: c[0].islower(), labels=labels)
    v = parse_variant("ablate=NP -> NP PP")(pcfg)
    assert v.pcfg.symbols == ("S", "NP-0", "VP")
    assert v.divergence.backward_per_sentence == pytest.approx(-math.log(0.7), abs=1e-12)
    assert v.description["details"] == {
        "rules_matched": 3, "rules_dropped": 5, "symbols_dropped": 2, "words_dropped": 2,
        "largest_row_loss": pytest.approx(0.3),
    }  # fmt: skip
    assert "which the variant does not have" in str(v.divergence.forward_reason)
    one = Ablation(("NP-0 -> NP-1 PP",))(pcfg)
    assert phrasal(one.pcfg, "NP-0") == {"NP-0 -> NP-0 PP": round(0.1 / 0.8, 12)}
    assert parse_variant("ablate=PP")(pcfg).pcfg == v.pcfg
    assert parse_variant("ablate=NP -> * PP")(pcfg).pcfg == v.pcfg
    word = parse_variant("ablate=NP -> 'he'")(pcfg)
    assert "he" not in word.pcfg.vocabulary


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mirrer=NP", "there is no variant 'mirrer'; near: mirror; use one of mirror, head-initial"),
        ("qqq", "there is no variant 'qqq'; use one of mirror, head-initial, head-final,"),
        ("", "there is no variant ''"),
        ("mirror", "mirror needs a value, as in mirror=NP"),
        ("zipf=", "zipf needs a value, as in zipf=1.2"),
        ("mirror=+", "mirror needs a category"),
        ("mirror=NPP", "category 'NPP' is not in the grammar; near: .*NP"),
        ("head-final=np", "category 'np' is not in the grammar; near: .*NP"),
        ("mirror=NN", "category 'NN' has no binary rule"),
        ("zipf=much", "zipf needs a number, got 'much'"),
        ("zipf=nan", "zipf needs a number from 0 on, got nan"),
        ("sharpen=-1", r"sharpen needs a number from 0 on, got -1\.0"),
        ("sharpen=1e6", "too small for float64"),
        ("temperature=0", r"temperature needs a number above 0, got 0\.0"),
        ("temperature=0.0001", "too small for float64"),
        ("vocabulary=0", "vocabulary needs an integer number of words >= 1, got 0"),
        ("vocabulary=2.5", r"vocabulary needs an integer number of words, got '2\.5'"),
        ("vocabulary=3", "would have none; choose at least"),
        ("collapse=0", "collapse needs an integer number of words >= 1, got 0"),
        ("ablate=NP -> A B C", "one or two children"),
        ("ablate=NP ->", "one or two children"),
        ("ablate=NPX -> NP PP", "no symbol or category 'NPX' .*; near: .*NP"),
        ("ablate=NP -> VP VP", "no rule matches ablate=NP -> VP VP; NP has rules such as NP -> DT NN"),
        ("ablate=NN -> 'dag'", "no word 'dag'; near: dog"),
        ("ablate=S", "ablate=S leaves no sentence"),
        ("ablate=VP -> * *,ablate=VP -> 'slept'", "leaves no sentence"),
    ],
)
def test_bad_input_is_named(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_variant(spec)(ENGLISH)


def test_changes_made_by_hand_are_checked() -> None:
    with pytest.raises(InputError, match="the order of children must be one of mirror, head-initial, head-final"):
        Branching("upside-down")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one"):
        Chain(())
    with pytest.raises(InputError, match="ablate needs a rule"):
        Ablation(())
    with pytest.raises(InputError, match="integer number"):
        Vocabulary(True)
    with pytest.raises(InputError, match="number above 0"):
        Temperature("hot")  # type: ignore[arg-type]


def test_a_temperature_that_lets_sentences_grow_for_ever_is_refused() -> None:
    pcfg = PCFG.from_text("S -> S S 0.4 | a 0.3 | b 0.3")
    assert Temperature(0.5)(pcfg).pcfg.exact.spectral_radius == pytest.approx(2 * 0.16 / 0.34)
    with pytest.raises(
        InputError, match=r"temperature=0.25 gives .* may not end: the spectral radius is 1\.2.*S -> S S"
    ):
        Temperature(0.25)(pcfg)
    with pytest.raises(InputError, match="may not end"):
        parse_variant("ablate=S -> 'a'")(pcfg)


def test_a_variant_without_sentences_of_the_range_is_refused() -> None:
    pcfg = PCFG.from_text("S -> A A 0.5 | a 0.5\nA -> a 1.0")
    with pytest.raises(InputError, match=r"after ablate=S -> A A: no sentence .* 2\.\.2"):
        parse_variant("ablate=S -> A A")(pcfg, LengthRange(2, 2))


def test_an_endless_original_has_figures_given_lengths_only() -> None:
    pcfg = PCFG.from_text("S -> S S 0.6 | a 0.4")
    free = Branching("mirror")(pcfg)
    assert free.divergence.forward_per_sentence is None
    assert "use a range of lengths" in str(free.divergence.forward_reason)
    assert free.measures.mean_length is None
    assert free.entropy_change_per_token is None
    json.dumps(free.as_dict(), allow_nan=False)
    assert Branching("mirror")(pcfg, LengthRange(1, 5)).divergence.forward_per_sentence == 0.0


def test_measures_of_the_original_are_used_and_must_fit() -> None:
    lengths = LengthRange(2, 6)
    once = measure(ENGLISH, lengths)
    v = Zipf(1.0)(ENGLISH, lengths, original=once)
    assert v.original is once
    assert v.divergence == Zipf(1.0)(ENGLISH, lengths).divergence
    with pytest.raises(ValueError, match=r"given 2\.\.6, the other given None"):
        divergence(ENGLISH, v.pcfg, v.rule_map, original=once)


def test_what_a_change_is_called_reads_back() -> None:
    for spec in (*EXAMPLES, ",".join(EXAMPLES), "ablate=NP -> NP ,,mirror=NP"):
        assert parse_variant(spec).spec == spec
    assert parse_variant(" zipf = 1.50 ").spec == "zipf=1.5"
    assert parse_variant("ablate=NP->NP  PP").spec == "ablate=NP -> NP PP"
    assert parse_variant("ablate=NP -> NP ,") == Ablation(("NP -> NP ,",))
    assert parse_variant("mirror=NP+VP+NP") == Branching("mirror", ("NP", "VP"))
    v: Variant = parse_variant("mirror=NP,zipf=2")(ENGLISH)
    assert [part["spec"] for part in v.description["details"]["changes"]] == ["mirror=NP", "zipf=2"]


def test_a_leaking_word_posterior_makes_the_bound_strict() -> None:
    """Two derivations of one string: sharpening moves them and the string apart, the string less."""
    pcfg = PCFG.from_text("S -> A 0.5 | B 0.5\nA -> x 0.9 | y 0.1\nB -> x 0.4 | y 0.6")
    v = Sharpen(2.0)(pcfg)
    strings = divergence_of_strings(pcfg, v.pcfg, LengthRange(1, 1))
    assert strings is not None
    assert v.divergence.forward_per_sentence is not None
    assert strings < v.divergence.forward_per_sentence - 1e-3
    clear = PCFG.from_text("S -> A 0.5 | B 0.5\nA -> x 0.9 | y 0.1\nB -> u 0.4 | v 0.6")
    v = Sharpen(2.0)(clear)
    assert divergence_of_strings(clear, v.pcfg, LengthRange(1, 1)) == pytest.approx(
        v.divergence.forward_per_sentence, abs=1e-12
    )
