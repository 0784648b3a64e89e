"""Kernels: a pool of automata reads documents; each language has a log posterior given the words so far.

Weights are logarithms, so that a language of low posterior can recover at any time. W documents are read at once;
``rows`` are the rows of the buffers (W, K) that a call processes. A word numbered V is the end of a string.
"""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar.documents._kernels.tables import DeterministicMoves, HiddenMoves

SMALLEST = 1e-290  #: products of probabilities below this have lost some or all digits
NEARLY_NONE = 1e-6  #: shares below this lose digits if computed as a difference from 1
FAR = -45.0  #: nats below the largest term of a sum; smaller terms vanish in rounding


@kernel
def _summed(joint, top):
    """Return ln sum exp of (K,) numbers whose largest is ``top``."""
    if top == -np.inf:
        return -np.inf
    total = 0.0
    for k in range(len(joint)):
        if joint[k] > top + FAR:
            total += math.exp(joint[k] - top)
    return top + math.log(total)


@kernel
def _reweigh(row, log_weight, joint, total, at_end, log_prior, switch):
    """Compute the weights after a word; ``switch`` is P(the language is redrawn) after the end of a string."""
    changes = at_end and switch > 0.0
    for k in range(len(joint)):
        posterior = joint[k] - total
        if changes:
            fresh = math.log(switch) + log_prior[k]
            same = math.log1p(-switch) + posterior if switch < 1.0 else -np.inf
            top = max(fresh, same)
            posterior = top + math.log(math.exp(fresh - top) + math.exp(same - top)) if top > -np.inf else -np.inf
        log_weight[row, k] = posterior


@kernel
def _deterministic(row, word, at, log_weight, tables: DeterministicMoves, joint):
    """Write ln P(language, word) of each language to ``joint[row]``; return ln of their sum, nats."""
    top = -np.inf
    log_p = tables.log_stop if word == len(tables.word) else tables.log_word[word]
    for k in range(at.shape[1]):
        log_p_word = log_weight[row, k]
        if log_p_word > -np.inf:
            log_p_word += log_p[at[row, k]]
            top = max(top, log_p_word)
        joint[row, k] = log_p_word
    return _summed(joint[row], top)


@kernel
def deterministic_probability(rows, words, at, log_weight, scored, total, joint, tables: DeterministicMoves):
    """Return ln P(word) of each document, (n,) nats; -inf for word -1."""
    result = np.full(len(rows), -np.inf)
    for i in range(len(rows)):
        if words[i] >= 0:
            scored[rows[i]] = words[i]
            result[i] = total[rows[i]] = _deterministic(rows[i], words[i], at, log_weight, tables, joint)
    return result


@kernel
def deterministic_read(
    rows, words, at, log_weight, scored, total, joint, tables: DeterministicMoves, log_prior, switch
):
    """Move every language of each document by its word, and update the weights.

    ``joint`` and ``total`` are reused if `deterministic_probability` last scored the same word.
    """
    for i in range(len(rows)):
        row, word = rows[i], words[i]
        if scored[row] != word:
            total[row] = _deterministic(row, word, at, log_weight, tables, joint)
        scored[row] = -1
        at_end = word == len(tables.word)
        _reweigh(row, log_weight, joint[row], total[row], at_end, log_prior, switch)
        for k in range(at.shape[1]):
            if at_end:
                at[row, k] = tables.start[k]
            elif log_weight[row, k] > -np.inf:  # an impossible language can return only in another string
                at[row, k] = tables.after[word, at[row, k]]


@kernel
def deterministic_words(rows, at, log_weight, tables: DeterministicMoves):
    """Return P(word) of each document and word, (n, V), and P(the string ends), (n,)."""
    v, languages = len(tables.word), at.shape[1]
    law, stop = np.zeros((len(rows), v)), np.zeros(len(rows))
    weight = np.empty(languages)
    for i in range(len(rows)):
        for k in range(languages):
            weight[k] = math.exp(log_weight[rows[i], k])
            stop[i] += weight[k] * tables.stop[at[rows[i], k]]
        for word in range(v):
            for k in range(languages):
                law[i, word] += weight[k] * tables.word[word, at[rows[i], k]]
    return law, stop


@kernel
def _picked(weight, place):
    """Return which of K intervals of lengths ``weight`` (K,) contains a position, and how far into it, 0 to 1."""
    last, done = -1, 0.0
    for k in range(len(weight)):
        if last >= 0 and place < done:
            break
        if weight[k] > 0.0:
            last, done = k, done + weight[k]
    share = (place - (done - weight[last])) / weight[last]
    return last, min(max(share, 0.0), 1.0 - 2.0**-53)


@kernel
def deterministic_draw(rows, uniform, at, log_weight, tables: DeterministicMoves):
    """Draw a word of each document, given that the string continues, (n,): first the language, then its word."""
    result = np.empty(len(rows), dtype=np.int64)
    share, law = np.empty(at.shape[1]), np.empty(len(tables.word))
    for i in range(len(rows)):
        total = 0.0
        for k in range(len(share)):
            weight = log_weight[rows[i], k]
            share[k] = math.exp(weight) * (1.0 - tables.stop[at[rows[i], k]]) if weight > FAR else 0.0
            total += share[k]
        k, rest = _picked(share, uniform[i] * total)
        for word in range(len(law)):
            law[word] = tables.word[word, at[rows[i], k]]
        result[i] = _picked(law, rest * law.sum())[0]
    return result


