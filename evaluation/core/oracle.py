"""The truth as a language model, which scores, predicts and samples exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from truesource.evaluation.core.any_order import PatternCharts, in_orders, ordered_batches, ordered_blocks
from truesource.evaluation.core.cutting import cutter
from truesource.evaluation.core.transformed import of_sentences, require_tokens, require_whole
from truesource.generator.abilities import require
from truesource.generator.arguments import as_lengths, as_truth
from truesource.generator.language_model import (
    EVERY_POSITION,
    LogDistributions,
    ScoringFrame,
    TokenScores,
    assemble_scores,
)
from truesource.generator.objectives import Objective, ranks
from truesource.generator.plan import Transform, order
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.diagnostics import require_endings
from truesource.grammar.inference.any_order import AnyOrder
from truesource.grammar.inference.next_token import NextToken
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.sentences import takes_sentence, takes_sentences
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray, random_state
from truesource.grammar.support.call_arguments import choice, whole_number, word_list
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import brief
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.grammar.inference.batch import Batch, Distributions


UNKNOWN = "<unk>"


def condition_part(objective: Objective, lengths: LengthRange | None) -> str:
    """Return the part of a signature: the length condition of causal scores; all others are given the length."""
    return str(lengths or "none") if objective == "causal" else "length"


class Oracle:
    """The exact distribution of a language, as a `LanguageModel` with full distributions.

    Args:
        truth: the grammar or process that the corpus was drawn from.
        objective: ``causal`` (next token given the left context), ``masked`` (token given all others), or ``any-order``
            (tokens one by one in random orders, each given those before it in the order: see `AnyOrder`).
        lengths: the corpus's length condition; None is the unconditioned grammar. A masked score does not
            depend on it, as the length is given; of pieces it does, since only the number of pieces is given.
        vocabulary: vocabulary of the compared model. The oracle too reads all other words as ``<unk>``, as target and
            as context: the exact truth of the collapsed language. None: every word.
        collapse: False keeps every word in contexts; only as targets are words outside the vocabulary one,
            ``<unk>``, with the sum of their probabilities. Comparisons of models with different vocabularies take this
            truth (`truesource.evaluation.core.vocabulary`), and so do Jumelet & Zuidema (2023), whose frame skips
            unknown targets.
        excluded: sentences that the scored text excludes, such as the sentences of earlier splits: `score` is then
            exact for P(. | not among them). Distributions and samples of such a language are refused.
        transform: of the text: sentences are scored as their originals. Masked tokens have the probabilities of the
            same words there. The causal score of a sentence is exact, end included, and is spread over its positions in
            equal parts, since the scores of its tokens are unknown; causal distributions are refused. Take
            `truesource.evaluation.core.transformed.text_grammar` first: if the text has a grammar, nothing is lost.
        charts: of the truth on a device, for scores in any order (default: on the CPU).
        tokenizer: cuts the words of the truth into pieces, which are then the tokens of all sentences: ``characters``,
            ``bytes``, a model folder, a ``tokenizer.json``, or a fast tokeniser of transformers. The method
            ``pieces_of`` of ``language`` cuts a sentence of words. None: tokens are words.

    Raises:
        InputError: ``truth`` is no truth; a tokeniser whose pieces have no exact distribution (the message has an
            example); a causal oracle without ``lengths`` of a grammar whose derivations may not
            end; a masked one of a process; or a vocabulary that lacks words of a process.
    """

    def __init__(
        self,
        truth: Truth,
        objective: Objective = "causal",
        *,
        lengths: LengthRange | None = None,
        vocabulary: Iterable[str] | None = None,
        collapse: bool = True,
        excluded: Exclusion | None = None,
        transform: Transform | None = None,
        charts: PatternCharts | None = None,
        tokenizer: Any = None,
    ) -> None:
        truth, lengths = as_truth(truth), as_lengths(lengths)
        if tokenizer is not None:
            truth = cutter(tokenizer).language(truth)
        choice(objective, "objective", get_args(Objective))
        if vocabulary is not None:
            vocabulary = word_list(vocabulary, "vocabulary")
        if objective == "causal" and lengths is None:
            require_endings(truth)
        if objective != "causal":
            of_words = truth.truth if objective == "masked" and isinstance(truth, TokenisedTruth) else truth
            require(of_words, objective, f"an oracle of {objective} scores")
        self.truth = truth
        self.objective: Objective = objective
        self.lengths = lengths
        self.vocabulary = None if vocabulary is None else tuple(sorted(set(vocabulary) & set(truth.vocabulary)))
        self.excluded = excluded
        self.transform = transform
        self.charts = charts
        self.name = "oracle"
        self.collapsed = collapse and self.vocabulary is not None
        self._language = truth.collapse(self.vocabulary or (), UNKNOWN) if self.collapsed else truth
        words = self._language.vocabulary if self.vocabulary is None or self.collapsed else self.vocabulary
        targets = frozenset(words)
        #: numbers of the words of ``language`` that are ``<unk>`` as targets only
        self._outside = tuple(number for number, word in enumerate(self._language.vocabulary) if word not in targets)

    def __repr__(self) -> str:
        lengths = "" if self.lengths is None else f", {self.lengths} words"
        return brief(f"Oracle({self.truth!r}, {self.objective}{lengths})")

    @property
    def full_contexts(self) -> bool:
        """True if words outside the vocabulary are ``<unk>`` as targets only, and contexts keep them."""
        return self.vocabulary is not None and not self.collapsed

    @property
    def language(self) -> Truth:
        """The truth after the vocabulary is collapsed."""
        return self._language

    @property
    def _masked_pieces(self) -> TokenisedTruth | None:
        """The language of pieces of a masked oracle; None: of words, or causal."""
        language = self._language
        if self.objective != "masked" or self.transform is not None or not isinstance(language, TokenisedTruth):
            return None
        return language

    @property
    def grammar(self) -> PCFG:
        """The truth, if it has rules.

        Raises:
            InputError: it is a process.
        """
        return require(self._language, "parses", "this measure")

    @property
    def condition(self) -> str:
        """Condition of the scores, for signatures."""
        if self._masked_pieces is not None and self.lengths is not None:
            return f"length, {self.lengths} words"
        return condition_part(self.objective, self.lengths)

    @property
    def of_sentences(self) -> bool:
        """True if only the sums of its scores over sentences are exact, not the scores of tokens."""
        return of_sentences(self.transform, self.objective)

    @takes_sentence
    def read(self, sentence: Sequence[str]) -> list[str]:
        """Return the sentence as the oracle reads it: words outside its vocabulary are ``<unk>``."""
        word_ids = self._language.word_ids
        return [w if w in word_ids else UNKNOWN for w in sentence] if self.collapsed else list(sentence)

    @takes_sentence
    def targets(self, sentence: Sequence[str]) -> list[str]:
        """Return the sentence as the oracle predicts it: words outside its vocabulary are ``<unk>`` in any context."""
        if not self.full_contexts:
            return self.read(sentence)
        words = frozenset(self.vocabulary or ())
        return [word if word in words else UNKNOWN for word in sentence]

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return exact log probabilities, nats, of the positions that ``frame`` counts.

        Sentences that the grammar (or the length range) cannot make are listed in ``impossible``.

        Raises:
            InputError: the truth is of sentences, and the frame excludes positions; or contexts are not collapsed,
                the frame counts unknown words, and sentences are excluded or the truth is of sentences.
        """
        require_whole(self.transform, self.objective, frame)
        seen = [self.read(sentence) for sentence in sentences]
        rows = self._in_order(self._rows(self._originals(seen), sentences))
        unknown = [np.array([word == UNKNOWN for word in self.targets(sentence)], dtype=bool) for sentence in seen]
        if self.full_contexts and frame.unk == "token":
            self._sum_unknown(rows, unknown, sentences)
        return assemble_scores(rows, unknown, frame)

    def _sum_unknown(
        self, rows: list[FloatArray], unknown: Sequence[BoolArray], sentences: Sequence[Sequence[str]]
    ) -> None:
        """Give unknown targets the sum of the probabilities of all words outside the vocabulary, in place."""
        having = [i for i, flags in enumerate(unknown) if flags.any() and np.isfinite(rows[i]).all()]
        for i in having:
            rows[i] = rows[i].copy()
        outside = list(self._outside)
        for batch in self.batches([sentences[i] for i in having]):
            for block in self.blocks(batch):
                with np.errstate(divide="ignore"):
                    summed = np.log(block.probability[:, outside].sum(axis=1))
                for value, members in zip(summed.tolist(), block.members, strict=True):
                    for i in (having[member] for member in members):
                        if block.position < len(unknown[i]) and unknown[i][block.position]:
                            rows[i][block.position] = value

    @takes_sentences
    def token_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return exact log probabilities of the words of each sentence, (n,), or causal with the end (n+1,), nats.

        Some are -inf if the sentence is impossible.
        """
        return self._in_order(self._rows(self._originals([self.read(sentence) for sentence in sentences]), sentences))

    def _rows(self, seen: Sequence[Sequence[str]], text: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return exact log probabilities of original sentences, (n,) or with the end (n+1,), of the given ``text``."""
        if self.objective == "any-order":
            orders = [ranks(sentence) for sentence in text]
            if self.transform is not None:  # when each original word becomes known
                places = [np.argsort(order(self.transform, len(sentence))) for sentence in text]
                orders = [of_text[:, place] for of_text, place in zip(orders, places, strict=True)]
            return in_orders(self.grammar, seen, orders, self.excluded, self.read, self.charts)
        if self._masked_pieces is not None:
            rows = self._masked_pieces.exact.masked_log_probs(seen, self.lengths)
        elif self.objective == "masked":
            rows = self.grammar.exact.masked_log_probs(seen)
        else:
            rows = self._language.exact.causal_log_probs(seen, self.lengths)
        if self.excluded is None or not self.excluded.exact:
            return rows
        if self.objective == "masked":
            return self.excluded.masked(rows, seen, self.grammar, self.read)
        return self.excluded.causal(rows, seen, self.read)

    def _originals(self, sentences: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
        return sentences if self.transform is None else [self.transform.undo(sentence) for sentence in sentences]

    def _in_order(self, rows: list[FloatArray]) -> list[FloatArray]:
        """Move the scores of original sentences to the positions of the text."""
        if self.transform is None:
            return rows
        if self.of_sentences:
            return [np.full(len(row), row.sum() / len(row)) for row in rows]
        return [row[order(self.transform, len(row))] for row in rows]

    # -- full distributions -------------------------------------------------------------------------

    @property
    def words(self) -> tuple[str, ...]:
        """The words with separate columns in `distributions`: its vocabulary, or every word."""
        if self.vocabulary is not None:
            return self.vocabulary
        return tuple(word for word in self.truth.vocabulary if word != UNKNOWN)

    @takes_sentences
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield exact distributions at each position of sentences of one length; columns are `words`, ``<unk>``, end.

        In any order, the context of a position is the words that become known before it (`objectives.ranks`). Rows are
        -inf throughout if the context is impossible.

        Raises:
            InputError: the lengths differ, or a sentence has no tokens.
        """
        if len({len(sentence) for sentence in sentences}) > 1:
            raise InputError("full distributions need sentences of one length; group them by length")
        work, columns = self.batches(sentences), self.columns(self.words)
        for parts in zip(*(self.blocks(batch) for batch in work), strict=True):
            table = np.empty((len(sentences), len(columns)))
            for part in parts:
                rows = self.log_table(part, columns)
                for row, members in zip(rows, part.members, strict=True):
                    table[list(members)] = row
            yield LogDistributions(parts[0].position, table)

    @takes_sentences
    def batches(self, sentences: Sequence[Sequence[str]]) -> list[Batch]:
        """Return sentences as this oracle reads them, in batches for `blocks`; those that read the same share a row.

        Raises:
            InputError: a sentence has no tokens, sentences are excluded, or the truth is of sentences.
        """
        require_tokens(self.transform, self.objective, "a distribution over the next word")
        self._check_nothing_excluded()
        seen = self._originals([self.read(sentence) for sentence in sentences])
        if self.objective == "any-order":
            if self.transform is not None:
                raise InputError("words in any order have distributions in the order of the grammar alone")
            orders = [ranks(sentence)[0] for sentence in sentences]
            return ordered_batches(self.grammar, seen, orders, 8 * len(self._language.vocabulary))
        if self.objective == "masked" and self._masked_pieces is None:
            return self.grammar.exact.charts().batches(seen, outside=True)
        return self._language.exact.causal_batches(seen, self.lengths)

    def blocks(self, batch: Batch) -> Iterator[Distributions]:
        """Yield the exact distributions of one of `batches`, position by position, over the words of `language`."""
        from truesource.grammar.inference.distributions import masked_blocks

        if self._masked_pieces is not None:
            return self._masked_pieces.exact.masked_blocks(batch, self.lengths)
        if self.objective == "masked" and self.transform is not None:
            places = order(self.transform, len(batch.words)).tolist()
            blocks = masked_blocks(self.grammar.exact, batch, positions=places)
            return (replace(block, position=position) for position, block in enumerate(blocks))
        if self.objective == "masked":
            return masked_blocks(self.grammar.exact, batch)
        if self.objective == "any-order":
            return ordered_blocks(self._gaps, batch)
        return self._language.exact.next_token_blocks(batch, self.lengths)

    @cached_property
    def _gaps(self) -> AnyOrder:
        return AnyOrder(self.grammar)

    def columns(self, words: Sequence[str]) -> IntArray:
        """Return the column in `blocks` of each of ``words``, ``<unk>`` and, if causal, the end; -1 without a column.

        With full contexts, ``<unk>`` is the sum of many columns: see `summed`.
        """
        word_ids = self._language.word_ids
        columns = [word_ids.get(word, -1) for word in (*words, UNKNOWN)]
        return np.array(columns + ([len(word_ids)] if self.objective == "causal" else []), dtype=np.int64)

    def targets_of(self, columns: IntArray) -> IntArray:
        """Return the event of each column of `blocks`, in the order of `columns`; -1 for columns without an event."""
        size = len(self._language.vocabulary) + (self.objective == "causal")
        event = np.full(size, -1, dtype=np.int64)
        event[columns[columns >= 0]] = np.flatnonzero(columns >= 0)
        event[list(self._outside)] = len(columns) - 1 - (self.objective == "causal")
        return event

    def summed(self, table: FloatArray, columns: IntArray) -> FloatArray:
        """Sum values of the columns of `blocks`, (..., V) or with the end (..., V+1), over events, (..., E).

        ``<unk>`` has the sum over the words outside the vocabulary; events that the truth does not have are 0.
        """
        values = table[..., columns]
        values[..., columns < 0] = 0.0
        if self._outside:
            values[..., len(columns) - 1 - (self.objective == "causal")] = table[..., list(self._outside)].sum(axis=-1)
        return values

    def log_table(self, block: Distributions, columns: IntArray) -> FloatArray:
        """Return log probabilities of a block in the order that `columns` gave, (W, E) nats; -inf at zero."""
        table = self.summed(block.probability, columns)
        with np.errstate(divide="ignore"):
            return np.log(table, out=table)

    @takes_sentence
    def next_token(self, prefix: Sequence[str]) -> NextToken:
        """Return the exact next-token distribution after ``prefix``.

        Raises:
            InputError: no sentence starts so, sentences are excluded, or the truth is of sentences.
        """
        require_tokens(self.transform, "causal", "a distribution over the next word")
        self._check_nothing_excluded()
        return self._language.next_token(self.read(prefix), self.lengths)

    def sample(self, n: int, seed: int = DEFAULT_SEED) -> list[list[str]]:
        """Sample n sentences from the distribution that `score` scores.

        Raises:
            InputError: sentences are excluded.
        """
        from truesource.generator.process_sampler import sampler_of

        self._check_nothing_excluded()
        n = whole_number(n, "the number of sentences", 0)
        sampler = sampler_of(self._language, self.lengths)
        sentences = sampler.sentences(sampler.draw(n, random_state(seed)))
        return sentences if self.transform is None else [self.transform.apply(sentence) for sentence in sentences]

    def _check_nothing_excluded(self) -> None:
        if self.excluded is not None:
            raise InputError("an oracle that excludes sentences only scores; omit excluded for anything else")
