"""Experiments of Roh et al. (2020): sentences ranked by PPL and PPLu, words split in two, smaller vocabularies.

Rankings (table 2). PPLu asks how much better than its words' frequencies a sentence is predicted, so it favours rare
words that go together: it is a mean pointwise mutual information, with the bias that this has.

Split words (equations 7 to 14). A random split adds no information: whoever knows the chance beta of each half has
another PPL and the same PPLu. A split by meaning adds some, so the truth's PPLu falls: PPLu does not depend on the
vocabulary for random splits only.

Smaller vocabularies (equation 15), of one fixed model. The paper does not say what it does with the words that are
dropped, and the answer depends on it: ``skip`` leaves their positions out, ``merge`` adds them up in ``<unk>``, which
is the only one that leaves a language model, and ``renormalise`` leaves them out and shares their probability among
the others. By data processing, merging can only take mutual information away from the truth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import Literal, get_args

import numpy as np
from scipy import stats

from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.pplu.compare import UnigramModel, UnigramPerplexity, compare_pplu
from truesource.generator.language_model import END, DistributionModel, LogDistributions
from truesource.generator.model_checks import checked_distributions
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray, random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.grammar.support.settings import DEFAULT_SEED

Knowledge = Literal["true", "counts"]
MARK = "/"  #: between a word and its sense
Protocol = Literal["skip", "merge", "renormalise"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
ROWS = 64  #: sentences at once


@dataclass(frozen=True)
class Ranked:
    """A sentence, its perplexities per token (with the end, where that counts) and its ranks from 1, lowest first."""

    sentence: int  #: number in the input
    text: str
    ppl: float
    pplu: float
    rank_ppl: int
    rank_pplu: int
    rank_truth_ppl: int | None = None  #: None without a grammar
    rank_truth_pplu: int | None = None


@dataclass(frozen=True)
class Rankings:
    """All sentences, and how the rankings agree."""

    rows: list[Ranked]  #: in the order of the input
    tau: dict[tuple[str, str], float]  #: Kendall's tau-b of every two rankings, in [-1, 1]; none where all tie

    def top(self, k: int, by: str, *, last: bool = False) -> list[Ranked]:
        """The k first, or last, by ``ppl``, ``pplu``, ``truth_ppl`` or ``truth_pplu``."""
        ordered = sorted(self.rows, key=lambda row: int(getattr(row, f"rank_{by}")))
        return ordered[::-1][:k] if last else ordered[:k]


def rank_sentences(scored: UnigramPerplexity, sentences: Sequence[Sequence[str]]) -> Rankings:
    """Rank the sentences that `compare_pplu` scored.

    Args:
        scored: what it returned.
        sentences: what it was given.

    Raises:
        InputError: fewer than 2 sentences were scored.
    """
    numbers, row = np.unique(scored.sentence, return_inverse=True)
    if len(numbers) < 2:
        raise InputError("a ranking needs 2 sentences or more")
    n = np.bincount(row)
    model, unigram = (np.bincount(row, x) / n for x in (scored.log_model, scored.log_unigram))
    values = {"ppl": -model, "pplu": unigram - model}
    if scored.log_truth is not None:
        truth = np.bincount(row, scored.log_truth) / n
        values |= {"truth_ppl": -truth, "truth_pplu": unigram - truth}
    ranks = {name: stats.rankdata(value, method="ordinal") for name, value in values.items()}
    rows = [
        Ranked(
            int(number),
            " ".join(sentences[int(number)]),
            float(np.exp(values["ppl"][i])),
            float(np.exp(values["pplu"][i])),
            *(int(ranks[name][i]) for name in values),
        )
        for i, number in enumerate(numbers)
    ]
    tau = {(a, b): float(stats.kendalltau(values[a], values[b]).statistic) for a, b in combinations(values, 2)}
    return Rankings(rows, {pair: value for pair, value in tau.items() if np.isfinite(value)})


@dataclass(frozen=True)
class SplitPerplexities:
    """Perplexities before and after."""

    ppl: float
    ppl_split: float
    pplu: float
    pplu_split: float
    tokens: int  #: scored
    occurrences: int  #: of words that were split


def random_split(
    scored: UnigramPerplexity,
    words: Collection[str],
    beta: float,
    *,
    seed: int = DEFAULT_SEED,
    model: Knowledge = "true",
    unigram: Knowledge = "true",
) -> SplitPerplexities:
    """Call every occurrence of some words one of two new words, the first with probability beta, whatever the context.

    Args:
        scored: scores of a model and its unigram distribution on a text.
        words: to split, each into two of its own.
        beta: in (0, 1).
        seed: of the choices.
        model: what the model gives to the halves: ``true``: beta; ``counts``: the share of each in the text.
        unigram: the same, of the unigram distribution. With a model that knows beta and a unigram distribution that
            was counted, ln PPLu rises by ``n/T KL(counted || beta)``.

    Raises:
        InputError: beta is not between 0 and 1, or no such word was scored.
    """
    if not 0.0 < beta < 1.0:
        raise InputError(f"the probability of the first half is between 0 and 1, got {beta:g}")
    code = {word: i for i, word in enumerate(sorted(set(words)))}
    word = np.array([code.get(token, -1) for token in scored.tokens])
    at = np.flatnonzero(word >= 0)
    if not len(at):
        raise InputError("none of the words to split was scored")
    first = np.random.default_rng(seed).random(len(at)) < beta
    true = np.where(first, np.log(beta), np.log1p(-beta))
    n = np.bincount(word[at], minlength=len(code))
    k = np.bincount(word[at], weights=first, minlength=len(code))
    counted = np.log(np.where(first, k[word[at]], n[word[at]] - k[word[at]]) / n[word[at]])
    halves = {"true": true, "counts": counted}
    log_q, log_u = scored.log_model.copy(), scored.log_unigram.copy()
    log_q[at] += halves[model]
    log_u[at] += halves[unigram]
    return SplitPerplexities(
        ppl=_exp(-scored.log_model),
        ppl_split=_exp(-log_q),
        pplu=_exp(scored.log_unigram - scored.log_model),
        pplu_split=_exp(log_u - log_q),
        tokens=len(log_q),
        occurrences=len(at),
    )


@dataclass(frozen=True)
class SenseSplit:
    """The truth before and after words are told apart by their tags; scores are of `compare_pplu`."""

    whole: dict[str, Score]
    split: dict[str, Score]
    words: int  #: that have more than one tag
    gained: float  #: mutual information after minus before, nats a token


def sense_grammar(pcfg: PCFG) -> tuple[PCFG, dict[str, str]]:
    """The same language, every word that has several tags written with its tag: ``can/MD``, ``can/NN``.

    Tags are the treebank labels of preterminals, so that subsymbols of one tag stay one word.

    Returns:
        The grammar, and the plain spelling of each of its words.

    Raises:
        InputError: a word with its tag is spelt like another word.
    """
    rules = [(word, pcfg.labels[parent]) for parent, word in pcfg.lexical.tolist()]
    tags: dict[int, set[str]] = {}
    for word, label in rules:
        tags.setdefault(word, set()).add(label)
    spelling: dict[str, str] = {}
    names = []
    for word, label in rules:
        plain = pcfg.terminals[word]
        name = f"{plain}{MARK}{label}" if len(tags[word]) > 1 else plain
        if spelling.setdefault(name, plain) != plain:
            raise InputError(f"{name!r} is both a word and another word with its tag; rename it")
        names.append(name)
    number = {word: i for i, word in enumerate(spelling)}
    lexical = np.column_stack([pcfg.lexical[:, 0], [number[name] for name in names]]).astype(np.int32)
    return replace(pcfg, terminals=tuple(spelling), lexical=lexical), spelling


def sense_split(pcfg: PCFG, n: int, *, lengths: LengthRange | None, seed: int = DEFAULT_SEED) -> SenseSplit:
    """Draw sentences whose words carry their tags, and score the truth on them with the tags and without.

    Args:
        pcfg: the grammar.
        n: sentences to draw.
        lengths: their condition.
        seed: of the draw and of the bootstrap.

    Raises:
        InputError: no word has two tags, or a word with its tag is spelt like another word.
    """
    fine, spelling = sense_grammar(pcfg)
    several = sum(word not in fine.word_ids for word in pcfg.terminals)
    if not several:
        raise InputError("no word of this grammar has more than one tag, so there is nothing to split")
    sampler = Sampler(fine, lengths)
    marked = sampler.sentences(sampler.draw(n, random_state(seed)))
    plain = [[spelling[word] for word in sentence] for sentence in marked]
    scores = [
        compare_pplu(Oracle(grammar, lengths=lengths), Setting(grammar, text, lengths=lengths, seed=seed)).scores
        for grammar, text in ((pcfg, plain), (fine, marked))
    ]
    gained = scores[1]["mutual_information"].value - scores[0]["mutual_information"].value
    return SenseSplit(scores[0], scores[1], several, gained)


def _exp(values: FloatArray) -> float:
    return float(np.exp(np.mean(values)))


@dataclass(frozen=True)
class ReducedVocabulary:
    """Perplexities with the most frequent words only."""

    words: int  #: kept
    protocol: Protocol
    tokens: int  #: that count
    ppl: float
    ppl_unigram: float
    pplu: float
    change_ppl: float  #: ``|PPL - PPL_full| / PPL_full`` (equation 15), a share
    change_pplu: float


def reduce_vocabulary(
    model: DistributionModel, sentences: Sequence[Sequence[str]], unigram: UnigramModel, sizes: Iterable[int]
) -> list[ReducedVocabulary]:
    """Perplexities for some vocabulary sizes, words ordered by their unigram probability.

    Every position counts, ends of sentences too. ``<unk>`` as the model knows it belongs to what is dropped. One pass
    over the model's full distributions serves all sizes and protocols.

    Args:
        model: with full distributions; the oracle is one.
        sentences: possible for the model.
        unigram: of every word of the model, ``<unk>`` and, if causal, the end.
        sizes: words to keep, from 1 to all of them.

    Raises:
        InputError: a size is out of range, the model cuts words into pieces, or gives a token probability 0.
    """
    words = model.words if isinstance(model, Oracle) else model.vocabulary
    if words is None:
        raise InputError(f"{model.name} cuts words into pieces, so its vocabulary cannot be reduced")
    causal = model.objective == "causal"
    scores = np.array([unigram.log_prob.get(word, -np.inf) for word in words])
    order = np.argsort(-scores, kind="stable")
    kept_sizes = sorted({*sizes, len(words)})
    if kept_sizes[0] < 1 or kept_sizes[-1] > len(words):
        raise InputError(f"{model.name} has {len(words)} words; give sizes from 1 to that")
    rank = {words[i]: place for place, i in enumerate(order.tolist())}
    ends = [unigram.log_prob.get(name, -np.inf) for name in (UNKNOWN, *((END,) if causal else ()))]
    u_row = np.concatenate([scores[order], ends])[None]
    sums = np.zeros((len(kept_sizes), len(PROTOCOLS), 3))  # ln q, ln u, tokens
    groups = [list(group) for _, group in groupby(sorted(sentences, key=len), key=len)]
    parts = [group[i : i + ROWS] for group in groups for i in range(0, len(group), ROWS)]
    with meter("perplexity with smaller vocabularies, by sentence", total=len(sentences)) as progress:
        for part in parts:
            for block in checked_distributions(model, part):
                columns = _targets(part, block, rank, len(words))
                table = np.concatenate([block.log_prob[:, order], block.log_prob[:, len(words) :]], axis=1)
                for s, size in enumerate(kept_sizes):
                    sums[s] += _one_size(table, u_row, columns, size, len(words))
            progress.advance(len(part))
    if not np.isfinite(sums).all():
        raise InputError(f"{model.name} or the unigram distribution gives a token of the text no probability")
    return _results(kept_sizes, sums)


def halving(words: int, least: int = 10) -> list[int]:
    """A vocabulary size, half of it, a quarter, ... down to ``least``."""
    sizes = []
    while words >= least:
        sizes.append(words)
        words //= 2
    return sizes


def _targets(part: Sequence[Sequence[str]], block: LogDistributions, rank: Mapping[str, int], words: int) -> IntArray:
    """Column of what stands at the block's position of every sentence: rank of a word, then ``<unk>``, then the end."""
    if block.position == len(part[0]):
        return np.full(len(part), words + 1)
    return np.array([rank.get(sentence[block.position], words) for sentence in part])


