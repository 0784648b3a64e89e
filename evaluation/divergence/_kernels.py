"""Kernels: comparison of two distributions over the same events, row by row, in one pass."""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel

TIE = 1e-9  #: nats; smaller differences of log probabilities are rounding


@kernel
def _insert(values, places, k, value, place):
    """Keep the k largest values, largest first; of equal values, the first ones."""
    at = k - 1
    while at > 0 and value > values[at - 1]:
        values[at] = values[at - 1]
        places[at] = places[at - 1]
        at -= 1
    values[at] = value
    places[at] = place


@kernel
def _mixed(p, log_p, q, log_q):
    """Compute the share of one event in the Jensen-Shannon divergence, nats."""
    if log_p == log_q or p + q == 0.0:
        return 0.0
    middle = math.log(0.5 * (p + q))
    found = 0.0
    if p > 0.0:
        found += p * (log_p - middle)
    if q > 0.0:
        found += q * (log_q - middle)
    return 0.5 * found


@kernel
def _agreement(log_p, log_q, highest_p, highest_q):
    """Compute the share of the most probable events of the model that are most probable in truth; (E,) each."""
    chosen, right = 0, 0
    for e in range(len(log_q)):
        if log_q[e] >= highest_q - TIE:
            chosen += 1
            if log_p[e] >= highest_p - TIE:
                right += 1
    return right / chosen


@kernel
def _overlap(log_p, top_p, place_q, few):
    """Compute the share of the model's ``few`` best that are among the true best; ties count in its favour."""
    least = top_p[few - 1]
    above, tied, spots = 0, 0, few
    for x in range(few):
        if top_p[x] > least + TIE:
            spots -= 1  # this event is in every set of the true best, so fewer places are left for ties
        if place_q[x] >= 0:
            if log_p[place_q[x]] > least + TIE:
                above += 1
            elif log_p[place_q[x]] >= least - TIE:
                tied += 1
    return (above + min(tied, spots)) / few


@kernel
def measure(truth, model, top, group, n_groups, weight, low, step, bins):
    """Compute all measures of each row; see `truesource.evaluation.divergence.contexts.NAMES` for the columns.

    Args:
        truth: (W, E) ln P, -inf where impossible.
        model: (W, E) ln Q.
        top: size of the sets of most probable events.
        group: (E,) group of each event, 0 to ``n_groups`` - 1.
        n_groups: number of groups.
        weight: (W,) how often a row counts in ``bins``.
        low: ln Q at the lower end of the first bin.
        step: width of a bin, nats.
        bins: (B, 3) number of events, sum of Q, sum of P by ln Q; added to.

    Returns:
        measures (W, 13); share (W, G), P of each group; grouped (W, G), the sum of P (ln P - ln Q) over it.
    """
    width, n_events = truth.shape
    k = min(top, n_events)
    measures = np.zeros((width, 13))
    share = np.zeros((width, n_groups))
    grouped = np.zeros((width, n_groups))
    top_p, top_q = np.empty(k), np.empty(k)
    place_p, place_q = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    for w in range(width):
        top_p[:] = -np.inf
        top_q[:] = -np.inf
        place_p[:] = -1
        place_q[:] = -1
        mass_p, mass_q, within, excess, wide_q = 0.0, 0.0, 0.0, 0.0, 0.0
        mixed, apart, wide_p, forbidden = 0.0, 0.0, 0.0, 0.0
        possible = 0
        outside = False
        for e in range(n_events):
            log_p, log_q = truth[w, e], model[w, e]
            p, q = math.exp(log_p), math.exp(log_q)
            mass_p += p
            mass_q += q
            if log_p > -np.inf:
                possible += 1
                added = p * (log_p - log_q) if log_q > -np.inf else np.inf
                share[w, group[e]] += p
                grouped[w, group[e]] += added
                wide_p -= p * log_p
                within += q
                if log_q > -np.inf:
                    excess += q * (log_q - log_p)
            elif log_q > -np.inf:
                outside = True
                forbidden += q
            if log_q > -np.inf:
                wide_q -= q * log_q
            mixed += _mixed(p, log_p, q, log_q)
            apart += abs(p - q)
            if log_p > top_p[k - 1]:
                _insert(top_p, place_p, k, log_p, e)
            if log_q > top_q[k - 1]:
                _insert(top_q, place_q, k, log_q, e)
            at = 0
            if log_q > low:
                at = min(int((log_q - low) / step), bins.shape[0] - 1)
            bins[at, 0] += weight[w]
            bins[at, 1] += weight[w] * q
            bins[at, 2] += weight[w] * p
        # the mass that either side gives to no event is another event
        rest_p, rest_q = max(1.0 - mass_p, 0.0), max(1.0 - mass_q, 0.0)
        mixed += _mixed(
            rest_p,
            math.log(rest_p) if rest_p > 0.0 else -np.inf,
            rest_q,
            math.log(rest_q) if rest_q > 0.0 else -np.inf,
        )
        row = measures[w]
        row[0] = grouped[w].sum()
        row[1] = np.inf if outside or mass_q == 0.0 else excess / mass_q - math.log(mass_q / mass_p)
        row[2] = excess / within - math.log(within / mass_p) if within > 0.0 else np.inf
        row[3] = mixed
        row[4] = 0.5 * (apart + abs(rest_p - rest_q))
        row[5] = wide_p
        row[6] = wide_q / mass_q + math.log(mass_q) if mass_q > 0.0 else np.nan
        if possible > 0 and place_q[0] >= 0:
            row[7] = _agreement(truth[w], model[w], top_p[0], top_q[0])
            row[8] = _overlap(truth[w], top_p, place_q, min(k, possible))
            row[11] = math.exp(top_q[0])
            row[12] = math.exp(truth[w, place_q[0]])
        row[9] = rest_q
        row[10] = forbidden
    return measures, share, grouped


@kernel
def divide(truth, model, floors):
    """Divide both sides of each row among bands of true probability.

    Args:
        truth: (W, E) ln P, -inf where impossible.
        model: (W, E) ln Q.
        floors: (B,) minimum ln P of each band, descending. One more band has rarer events, the last impossible ones.

    Returns:
        Share (W, B+2), part (W, B+2) and mass (W, B+2): sums of P, P (ln P - ln Q) and Q over each band.
    """
    width, n_events = truth.shape
    n_floors = len(floors)
    share = np.zeros((width, n_floors + 2))
    part = np.zeros((width, n_floors + 2))
    mass = np.zeros((width, n_floors + 2))
    for w in range(width):
        for e in range(n_events):
            log_p, log_q = truth[w, e], model[w, e]
            band = n_floors + 1
            if log_p > -np.inf:
                band = 0
                while band < n_floors and log_p < floors[band] - TIE:
                    band += 1
                p = math.exp(log_p)
                share[w, band] += p
                part[w, band] += p * (log_p - log_q) if log_q > -np.inf else np.inf
            mass[w, band] += math.exp(log_q)
    return share, part, mass
