"""The lexicon mode parse: classes of words by form, their probabilities, and how unseen words are read."""

import json
import math
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from dense_rules import DenseRules, expected_counts
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.grammar.estimate.relative_frequency import RuleTable
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.estep import Subtrees, encode
from truesource.grammar.estimate.split_merge.parameters import Layout
from truesource.grammar.estimate.split_merge.train import NEW_FORM, split_merge, with_words
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank import Treebank
from truesource.grammar.unknown import ANY, RareWordClasses, put_words, read_words, word_class, word_forms

QUICK = SplitMerge(cycles=1, em_split=5, em_merge=3, em_smooth=2, lexicon="parse", rare=1, class_types=2)
VERBS = ("walking", "talking", "running", "sees", "sees", "sees", "sees", "naps", "hops")
NOUNS = ("dog", "dog", "dog", "dog", "Rex", "Max", "1984", "2001", "keys")


def leaf(label: str, word: str) -> Tree:
    return Tree(label, (word,))


def clause(noun: str, verb: str) -> Tree:
    return Tree("ROOT", (Tree("S", (leaf("N", noun), leaf("V", verb))),))


def bank() -> list[Tree]:
    return [clause(noun, verb) for noun, verb in zip(NOUNS, VERBS, strict=True)]


def lexicon(pcfg: PCFG) -> dict[tuple[str, str], float]:
    return {
        (pcfg.symbols[a], pcfg.vocabulary[w]): math.exp(p)
        for (a, w), p in zip(pcfg.lexical, pcfg.lexical_logp, strict=True)
    }


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("walking", ["<unk:low~ing>", "<unk:low~ng>", "<unk:low~g>", "<unk:low>"]),
        ("Rex", ["<unk:cap~x>", "<unk:cap>"]),
        ("NATO", ["<unk:caps~to>", "<unk:caps~o>", "<unk:caps>"]),
        ("Well-being", ["<unk:cap+dash~ing>", "<unk:cap+dash~ng>", "<unk:cap+dash~g>", "<unk:cap+dash>"]),
        ("10-year", ["<unk:mix+dash~ear>", "<unk:mix+dash~ar>", "<unk:mix+dash~r>", "<unk:mix+dash>"]),
        ("3rd", ["<unk:mix~d>", "<unk:mix>"]),
        ("1,234.50", ["<unk:num:0,000.00>", "<unk:num>"]),
        ("123456", ["<unk:num:0000>", "<unk:num>"]),
        ("--", ["<unk:sym>"]),
        ("a", ["<unk:low>"]),
        ("I", ["<unk:cap>"]),
        ("Äpfel", ["<unk:cap~fel>", "<unk:cap~el>", "<unk:cap~l>", "<unk:cap>"]),
        ("don't", ["<unk:low~t>", "<unk:low>"]),
        ("犬小屋", ["<unk:low~屋>", "<unk:low>"]),
    ],
)
def test_forms_of_a_word_from_fine_to_coarse(word: str, forms: list[str]) -> None:
    assert word_forms(word) == (*forms, ANY)
    assert word_class(word, {forms[-1]}) == forms[-1]
    assert word_class(word, set()) == ANY


def occurrences(trees: list[Tree]) -> Counter[str]:
    return Counter(word for tree in trees for word in tree.leaves())


def test_rare_words_go_to_the_finest_class_that_is_large_enough() -> None:
    classes = RareWordClasses.of(occurrences(bank()), 1, 2)
    assert classes.frequent == {"dog", "sees"}
    assert classes.rare == {
        **dict.fromkeys(("walking", "talking", "running"), "<unk:low~ing>"),
        **dict.fromkeys(("naps", "hops"), "<unk:low~ps>"),
        **dict.fromkeys(("Rex", "Max"), "<unk:cap~x>"),
        **dict.fromkeys(("1984", "2001"), "<unk:num:0000>"),
        "keys": ANY,
    }
    coarse = RareWordClasses.of(occurrences(bank()), 1, 4)
    assert coarse.rare["naps"] == coarse.rare["keys"] == coarse.rare["walking"] == "<unk:low>"
    assert coarse.rare["Rex"] == ANY