def _one_size(table: FloatArray, u_row: FloatArray, columns: IntArray, size: int, words: int) -> FloatArray:
    """Sums over the rows of a block for one vocabulary size, (3 protocols, 3)."""
    at = np.arange(len(columns))
    kept = (columns < size) | (columns > words)
    sums = np.zeros((len(PROTOCOLS), 3))
    n = float(kept.sum())
    for column, (values, own) in enumerate(((table, True), (u_row, False))):
        target = values[at if own else 0, columns]
        probability = np.exp(values)
        dropped = probability[:, size : words + 1].sum(axis=1)
        rest = probability[:, :size].sum(axis=1) + probability[:, words + 1 :].sum(axis=1)
        with np.errstate(divide="ignore"):
            merged, within = np.log(dropped), np.log(rest)
        if not own:
            merged, within = np.broadcast_to(merged, target.shape), np.broadcast_to(within, target.shape)
        sums[0, column] = target[kept].sum()
        sums[1, column] = target[kept].sum() + merged[~kept].sum()
        sums[2, column] = (target[kept] - within[kept]).sum()
    sums[:, 2] = n, len(columns), n
    return sums


def _results(sizes: Sequence[int], sums: FloatArray) -> list[ReducedVocabulary]:
    """Perplexities and their changes against the whole vocabulary, whose words and ``<unk>`` all count."""
    values = np.exp(-sums[..., 0] / sums[..., 2]), np.exp(-sums[..., 1] / sums[..., 2])
    whole = float(values[0][-1, 1]), float((values[0] / values[1])[-1, 1])
    results = []
    for s, size in enumerate(sizes):
        for p, protocol in enumerate(PROTOCOLS):
            ppl, ppl_u = float(values[0][s, p]), float(values[1][s, p])
            change = abs(ppl - whole[0]) / whole[0], abs(ppl / ppl_u - whole[1]) / whole[1]
            results.append(ReducedVocabulary(size, protocol, int(sums[s, p, 2]), ppl, ppl_u, ppl / ppl_u, *change))
    return results
