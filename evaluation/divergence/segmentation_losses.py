"""Parts of the divergence of a model of pieces, per word: the language, words that are none, other segmentations.

After canonical pieces, a token of the model belongs to the canonical segmentation of words of the language (probability
A of all such tokens), to another segmentation of the same words (B), or to none. With the exact
distribution P of the next piece, which is over the first kind,

    KL(P || Q) = KL(P || Q given A) - ln(A + B) - ln(A / (A + B)),

so a divergence is the sum of what the model does not know of the language, of what it loses to words that are none, and
of what it loses to other segmentations. A sum over all segmentations of a text gives a part of the last one back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from truesource.evaluation.core.oracle import UNKNOWN
from truesource.evaluation.core.score import Score
from truesource.evaluation.divergence.blocks import TruthBlock
from truesource.evaluation.divergence.contexts import Contexts
from truesource.evaluation.divergence.means import Column, mean_scores
from truesource.evaluation.divergence.of_words import added, words_of
from truesource.evaluation.tokenisation.sums import Gains
from truesource.grammar.pieces.reading import read_pieces
from truesource.grammar.pieces.segmentation import PieceTrie
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.support.arrays import FloatArray, IntArray

NEGATIVE = ("kl_language", "gain_of_sums", "kl_summed")  #: estimates that may be below 0 in a text
PARTS = ("kl_language", "kl_nonwords", "kl_segmentation")  #: that sum to ``kl``


class SegmentationLosses:
    """The probabilities of the kinds of tokens in each context of some texts.

    Args:
        language: of the pieces.
        columns: name of each token in the model's distributions, without ``<unk>`` and the end.
        spelling: of each token by name, in an alphabet in which a text is the concatenation of its tokens.
    """

    def __init__(self, language: TokenisedTruth, columns: Sequence[str], spelling: Mapping[str, str]) -> None:
        self._language = language
        self._place = {name: column for column, name in enumerate((*columns, UNKNOWN))}
        self._spelled = [spelling.get(name) for name in (*columns, UNKNOWN)]
        self._spelling = spelling
        cuts = language.segmentation.cuts, language.segmentation.first
        later, first = ({self._spell(cut) for cut in of} for of in cuts)
        named = {column: text for column, text in enumerate(self._spelled) if text is not None}
        letters = {letter: number for number, letter in enumerate(sorted(set().union(*later, *first, *named.values())))}
        self._words, self._first_words, self._tokens = (
            PieceTrie.of([*map(tuple, texts)], letters) for texts in (later, first, named.values())
        )
        self._letters = letters
        self._columns: dict[int, list[int]] = {}
        for column, node in zip(named, self._tokens.node.tolist(), strict=True):
            self._columns.setdefault(node, []).append(column)
        tries = {True: language.segmentation.trie, False: language.segmentation.first_trie}
        self._texts = {key: self._node_texts(trie) for key, trie in tries.items()}
        self._masks: dict[tuple[bool, int], tuple[IntArray, IntArray]] = {}
        self._logs: dict[tuple[int, int], FloatArray] = {}

    def _node_texts(self, trie: PieceTrie) -> list[str]:
        """Return the spelling of the pieces that lead to each node."""
        texts = [""] * len(trie)
        for node, children in enumerate(trie.children):
            for piece, child in children:
                texts[child] = texts[node] + self._spell([self._language.segmentation.pieces[piece]])
        return texts

    def _spell(self, cut: Sequence[str]) -> str:
        return "".join(self._spelling.get(piece, piece) for piece in cut)

    def watch(
        self, blocks: Iterable[tuple[TruthBlock, FloatArray]], sentences: Sequence[Sequence[str]]
    ) -> Iterator[tuple[TruthBlock, FloatArray]]:
        """Yield truth and model, (W, E) ln Q, at every position, and record the probabilities of A and B."""
        states: dict[int, list[tuple[bool, int]]] = {}
        for block, q in blocks:
            for row, members in enumerate(block.members):
                first = members[0]
                if first not in states:
                    states[first] = self._states(sentences[first])
                if block.position < len(states[first]):
                    canonical, spelled = self._kinds(*states[first][block.position])
                    logs = np.array([_log_sum(q[row, canonical]), _log_sum(q[row, spelled])])
                    for member in members:
                        self._logs[member, block.position] = logs
            yield block, q

    def parts(self, sentence: IntArray, position: IntArray, kl: FloatArray) -> dict[str, FloatArray]:
        """Return `PARTS` of the divergences of contexts, (T,) nats each.

        Args:
            sentence: (T,) number of the sentence of each context.
            position: (T,) number of pieces to its left.
            kl: (T,) KL(P || Q).
        """
        logs = np.array([self._logs[key] for key in zip(sentence.tolist(), position.tolist(), strict=True)])
        a, both = logs.T
        with np.errstate(invalid="ignore"):  # where no canonical token, or no token of words, has a probability
            language, segmentation = np.where(np.isneginf(a), 0.0, kl + a), np.where(np.isneginf(both), 0.0, both - a)
        return dict(zip(PARTS, (language, -both, segmentation), strict=True))

    def of_words(self, measured: Contexts, sentences: Sequence[Sequence[str]]) -> dict[str, FloatArray]:
        """Return `PARTS` of each word and sentence end of some contexts of pieces."""
        parts = self.parts(measured.sentence, measured.position, measured.column("kl"))
        word = words_of(measured, self._language, sentences)
        return {name: added(word, values) for name, values in parts.items()}

    def _states(self, pieces: Sequence[str]) -> list[tuple[bool, int]]:
        """Return for each position whether the current word is a later one, and its node."""
        reading = read_pieces(self._language.segmentation, [self._language.encode(pieces)])
        return list(zip((reading.words > 0).tolist(), reading.node.tolist(), strict=True))

    def _kinds(self, later: bool, node: int) -> tuple[IntArray, IntArray]:
        """Return the columns of canonical tokens, and of these and the tokens of other segmentations."""
        if (later, node) not in self._masks:
            segmentation = self._language.segmentation
            trie = segmentation.trie if later else segmentation.first_trie
            canonical = {self._place[segmentation.pieces[piece]] for piece, _ in trie.children[node]}
            end = len(self._place)
            if trie.word[node] >= 0:
                canonical |= {self._place[segmentation.pieces[piece]] for piece, _ in segmentation.trie.children[0]}
            if trie.word[node] >= 0 or (node == 0 and not later):
                canonical.add(end)
            words, here = self._words if later else self._first_words, 0
            for letter in self._texts[later][node]:
                here = words.next_node[here][self._letters[letter]]
            spelled = self._spelled_after(words, here)
            if words.word[here] >= 0:
                spelled.add(end)
            kinds = canonical, spelled | canonical
            self._masks[later, node] = tuple(np.array(sorted(of), dtype=np.int64) for of in kinds)  # type: ignore[assignment]
        return self._masks[later, node]

    def _spelled_after(self, words: PieceTrie, here: int) -> set[int]:
        """Return the columns of the tokens that a text can have next, from a node of the words.

        All spellings of tokens are followed at once, each with all the ways to divide it into words.
        """
        columns: set[int] = set()
        paths = [(0, self._or_next({(words, here)}))]
        while paths:
            token, places = paths.pop()
            columns.update(self._columns.get(token, ()))
            for letter, longer in self._tokens.children[token]:
                after = {
                    (trie, trie.next_node[node][letter]) for trie, node in places if letter in trie.next_node[node]
                }
                if after:
                    paths.append((longer, self._or_next(after)))
        return columns

    def _or_next(self, places: set[tuple[PieceTrie, int]]) -> set[tuple[PieceTrie, int]]:
        """Add the beginning of the next word where a word is complete."""
        complete = any(trie.word[node] >= 0 for trie, node in places)
        return places | {(self._words, 0)} if complete else places


def scores_of_words(
    words: Contexts, parts: Mapping[str, FloatArray], gains: Gains | None, shared: Mapping[str, object], seed: int
) -> dict[str, Score]:
    """Compute the divergence of a model of pieces per word, its parts, and ``kl_summed`` of the summed sentences."""
    how = {"unit": "nats/word", "contexts-of": "truth", "estimator": "rao-blackwell", "may": "infinite"}
    kl = words.column("kl")
    columns = {"kl_per_word": kl, **parts}
    if gains is not None:
        gain = dict(zip(gains.sentence.tolist(), gains.nats.tolist(), strict=True))
        of_sentence = np.array([gain.get(number, np.nan) for number in words.sentence.tolist()])
        ends = words.position == words.length
        columns["gain_of_sums"] = np.where(ends, of_sentence, 0.0 * of_sentence)
        columns["kl_summed"] = kl - columns["gain_of_sums"]
    return mean_scores(
        {
            name: Column(values, {**how, **({"may": "negative"} if name in NEGATIVE else {})})
            for name, values in columns.items()
        },
        words.sentence,
        {**shared, "contexts": len(words.values)},
        seed,
    )


def _log_sum(values: FloatArray) -> float:
    return float(np.logaddexp.reduce(values)) if values.size else -np.inf
