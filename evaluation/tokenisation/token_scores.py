"""Log probability of every piece of some segmentations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truesource.evaluation.tokenisation.window import WithinWindow, most_pieces
from truesource.generator.language_model import IncrementalScorer, TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray


def token_log_probs(model: TokenisedModel, rows: Sequence[IntArray]) -> list[FloatArray]:
    """Log probability of each token of some texts after those before it, nats; the end of the text is left out.

    Arguments are those of `continued_log_probs`. Tokens beyond the model's window have probability zero.
    """
    most = most_pieces(model)
    fit = most is None or max(map(len, rows), default=0) <= most
    scorer = model.incremental_scorer() if fit else WithinWindow.of(model)
    return continued_log_probs(scorer, scorer.begin(), rows)


def continued_log_probs(scorer: IncrementalScorer, context: int, rows: Sequence[IntArray]) -> list[FloatArray]:
    """Log probability of each token of each row after a context and the tokens before it, nats.

    Rows are read side by side, what they begin with in common once. After a token of probability zero a row is not read
    on, and what follows is -inf too. All contexts but the given one are forgotten.

    Args:
        scorer: of the model.
        context: that all rows continue.
        rows: tokens (the model's numbers), none of them empty.
    """
    found = [np.full(len(row), -np.inf) for row in rows]
    contexts = np.full(len(rows), context, dtype=np.int64)
    alive = np.arange(len(rows))
    for position in range(max(map(len, rows), default=0)):
        tokens = np.array([rows[i][position] for i in alive.tolist()], dtype=np.int64)
        pairs, inverse = np.unique(np.stack([contexts[alive], tokens]), axis=1, return_inverse=True)
        inverse = inverse.ravel()
        log_p = scorer.log_prob(pairs[0], pairs[1])[inverse]
        for i, value in zip(alive.tolist(), log_p.tolist(), strict=True):
            found[i][position] = value
        going = np.isfinite(log_p) & np.array([len(rows[i]) > position + 1 for i in alive.tolist()])
        alive, inverse = alive[going], inverse[going]
        if len(alive):
            used, inverse = np.unique(inverse, return_inverse=True)
            contexts[alive] = scorer.extend(pairs[0][used], pairs[1][used])[inverse]
        scorer.keep(np.unique(np.append(contexts[alive], context)))
        if not len(alive):
            break
    return found
