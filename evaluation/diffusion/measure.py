"""Distance from the truth of text that is filled in step by step: the cost of parallel filling, and of the model.

A sampler begins with gaps alone, as many as the sentence has words, and fills some of them in each step, each from its
own distribution given the words of earlier steps. Words of one step do not see each other, so that even the exact
distributions make wrong sentences: in one step KL(truth || sampler) is the total correlation of the words, with a word
a step it is 0. All divergences are given the number of words, in nats a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.comparison import score_by_model
from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.divergence.means import Column, mean_scores, share_of
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.evaluation.measures.paired import pair
from truesource.generator.language_model import LanguageModel, ScoringFrame
from truesource.generator.objectives import Objective
from truesource.grammar.inference.any_order import AnyOrder
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords, meter
from truesource.grammar.support.room import require_items

Order = Literal["random", "confidence", "blocks"]
ORDERS: tuple[Order, ...] = get_args(Order)
ALL = 0  #: as a number of steps: one word a step
AT_ONCE = 128  #: sentences of one length that are filled together
STEPS = (1, 2, 4, 8)
ROUNDING = 1e-9  #: nats; a divergence below this counts as zero
HIDDEN = -1  #: in rows of words: not known


class Denoiser(Protocol):
    """A source of the words at gaps, each given the known words: a model, or the truth."""

    def denoise(self, patterns: Sequence[Sequence[str | None]]) -> FloatArray:
        """Return ln P of each word of the model's vocabulary, then ``<unk>``, at every place: (B, n, W+1) nats."""


class GapModel(LanguageModel, Denoiser, Protocol):
    """A language model that fills gaps."""


class ExactDenoiser:
    """The truth as a denoiser: exact at every gap.

    Args:
        oracle: the truth as the model sees it.
        words: (W,) the model's.
    """

    def __init__(self, oracle: Oracle, words: Sequence[str]) -> None:
        self._truth = AnyOrder(oracle.grammar)
        self._columns = oracle.columns(words)

    def denoise(self, patterns: Sequence[Sequence[str | None]]) -> FloatArray:
        """Return the exact distribution at every gap, see `Denoiser.denoise`; -inf throughout if nothing fits."""
        word_ids, none = self._truth.pcfg.word_ids, len(self._truth.pcfg.vocabulary)
        ids = np.array([[HIDDEN if w is None else word_ids.get(w, none) for w in pattern] for pattern in patterns])
        wrong = (ids == none).any(axis=1)  # a word that the grammar lacks: no sentence fits
        table = self._truth.denoise(np.where(wrong[:, None], HIDDEN, ids))[:, :, self._columns]
        table[:, :, self._columns < 0] = 0.0
        table[wrong] = 0.0
        with np.errstate(divide="ignore"):
            return np.log(table, out=table)


