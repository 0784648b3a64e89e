"""Kernels: inside and outside charts of one sentence, sampled and most probable derivations, and max-rule charts.

Span ``(i, j)`` has number ``j (j-1) / 2 + i``. Each span has its own power of two, ``shift``: its inside weights are
``entry * 2^shift`` and its largest entry lies in [0.5, 1), so charts neither under- nor overflow at any length. Outside
entries are divided by that power and by the sentence's probability: inside entry times outside entry is a posterior.
"""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel, n_bits, room
from truesource.grammar._kernels.rules import (
    ChildRules,
    CoarseRules,
    InsideChart,
    LexicalRules,
    PairBits,
    PairRules,
    SparseRows,
)

#: Entries smaller than this share of the largest of their span count as zero. Outside entries stay below about its
#: inverse, and every product of the kernels below stays finite.
SMALLEST = 1e-250
BITS = 64  #: symbols in one integer of a set


@kernel
def _gather(span, listed, count, sets):
    """Put the states of a span into its set, 64 states to an integer."""
    for x in range(count[span]):
        a = listed[span, x]
        sets[span, a // BITS] |= np.int64(1) << (a % BITS)


@kernel
def _sets(listed, count, words):
    """Return the states of each span as sets, (spans, words)."""
    sets = np.zeros((count.size, words), dtype=np.int64)
    for span in range(count.size):
        _gather(span, listed, count, sets)
    return sets


@kernel
def _meetings(b, right, sets, bits: PairBits, matches):
    """List in ``matches`` the pairs of left child b and a right child in ``sets[right]``; return the count."""
    n = 0
    for w in range(sets.shape[1]):
        partners = bits.partners[b, w]
        here = partners & sets[right, w]
        while here != 0:
            lowest = here & -here
            matches[n] = bits.first[b, w] + n_bits(partners & (lowest - 1))
            n += 1
            here ^= lowest
    return n


@kernel
def _products(i, j, chart: InsideChart, pairs: PairRules, bits: PairBits, sets, matches, acc, touched, lost):
    """Sum all splits of span (i, j) per child pair into ``acc``; return the number of pairs touched, and their power.

    Sets ``lost[0]`` if a product underflows.
    """
    inside, _, shift, listed, count = chart
    pair_right = pairs.right
    top = np.int64(-(2**62))
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        if count[left] > 0 and count[right] > 0:
            top = max(top, shift[left] + shift[right])
    n_touched = 0
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        if count[left] == 0 or count[right] == 0:
            continue
        factor = math.ldexp(1.0, max(shift[left] + shift[right] - top, -2000))
        row = inside[right]
        for x in range(count[left]):
            b = listed[left, x]
            weight = inside[left, b] * factor
            for y in range(_meetings(b, right, sets, bits, matches)):
                p = matches[y]
                value = row[pair_right[p]] * weight
                if value > 0.0:
                    if acc[p] == 0.0:
                        touched[n_touched] = p
                        n_touched += 1
                    acc[p] += value
                else:
                    lost[0] = True
    return n_touched, top


@kernel
def _listed(may, states):
    """List the states in ``may`` (S,) in ``states``; return the count."""
    n = 0
    for a in range(may.size):
        if may[a]:
            states[n] = a
            n += 1
    return n


@kernel
def inside(words, allowed, closure: SparseRows, pairs: PairRules, bits: PairBits, lexicon: LexicalRules):
    """Return inside weights of one sentence, ``words`` (n,), -1 for an unknown word.

    ``allowed`` (spans, S) says which states may cover which span; without entries, (0, 0), all may. ``closure`` are the
    columns of the unary closure: entry e of row b is ``U[column[e], b]``.

    Returns:
        The chart; and whether any weight was too small relative to others to be kept.
    """
    closure_start, closure_column, closure_value = closure
    _, pair_right, by_left, rule_start, parent, prob = pairs
    lex_start, lex_parent, lex_prob = lexicon
    n = words.size
    n_states = by_left.size - 1
    n_spans = n * (n + 1) // 2
    full = np.zeros((n_spans, n_states))
    bare = np.zeros((n_spans, n_states))
    shift = np.zeros(n_spans, dtype=np.int64)
    listed = np.zeros((n_spans, n_states), dtype=np.int32)
    count = np.zeros(n_spans, dtype=np.int32)
    chart = InsideChart(full, bare, shift, listed, count)
    acc = np.zeros(pair_right.size)
    touched = np.zeros(pair_right.size, dtype=np.int32)
    matches = np.zeros(n_states, dtype=np.uint32)
    sets = np.zeros((n_spans, bits.first.shape[1]), dtype=np.int64)
    lost = np.zeros(1, dtype=np.bool_)
    may = np.ones(n_states, dtype=np.bool_)
    states = np.arange(n_states)  # states that may cover the span
    n_may = n_states
    sums = np.zeros(n_states)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            if allowed.size > 0:
                may = allowed[span]
                n_may = _listed(may, states)
            if n_may == 0:
                continue
            top = np.int64(0)
            if i == j - 1:
                word = words[i]
                if word >= 0:
                    for r in range(lex_start[word], lex_start[word + 1]):
                        if may[lex_parent[r]]:
                            bare[span, lex_parent[r]] = lex_prob[r]
            else:
                n_touched, top = _products(i, j, chart, pairs, bits, sets, matches, acc, touched, lost)
                sums[:] = 0.0
                for x in range(n_touched):
                    p = touched[x]
                    weight = acc[p]
                    acc[p] = 0.0
                    for r in range(rule_start[p], rule_start[p + 1]):
                        product = prob[r] * weight
                        if product == 0.0:
                            lost[0] |= may[parent[r]]
                        sums[parent[r]] += product
                for x in range(n_may):
                    bare[span, states[x]] = sums[states[x]]
            for x in range(n_may):
                b = states[x]
                weight = bare[span, b]
                if weight > 0.0:
                    for e in range(closure_start[b], closure_start[b + 1]):
                        if may[closure_column[e]]:
                            full[span, closure_column[e]] += closure_value[e] * weight
            largest = 0.0
            for x in range(n_may):
                largest = max(largest, full[span, states[x]])
            if largest == 0.0:
                continue
            power = math.frexp(largest)[1]
            shift[span] = top + power
            # two steps: the inverse of the smallest floats would overflow
            first, second = math.ldexp(1.0, -(power // 2)), math.ldexp(1.0, power // 2 - power)
            for x in range(n_may):
                a = states[x]
                bare[span, a] = bare[span, a] * first * second
                value = full[span, a] * first * second
                if value < SMALLEST:
                    lost[0] |= full[span, a] > 0.0
                    full[span, a] = 0.0
                    bare[span, a] = 0.0
                else:
                    full[span, a] = value
                    listed[span, count[span]] = a
                    count[span] += 1
            _gather(span, listed, count, sets)
    return chart, lost[0]


@kernel
def outside(chart: InsideChart, n, start, closure: SparseRows, pairs: PairRules, bits: PairBits):
    """Return outside weights of one sentence below unary chains, (spans, S), scaled as above; arguments from `inside`.

    With ``closed[A]`` over a span, ``closed[A] * inside[A]`` is the expected number of A nodes over that span and
    ``closed[A] * bare[A]`` the probability that A is at the lower end of its unary chain. Zero for states whose inside
    weight is zero.
    """
    inside, _, shift, listed, count = chart
    closure_start, closure_column, closure_value = closure
    _, pair_right, by_left, rule_start, parent, prob = pairs
    n_states = by_left.size - 1
    n_spans = n * (n + 1) // 2
    closed = np.zeros((n_spans, n_states))
    above = np.zeros((n_spans, n_states))
    demand = np.zeros(pair_right.size)
    demand_span = np.full(pair_right.size, -1, dtype=np.int64)  # the span of each demand
    matches = np.zeros(n_states, dtype=np.uint32)
    sets = _sets(listed, count, bits.first.shape[1])
    above[n_spans - n, start] = 1.0 / inside[n_spans - n, start]
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            alive = False
            for x in range(count[span]):
                b = listed[span, x]
                total = 0.0
                for e in range(closure_start[b], closure_start[b + 1]):
                    total += closure_value[e] * above[span, closure_column[e]]
                closed[span, b] = total
                alive = alive or total > 0.0
            if length == 1 or not alive:
                continue
            for k in range(i + 1, j):
                left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
                if count[left] == 0 or count[right] == 0:
                    continue
                power = shift[left] + shift[right] - shift[span]
                if power < -2000:
                    continue
                factor = math.ldexp(1.0, power)
                for x in range(count[left]):
                    b = listed[left, x]
                    weight = inside[left, b]
                    total = 0.0
                    for y in range(_meetings(b, right, sets, bits, matches)):
                        p = matches[y]
                        if demand_span[p] != span:
                            demand_span[p] = span
                            demand[p] = 0.0
                            for r in range(rule_start[p], rule_start[p + 1]):
                                demand[p] += prob[r] * closed[span, parent[r]]
                        if demand[p] > 0.0:
                            c = pair_right[p]
                            # the factor comes last: demand times factor alone may overflow
                            total += demand[p] * inside[right, c] * factor
                            above[right, c] += demand[p] * weight * factor
                    above[left, b] += total
    return closed


@kernel
def expected_binary(chart: InsideChart, closed, n, pairs: PairRules):
    """Return the expected sum of a number over a derivation's binary rules; ``prob`` is probability times number."""
    inside, _, shift, listed, count = chart
    _, pair_right, by_left, rule_start, parent, weight = pairs
    demand = np.zeros(pair_right.size)
    demand_span = np.full(pair_right.size, -1, dtype=np.int64)  # the span of each demand
    total = 0.0
    for j in range(2, n + 1):
        for i in range(j - 1):
            span = j * (j - 1) // 2 + i
            for k in range(i + 1, j):
                left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
                power = shift[left] + shift[right] - shift[span]
                if count[left] == 0 or count[right] == 0 or power < -2000:
                    continue
                factor = math.ldexp(1.0, power)
                for x in range(count[left]):
                    b = listed[left, x]
                    for p in range(by_left[b], by_left[b + 1]):
                        value = inside[right, pair_right[p]]
                        if value > 0.0 and demand_span[p] != span:
                            demand_span[p] = span
                            demand[p] = 0.0
                            for r in range(rule_start[p], rule_start[p + 1]):
                                demand[p] += weight[r] * closed[span, parent[r]]
                        if value > 0.0:
                            total += demand[p] * value * inside[left, b] * factor
    return total


@kernel
def sample(rng, chart: InsideChart, n, start, binary: ChildRules, unary: ChildRules):
    """Draw one derivation from the posterior: states in preorder and their number of child nodes, (nodes,) each.

    ``rng`` is a `numpy.random.Generator`.
    """
    inside, bare, shift, _, _ = chart
    binary_start, binary_left, binary_right = binary.start, binary.children[0], binary.children[1]
    unary_start, unary_child = unary.start, unary.children[0]
    states = np.empty(4 * n, dtype=np.int32)
    arity = np.empty(4 * n, dtype=np.int8)
    nodes = 0
    # pending right children: (i, j, state)
    waiting = np.empty((n + 1, 3), dtype=np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, n, start
    depth = 1
    while depth > 0:
        depth -= 1
        i, j, a = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
        while True:
            span = j * (j - 1) // 2 + i
            states, arity = room(states, nodes + 1), room(arity, nodes + 1)
            states[nodes] = a
            nodes += 1
            # the weights of all expansions of a sum to inside[span, a]: its own rules, then unary steps
            draw = rng.random() * inside[span, a]
            if draw >= bare[span, a]:
                draw -= bare[span, a]
                below = np.int64(-1)
                for e in range(unary_start[a], unary_start[a + 1]):
                    weight = unary.prob[e] * inside[span, unary_child[e]]
                    if weight > 0.0:
                        below = np.int64(unary_child[e])
                        draw -= weight
                        if draw < 0.0:
                            break
                if below >= 0:
                    arity[nodes - 1] = 1
                    a = below
                    continue
            if j - i == 1:
                arity[nodes - 1] = 0
                break
            arity[nodes - 1] = 2
            draw = rng.random() * bare[span, a]
            split, rule = np.int64(-1), np.int64(-1)
            for k in range(i + 1, j):
                left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
                power = shift[left] + shift[right] - shift[span]
                if power < -2000:
                    continue
                factor = math.ldexp(1.0, power)
                for r in range(binary_start[a], binary_start[a + 1]):
                    weight = binary.prob[r] * inside[left, binary_left[r]] * inside[right, binary_right[r]] * factor
                    if weight > 0.0:
                        split, rule = np.int64(k), np.int64(r)
                        draw -= weight
                        if draw < 0.0:
                            break
                if draw < 0.0:
                    break
            waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = split, j, binary_right[rule]
            depth += 1
            j, a = split, np.int64(binary_left[rule])
    return states[:nodes], arity[:nodes]


@kernel
def max_rule(
    chart: InsideChart, closed, n, smallest, labels, n_labels, pairs: PairRules, bits: PairBits, coarse: CoarseRules
):
    """Return coarse trees with the greatest product of posterior rule probabilities, for every label and span.

    Spans whose probability as a constituent is below ``smallest`` are skipped.

    Returns:
        best (spans, L), log of the product; below (spans, L), label under the best unary step, -1 for none; rule and
        split (spans, L), best coarse binary rule and its split of the label without unary steps.
    """
    inside, bare, shift, listed, count = chart
    group_start, group_coarse = coarse.group_start, coarse.group_coarse
    member_start, member_parent, member_prob = coarse.member_start, coarse.member_parent, coarse.member_prob
    coarse_parent, coarse_left, coarse_right = coarse.binary[0], coarse.binary[1], coarse.binary[2]
    chain_start, chain_weight = coarse.chain_start, coarse.chain_weight
    chain_above, chain_below = coarse.chain_states[0], coarse.chain_states[1]
    chain_parent, chain_child = coarse.chains[0], coarse.chains[1]
    n_spans = n * (n + 1) // 2
    best = np.full((n_spans, n_labels), -np.inf)
    below = np.full((n_spans, n_labels), -1, dtype=np.int32)
    rule = np.full((n_spans, n_labels), -1, dtype=np.int32)
    split = np.full((n_spans, n_labels), -1, dtype=np.int32)
    likely = np.zeros(n_spans, dtype=np.bool_)
    for span in range(n_spans):
        total = 0.0
        for x in range(count[span]):
            total += closed[span, listed[span, x]] * bare[span, listed[span, x]]
        likely[span] = total > 0.0 and total >= smallest
    demand = np.zeros(group_coarse.size)
    demand_span = np.full(group_coarse.size, -1, dtype=np.int64)  # the span of each demand
    acc = np.zeros(coarse_parent.size)
    touched = np.zeros(coarse_parent.size, dtype=np.int32)
    matches = np.zeros(listed.shape[1], dtype=np.uint32)
    sets = _sets(listed, count, bits.first.shape[1])
    n_chains = chain_parent.size
    step = np.zeros(n_chains)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            if not likely[span]:
                continue
            value = best[span]
            if i == j - 1:
                for x in range(count[span]):
                    a = listed[span, x]
                    weight = closed[span, a] * bare[span, a]
                    if weight > 0.0:
                        at = labels[a]
                        value[at] = weight if value[at] == -np.inf else value[at] + weight
                for at in range(n_labels):
                    if value[at] > 0.0:
                        value[at] = min(math.log(value[at]), 0.0)
            else:
                for k in range(i + 1, j):
                    left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
                    if not (likely[left] and likely[right]):
                        continue
                    power = shift[left] + shift[right] - shift[span]
                    if power < -2000:
                        continue
                    factor = math.ldexp(1.0, power)
                    n_touched = 0
                    for x in range(count[left]):
                        b = listed[left, x]
                        weight = inside[left, b]
                        for y in range(_meetings(b, right, sets, bits, matches)):
                            p = matches[y]
                            product = inside[right, pairs.right[p]] * weight
                            for g in range(group_start[p], group_start[p + 1]):
                                if demand_span[g] != span:
                                    demand_span[g] = span
                                    demand[g] = 0.0
                                    for m in range(member_start[g], member_start[g + 1]):
                                        demand[g] += member_prob[m] * closed[span, member_parent[m]]
                                amount = demand[g] * product * factor
                                if amount > 0.0:
                                    c = group_coarse[g]
                                    if acc[c] == 0.0:
                                        touched[n_touched] = c
                                        n_touched += 1
                                    acc[c] += amount
                    for x in range(n_touched):
                        c = touched[x]
                        score = best[left, coarse_left[c]] + best[right, coarse_right[c]]
                        at = coarse_parent[c]
                        if score > value[at]:  # the factor of a rule is at most 1
                            score += min(math.log(acc[c]), 0.0)
                            if score > value[at]:
                                value[at] = score
                                rule[span, at] = c
                                split[span, at] = k
                        acc[c] = 0.0
            # unary steps: no step has a factor above 1, so a step to the same or a better label never helps
            step[:] = 1.0  # not computed yet
            changed = True
            while changed:
                changed = False
                for u in range(n_chains):
                    if value[chain_child[u]] <= value[chain_parent[u]]:
                        continue
                    if step[u] > 0.0:
                        total = 0.0
                        for e in range(chain_start[u], chain_start[u + 1]):
                            total += closed[span, chain_above[e]] * chain_weight[e] * inside[span, chain_below[e]]
                        step[u] = min(math.log(total), 0.0) if total > 0.0 else -np.inf
                    score = step[u] + value[chain_child[u]]
                    if score > value[chain_parent[u]]:
                        value[chain_parent[u]] = score
                        below[span, chain_parent[u]] = chain_child[u]
                        changed = True
    return best, below, rule, split


@kernel
def best_splits(gain, n):
    """Return the binary bracketing of n words with the greatest sum of ``gain`` (spans,): the splits, (spans,)."""
    total = gain.copy()
    split = np.full(gain.size, -1, dtype=np.int32)
    for j in range(1, n + 1):
        for i in range(j - 2, -1, -1):
            most = -np.inf
            span = j * (j - 1) // 2 + i
            for k in range(i + 1, j):
                value = total[k * (k - 1) // 2 + i] + total[j * (j - 1) // 2 + k]
                if value > most:
                    most = value
                    split[span] = k
            total[span] += most
    return split


@kernel
def viterbi(words, allowed, chains: SparseRows, pairs: PairRules, lexicon: LexicalRules):
    """Return the most probable derivation of each symbol over each span of one sentence, log space.

    ``allowed`` (spans, S) says which states may cover which span; without entries, (0, 0), all may. All weights are log
    probabilities; ``chains`` are the rows of the max-product unary closure.

    Returns:
        best (spans, S); chain (spans, S), the state at the lower end of the best unary chain; rule (spans, S) and split
        (spans, S), the best rule of that state (*below* its chains) and its split point, -1 for lexical rules.
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
