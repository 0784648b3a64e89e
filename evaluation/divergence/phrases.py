"""The divergence attributed to the lowest phrase over the next word."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.divergence.blocks import END
from truesource.evaluation.divergence.contexts import Contexts, DividedDivergence
from truesource.grammar.inference.phrases import lowest_phrases
from truesource.grammar.inference.posterior import posterior
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.printable import meter


def divided_by_phrase(measured: Contexts, oracle: Oracle, sentences: Sequence[Sequence[str]]) -> DividedDivergence:
    """KL(P || Q) of each context, divided by P(the lowest phrase over the word that stands there | sentence).

    The divergence of a context is that of all words that may follow; the phrase is the one over the word that does.
    Ends of sentences are a group of their own, so that the parts of a sentence sum to its divergence.

    Args:
        measured: of these sentences.
        oracle: the truth; its grammar, as the oracle reads words, has the phrases.
        sentences: as they were measured.

    Raises:
        InputError: the truth has no rules, or a chart does not fit in memory.
    """
    grammar, known = oracle.grammar, dict[tuple[str, ...], tuple[tuple[str, ...], FloatArray]]()
    starts = [*measured.starts.tolist(), len(measured.sentence)]
    kl = measured.column("kl")
    rows, names = [], tuple[str, ...]()
    with meter("phrases of sentences", len(starts) - 1) as progress:
        for begin, end in pairwise(starts):
            words = tuple(oracle.read(sentences[int(measured.sentence[begin])]))
            if words not in known:
                known[words] = lowest_phrases(posterior(grammar, words))
            names, table = known[words]
            place = measured.position[begin:end]
            share = np.zeros((end - begin, len(names) + 1))
            inside = place < len(words)
            share[inside, :-1] = table[place[inside]]
            share[~inside, -1] = 1.0
            rows.append(share)
            progress.advance(1)
    share = np.concatenate(rows)
    finite = np.isfinite(kl)
    part = share * np.where(finite, kl, 0.0)[:, None]
    counted = share * finite[:, None]
    return DividedDivergence(
        (*names, END),
        measured.per_sentence(counted),
        measured.per_sentence(part),
        ((share > 0.0) & ~finite[:, None]).sum(axis=0),
        share.sum(axis=0),
    )