@dataclass(frozen=True)
class Schedule:
    """The way in which a sampler fills a sentence.

    ``random``: places in random order. ``confidence``: where the most probable word is most probable. ``blocks``: from
    left to right, neighbours together. The words are spread over the steps as evenly as they can be.
    """

    order: Order
    steps: int  #: 1 or more, or `ALL`

    @property
    def fills(self) -> str:
        """The number of steps, for records."""
        return str(self.steps or "all")

    def sizes(self, n: int) -> list[int]:
        """Return how many words of n each step fills; with more steps than words there are n of one word."""
        k = min(self.steps or n, n)
        return [n * (step + 1) // k - n * step // k for step in range(k)]

    def chosen(self, table: FloatArray, known: BoolArray, size: int, rank: IntArray) -> BoolArray:
        """Return the places that the next step fills, (B, n).

        Args:
            table: (B, n, W+1) log probabilities at gaps.
            known: (B, n) places that are filled.
            size: number of places.
            rank: (B, n) random orders.
        """
        place = np.arange(known.shape[1])
        key = {"random": rank, "blocks": np.broadcast_to(place, known.shape)}.get(self.order)
        if key is None:
            key = -table.max(axis=2)
        key = np.minimum(key, np.finfo(np.float64).max)  # of a gap that no word fits
        first = np.argsort(np.where(known, np.inf, key), axis=1, kind="stable")[:, :size]
        mask = np.zeros(known.shape, dtype=bool)
        np.put_along_axis(mask, first, True, axis=1)
        return mask


def _random_ranks(rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a random order of the places of each row, (B, n)."""
    return rng.permuted(np.tile(np.arange(rows.shape[1]), (len(rows), 1)), axis=1)


def _at(table: FloatArray, rows: IntArray, chosen: BoolArray) -> FloatArray:
    """Return log probabilities of the words of rows, summed over the places that are chosen, (B,) nats."""
    at = np.take_along_axis(table, rows[:, :, None], axis=2)[:, :, 0]
    return np.asarray(np.where(chosen, at, 0.0).sum(axis=1))


class Filler:
    """A sampler: fills sentences of one length along a schedule.

    Args:
        denoiser: source of words and of confidence.
        words: (W,) of the denoiser; a row of words has their numbers, W for any other.
    """

    def __init__(self, denoiser: Denoiser, words: Sequence[str]) -> None:
        self._denoiser = denoiser
        self.words = (*words, UNKNOWN)

    def table(self, rows: IntArray, denoiser: Denoiser | None = None) -> FloatArray:
        """Return distributions at every place given the known words, (B, n, W+1) nats.

        The probability of a network's special tokens is divided among the words in proportion: no sampler draws those.
        """
        patterns = [[None if i == HIDDEN else self.words[i] for i in row] for row in rows.tolist()]
        table = (denoiser or self._denoiser).denoise(patterns)
        total = np.logaddexp.reduce(table, axis=2, keepdims=True)
        return table - np.where(np.isfinite(total), total, 0.0)

    def log_probs(
        self, rows: IntArray, schedule: Schedule, rng: np.random.Generator, other: Denoiser | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return ln of the probability of each sentence along the sampler's path, (B,), and by the denoiser ``other``.

        The places of a step follow from the words before it (and from chance, in random order, which is drawn here).

        Args:
            rows: (B, n) words.
            schedule: of the sampler.
            rng: of random orders.
            other: a denoiser for the same words on the same path; None: the second array is 0.
        """
        filled, rank = np.zeros(rows.shape, dtype=bool), _random_ranks(rows, rng)
        log_q, log_other = np.zeros((2, len(rows)))
        for size in schedule.sizes(rows.shape[1]):
            seen = np.where(filled, rows, HIDDEN)
            table = self.table(seen)
            chosen = schedule.chosen(table, filled, size, rank)
            log_q += _at(table, rows, chosen)
            if other is not None:
                log_other += _at(self.table(seen, other), rows, chosen)
            filled |= chosen
        return log_q, log_other

    def sample(self, rows: IntArray, schedule: Schedule, rng: np.random.Generator) -> list[list[str]]:
        """Return sentences drawn from the sampler.

        Args:
            rows: (B, n) words that are known, and `HIDDEN` at gaps, of which each row has as many.
            schedule: of the sampler.
            rng: of orders and words.
        """
        rank = _random_ranks(rows, rng)
        for size in schedule.sizes(int((rows[0] == HIDDEN).sum())):
            table = self.table(rows)
            chosen = schedule.chosen(table, rows != HIDDEN, size, rank)
            sums = np.cumsum(np.exp(table), axis=2)
            words = (sums <= rng.random(rows.shape)[:, :, None] * sums[:, :, -1:]).sum(axis=2)
            words = np.minimum(words, len(self.words) - 1)  # any word if none fits: the sentence is wrong already
            rows = np.where(chosen, words, rows)
        return [[self.words[i] for i in row] for row in rows.tolist()]

    def any_order_log_prob(self, row: IntArray, gaps: Sequence[int] | None = None) -> float:
        """Return ln of the probability of a sentence by the sampler in random order, a word a step, over all orders.

        The probability that just the words of a set are filled in sums over the last word the probability of the set
        without it times the word's share: 2^n sets instead of n! orders.

        Args:
            row: (n,) words.
            gaps: places that are filled in, the other words being known; None: all.
        """
        filled_in = np.arange(len(row)) if gaps is None else np.asarray(gaps)
        n = len(filled_in)
        sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
        seen = np.tile(row, (len(sets) - 1, 1))
        seen[:, filled_in] = np.where(sets[:-1], row[filled_in], HIDDEN)
        tables = [self.table(some) for some in np.array_split(seen, -(-len(seen) // 512))]
        at = np.concatenate([table[:, filled_in, row[filled_in]] for table in tables])
        log_prob = np.full(2**n, -np.inf)
        log_prob[0] = 0.0
        for filled in np.argsort(sets.sum(axis=1), kind="stable")[1:].tolist():
            last = np.flatnonzero(sets[filled])
            before = filled - (1 << last)
            log_prob[filled] = np.logaddexp.reduce(log_prob[before] + at[before, last] - np.log(n - len(last) + 1.0))
        return float(log_prob[-1])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class StepwiseFilling(ResultRecords):
    """Result of `filling` for one model."""

    model: str
    objective: Objective
    scores: dict[str, Score]  #: ``kl``, ``invalid``, and of short sentences ``kl_short`` and ``elbo_gap_short``
    #: schedule, ``model`` or ``exact``, and its scores; none of a causal model
    lines: list[tuple[Schedule, str, dict[str, Score]]]
    sentences: int  #: that were measured
    impossible: IntArray  #: sentences that the truth cannot make

    @override
    def as_scores(self) -> list[Score]:
        """Return all scores; scores of a sampler have ``order``, ``fills`` and ``denoiser``."""
        scores = list(self.scores.values())
        for schedule, denoiser, of_line in self.lines:
            line = {"order": schedule.order, "fills": schedule.fills, "denoiser": denoiser}
            scores += keyed(of_line.values(), by="sampler", **line)
        return keyed(scores, model=self.model, objective=self.objective)


def filling(
    model: GapModel,
    setting: Setting,
    *,
    steps: Sequence[int] = STEPS,
    orders: Sequence[Order] = ORDERS,
    samples: int = 200,
    short: int = 6,
) -> StepwiseFilling:
    """Measure KL(truth || sampler) of a model and of the exact denoiser, for each order and number of steps.

    Each sampler has means over sentences, nats a sentence, given the number of words:

    * ``kl``: of ln P - ln Q, where Q is the probability of the sentence along the sampler's path to it. In random
      order the paths are sampled, and this is the divergence of sentence and path together, an upper bound for
      sentences.
    * ``parallel``: the part of it that the exact denoiser would have on the same path.
    * ``denoising``: the rest, the cost of the model.
    * ``invalid``: share of sampled sentences that the grammar cannot make.

    A line of the exact denoiser has ``kl`` and ``invalid``. Scores of the model itself are in random order, a word a
    step: ``kl`` is then the gap of its ELBO. For sentences of up to ``short`` words the likelihood of that sampler is
    exact, summed over all orders: ``kl_short`` is the divergence, ``elbo_gap_short`` the excess of the ELBO.

    Args:
        model: fills gaps of whole words.
        setting: text and truth.
        steps: numbers of steps; one word a step is always among them.
        orders: of the samplers.
        samples: sentences to draw from each sampler, of the lengths of the text; 0: none.
        short: most words of a sentence whose likelihood is summed over all orders; 0: none.

    Raises:
        NothingToMeasureError: the truth can make none of the sentences.
    """
    require_items(samples, "sentences to draw", 100)
    text = _TextFiller(model, setting)
    lines: list[tuple[Schedule, str, dict[str, Score]]] = []
    schedules = [Schedule(order, number) for order in orders for number in (*sorted(set(steps) - {ALL}), ALL)]
    with meter(f"filling steps of {model.name}", sum(text.cost(each, samples) for each in schedules)) as bar:
        for number, schedule in enumerate(schedules):
            for denoiser, columns in text.divergences(schedule, number).items():
                scores = mean_scores(columns, np.arange(len(text.rows)), text.parts, setting.seed)
                if samples:
                    scores |= text.invalid(schedule, denoiser, samples, number)
                lines.append((schedule, denoiser, scores))
            bar.advance(text.cost(schedule, samples))
    whole = next((s for each, who, s in lines if each == Schedule("random", ALL) and who == "model"), {})
    scores = {name: whole[name] for name in ("kl", "invalid") if name in whole}
    return StepwiseFilling(
        model=model.name,
        objective=model.objective,
        scores={**scores, **text.of_all_orders(short)},
        lines=lines,
        sentences=len(text.rows),
        impossible=text.impossible,
    )


def left_to_right(model: LanguageModel, setting: Setting, *, samples: int = 200) -> StepwiseFilling:
    """Return ``kl``, nats a sentence, and ``invalid`` of a causal model, to compare with a model that fills gaps.

    A causal model also predicts the length of a sentence. So its divergence is the sum of the divergence given the
    number of words and the divergence of that number; of two models with equal ``kl`` the causal one is nearer.

    Args:
        model: causal; one that samples has ``sample(n, seed=...)``, whose result has ``sentences``.
        setting: text and truth.
        samples: sentences to draw from the model, 0: none.

    Raises:
        NothingToCompareError: no sentence is possible for both sides.
    """
    require_order(setting.transform, "evaluate diffusion")
    frame = ScoringFrame()
    paired = pair(
        score_by_model(model, setting.sentences, frame), setting.oracle(model).score(setting.sentences, frame)
    )
    possible, sentence = np.unique(paired.sentence, return_inverse=True)
    parts = {**setting.parts(model), "sentences": len(possible), "excluded": len(paired.excluded)}
    parts |= {"unit": "nats/sentence", "ci": ci_part(len(possible), setting.seed)}
    apart = np.bincount(sentence, paired.oracle - paired.model).astype(np.float64)
    scores = mean_scores({"kl": Column(apart, {"estimator": "paired"})}, np.arange(len(apart)), parts, setting.seed)
    if samples and hasattr(model, "sample"):
        language = setting.full_oracle(model).grammar
        sampled = model.sample(samples, seed=setting.seed).sentences
        invalid = np.array([not sentence for sentence in sampled])  # a sentence without words: the grammar has none
        log_probs = language.exact.string_log_probs([sentence for sentence in sampled if sentence])
        invalid[~invalid] = ~np.isfinite(log_probs)
        scores["invalid"] = share_of("invalid", invalid, parts)
    return StepwiseFilling(
        model=model.name,
        objective=model.objective,
        scores=scores,
        lines=[],
        sentences=len(possible),
        impossible=paired.impossible_oracle.astype(np.int64),
    )


class _TextFiller:
    """The sentences of a text that the truth can make, and their samplers."""

    def __init__(self, model: GapModel, setting: Setting) -> None:
        require_order(setting.transform, "evaluate diffusion")
        oracle = setting.full_oracle(model)
        words = tuple(model.vocabulary or ())
        read = [oracle.read(sentence) for sentence in setting.sentences]
        self._language, self._seed = oracle.grammar, setting.seed
        whole = self._language.exact.string_log_probs(read)
        possible = np.isfinite(whole) & (np.array([len(sentence) for sentence in read]) > 0)
        self.impossible = np.flatnonzero(~possible)
        if not possible.any():
            raise NothingToMeasureError("the grammar can make none of the sentences", "no-common-sentence")
        possible_sentences = [read[i] for i in np.flatnonzero(possible)]
        sizes = np.array([len(sentence) for sentence in possible_sentences])
        lengths, at = np.unique(sizes, return_inverse=True)
        exact = ExactDenoiser(oracle, words)
        self._log_prob = (
            whole[possible] - AnyOrder(self._language).log_probs([[None] * n for n in lengths.tolist()])[at]
        )
        place = {word: number for number, word in enumerate(words)}
        self.rows = [np.array([place.get(word, len(words)) for word in sentence]) for sentence in possible_sentences]
        self._sizes, self._exact = sizes, exact
        self._fillers = {"model": Filler(model, words), "exact": Filler(exact, words)}
        self.parts = {**setting.parts(model), "sentences": len(possible_sentences), "impossible": len(self.impossible)}
        self.parts |= {"unit": "nats/sentence", "ci": ci_part(len(possible_sentences), setting.seed)}

    def cost(self, schedule: Schedule, samples: int) -> int:
        """Return the number of patterns."""
        per_sentence = [len(schedule.sizes(n)) for n in self._sizes.tolist()]
        rounds, rest = divmod(samples, len(per_sentence))
        return (1 + rounds) * sum(per_sentence) + sum(per_sentence[:rest])

    def _groups(self, number: int) -> Iterator[tuple[int, IntArray]]:
        """Yield lengths with the first sentences (repeated if too few) of each, some at once."""
        sizes = self._sizes[np.arange(number) % len(self._sizes)]
        for n in np.unique(sizes).tolist():
            members = np.flatnonzero(sizes == n)
            for start in range(0, len(members), AT_ONCE):
                yield n, members[start : start + AT_ONCE]

    def divergences(self, schedule: Schedule, number: int) -> dict[str, dict[str, Column]]:
        """Return the measures of each sentence, by denoiser."""
        signed = {"filling": schedule.order, "fills": schedule.fills, "estimator": "paired"}
        kl, parallel, alone = (np.zeros(len(self.rows)) for _ in range(3))
        rng = np.random.default_rng([self._seed, 0, number])
        for _, members in self._groups(len(self.rows)):
            rows, whole = np.stack([self.rows[i] for i in members]), self._log_prob[members]
            log_q, log_exact = self._fillers["model"].log_probs(rows, schedule, rng, self._exact)
            kl[members], parallel[members] = whole - log_q, whole - log_exact
            if schedule.order == "confidence":  # whose path follows from its own confidence
                log_exact, _ = self._fillers["exact"].log_probs(rows, schedule, rng)
            alone[members] = whole - log_exact
        for values in (kl, parallel, alone):
            values[np.abs(values) < ROUNDING] = 0.0
        of_model = {"kl": kl, "parallel": parallel, "denoising": kl - parallel}
        return {
            "model": {name: Column(values, {**signed, "denoiser": "model"}) for name, values in of_model.items()},
            "exact": {"kl": Column(alone, {**signed, "denoiser": "exact"})},
        }

    def invalid(self, schedule: Schedule, denoiser: str, samples: int, number: int) -> dict[str, Score]:
        """Return the share of sampled sentences that the grammar cannot make."""
        rng = np.random.default_rng([self._seed, 1, number])
        wrong = np.zeros(samples, dtype=bool)
        for n, members in self._groups(samples):
            empty = np.full((len(members), n), HIDDEN, dtype=np.int64)
            texts = self._fillers[denoiser].sample(empty, schedule, rng)
            wrong[members] = ~np.isfinite(self._language.exact.string_log_probs(texts))
        signed = {"filling": schedule.order, "fills": schedule.fills, "denoiser": denoiser}
        return {"invalid": share_of("invalid", wrong, {**self.parts, **signed})}

    def of_all_orders(self, short: int) -> dict[str, Score]:
        """Return the exact divergence of short sentences in random order, and the excess of their ELBO."""
        some = np.flatnonzero(self._sizes <= short)
        if not len(some):
            return {}
        filler, schedule = self._fillers["model"], Schedule("random", ALL)
        exact = np.array([self._log_prob[i] - filler.any_order_log_prob(self.rows[i]) for i in some])
        elbo = np.zeros(len(some))
        rng = np.random.default_rng([self._seed, 2])
        for n in np.unique(self._sizes[some]).tolist():
            members = np.flatnonzero(self._sizes[some] == n)
            rows = np.stack([self.rows[i] for i in some[members]])
            log_q, _ = filler.log_probs(rows, schedule, rng)
            elbo[members] = self._log_prob[some[members]] - log_q
        signed = {"filling": "random", "fills": "all", "denoiser": "model", "longest": short}
        columns = {
            "kl_short": Column(exact, {**signed, "estimator": "paired"}),
            "elbo_gap_short": Column(elbo - exact, {**signed, "estimator": "paired"}),
        }
        parts = {**self.parts, "sentences": len(some), "ci": ci_part(len(some), self._seed)}
        return mean_scores(columns, np.arange(len(some)), parts, self._seed)