def test_unusable_treebanks_are_refused() -> None:
    with pytest.raises(InputError, match="no word occurs 1 times or fewer"):
        RareWordClasses.of(occurrences([clause("dog", "sees")] * 2), 1, 1)
    with pytest.raises(InputError, match="'<unk>' of the treebank is also a class"):
        RareWordClasses.of(occurrences([*bank(), clause("<unk>", "sees")]), 1, 2)


@pytest.mark.long
def test_one_substate_by_hand() -> None:
    """N: dog 4, Rex and Max 1 each, two years 1 each, keys 1 of 9; V: three in -ing, sees 4, two in -ps of 9."""
    found = lexicon(split_merge(bank(), replace(QUICK, cycles=0, tag_prior=0.0), seed=0).pcfg)
    assert found["N-0", "dog"] == pytest.approx(4 / 9)
    assert found["N-0", "Rex"] == pytest.approx(2 / 9 * 1 / 4)  # two tokens and two unknown ones share 2/9
    assert found["N-0", "<unk:cap~x>"] == pytest.approx(2 / 9 * 2 / 4 * (1 - NEW_FORM))
    assert found["N-0", "keys"] == pytest.approx(1 / 9 * 1 / 2)
    assert found["N-0", ANY] == pytest.approx(1 / 9 * 1 / 2 + NEW_FORM * (1 / 9 + 1 / 9))
    assert found["V-0", "walking"] == pytest.approx(3 / 9 * 1 / 6)
    assert found["V-0", "<unk:low~ps>"] == pytest.approx(2 / 9 * 1 / 2 * (1 - NEW_FORM))
    assert found["V-0", ANY] == pytest.approx(NEW_FORM * (3 / 9 + 2 / 9) / 2)
    assert sum(p for (tag, _), p in found.items() if tag == "N-0") == pytest.approx(1.0, abs=1e-14)


words = st.sampled_from(["x", "y", "zap", "sap", "Zap", "12", "34", "-"])
inner = st.recursive(
    st.builds(leaf, st.sampled_from("AB"), words),
    lambda children: st.builds(
        lambda label, parts: Tree(label, tuple(parts)),
        st.sampled_from("AB"),  # preterminal and phrasal at once
        st.lists(children, min_size=1, max_size=2),
    ),
    max_leaves=4,
)
treebanks = st.lists(st.builds(lambda tree: Tree("ROOT", (tree,)), inner), min_size=1, max_size=6)


def random_parameters(table: RuleTable, n: int, seed: int) -> DenseRules:
    layout = Layout(table, (1, *(n for _ in table.symbols[1:])))
    blank = DenseRules(layout, np.zeros(layout.size), (0, *([0, 1] for _ in table.symbols[1:])))
    return blank.normalised(np.random.default_rng(seed).uniform(0.05, 1.0, layout.size))


