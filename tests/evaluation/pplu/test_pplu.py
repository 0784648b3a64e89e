"""PPLu: the identities that define it, on a language written out in full, and the worked example of the paper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from reference_inference import all_strings, rules_of
from toy_english import TOY
from toy_models import Table
from whole_language import whole_language

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.pplu.compare import END, UnigramModel, UnigramPerplexity, compare_pplu, oracle_unigram
from truesource.evaluation.pplu.random_split import random_split
from truesource.evaluation.pplu.rankings import rank_sentences
from truesource.evaluation.pplu.sense_split import sense_grammar, sense_split
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

RANGE = LengthRange(2, 5)
SMALL = "S -> A S 0.5 | A 0.5\nA -> a 0.5 | b 0.25 | c 0.25"
LEARNER = Table(
    {
        "<s>": {"a": 0.6, "b": 0.2, "c": 0.2},
        "a": {"a": 0.3, "b": 0.3, "c": 0.1, END: 0.3},
        "b": {"a": 0.5, "b": 0.1, "c": 0.1, END: 0.3},
        "c": {"a": 0.4, "b": 0.2, "c": 0.2, END: 0.2},
    },
    ("a", "b", "c"),
)
LEARNER_OPEN = Table(
    {**{w: {**row, "<unk>": 0.05} for w, row in LEARNER.table.items()}, "<unk>": {END: 1.0}}, LEARNER.vocabulary
)


@pytest.fixture(scope="module")
def language() -> tuple[PCFG, LengthRange, list[list[str]]]:
    """A language in which every sentence stands as often as its probability says."""
    pcfg = PCFG.from_text("S -> x A 0.5 | B y 0.5\nA -> a 0.5 | b 0.5\nB -> a 0.25 | b A 0.75")
    return pcfg, LengthRange(1, 3), whole_language(pcfg, 1, 3, 64)


@pytest.mark.parametrize(
    "frame",
    [ScoringFrame(), ScoringFrame(eos=False), ScoringFrame(first=False), ScoringFrame(eos=False, first=False)],
    ids=str,
)
def test_minus_log_pplu_of_the_truth_is_its_mutual_information(
    language: tuple[PCFG, LengthRange, list[list[str]]], frame: ScoringFrame
) -> None:
    """Over the whole language the identity is exact: -ln PPLu = I = H(u) - H(W|C), for any frame."""
    pcfg, lengths, text = language
    oracle = Oracle(pcfg, lengths=lengths)
    found = compare_pplu(oracle, Setting(pcfg, text, lengths=lengths, frame=frame))
    counts: Counter[tuple[tuple[str, ...], str]] = Counter()
    for sentence in text:
        tokens = [*sentence, END]
        for i, token in enumerate(tokens):
            if (i or frame.first) and (token != END or frame.eos):
                counts[tuple(sentence[:i]), token] += 1
    total = sum(counts.values())
    context, token = Counter(), Counter()
    for (c, w), n in counts.items():
        context[c] += n
        token[w] += n
    # sum over positions of ln P(w|c)/u(w), P being the distribution of what follows c in the language, not renormalised
    after = Counter()
    for sentence in text:
        for i in range(len(sentence) + 1):
            after[tuple(sentence[:i])] += 1
    information = sum(n / total * math.log((n / after[c]) / (token[w] / total)) for (c, w), n in counts.items())
    assert found.scores["mutual_information"].value == pytest.approx(information, abs=1e-10)
    assert found.scores["pplu"].value == pytest.approx(math.exp(-information), abs=1e-10)
    assert found.scores["share_learned"].value == pytest.approx(1.0, abs=1e-12)
    for w, n in token.items():
        assert math.exp(found.unigram.log_prob[w]) == pytest.approx(n / total, abs=1e-10)


def test_a_model_learns_information_minus_divergence() -> None:
    pcfg = PCFG.from_text(SMALL)
    strings = all_strings(rules_of(pcfg), RANGE.high)[pcfg.symbols[pcfg.start]]
    law = {s: p for n in range(RANGE.low, RANGE.high + 1) for s, p in strings[n].items()}
    text = [list(s) for s in law]
    found = compare_pplu(LEARNER, Setting(pcfg, text, lengths=RANGE))
    scores = {name: score.value for name, score in found.scores.items()}
    kl = float(np.mean(found.log_truth - found.log_model))
    assert scores["information_learned"] == pytest.approx(scores["mutual_information"] - kl, abs=1e-12)
    assert scores["share_learned"] == pytest.approx(1 - kl / scores["mutual_information"], abs=1e-12)
    assert scores["pplu"] == pytest.approx(scores["ppl"] / scores["ppl_unigram"], rel=1e-12)
    assert scores["pplu_bound"] == pytest.approx(scores["bound"] / scores["ppl_unigram"], rel=1e-12)
    assert found.scores["pplu"].low < scores["pplu"] < found.scores["pplu"].high
    assert "u:oracle" in found.scores["pplu"].signature


def test_the_counts_of_the_text_itself_make_pplu_largest() -> None:
    pcfg = PCFG.from_text(SMALL)
    oracle = Oracle(pcfg, lengths=RANGE)
    text = oracle.sample(300, seed=1)
    found = {
        source: compare_pplu(
            LEARNER, Setting(pcfg, text, lengths=RANGE), unigram=source, text=oracle.sample(500, seed=2)
        )
        for source in ("oracle", "train", "test", "model")
    }
    assert found["test"].scores["ppl_unigram"].value == pytest.approx(math.exp(found["test"].unigram.entropy))
    largest = max(found, key=lambda source: found[source].scores["pplu"].value)
    assert largest == "test"
    for source, one in found.items():
        assert sum(math.exp(x) for x in one.unigram.log_prob.values()) == pytest.approx(1.0), source


@pytest.mark.parametrize("source", ["train", "test", "model"])
def test_other_word_frequencies_give_no_mutual_information(source: str) -> None:
    """-ln PPLu of the truth is I only with exact u: counts leave PPLu of both sides, named as that."""
    pcfg = PCFG.from_text(SMALL)
    text = Oracle(pcfg, lengths=RANGE).sample(50, seed=1)
    found = compare_pplu(LEARNER, Setting(pcfg, text, lengths=RANGE), unigram=source, text=text).scores  # type: ignore[arg-type]
    assert set(found) == {"ppl", "bound", "ppl_unigram", "pplu", "pplu_bound", "information_learned"}
    assert found["information_learned"].value == pytest.approx(-math.log(found["pplu"].value))


def test_frames_without_unknown_words_give_no_mutual_information() -> None:
    pcfg = PCFG.from_text(SMALL)
    text = Oracle(pcfg, lengths=RANGE).sample(50, seed=1)
    found = compare_pplu(LEARNER, Setting(pcfg, text, lengths=RANGE, frame=ScoringFrame(unk="skip"))).scores
    assert {"mutual_information", "share_learned"}.isdisjoint(found)
    assert {"pplu_bound", "information_learned"} <= set(found)


class Pieces(Table):
    """A model that reads every word as it is."""

    def read(self, sentence: Sequence[str]) -> list[str]:
        return list(sentence)


def test_models_without_a_list_of_words_are_smoothed_over_both_texts() -> None:
    """u is a distribution over the words of both texts and one <unk>, (c + d) / (N + d V)."""
    pieces = Pieces(LEARNER.table, None)  # type: ignore[arg-type]
    found = compare_pplu(pieces, Setting(None, [["a", "c"]]), unigram="train", text=[["a", "a"], ["b"]], smoothing=0.25)
    law = {w: math.exp(p) for w, p in found.unigram.log_prob.items()}
    assert law == pytest.approx(
        {"a": 2.25 / 6.25, "b": 1.25 / 6.25, "c": 0.25 / 6.25, "<unk>": 0.25 / 6.25, END: 2.25 / 6.25}, abs=1e-12
    )
    assert "u-words:both-texts/4" in found.scores["pplu"].signature
    with pytest.raises(InputError, match="no probability to 'c'"):
        compare_pplu(pieces, Setting(None, [["a", "c"]]), unigram="train", text=[["a", "a"]], smoothing=0.0)


def test_counts_of_a_training_text_are_smoothed() -> None:
    pcfg = PCFG.from_text(SMALL)
    found = compare_pplu(
        LEARNER, Setting(pcfg, [["a", "b"]], lengths=RANGE), unigram="train", text=[["a", "a"], ["b", "a", "a"]]
    )
    law = {w: math.exp(p) for w, p in found.unigram.log_prob.items()}
    assert law == pytest.approx({"a": 4.5 / 9.5, "b": 1.5 / 9.5, "c": 0.5 / 9.5, "<unk>": 0.5 / 9.5, END: 2.5 / 9.5})
    with pytest.raises(InputError, match="no probability to 'c'"):
        compare_pplu(
            LEARNER, Setting(pcfg, [["c", "a"]], lengths=RANGE), unigram="train", text=[["a", "b"]], smoothing=0.0
        )
    with pytest.raises(InputError, match="0 or more"):
        compare_pplu(LEARNER, Setting(pcfg, [["c", "a"]], lengths=RANGE), unigram="train", text=[["a"]], smoothing=-1.0)


def test_unknown_words_are_one_token_or_none() -> None:
    pcfg = PCFG.from_text(TOY)
    oracle = Oracle(pcfg, lengths=LengthRange(2, 6), vocabulary=["the", "dog", "sees", "walks"])
    whole = oracle_unigram(Oracle(pcfg, lengths=LengthRange(2, 6)), ScoringFrame())
    with_unknown = oracle_unigram(oracle, ScoringFrame())
    rest = sum(math.exp(p) for w, p in whole.log_prob.items() if w not in ("the", "dog", "sees", "walks", END))
    assert math.exp(with_unknown.log_prob["<unk>"]) == pytest.approx(rest, abs=1e-12)
    skipped = oracle_unigram(oracle, ScoringFrame(unk="skip"))
    assert "<unk>" not in skipped.log_prob
    assert math.exp(skipped.log_prob["dog"]) == pytest.approx(math.exp(whole.log_prob["dog"]) / (1 - rest), abs=1e-12)
    full = Oracle(pcfg, lengths=LengthRange(2, 6), vocabulary=["the", "dog", "sees", "walks"], collapse=False)
    assert oracle_unigram(full, ScoringFrame(unk="skip")).log_prob == pytest.approx(skipped.log_prob, abs=1e-12)


def test_masked_models_have_no_end() -> None:
    pcfg = PCFG.from_text(SMALL)
    oracle = Oracle(pcfg, "masked", lengths=RANGE)
    found = compare_pplu(oracle, Setting(pcfg, oracle.sample(50, seed=0), lengths=RANGE))
    assert END not in found.unigram.log_prob
    assert END not in found.tokens


def test_without_a_grammar_the_truth_has_no_columns() -> None:
    text = [["a", "b"], ["c", "z"], ["a"]]
    found = compare_pplu(LEARNER_OPEN, Setting(None, text), unigram="test")
    assert set(found.scores) == {"ppl", "ppl_unigram", "pplu", "information_learned"}
    assert found.tokens == ["a", "b", END, "c", "<unk>", END, "a", END]
    pcfg = PCFG.from_text(SMALL)
    both = compare_pplu(LEARNER, Setting(pcfg, text[:1], lengths=RANGE), unigram="test")
    alone = compare_pplu(LEARNER, Setting(None, text[:1]), unigram="test")
    assert alone.scores["pplu"].value == both.scores["pplu"].value
    ranked = rank_sentences(found, text)
    assert ranked.rows[0].rank_truth_ppl is None
    assert set(ranked.tau) == {("ppl", "pplu")}
    with pytest.raises(InputError, match="needs the grammar"):
        compare_pplu(LEARNER, Setting(None, text))
    with pytest.raises(InputError, match="all 1 sentences are impossible"):
        compare_pplu(
            Table({**LEARNER.table, "<unk>": {END: 1.0}}, LEARNER.vocabulary), Setting(None, [["z"]]), unigram="test"
        )


# -- splitting --------------------------------------------------------------------------------------


def scored(q: dict[str, float], u: dict[str, float], text: list[str]) -> UnigramPerplexity:
    """Scores by hand: one sentence, what the model and the unigram distribution give to each of its tokens."""
    n = len(text)
    log_q, log_u = (np.log([law[w] for w in text]) for law in (q, u))
    law = UnigramModel({w: math.log(p) for w, p in u.items()}, "oracle", {})
    none = np.empty(0, dtype=np.int32)
    row = np.zeros(n, dtype=np.int32)
    return UnigramPerplexity(
        model="m",
        objective="causal",
        scores={},
        log_model=log_q,
        log_truth=log_q,
        log_unigram=log_u,
        sentence=row,
        tokens=text,
        unigram=law,
        impossible_model=none,
        impossible_truth=none,
        parts={},
    )


def test_the_worked_example() -> None:
    """q(ab)=.5, q(c|ab)=.4, u(ab)=.25, u(c)=.2: PPL 2.2360680 and PPLu .5; split with .3: 4.0824829 or 2.6726124."""
    found = scored({"ab": 0.5, "c": 0.4}, {"ab": 0.25, "c": 0.2}, ["ab", "c"])
    seen = {}
    for seed in range(30):
        split = random_split(found, ["ab"], 0.3, seed=seed)
        assert split.ppl == pytest.approx(2.2360680, abs=5e-8)
        assert split.pplu == pytest.approx(0.5, abs=1e-12)
        assert split.pplu_split == pytest.approx(0.5, abs=1e-12)
        seen[round(split.ppl_split, 7)] = seen.get(round(split.ppl_split, 7), 0) + 1
    assert seen.keys() == {4.0824829, 2.6726124}
    assert seen[4.0824829] < seen[2.6726124]


def test_a_random_split_multiplies_ppl_and_leaves_pplu() -> None:
    rng = np.random.default_rng(3)
    text = [*map(str, rng.integers(0, 4, 500))]
    q = {str(i): 0.1 + 0.2 * i for i in range(4)}
    u = {str(i): 0.4 - 0.1 * i for i in range(4)}
    found = scored(q, u, text)
    split = random_split(found, ["1", "3"], 0.2, seed=8)
    first = np.random.default_rng(8).random(split.occurrences) < 0.2
    k, rest = int(first.sum()), int((~first).sum())
    expected = split.ppl * math.exp(-(k * math.log(0.2) + rest * math.log(0.8)) / 500)
    assert split.ppl_split == pytest.approx(expected, rel=1e-12)
    assert split.pplu_split == pytest.approx(split.pplu, rel=1e-12)
    both = random_split(found, ["1", "3"], 0.2, seed=8, model="counts", unigram="counts")
    assert both.pplu_split == pytest.approx(split.pplu, rel=1e-12)


def test_a_counted_unigram_raises_pplu_by_a_divergence() -> None:
    """ln PPLu rises by n/T KL(counted || beta) where the model knows beta and the unigram distribution counts."""
    text = ["x"] * 40 + ["y"] * 60
    found = scored({"x": 0.3, "y": 0.6}, {"x": 0.4, "y": 0.6}, text)
    split = random_split(found, ["x"], 0.3, seed=2, unigram="counts")
    share = float((np.random.default_rng(2).random(40) < 0.3).mean())
    kl = share * math.log(share / 0.3) + (1 - share) * math.log((1 - share) / 0.7)
    assert math.log(split.pplu_split / split.pplu) == pytest.approx(40 / 100 * kl, abs=1e-12)
    assert kl > 0


def test_a_split_that_cannot_be() -> None:
    found = scored({"x": 0.3}, {"x": 0.4}, ["x"])
    with pytest.raises(InputError, match="between 0 and 1"):
        random_split(found, ["x"], 1.0)
    with pytest.raises(InputError, match="none of the words"):
        random_split(found, ["z"], 0.5)


SENSES = """\
S -> N V 0.5 | M W 0.5
N -> can 0.5 | dog 0.5
V -> run 1.0
M -> can 0.5 | will 0.5
W -> run 0.5 | N 0.5
"""


def test_words_with_their_tags() -> None:
    pcfg = PCFG.from_text(SENSES)
    fine, spelling = sense_grammar(pcfg)
    assert set(fine.vocabulary) == {"can/N", "can/M", "dog", "will", "run/V", "run/W"}
    assert spelling["can/N"] == spelling["can/M"] == "can"
    for sentence, marked in (
        (["can", "run"], [["can/N", "run/V"], ["can/M", "run/W"]]),
        (["will", "can"], [["will", "can/N"]]),
    ):
        total = sum(math.exp(fine.log_prob(m)) for m in marked)
        assert math.exp(pcfg.log_prob(sentence)) == pytest.approx(total, rel=1e-12)
    with pytest.raises(InputError, match="'can/N' is both a word"):
        sense_grammar(PCFG.from_text("S -> N M 1.0\nN -> can 0.5 | can/N 0.5\nM -> can 1.0"))


@pytest.mark.long
def test_a_split_by_meaning_adds_information() -> None:
    """What is gained over the whole language is what the tags say beyond the words, given the context."""
    pcfg = PCFG.from_text(SENSES)
    found = sense_split(pcfg, 4000, lengths=LengthRange(2, 2), seed=2)
    assert found.words == 2
    assert found.gained > 0.1
    assert found.split["pplu"].value < found.whole["pplu"].value
    assert found.gained == pytest.approx(
        found.split["mutual_information"].value - found.whole["mutual_information"].value
    )
    with pytest.raises(InputError, match="more than one tag"):
        sense_split(PCFG.from_text(SMALL), 10, lengths=None)


# -- rankings ---------------------------------------------------------------------------------------


def test_rankings_by_hand() -> None:
    text = [["a", "a"], ["b", "c"], ["a", "c"]]
    pcfg = PCFG.from_text(SMALL)
    found = compare_pplu(LEARNER, Setting(pcfg, text, lengths=RANGE))
    ranked = rank_sentences(found, text)
    ppl = [(0.6 * 0.3 * 0.3) ** (-1 / 3), (0.2 * 0.1 * 0.2) ** (-1 / 3), (0.6 * 0.1 * 0.2) ** (-1 / 3)]
    assert [row.ppl for row in ranked.rows] == pytest.approx(ppl)
    assert [row.rank_ppl for row in ranked.rows] == [1, 3, 2]
    assert [row.text for row in ranked.top(2, "ppl")] == ["a a", "a c"]
    assert [row.text for row in ranked.top(1, "ppl", last=True)] == ["b c"]
    u = {w: math.exp(p) for w, p in found.unigram.log_prob.items()}
    pplu = [p * (u[s[0]] * u[s[1]] * u[END]) ** (1 / 3) for p, s in zip(ppl, text, strict=True)]
    assert [row.pplu for row in ranked.rows] == pytest.approx(pplu)
    by_pplu = sorted(range(3), key=lambda i: pplu[i])
    assert [ranked.rows[i].rank_pplu for i in by_pplu] == [1, 2, 3]
    agree = sum(1 if (ppl[i] - ppl[j]) * (pplu[i] - pplu[j]) > 0 else -1 for i in range(3) for j in range(i))
    assert ranked.tau["ppl", "pplu"] == pytest.approx(agree / 3)
    with pytest.raises(InputError, match="2 sentences"):
        rank_sentences(compare_pplu(LEARNER, Setting(pcfg, text[:1], lengths=RANGE)), text[:1])


@pytest.mark.long
def test_by_counts_of_the_scored_text_the_interval_is_of_texts_of_its_size() -> None:
    """Such counts are too sharp, so PPLu is too large; by exact frequencies the interval holds that of the language."""
    p = 1.0 / np.arange(1, 41)
    p /= p.sum()
    words = [f"w{i}" for i in range(40)]
    pcfg = PCFG.from_text(
        "S -> A A 0.5 | B B 0.5\n"
        + "\n".join(f"A -> {w} {x!r}\nB -> {v} {x!r}" for w, v, x in zip(words, words[::-1], p.tolist(), strict=True))
    )
    u, joint = (p + p[::-1]) / 2, (np.outer(p, p) + np.outer(p[::-1], p[::-1])) / 2
    information = float((joint * np.log(joint / np.outer(u, u))).sum())
    value = math.exp(
        -(information + 3 * math.log(3.0) - 2 * math.log(2.0)) / 3
    )  # two words of three tokens, and the end
    rng = np.random.default_rng(2)

    def measured(unigram: str) -> tuple[list[float], np.ndarray]:
        found = []
        for trial in range(60):
            classes = rng.integers(0, 2, 30)
            text = [[words[i] for i in rng.choice(40, 2, p=p if c else p[::-1])] for c in classes]
            found.append(compare_pplu(Oracle(pcfg), Setting(pcfg, text, lengths=None, seed=trial), unigram=unigram))
        scores = [one.scores["pplu"] for one in found]
        return [one.value for one in scores], np.array([(one.low, one.high) for one in scores])

    def share(ends: np.ndarray, of: float) -> float:
        return float(((ends[:, 0] <= of) & (of <= ends[:, 1])).mean())

    _, exact = measured("oracle")
    values, counted = measured("test")
    assert share(exact, value) > 0.88
    assert share(counted, value) < 0.1
    assert share(counted, float(np.mean(values))) > 0.88
