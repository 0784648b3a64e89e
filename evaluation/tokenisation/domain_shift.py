"""The decomposition in and out of domain: sentences of other grammars with known truth."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.measures.bootstrap import Draws, ci_part, difference, ends, ratio_draws, studentised
from truesource.evaluation.tokenisation.decomposition import Decomposition, decompose, true_log_probs
from truesource.evaluation.tokenisation.results import Evaluation
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.variants import parse_variant

TRIES = 10_000  #: maximum number of samples for one new word
IN_DOMAIN = "in-domain"
RESPELL = "respell"
GAPS = ("tokenisation_gap", "model_gap", "distance")


def respell(grammar: PCFG, share: float, seed: int) -> PCFG:
    """Respell a share of the words of a grammar, one to one.

    Words of at least two characters, all letters, are selected at random. New spellings are sampled from the chain of
    letter pairs of these words, each different from every word of the grammar. A sentence of the result has exactly
    the probability of its original, and one seed samples corresponding sentences from both grammars.

    Args:
        grammar: the original.
        share: share of the words of letters, above 0 and at most 1.
        seed: random seed.

    Raises:
        InputError: the share is out of range, there is no word to respell, or the letter pairs give no new words.
    """
    check_share(share)
    able = [i for i, word in enumerate(grammar.vocabulary) if word.isalpha() and len(word) > 1]
    if not able:
        raise InputError("the grammar has no word of letters to respell")
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(able)[: max(1, round(share * len(able)))]
    chain = _Chain([grammar.vocabulary[i] for i in able])
    words, taken = list(grammar.vocabulary), set(grammar.vocabulary)
    for i in chosen.tolist():
        words[i] = next((word for word in (chain.draw(rng) for _ in range(TRIES)) if word not in taken), "")
        if not words[i]:
            raise InputError("the letters of the words allow too few new words; respell a smaller share")
        taken.add(words[i])
    return replace(grammar, vocabulary=tuple(words), meta={**grammar.meta, "respelt": {"share": share, "seed": seed}})


def check_share(share: float) -> None:
    """Check that a number is a valid share of words.

    Raises:
        InputError: it is not.
    """
    if not 0.0 < share <= 1.0:
        raise InputError(f"the share of words to respell must be above 0 and at most 1, got {share:g}")


class _Chain:
    """A chain that samples words letter by letter, each given the one before, estimated from words."""

    def __init__(self, words: Sequence[str]) -> None:
        pairs: dict[str, Counter[str]] = defaultdict(Counter)
        for word in words:
            for before, after in zip(" " + word, word + " ", strict=True):
                pairs[before][after] += 1
        self._next = {
            before: (list(counts), np.cumsum(list(counts.values())) / counts.total())
            for before, counts in pairs.items()
        }

    def draw(self, rng: np.random.Generator) -> str:
        """Sample a word of two letters or more."""
        while True:
            word, letter = "", " "
            while True:
                letters, cumulative = self._next[letter]
                letter = letters[min(int(np.searchsorted(cumulative, rng.random(), side="right")), len(letters) - 1)]
                if letter == " ":
                    break
                word += letter
            if len(word) > 1:
                return word


@dataclass(frozen=True, eq=False)
class SentenceSet:
    """Sentences sampled from a grammar under a range of lengths."""

    name: str
    sentences: Sequence[Sequence[str]]
    grammar: PCFG
    lengths: LengthRange | None

    @property
    def texts(self) -> list[str]:
        """The sentences as texts, with words separated by single spaces."""
        return [" ".join(sentence) for sentence in self.sentences]


@dataclass(frozen=True, eq=False, repr=False)
class SetResult(ResultRecords):
    """The results of one set against its truth, and against the grammar of the training corpus."""

    name: str
    decomposition: Decomposition  #: against the grammar that the set was sampled from
    shift: FloatArray  #: (M,) -log P under the training grammar less -log P under its own, nats; inf where impossible
    scores: Mapping[str, Score]  #: see `compare_sets`

    @override
    def as_scores(self) -> list[Score]:
        """Return all scores with the model, its estimator and the set."""
        whole = self.decomposition
        return keyed(self.scores.values(), model=whole.model, run=whole.run, set=self.name)


def drawn_set(name: str, grammar: PCFG, lengths: LengthRange | None, n: int, seed: int) -> SentenceSet:
    """Sample a set of N sentences from a grammar."""
    return SentenceSet(name, Oracle(grammar, lengths=lengths).sample(n, seed), grammar, lengths)


def shifted_sets(
    grammar: PCFG, lengths: LengthRange | None, changes: Sequence[str], n: int, seed: int
) -> list[SentenceSet]:
    """Sample the set ``in-domain`` and a set for each change of the grammar.

    A change is written as in `grammar.variants.spec` (``zipf=0.5``, ``temperature=1.5``), or ``respell=0.5``: this
    share of the words is respelt, see `evaluation.tokenisation.domain_shift`. All sets are sampled with one seed,
    so that changes of only the lexicon keep the trees.

    Raises:
        InputError: a change is unknown or cannot be applied.
    """
    changed = {change: make(grammar, seed) for change, make in {c: parse_change(c) for c in changes}.items()}
    return [drawn_set(name, g, lengths, n, seed) for name, g in {IN_DOMAIN: grammar, **changed}.items()]


def parse_change(change: str) -> Callable[[PCFG, int], PCFG]:
    """Return a function of a grammar and a seed that changes the grammar; see `shifted_sets`.

    Raises:
        InputError: the change is unknown, or its value is wrong.
    """
    name, _, value = change.partition("=")
    if name.strip() != RESPELL:
        variant = parse_variant(change)
        return lambda grammar, seed: variant.apply(grammar).pcfg
    try:
        share = float(value)
    except ValueError:
        raise InputError(f"{RESPELL} needs a share of the words, as in {RESPELL}=0.5, got {value!r}") from None
    check_share(share)
    return lambda grammar, seed: respell(grammar, share, seed)


def compare_sets(
    sets: Sequence[SentenceSet],
    evaluations: Sequence[Evaluation],
    run: str,
    training: PCFG,
    training_lengths: LengthRange | None,
    *,
    seed: int = DEFAULT_SEED,
) -> list[SetResult]:
    """Decompose each set with the truth it was sampled from, and compare it with the first.

    Scores: all scores of `Decomposition`; ``training_impossible``, the share of sentences with probability 0 in the
    training grammar; ``domain_shift_per_word``, nats per word over the others: how much worse the training grammar
    predicts the set than its own grammar, which no model of the training language can be expected to beat; and for
    all but the first set ``<gap>_per_word_growth``, the gap per word less the gap of the first set, with intervals of
    independent document bootstraps.

    Args:
        sets: the others are compared with the first.
        evaluations: evaluations of the texts of each set, with the run.
        run: label of the run whose log P(D) is the marginal.
        training: grammar of the training corpus.
        training_lengths: length condition of the training grammar.
        seed: seed of the bootstrap.

    Raises:
        InputError: there are no sets, not one evaluation for each, or see `decompose`.
    """
    if not sets or len(sets) != len(evaluations):
        raise InputError(f"expecting one evaluation for each set, got {len(evaluations)} for {len(sets)}")
    results: list[SetResult] = []
    for i, (sentence_set, evaluation) in enumerate(zip(sets, evaluations, strict=True)):
        decomposed = decompose(evaluation, run, sentence_set.grammar, sentence_set.lengths)
        flat = [sentence for (sentence,) in decomposed.sentences]
        shift = -true_log_probs(flat, training, training_lengths, end=evaluation.end) - decomposed.truth
        scores = {**decomposed.scores(seed), **_shift(decomposed, shift, training, training_lengths)}
        if i > 0:
            scores |= _growth(decomposed, results[0].decomposition, seed + i)
        results.append(SetResult(sentence_set.name, decomposed, shift, scores))
    return results


def _shift(shifted: Decomposition, shift: FloatArray, training: PCFG, lengths: LengthRange | None) -> dict[str, Score]:
    possible = np.isfinite(shift)
    parts: dict[str, object] = {"training-grammar": training.identity, "training-given": lengths or "none"}
    signed = shifted.evaluation.signed(shifted.run, unit="share", grammar=shifted.grammar.identity, **parts)
    scores = {"training_impossible": Score("training_impossible", float(1.0 - possible.mean()), signed)}
    if possible.any():
        value = float(shift[possible].sum() / shifted.words[possible].sum())
        signed = shifted.evaluation.signed(
            shifted.run,
            unit="nats/word",
            sentences=int(possible.sum()),
            grammar=shifted.grammar.identity,
            **parts,
        )
        scores["domain_shift_per_word"] = Score("domain_shift_per_word", value, signed)
    return scores


def _growth(shifted: Decomposition, first: Decomposition, seed: int) -> dict[str, Score]:
    scores = {}
    for gap in GAPS:
        sides: list[Draws] = []
        for side, which in ((shifted, seed), (first, seed + 1_000_003)):
            sides.append(ratio_draws(getattr(side, gap)[:, None], side.words[:, None], seed=which))
        growth = difference(*sides)
        name = f"{gap}_per_word_growth"
        signed = shifted.evaluation.signed(
            shifted.run,
            unit="nats/word",
            grammar=shifted.grammar.identity,
            less=f"{first.grammar.identity}:{first.evaluation.parts['data']}",
            ci=ci_part(min(len(shifted.words), len(first.words)), seed, "document"),
        )
        scores[name] = Score(name, float(growth.value[0]), signed, *ends(*studentised(growth)[:, 0]))
    return scores