def by_name(parameters: DenseRules, values: np.ndarray) -> dict[tuple[str, int, str], float]:
    """Lexical entries of a flat array by label, substate and word."""
    table, found, rule = parameters.layout.table, {}, 0
    for block in parameters.layout.blocks:
        if block.left < 0:
            part = values[block.start : block.stop].reshape(block.shape[0], block.shape[3])
            for i, row in enumerate(part):
                word = table.words[table.rules[rule + i, 3]]
                found |= {(table.symbols[block.parent], k, word): float(p) for k, p in enumerate(row)}
        rule += block.shape[0]
    return found


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(treebanks, st.integers(0, 99), st.integers(1, 2), st.sampled_from([0.5, 4.0]), st.sampled_from([0.0, 0.5]))
def test_frequent_words_and_class_masses_keep_their_probability(
    trees: list[Tree], seed: int, rare: int, prior: float, tag_prior: float
) -> None:
    if min(occurrences(trees).values()) > rare:
        return
    classes = RareWordClasses.of(occurrences(trees), rare, 2)
    before = random_parameters(RuleTable.from_trees(classes.in_training(trees)), 2, seed)
    sparse, _ = with_words(before.sparse(), classes, Subtrees.of(trees), prior, tag_prior)
    np.testing.assert_allclose(np.bincount(sparse.rows, sparse.prob), 1.0, rtol=0, atol=1e-12)
    after = DenseRules.of(sparse)
    trained, final = by_name(before, before.prob), by_name(after, after.prob)
    masses: dict[tuple[str, int, str], float] = defaultdict(float)
    tagged = {(node.label, node.children[0]) for tree in trees for node in tree.subtrees() if node.is_preterminal}
    for (label, k, word), p in final.items():
        whole = word in classes.names or word == ANY or (word in classes.frequent and (label, word) in tagged)
        masses[label, k, word if whole else word_class(word, classes.names)] += p
    # what a class leaves to words of a new form stands with that of all words
    moved: dict[tuple[str, int], float] = defaultdict(float)
    for (label, k, word), p in final.items():
        if word in classes.names and word != ANY:
            left = p * NEW_FORM / (1 - NEW_FORM)
            masses[label, k, word] += left
            moved[label, k] += left
    for (label, k, word), p in masses.items():
        if word == ANY:
            p -= moved[label, k]
        assert p == pytest.approx(trained.get((label, k, word), 0.0), abs=1e-12)
    for tree in trees:
        for node in tree.subtrees():
            if node.is_preterminal and node.children[0] in classes.rare:
                for k in range(2):
                    assert final[node.label, k, classes.rare[node.children[0]]] > 0.0
                    assert final[node.label, k, ANY] > 0.0
    n_phrasal = int((before.layout.table.rules[:, 3] < 0).sum())
    at = int(before.layout.rules[n_phrasal, 0])
    np.testing.assert_array_equal(after.prob[:at], before.prob[:at])


@pytest.mark.long
def test_own_substates_of_rare_words_follow_the_trees_and_the_prior() -> None:
    trees = [*bank(), *bank()[:2]]
    classes = RareWordClasses.of(occurrences(trees), 2, 2)
    before = random_parameters(RuleTable.from_trees(classes.in_training(trees)), 2, 3)
    # all prior: every word of a class as the class
    alike = DenseRules.of(with_words(before.sparse(), classes, Subtrees.of(trees), 1e12, 0.0)[0])
    trained, final = by_name(before, before.prob), by_name(alike, alike.prob)
    ratio = [final["V", k, "walking"] / trained["V", k, "<unk:low~ing>"] for k in range(2)]
    assert ratio == pytest.approx([2 / (5 + 3)] * 2, rel=1e-9)
    fitted = DenseRules.of(with_words(before.sparse(), classes, Subtrees.of(trees), 0.25, 0.0)[0])
    own = by_name(fitted, fitted.prob)
    counts = by_name(alike, expected_counts(encode(trees, alike.layout.table)[0], alike)[1])
    members = {"walking": 2, "talking": 2, "running": 1}
    of_class = [sum(counts["V", k, word] for word in members) / 5 for k in range(2)]
    for k in range(2):
        pull = {
            word: n * (counts["V", k, word] + 0.25 * of_class[k]) / (n + 0.25) / of_class[k]
            for word, n in members.items()
        }
        total = sum(pull.values()) + 3  # three different words: three unknown occurrences
        for word in members:
            assert own["V", k, word] == pytest.approx(trained["V", k, "<unk:low~ing>"] * pull[word] / total, rel=1e-9)


