"""Kernel: most probable derivations of one sentence."""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import LexicalRules, PairRules, SparseRows


@kernel
def viterbi(words, allowed, chains: SparseRows, pairs: PairRules, lexicon: LexicalRules):
    """Most probable derivation of each symbol over each span of one sentence, log space.

    ``allowed`` (spans, S) says which states may cover which span; without entries, (0, 0), all may. All weights are log
    probabilities; ``chains`` are the rows of the max-product unary closure.

    Returns:
        best (spans, S); chain (spans, S), the state at the lower end of the best unary chain; rule (spans, S) and
        split (spans, S), the best rule of that state (as it stands *below* its chains) and its split point, -1 where
        lexical.
    """
    chain_start, chain_column, chain_logp = chains
    _, pair_right, by_left, rule_start, parent, logp = pairs
    lex_start, lex_parent, lex_logp = lexicon
    n = words.size
    n_states = by_left.size - 1
    n_spans = n * (n + 1) // 2
    n_pairs = pair_right.size
    best = np.full((n_spans, n_states), -np.inf)
    chain = np.full((n_spans, n_states), -1, dtype=np.int32)
    rule = np.full((n_spans, n_states), -1, dtype=np.int32)
    split = np.full((n_spans, n_states), -1, dtype=np.int32)
    pair_best = np.full(n_pairs, -np.inf)
    pair_split = np.zeros(n_pairs, dtype=np.int32)
    bare = np.empty(n_states)
    every = np.ones(n_states, dtype=np.bool_)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            may = every if allowed.size == 0 else allowed[span]
            if not may.any():
                continue
            bare[:] = -np.inf
            if i == j - 1:
                word = words[i]
                if word >= 0:
                    for r in range(lex_start[word], lex_start[word + 1]):
                        if may[lex_parent[r]]:
                            bare[lex_parent[r]] = lex_logp[r]
                            rule[span, lex_parent[r]] = r
            else:
                pair_best[:] = -np.inf
                for k in range(i + 1, j):
                    left = k * (k - 1) // 2 + i
                    right = j * (j - 1) // 2 + k
                    for b in range(n_states):
                        if best[left, b] > -np.inf:
                            for p in range(by_left[b], by_left[b + 1]):
                                value = best[left, b] + best[right, pair_right[p]]
                                if value > pair_best[p]:
                                    pair_best[p] = value
                                    pair_split[p] = k
                for p in range(n_pairs):
                    if pair_best[p] > -np.inf:
                        for r in range(rule_start[p], rule_start[p + 1]):
                            value = pair_best[p] + logp[r]
                            if value > bare[parent[r]] and may[parent[r]]:
                                bare[parent[r]] = value
                                rule[span, parent[r]] = r
                                split[span, parent[r]] = pair_split[p]
            for a in range(n_states):
                if not may[a]:
                    continue
                for e in range(chain_start[a], chain_start[a + 1]):
                    value = bare[chain_column[e]] + chain_logp[e]
                    if value > best[span, a]:
                        best[span, a] = value
                        chain[span, a] = chain_column[e]
    return best, chain, rule, split
