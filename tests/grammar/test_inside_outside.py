"""Inside-outside EM against enumeration, differentiation and cases solved by hand."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chart_grammar import by_charts
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_grammars import cases
from reference_inference import all_strings, derivations, rules_of

from truesource.cli.main import main
from truesource.grammar.estimate.inside_outside import (
    CHECKPOINT,
    RuleCounts,
    expected_rule_counts,
    inside_outside,
    tree_brackets,
)
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

module = importlib.import_module(
    "truesource.grammar.estimate.inside_outside"
)  # where a package has a function of that name
Case = tuple[PCFG, list[list[str]]]
Span = tuple[int, int]
CLOSE = {"rel": 1e-10, "abs": 1e-10}
CYCLES = PCFG.from_text(
    "S -> A 0.45 | S B 0.25 | b 0.1 | B S 0.2\n"
    "A -> S 0.3 | B 0.5 | A A 0.1 | a 0.1\nB -> A 0.2 | B B 0.1 | b 0.6 | a 0.1"
)
TEXT = [s.split() for s in ("a b", "b", "b b a", "a b", "b a b b", "a")]


def flat(counts: RuleCounts) -> list[float]:
    """Binary, unary, lexical counts, one after the other."""
    return [*counts.binary, *counts.unary, *counts.lexical]


def crosses(a: Span, b: Span) -> bool:
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


@st.composite
def bracketed_cases(
    draw: st.DrawFn, max_size: int = 4, **shape: bool
) -> tuple[PCFG, list[list[str]], list[list[Span]]]:
    """A grammar, sentences, and up to two brackets of each that do not cross."""
    pcfg, found = draw(cases(max_size=max_size, most=3, **shape))
    brackets = []
    for sentence in found:
        n = len(sentence)
        spans = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
        inner = [(i, j) for i, j in spans if 1 < j - i < n]  # only these exclude anything
        some = draw(st.lists(st.sampled_from(inner or spans), max_size=2))
        brackets.append(some[:1] if len(some) == 2 and crosses(*some) else some)
    return pcfg, found, brackets


def probability(pcfg: PCFG, factor: NDArray[np.complex128], sentence: list[str], brackets: list[Span]) -> complex:
    """P(sentence, brackets respected) when the probability of each rule is multiplied by ``factor``."""
    n, size = len(sentence), len(pcfg.symbols)
    r, q = len(pcfg.binary), len(pcfg.binary) + len(pcfg.unary)
    binary, unary, lexical = (
        np.exp(logp) * part for (_, logp), part in zip(pcfg.tables(), np.split(factor, [r, q]), strict=True)
    )
    steps = np.zeros((size, size), dtype=complex)
    steps[pcfg.unary[:, 0], pcfg.unary[:, 1]] = unary
    chart: dict[Span, NDArray[np.complex128]] = {}
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            bare = np.zeros(size, dtype=complex)
            if not any(crosses((i, j), bracket) for bracket in brackets):
                for (a, w), p in zip(pcfg.lexical.tolist(), lexical, strict=True):
                    bare[a] += p if length == 1 and pcfg.vocabulary[w] == sentence[i] else 0.0
                for k in range(i + 1, j):
                    for (a, b, c), p in zip(pcfg.binary.tolist(), binary, strict=True):
                        bare[a] += p * chart[i, k][b] * chart[k, j][c]
            chart[i, j] = np.linalg.solve(np.eye(size) - steps, bare)
    return complex(chart[0, n][pcfg.start])


@pytest.mark.long
@given(bracketed_cases())
@settings(max_examples=40)
def test_counts_are_the_derivative_of_the_log_likelihood(case: tuple[PCFG, list[list[str]], list[list[Span]]]) -> None:
    pcfg, text, brackets = case
    wanted = np.zeros(pcfg.n_rules)
    log_probs = []
    for sentence, spans in zip(text, brackets, strict=True):
        total = probability(pcfg, np.ones(pcfg.n_rules, complex), sentence, spans).real
        log_probs.append(math.log(total) if total > 0.0 else -math.inf)
        for rule in range(pcfg.n_rules) if total > 0.0 else ():
            factor = np.ones(pcfg.n_rules, dtype=complex)
            factor[rule] += 1e-30j
            wanted[rule] += probability(pcfg, factor, sentence, spans).imag / 1e-30 / total
    found = expected_rule_counts(pcfg, text, brackets=brackets)
    assert flat(found) == pytest.approx(wanted.tolist(), **CLOSE)
    assert found.log_probs == pytest.approx(log_probs, **CLOSE)
    assert found.impossible == tuple(i + 1 for i, score in enumerate(log_probs) if score == -math.inf)


@pytest.mark.long
@given(bracketed_cases(unary_cycles=False))
@settings(max_examples=40)
def test_counts_without_unary_cycles_are_sums_over_derivations(
    case: tuple[PCFG, list[list[str]], list[list[Span]]],
) -> None:
    pcfg, text, brackets = case
    wanted: Counter[tuple[str, ...]] = Counter()
    for sentence, spans in zip(text, brackets, strict=True):
        kept = [
            (tree, p)
            for tree, p in derivations(rules_of(pcfg), sentence)
            if not any(crosses(a, b) for a in tree_brackets(tree) for b in spans)
        ]
        total = math.fsum(p for _, p in kept)
        for tree, p in kept:
            for node in tree.subtrees():
                wanted[node.label, *(c.label if isinstance(c, Tree) else f"'{c}" for c in node.children)] += p / total
    found = flat(expected_rule_counts(pcfg, text, brackets=brackets))
    names, words = pcfg.symbols, [f"'{word}" for word in pcfg.vocabulary]
    rules = [tuple(names[s] for s in rule) for table in (pcfg.binary, pcfg.unary) for rule in table.tolist()]
    rules += [(names[a], words[w]) for a, w in pcfg.lexical.tolist()]
    assert found == pytest.approx([wanted[rule] for rule in rules], **CLOSE)


@pytest.mark.long
@given(bracketed_cases(max_size=5), st.sampled_from([0.0, 0.0, 0.3]))
@settings(max_examples=25)
def test_em_never_lowers_the_objective(case: tuple[PCFG, list[list[str]], list[list[Span]]], prior: float) -> None:
    pcfg, text, brackets = case
    if len(expected_rule_counts(pcfg, text, brackets=brackets).impossible) == len(text):
        with pytest.raises(InputError, match="none of the sentences"):
            inside_outside(pcfg, text, iterations=3, brackets=brackets, prior=prior)
        return
    found = inside_outside(pcfg, text, iterations=8, brackets=brackets, prior=prior)
    scores = [record["objective"] for record in found.trace]
    assert len(scores) == 9
    assert min(np.diff(scores)) >= -1e-12
    assert len({record["impossible"] for record in found.trace}) == 1
    assert found.pcfg.row_sums[found.pcfg.row_sums > 0.0] == pytest.approx(1.0, abs=1e-9)
    assert found.pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-6) or prior > 0.0  # EM makes grammars consistent
    last = expected_rule_counts(found.pcfg, text, brackets=brackets).log_probs
    tokens = sum(len(s) for s, score in zip(text, last, strict=True) if np.isfinite(score))
    assert scores[-1] == found.trace[-1]["log_likelihood"] or prior > 0.0
    assert last[np.isfinite(last)].sum() / tokens == pytest.approx(found.trace[-1]["log_likelihood"], **CLOSE)


@pytest.mark.long
def test_a_grammar_is_a_fixed_point_on_its_own_language() -> None:
    """Every string of a finite, ambiguous language, as often as in 256 * 125 draws that go exactly as expected."""
    pcfg = PCFG.from_text(
        "S -> X Y 0.5 | Y 0.25 | a 0.25\nX -> Y Y 0.5 | Y 0.25 | a 0.25\nY -> Z 0.4 | a 0.2 | b 0.4\nZ -> a 0.6 | b 0.4"
    )
    tables = all_strings(rules_of(pcfg), 4)["S"]
    draws = 16 * 25**3
    text = [list(string) for table in tables for string, p in table.items() for _ in range(round(draws * p))]
    assert len(text) == draws
    exact = [draws * p for table in tables for p in table.values()]
    assert exact == pytest.approx([round(x) for x in exact], abs=1e-6)  # whole numbers, so that nothing is rounded
    after = inside_outside(pcfg, text, iterations=1).pcfg
    for (rules, logp), (rules_after, logp_after) in zip(pcfg.tables(), after.tables(), strict=True):
        assert (rules == rules_after).all()
        assert logp_after == pytest.approx(logp, abs=1e-10)


@pytest.mark.long
def test_full_brackets_of_unambiguous_labels_give_relative_frequencies() -> None:
    """Words tell their symbols, brackets tell the tree: what is expected is what stands there."""
    trees = [
        Tree("S", (Tree("A", ("a",)), Tree("S", (Tree("S", (Tree("B", ("b",)),)), Tree("A", ("a",)))))),
        Tree("S", (Tree("S", (Tree("A", ("a",)), Tree("S", (Tree("B", ("b",)),)))), Tree("A", ("a",)))),
        Tree("S", (Tree("A", ("a",)), Tree("S", (Tree("B", ("b",)),)))),
    ]
    pcfg = PCFG.from_text("S -> A S 0.1 | S A 0.2 | B 0.7\nA -> a 1.0\nB -> b 1.0")
    text = [tree.leaves() for tree in trees]
    brackets = [tree_brackets(tree) for tree in trees]
    assert brackets[1] == [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]
    found = expected_rule_counts(pcfg, text, brackets=brackets)
    names = pcfg.symbols
    by_rule = {tuple(names[s] for s in rule): c for rule, c in zip(pcfg.binary.tolist(), found.binary, strict=True)}
    assert by_rule == {("S", "A", "S"): pytest.approx(3.0), ("S", "S", "A"): pytest.approx(2.0)}
    assert found.unary == pytest.approx([3.0])
    assert sorted(found.lexical) == pytest.approx([3.0, 5.0])
    free = expected_rule_counts(pcfg, text)
    assert free.log_probs[0] > found.log_probs[0]  # without brackets both trees of "a b a" count


@pytest.mark.long
@given(cases(max_size=4))
@settings(max_examples=15)
def test_all_brackets_of_the_sentence_itself_change_nothing(case: Case) -> None:
    pcfg, (sentence,) = case
    n = len(sentence)
    free = expected_rule_counts(pcfg, [sentence])
    trivial = expected_rule_counts(pcfg, [sentence], brackets=[[(0, n), *((i, i + 1) for i in range(n))]])
    assert flat(trivial) == flat(free)


@pytest.mark.long
def test_equal_sentences_count_as_often_as_they_occur() -> None:
    once = [expected_rule_counts(CYCLES, [s]) for s in TEXT]
    together = expected_rule_counts(CYCLES, TEXT)
    assert flat(together) == pytest.approx(np.sum([flat(c) for c in once], axis=0).tolist(), **CLOSE)
    assert together.log_probs == pytest.approx([float(c.log_probs[0]) for c in once], **CLOSE)
    apart = expected_rule_counts(CYCLES, [["b", "b", "b"]] * 2, brackets=[[(0, 2)], [(1, 3)]])
    assert apart.log_probs[0] != pytest.approx(apart.log_probs[1])  # equal words with other brackets do not


@pytest.mark.long
@pytest.mark.parametrize("word", [0.7, 0.7e-12], ids=["frequent", "rare"])
@pytest.mark.parametrize("bracketed", [False, True], ids=["free", "bracketed"])
def test_long_sentences_neither_under_nor_overflow(word: float, bracketed: bool) -> None:
    """S -> S S makes every binary tree (Catalan numbers); full brackets leave one of them."""
    pcfg = PCFG.from_text(f"S -> S S 0.2 | S 0.1 | rare {word}" + (f" | other {0.7 - word}" if word < 0.7 else ""))
    n = 200
    trees = 0.0 if bracketed else math.log(math.comb(2 * n - 2, n - 1) // n)
    exact = trees + (n - 1) * math.log(0.2) + n * math.log(word) - (2 * n - 1) * math.log(0.9)
    brackets = [[(0, j) for j in range(1, n + 1)]] if bracketed else None
    found = expected_rule_counts(pcfg, [["rare"] * n], brackets=brackets)
    assert found.log_probs == pytest.approx([exact], rel=1e-12)
    assert found.binary == pytest.approx([n - 1], rel=1e-10)
    assert found.unary == pytest.approx([(2 * n - 1) / 9], rel=1e-10)  # rounds of S -> S, 0.1 / (1 - 0.1) a node
    assert max(found.lexical) == pytest.approx(n, rel=1e-10)


@pytest.mark.long
def test_symbols_of_very_different_weight_over_one_span() -> None:
    """The context asks for the symbol that is 1e-100 times as probable as its rival."""
    pcfg = PCFG.from_text(
        "S -> A e 0.5 | B f 0.5\nA -> A A 0.4 | 'a' 0.6\nB -> B B 0.4 | 'a' 1e-3 | 'b' 0.599\n"
        "e -> 'e' 1.0\nf -> 'f' 1.0"
    )
    found = expected_rule_counts(pcfg, [["a"] * 40 + ["f"]])
    named = dict(zip([pcfg.symbols[a] for a in pcfg.binary[:, 0]], found.binary, strict=True))
    assert named["A"] == 0.0
    assert named["B"] == pytest.approx(39.0)


@pytest.mark.long
def test_one_step_by_hand() -> None:
    """S -> S S | a: a sentence of n words has n - 1 branchings, so one step finds the share of branchings."""
    pcfg = PCFG.from_text("S -> S S 0.3 | a 0.7")
    found = inside_outside(pcfg, [["a"] * n for n in (1, 2, 3, 6)], iterations=5)
    assert math.exp(found.pcfg.binary_logp[0]) == pytest.approx(8 / 20)
    assert found.trace[1]["log_likelihood"] == pytest.approx(found.trace[5]["log_likelihood"], abs=1e-12)
    smoothed = inside_outside(pcfg, [["a"] * n for n in (1, 2, 3, 6)], iterations=1, prior=3.0)
    assert math.exp(smoothed.pcfg.binary_logp[0]) == pytest.approx(11 / 26)


@pytest.mark.long
def test_rules_without_use_go_and_symbols_without_use_stay() -> None:
    pcfg = PCFG.from_text("S -> A 0.5 | B 0.5\nA -> a 0.5 | b 0.5\nB -> c 0.3 | d 0.7")
    after = inside_outside(pcfg, [["a"]], iterations=1).pcfg
    assert after.sizes() == {"symbols": 3, "labels": 3, "words": 3, "binary": 0, "unary": 1, "lexical": 3}
    assert expected_rule_counts(after, [["a"]]).log_probs == pytest.approx(0.0)
    assert sorted(np.exp(after.lexical_logp)) == pytest.approx([0.3, 0.7, 1.0])
    kept = inside_outside(pcfg, [["a"]], iterations=1, prior=1.0).pcfg
    assert kept.n_rules == pcfg.n_rules
    assert sorted(np.exp(kept.lexical_logp)) == pytest.approx([1 / 3, 0.5, 0.5, 2 / 3])


@pytest.mark.long
def test_rules_of_rare_symbols_are_estimated_like_others() -> None:
    pcfg = PCFG.from_text("S -> A 0.999999999 | B 1e-9\nA -> a 0.5 | b 0.5\nB -> a 0.5 | b 0.5")
    after = inside_outside(pcfg, [["a"]], iterations=1).pcfg
    assert np.exp(after.lexical_logp) == pytest.approx([1.0, 1.0])
    assert np.exp(after.unary_logp.min()) == pytest.approx(1e-9)


@pytest.mark.long
def test_impossible_sentences_are_counted_and_teach_nothing() -> None:
    text = [["a"], ["a", "unseen"], ["b", "b"], ["unseen"]]
    found = expected_rule_counts(CYCLES, text)
    assert found.impossible == (2, 4)
    assert list(np.isneginf(found.log_probs)) == [False, True, False, True]
    assert flat(found) == flat(expected_rule_counts(CYCLES, [["a"], ["b", "b"]]))
    fitted = inside_outside(CYCLES, text, iterations=2, held_out=[["b"], ["unseen"]])
    assert [record["impossible"] for record in fitted.trace] == [2, 2, 2]
    assert [record["held_out_impossible"] for record in fitted.trace] == [1, 1, 1]
    for impossible, brackets in (([["unseen"]], None), ([["x", "y", "z"]], [[(1, 3)]])):
        with pytest.raises(
            InputError, match=r"every sentence has probability 0 \(brackets respected\); start from another"
        ):
            inside_outside(PCFG.from_text("S -> L z 1.0\nL -> x y 1.0"), impossible, iterations=1, brackets=brackets)
    assert fitted.trace[0]["held_out"] == pytest.approx(expected_rule_counts(CYCLES, [["b"]]).log_probs[0])


@pytest.mark.long
def test_a_grammar_that_leaks_mass_is_welcome() -> None:
    leaky = PCFG.from_text("S -> S S 0.6 | a 0.3 | D 0.1\nD -> D 1.0")  # D never ends
    fitted = inside_outside(leaky, [["a"] * 3], iterations=1).pcfg
    assert np.exp(fitted.binary_logp) == pytest.approx([0.4])
    assert np.exp(fitted.lexical_logp) == pytest.approx([0.6])


@pytest.mark.long
def test_the_tolerance_stops() -> None:
    found = inside_outside(CYCLES, TEXT, iterations=500, tolerance=1e-3)
    gains = np.diff([record["log_likelihood"] for record in found.trace])
    assert found.converged
    assert gains[-1] < 1e-3 <= min(gains[:-1])
    assert not inside_outside(CYCLES, TEXT, iterations=2, tolerance=1e-3).converged


@pytest.mark.long
def test_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    text = [list(rng.choice(["a", "b"], size=n)) for n in rng.integers(1, 9, size=300)]
    digests = set()
    for count in ("1", "2"):
        monkeypatch.setenv("TRUESOURCE_THREADS", count)
        digests.add(inside_outside(CYCLES, text, iterations=3).pcfg.digest)
    assert len(digests) == 1


def rewritten(path: Path, change: Any) -> None:
    """The checkpoint with its arrays changed, and its state as a dict."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    state = json.loads(str(arrays["state"]))
    change(state, arrays)
    np.savez(path, **{**arrays, "state": np.array(json.dumps(state))})