@pytest.mark.long
def test_rare_words_may_have_other_tags_of_their_class() -> None:
    """Of the class in -ing, three words are verbs and one of them is a noun, too, twice; so walking may be one."""
    trees = [*bank(), clause("talking", "sees"), clause("talking", "sees")]
    classes = RareWordClasses.of(occurrences(trees), 3, 3)
    assert {word for word, name in classes.rare.items() if name == "<unk:low~ing>"} == {"walking", "talking", "running"}
    pcfg = split_merge(trees, replace(QUICK, cycles=0, rare=3, class_types=3, tag_prior=0.5), seed=0).pcfg
    found = lexicon(pcfg)
    # occurrences by tag, 0.5 more as in the class (3/4 V, 1/4 N), scaled back to as many as there were
    talking = {"V-0": 3 / 3.5 * (1 + 0.5 * 3 / 4), "N-0": 3 / 3.5 * (2 + 0.5 * 1 / 4)}
    walking = {"V-0": 1 / 1.5 * (1 + 0.5 * 3 / 4), "N-0": 1 / 1.5 * (0.5 * 1 / 4)}
    for tag in ("V-0", "N-0"):
        assert found[tag, "talking"] / found[tag, "walking"] == pytest.approx(talking[tag] / walking[tag])
        assert found[tag, "running"] == pytest.approx(found[tag, "walking"])
    # sees is frequent: a verb by itself; as a noun, it would be one of the class that its form belongs to
    assert found["V-0", "sees"] == pytest.approx(6 / 11)
    naps = {"V-0": 1 / 1.5 * (1 + 0.5 * 2 / 3), "N-0": 1 / 1.5 * (0.5 * 1 / 3)}
    assert word_class("sees", classes.names) == word_class("naps", classes.names) == "<unk:low~s>"
    assert found["N-0", "sees"] / found["N-0", "naps"] == pytest.approx(6 / 6.5 / (1 / 1.5))
    assert found["N-0", "naps"] / found["N-0", "keys"] == pytest.approx(naps["N-0"] / (1 / 1.5 * (1 + 0.5 * 1 / 3)))
    plain = lexicon(split_merge(trees, replace(QUICK, cycles=0, rare=3, class_types=3, tag_prior=0.0), seed=0).pcfg)
    assert ("N-0", "walking") not in plain
    assert plain["N-0", "talking"] > found["N-0", "talking"]


@pytest.mark.long
def test_unseen_words_are_read_as_classes_and_known_ones_stay() -> None:
    held_out = [clause("dog", "blinking"), clause("Bob", "sees"), clause("dog", "walking")]
    pcfg = split_merge(bank(), QUICK, seed=1, held_out=held_out).pcfg
    sentence = ["Fox", "blinking", "dog", "2020", "!!", "walking"]
    read = ["<unk:cap~x>", "<unk:low~ing>", "dog", "<unk:num:0000>", ANY, "walking"]
    assert read_words(pcfg, sentence) == read
    assert read_words(pcfg, ["Dog", "Dog", "dog"]) == [
        "dog",
        word_class("Dog", pcfg.meta["unknown_words"]["classes"]),
        "dog",
    ]
    assert read_words(pcfg, []) == []
    assert math.isfinite(pcfg.log_prob(read_words(pcfg, ["Fox", "blinking"])))
    assert math.isfinite(pcfg.log_prob(read_words(pcfg, ["!!", "keys"]))) is False  # keys was never a verb
    assert pcfg.meta["held_out"]["impossible_trees"] == 0
    np.testing.assert_allclose(pcfg.row_sums, 1.0, rtol=0, atol=1e-12)
    assert pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-9)
    json.dumps(pcfg.meta, allow_nan=False)
    tree = pcfg.viterbi(read_words(pcfg, ["Fox", "sees"]))[0]
    assert put_words(tree, ["Fox", "sees"]).leaves() == ["Fox", "sees"]
    with pytest.raises(InputError, match="expecting 2 words for the tree, got 1"):
        put_words(tree, ["Fox"])
    with pytest.raises(InputError, match="classes unknown words by 'hash'"):
        read_words(pcfg.with_meta(unknown_words={"scheme": "hash", "classes": []}), sentence)


@pytest.mark.long
def test_likelihood_in_the_meta_is_of_the_words_themselves() -> None:
    pcfg = split_merge(bank(), replace(QUICK, cycles=0), seed=0).pcfg
    found = lexicon(pcfg)
    total = sum(math.log(found["N-0", n] * found["V-0", v]) for n, v in zip(NOUNS, VERBS, strict=True))
    assert pcfg.meta["log_likelihood_per_token"] == pytest.approx(total / 18, rel=1e-12)


