"""What happens to PPL and PPLu when words are split in two (Roh et al. 2020, equations 7 to 14).

A random split adds no information: whoever knows the chance beta of each half has another PPL and the same PPLu. A
split by meaning adds some, so the truth's PPLu falls: PPLu does not depend on the vocabulary for random splits only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.pplu.compare import UnigramPerplexity, compare_pplu
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import DEFAULT_SEED, LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, random_state
from truesource.grammar.support.errors import InputError

Knowledge = Literal["true", "counts"]
MARK = "/"  #: between a word and its sense


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
    found = [
        compare_pplu(Oracle(grammar, lengths=lengths), grammar, text, lengths=lengths, seed=seed).scores
        for grammar, text in ((pcfg, plain), (fine, marked))
    ]
    gained = found[1]["mutual_information"].value - found[0]["mutual_information"].value
    return SenseSplit(found[0], found[1], several, gained)


def _exp(values: FloatArray) -> float:
    return float(np.exp(np.mean(values)))