#: each damages the next copy further, so the first mistake that is found is the last one made or an earlier one
BAD_STATES = [
    lambda state, arrays: state["trace"][-1].update(objective="0.5"),
    lambda state, arrays: state.update(iteration=True),
    lambda state, arrays: state.update(trace=[]),
    lambda state, arrays: arrays.update(arr_0=arrays["arr_0"].astype(float)),
    lambda state, arrays: arrays.pop("arr_5"),
]


@pytest.mark.long
def test_interrupted_and_resumed_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = inside_outside(CYCLES, TEXT, iterations=6, held_out=TEXT[:2])
    whole.pcfg.save(tmp_path / "whole.npz")
    for stop in (1, 4):
        folder = tmp_path / f"after-{stop}"
        calls = 0
        real = module.reestimate

        def interrupted(*arguments: object, at: int = stop, step: object = real) -> PCFG:
            nonlocal calls
            calls += 1
            if calls > at:
                raise KeyboardInterrupt
            return step(*arguments)  # type: ignore[operator, no-any-return]

        monkeypatch.setattr(module, "reestimate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            inside_outside(CYCLES, TEXT, iterations=6, held_out=TEXT[:2], checkpoint=folder)
        monkeypatch.setattr(module, "reestimate", real)
        for _ in range(2):  # a finished run is resumed, too
            resumed = inside_outside(CYCLES, TEXT, iterations=6, held_out=TEXT[:2], checkpoint=folder)
            resumed.pcfg.save(tmp_path / "resumed.npz", force=True)
            assert (tmp_path / "resumed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
            for mine, theirs in zip(resumed.trace, whole.trace, strict=True):
                assert mine == theirs
        with pytest.raises(InputError, match="another grammar, text or settings"):
            inside_outside(CYCLES, TEXT, iterations=6, prior=0.1, held_out=TEXT[:2], checkpoint=folder)
        for change in BAD_STATES:
            rewritten(folder / CHECKPOINT, change)
            with pytest.raises(InputError, match=r"the checkpoint is damaged: .*; delete it to start again"):
                inside_outside(CYCLES, TEXT, iterations=6, held_out=TEXT[:2], checkpoint=folder)
        (folder / CHECKPOINT).write_bytes(b"PK not an archive")
        with pytest.raises(InputError, match="the checkpoint is damaged; delete it to start again"):
            inside_outside(CYCLES, TEXT, iterations=6, held_out=TEXT[:2], checkpoint=folder)


@pytest.mark.parametrize(
    ("sentences", "brackets", "message"),
    [
        ([], None, "no sentences"),
        ([["a"], []], None, "sentence 2 has no tokens"),
        ([["a"], ["a", "b"]], [[]], "brackets are given for 1 sentences, not 2; give each a list"),
        ([["a"], ["a", "b"]], [[], [(0, 3)]], r"bracket \(0, 3\) of sentence 2 is outside its 2 tokens"),
        ([["a"], ["a", "b"]], [[], [(1, 1)]], r"bracket \(1, 1\) of sentence 2"),
        ([["a"], ["a", "b"]], [[(-1, 1)], []], r"bracket \(-1, 1\) of sentence 1"),
        ([["a", "b", "a"]], [[(0, 2), (1, 3)]], r"\(0, 2\) and \(1, 3\) of sentence 1 cross"),
        ([["a"] * 9], [[(0, 9), (1, 3), (3, 6), (4, 5), (5, 8)]], r"\(3, 6\) and \(5, 8\) of sentence 1 cross"),
    ],
    ids=["nothing", "empty", "too-few", "outside", "no-width", "negative", "cross", "cross-deep"],
)
def test_bad_text_is_refused(sentences: list[list[str]], brackets: list[list[Span]] | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        expected_rule_counts(CYCLES, sentences, brackets=brackets)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iterations": -1}, "the number of EM iterations must be an integer >= 0, got"),
        ({"iterations": True}, "the number of EM iterations must be an integer >= 0, got"),
        ({"iterations": 1, "tolerance": math.nan}, "tolerance"),
        ({"iterations": 1, "prior": -0.5}, "prior"),
    ],
    ids=["negative", "bool", "nan", "prior"],
)
def test_bad_settings_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        inside_outside(CYCLES, TEXT, **settings)  # type: ignore[arg-type]


def run_induce(monkeypatch: pytest.MonkeyPatch, *args: object) -> int | str | None:
    """Exit code of `truesource induce ARGS`, run in this process."""
    monkeypatch.setattr(sys, "argv", ["truesource", "induce", *map(str, args)])
    try:
        main()
    except SystemExit as stop:
        return stop.code or 0
    return 0


@pytest.mark.long
def test_the_verb_fits_a_grammar_to_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, start, output = tmp_path / "text.txt", tmp_path / "start.txt", tmp_path / "new.npz"
    text.write_text("a a b\na\nb z\na b a b\n", encoding="utf-8")
    start.write_text("S -> S S 0.3 | a 0.6 | b 0.1\n", encoding="utf-8")
    assert run_induce(monkeypatch, "-o", output, "--unbracketed", text, "--start-from", start) == 0
    assert np.exp(PCFG.load(output).binary_logp) == pytest.approx([5 / 13])
    out = capsys.readouterr().out
    assert "1 of 4 sentences have probability 0 and are excluded" in out
    assert f"truesource bound {output} {text}" in out.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.npz", "start.txt", "text.txt"]


@pytest.mark.parametrize(
    "given", ["", "SOME --start-from SOME", "--unbracketed SOME", "SOME --unbracketed SOME --start-from SOME"]
)
def test_the_verb_wants_a_treebank_or_text_and_a_grammar(
    tmp_path: Path, given: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = str(tmp_path / "some")
    assert run_induce(monkeypatch, "-o", tmp_path / "new.npz", *given.replace("SOME", some).split()) == 2
    assert "a treebank, or --start-from" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("brackets", [None, [[(0, 300)]]])
def test_a_sentence_whose_weights_are_too_far_apart_is_refused_not_called_impossible(brackets: object) -> None:
    """The last word decides between two left recursions, of which a^n favours the other by a factor of 9 a word."""
    pcfg = PCFG.from_text(
        "S -> A Y 0.5 | B W 0.5\nA -> A X 0.9 | X X 0.1\nB -> B Z 0.9 | Z Z 0.1\n"
        "X -> a 0.9 | b 0.1\nZ -> a 0.1 | b 0.9\nY -> y 1\nW -> w 1"
    )
    chart = by_charts(pcfg)
    with pytest.raises(InputError, match="sentence 2 has parts whose weights differ by a factor of more than 1e250"):
        expected_rule_counts(chart, [["a", "a", "y"], ["a"] * 300 + ["w"]], brackets=brackets and [[], *brackets])
    counts = expected_rule_counts(chart, [["a"] * 300 + ["y"], ["a"] * 300])  # what is lost here leads nowhere
    assert counts.impossible == (2,)
    linear = expected_rule_counts(pcfg, [["a"] * 300 + ["w"]])  # its automaton has room for all of them
    used = linear.binary[[rule[0] == pcfg.symbol_ids["B"] for rule in pcfg.binary.tolist()]]
    np.testing.assert_allclose(np.sort(used), [1.0, 298.0], rtol=1e-12)


@pytest.mark.long
def test_products_of_two_kept_weights_that_no_float_holds_are_not_zero() -> None:
    """P over a^k, Q over b^k are less probable than B, D by 8.3e-37 a word: 1e-288 for 8 words, below 1e-324 for 9."""
    p = 8.3e-37
    pcfg = PCFG.from_text(
        "S -> P Q 0.4 | B W 0.3 | D W 0.3\nW -> w 1\n"
        f"P -> P X 0.5 | X X 0.5\nX -> a {p} | w 1\nB -> B Z 0.5 | Z Z 0.5\nZ -> a 1\n"
        f"Q -> Q Y 0.5 | Y Y 0.5\nY -> b {p} | w 1\nD -> D V 0.5 | V V 0.5\nV -> b 1\n"
    )
    sentence = ["a"] * 6 + ["b"] * 6
    assert pcfg.log_prob(sentence) == pytest.approx(np.log(0.4) + 10 * np.log(0.5) + 12 * np.log(p), rel=1e-12)
    with pytest.raises(InputError, match="sentence 2 has parts whose weights differ by a factor of more than 1e250"):
        expected_rule_counts(pcfg, [["a", "a", "b", "b"], sentence])