@pytest.mark.long
def test_mode_generate_knows_no_classes() -> None:
    pcfg = split_merge(bank(), replace(QUICK, lexicon="generate"), seed=1).pcfg
    assert "unknown_words" not in pcfg.meta
    assert set(pcfg.vocabulary) == {*NOUNS, *VERBS}
    assert read_words(pcfg, ["Fox", "sees"]) == ["Fox", "sees"]
    assert pcfg.log_prob(["Fox", "sees"]) == -math.inf


@pytest.mark.long
@pytest.mark.parametrize("lexicon_mode", ["generate", "parse"])
def test_odd_treebanks(lexicon_mode: str) -> None:
    """One tree; unary chains of ten; 300 words; labels of every kind; a symbol above words and phrases."""
    config = replace(QUICK, lexicon=lexicon_mode, cycles=2, rare=30)
    chain: Tree = leaf("C10", "deep")
    for i in range(9, -1, -1):
        chain = Tree(f"C{i}", (chain,))
    odd = "(ROOT (ADVP|PRT (PRP$ my) (-LRB- -LRB-) (Größe-ß^[x] 犬) (like=1@ b) (NP-1 x)))"
    banks = {
        "one tree": [clause("dog", "sees")],
        "chain": [Tree("ROOT", (chain,)), Tree("ROOT", (Tree("C3", (leaf("C10", "low"),)),))],
        "long": [Tree("ROOT", tuple(leaf("W", f"w{i}") for i in range(300)))],
        "odd labels": list(Treebank.from_trees([parse(odd)], None)),
        "both": [Tree("ROOT", (Tree("A", (leaf("A", "x"), leaf("B", "y"))),)), Tree("ROOT", (leaf("A", "z"),))],
    }
    for name, trees in banks.items():
        if name != "one tree":
            trees = trees * 30
        pcfg = split_merge(trees, config, seed=0, held_out=trees).pcfg
        assert pcfg.meta["impossible_trees"] == 0, name
        assert ("stopped" in pcfg.meta) == (name == "one tree")
        assert pcfg.meta["held_out"]["impossible_trees"] == 0, name
        np.testing.assert_allclose(pcfg.row_sums, 1.0, rtol=0, atol=1e-12)
        assert pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-9), name
        if len(trees[0].leaves()) < 100:
            assert math.isfinite(pcfg.log_prob(trees[0].leaves())), name


def parse(text: str) -> Tree:
    """Brackets as they are, labels not looked at."""
    from truesource.grammar.treebank.brackets import read_text

    return next(iter(read_text(text)))[1]


@pytest.mark.long
def test_more_cycles_than_the_data_supports_are_not_run(caplog: pytest.LogCaptureFixture) -> None:
    config = replace(QUICK, lexicon="generate", cycles=30)
    induced = split_merge(bank() * 5, config, seed=0)
    done = max(record["cycle"] for record in induced.trace)
    assert 1 <= done < 30
    assert induced.pcfg.meta["stopped"].startswith(f"stopped after {done} of 30 cycles: a further split would make")
    assert induced.pcfg.meta["stopped"] in caplog.text
    assert max(record["substates"] for record in induced.trace) <= induced.pcfg.meta["tokens"]
    assert "stopped" not in split_merge(bank() * 5, replace(config, cycles=done), seed=0).pcfg.meta


@pytest.mark.parametrize(
    "setting",
    [{"rare": 0}, {"rare": 1.5}, {"class_types": 0}, {"class_types": True}, {"class_prior": 0.0}, {"class_prior": "x"}],
)
def test_settings_out_of_range_are_refused(setting: dict[str, object]) -> None:
    (name,) = setting
    with pytest.raises(InputError, match=f"split-merge: {name}: expected .*, not "):
        replace(QUICK, **setting)