@kernel
def _hidden(row, word, belief, ended, going, log_weight, tables: HiddenMoves, joint):
    """Compute `_deterministic`; ``belief`` (W, G) is P(state | words, not ended), ``ended`` (W, K) P(ended)."""
    top = -np.inf
    v = tables.emission.shape[1]
    for k in range(len(joint)):
        p, share = ended[row, k], 0.0
        if word < v:
            for state in range(tables.first[k], tables.first[k + 1]):
                share += belief[row, state] * tables.emission[state, word]
            p = share * going[row, k]
        if p >= SMALLEST or (word == v and p > 0.0):
            joint[k] = log_weight[row, k] + math.log(p)
        elif share > 0.0 and going[row, k] > 0.0:
            joint[k] = log_weight[row, k] + math.log(share) + math.log(going[row, k])
        else:
            joint[k] = -np.inf
        if joint[k] > top:
            top = joint[k]
    return top


@kernel
def hidden_probability(rows, words, belief, ended, going, log_weight, tables: HiddenMoves):
    """Return the probabilities of words, as `deterministic_probability` does."""
    result = np.full(len(rows), -np.inf)
    joint = np.empty(ended.shape[1])
    for i in range(len(rows)):
        if words[i] >= 0:
            top = _hidden(rows[i], words[i], belief, ended, going, log_weight, tables, joint)
            result[i] = _summed(joint, top)
    return result


@kernel
def hidden_read(rows, words, belief, ended, going, log_weight, tables: HiddenMoves, log_prior, switch):
    """Read words, as `deterministic_read` does."""
    joint, moved = np.empty(ended.shape[1]), np.zeros(belief.shape[1])
    v = tables.emission.shape[1]
    for i in range(len(rows)):
        row, word = rows[i], words[i]
        total = _summed(joint, _hidden(row, word, belief, ended, going, log_weight, tables, joint))
        _reweigh(row, log_weight, joint, total, word == v, log_prior, switch)
        for k in range(len(joint)):
            first, last = tables.first[k], tables.first[k + 1]
            if word == v:
                ended[row, k], going[row, k] = 0.0, 1.0
                for state in range(first, last):
                    belief[row, state] = 0.0
                belief[row, tables.start[k]] = 1.0
            elif joint[k] > -np.inf:
                _move(row, k, word, belief, ended, going, tables, moved)


@kernel
def _move(row, k, word, belief, ended, going, tables: HiddenMoves, moved):
    """Update the belief of one language after a possible word; ``moved`` (G,) is zero before and after."""
    v = tables.emission.shape[1]
    stop, go = 0.0, 0.0
    for x in range(tables.bounds[k * v + word], tables.bounds[k * v + word + 1]):
        p = belief[row, tables.source[x]] * tables.p[x]
        if tables.target[x] < 0:
            stop += p
        else:
            moved[tables.target[x]] += p
            go += p
    ended[row, k] = stop / (stop + go)
    going[row, k] = 1.0 - ended[row, k]
    if going[row, k] < NEARLY_NONE:
        going[row, k] = go / (stop + go)
    for state in range(tables.first[k], tables.first[k + 1]):
        belief[row, state] = moved[state] / go if go > 0.0 else 0.0
        moved[state] = 0.0


@kernel
def hidden_words(rows, belief, ended, going, log_weight, tables: HiddenMoves):
    """Return the probabilities of all words, as `deterministic_words` does."""
    v = tables.emission.shape[1]
    law, stop = np.zeros((len(rows), v)), np.zeros(len(rows))
    for i in range(len(rows)):
        row = rows[i]
        for k in range(ended.shape[1]):
            weight = math.exp(log_weight[row, k])
            if weight == 0.0:
                continue
            stop[i] += weight * ended[row, k]
            for state in range(tables.first[k], tables.first[k + 1]):
                share = weight * going[row, k] * belief[row, state]
                if share > 0.0:
                    for word in range(v):
                        law[i, word] += share * tables.emission[state, word]
    return law, stop


@kernel
def hidden_draw(rows, uniform, belief, ended, going, log_weight, tables: HiddenMoves):
    """Draw, as `deterministic_draw` does: first the language, then its state, then a word."""
    result = np.empty(len(rows), dtype=np.int64)
    share = np.empty(ended.shape[1])
    for i in range(len(rows)):
        row, total = rows[i], 0.0
        for k in range(len(share)):
            weight = log_weight[row, k]
            share[k] = math.exp(weight) * going[row, k] if weight > FAR else 0.0
            total += share[k]
        k, rest = _picked(share, uniform[i] * total)
        states = belief[row, tables.first[k] : tables.first[k + 1]]
        state, rest = _picked(states, rest * states.sum())
        state += tables.first[k]
        result[i] = _picked(tables.emission[state], rest * tables.emission[state].sum())[0]
    return result
