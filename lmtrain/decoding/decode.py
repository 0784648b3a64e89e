"""Sentences from a model under a decoding scheme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import require_items
from truesource.lmtrain.decoding.alphabet import Alphabet, StepwiseModel
from truesource.lmtrain.decoding.sampling import (
    Hypothesis,
    Walk,
    beam_sampling,
    beam_search,
    sample_each,
    sample_in_groups,
)
from truesource.lmtrain.decoding.settings import SAMPLING, Decoding

LOGITS = 2**25  #: maximum number of float64 log probabilities of one step in memory (256 MiB)
MOST_ROWS = 2048
_SCHEMES: dict[str, _Run] = {
    **dict.fromkeys(SAMPLING, sample_each),
    "beam_sampling": beam_sampling,
    "beam_sampling_fairseq": sample_in_groups,
    "beam_sampling_hf": beam_search,
    "beam": beam_search,
}


class Samples(NamedTuple):
    """Sentences drawn from a model."""

    sentences: list[list[str]]  #: words; ``<unk>`` may be among them
    finished: BoolArray  #: (n,) whether the model ended the sentence itself within the tokens allowed


@dataclass(frozen=True)
class Decoded:
    """Sentences that a decoding scheme drew from a model."""

    sentences: list[list[str]]  #: words; ``<unk>`` may be among them
    finished: BoolArray  #: (n,) False for those cut after ``max_tokens``
    log_prob: FloatArray  #: (n,) under the model itself, with the end of the sentence if finished, nats
    group: IntArray  #: (n,) number of its beam; each has its own if only the best is kept
    special: float  #: probability that the model gave to tokens that no sentence contains, summed over the contexts
    contexts: int  #: number of contexts


def rows_at_once(alphabet: Alphabet) -> int:
    """Return the number of rows of text in a batch, from the size of the vocabulary alone."""
    return max(1, min(MOST_ROWS, LOGITS // alphabet.size))


def draw(
    model: StepwiseModel,
    n: int,
    decoding: Decoding,
    *,
    seed: int,
    stream: Sequence[int] = (),
    rows: int | None = None,
) -> Decoded:
    """Draw n sentences.

    Args:
        model: model to draw from.
        n: number of sentences; with ``keep="all"`` beams are drawn until there are so many, the last one best first.
        decoding: scheme and its settings.
        seed: equal seeds give equal sentences on the same machine, for one ``rows`` and number of threads.
        stream: numbers that tell independent draws of one seed apart.
        rows: rows of text in the network at once; None: by `rows_at_once`.

    Raises:
        InputError: ``n`` is negative, or more than a deterministic scheme gives; ``max_tokens`` is more than the model
            takes; or the model's probabilities are not finite.
    """
    if n < 0:
        raise InputError(f"cannot draw {n} sentences; ask for 0 or more")
    require_items(n, "sentences to draw", 500)
    decoding = decoding.within(model.alphabet.longest)
    check_number(n, decoding)
    alphabet = model.alphabet
    scheme = _SCHEMES[decoding.scheme]
    at_once = max(1, (rows or rows_at_once(alphabet)) // decoding.width)
    best: list[Hypothesis] = []
    groups: list[int] = []
    special, contexts, batch, beams = 0.0, 0, 0, 0
    while len(best) < n:
        walk = Walk(model.stepper(), alphabet.eos, alphabet.never, _batch_seed(seed, *stream, batch))
        n_runs = min(at_once, -(-(n - len(best)) // decoding.at_most))
        for hypotheses in scheme(walk, n_runs, decoding):
            some = hypotheses[: decoding.at_most]
            best += some
            groups += [beams] * len(some)
            beams += 1
        special, contexts, batch = special + walk.special, contexts + walk.contexts, batch + 1
        if decoding.scheme == "beam" and len(best) < n:
            raise InputError(f"beam search finds only {len(best)} sentences of at most {decoding.most} tokens, not {n}")
    del best[n:]
    return Decoded(
        [alphabet.spell(h.tokens) for h in best],
        np.array([h.finished for h in best], dtype=bool),
        np.array([h.log_prob for h in best], dtype=np.float64),
        np.array(groups[:n], dtype=np.int64),
        special,
        contexts,
    )


def check_number(n: int, decoding: Decoding) -> None:
    """Refuse more sentences than a deterministic scheme gives."""
    if decoding.scheme == "beam" and n > decoding.at_most:
        raise InputError(
            f"beam search draws nothing: it gives {decoding.at_most} with keep {decoding.keep!r}, so {n} sentences"
            " cannot be had; choose a sampling scheme"
        )


def _batch_seed(seed: int, *stream: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=stream).generate_state(1, np.uint64)[0])


_Run = Callable[[Walk, int, Decoding], list[list[Hypothesis]]]
