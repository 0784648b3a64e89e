"""PPLu of the truth before and after words are split by their tags.

A split by meaning adds information, so the PPLu of the truth falls: PPLu does not depend on the vocabulary for random
splits only (Roh et al. 2020, equations 7 to 14).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.pplu.compare import compare_pplu
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED

MARK = "/"  #: between a word and its sense


@dataclass(frozen=True)
class SenseSplit:
    """The truth before and after words are split by their tags; scores are of `compare_pplu`."""

    whole: dict[str, Score]
    split: dict[str, Score]
    words: int  #: that have more than one tag
    gained: float  #: mutual information after minus before, nats a token


def sense_grammar(pcfg: PCFG) -> tuple[PCFG, dict[str, str]]:
    """Return the same language, every word that has several tags written with its tag: ``can/MD``, ``can/NN``.

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
        plain = pcfg.vocabulary[word]
        name = f"{plain}{MARK}{label}" if len(tags[word]) > 1 else plain
        if spelling.setdefault(name, plain) != plain:
            raise InputError(f"{name!r} is both a word and another word with its tag; rename it")
        names.append(name)
    number = {word: i for i, word in enumerate(spelling)}
    lexical = np.column_stack([pcfg.lexical[:, 0], [number[name] for name in names]]).astype(np.int32)
    return replace(pcfg, vocabulary=tuple(spelling), lexical=lexical), spelling


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
    several = sum(word not in fine.word_ids for word in pcfg.vocabulary)
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
