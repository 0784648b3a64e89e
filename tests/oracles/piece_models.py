"""Tokenised models small enough to be read: pieces with scores, and causal models of them by plain loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from enumerated_cuts import log_sum

from truesource.generator.piece_model import PieceInventory, PieceKind, PieceText
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

MARKER = "▁"
FIRST_NUMBER = 3  #: the model's number of the first piece; those below are special tokens
BOS = -1  #: stands for <bos> in a memory
END = -2  #: stands for the end of a text among what is expected


def toy_inventory(pieces: Mapping[str, float], kind: PieceKind = "unigram") -> PieceInventory:
    """Pieces with their scores, in nats; a leading ``_`` is the marker. Numbers run backwards from the last piece."""
    spelt = tuple(piece.replace("_", MARKER) for piece in pieces)
    ids = np.arange(len(spelt), dtype=np.int64)[::-1] + FIRST_NUMBER
    return PieceInventory(kind, spelt, ids, np.array(list(pieces.values()), dtype=np.float64), MARKER)


#: `_abababa` has 80 cuts, `_abab` 15
AB_PIECES = {
    "_": -2.5, "a": -2.2, "b": -2.6, "_a": -2.0, "_b": -2.9, "ab": -2.1, "ba": -3.0, "aba": -3.7,
    "_ab": -2.4, "_aba": -4.0, "abab": -4.4,
}  # fmt: skip


def cuts_of(inventory: PieceInventory, spelling: str) -> Iterator[tuple[int, ...]]:
    """All ways to cut a spelling, as indices into the pieces, by trying every piece at every position."""
    if not spelling:
        yield ()
    for index, piece in enumerate(inventory.pieces):
        if spelling.startswith(piece):
            for rest in cuts_of(inventory, spelling[len(piece) :]):
                yield (index, *rest)


class ToyTokenizer:
    """Cuts a text into its pieces of the largest sum of scores, trying all cuts; words are whatever space divides."""

    def __init__(self, inventory: PieceInventory) -> None:
        self._inventory = inventory

    @property
    def inventory(self) -> PieceInventory:
        return self._inventory

    def read(self, text: str) -> PieceText:
        words = text.lower().split()
        if not words:
            raise InputError("the text is empty")
        spelling = "".join(MARKER + word for word in words)
        known = set("".join(self._inventory.pieces))
        unreadable = tuple(sorted(set(spelling) - known))
        cut: IntArray = np.empty(0, dtype=np.int64)
        if not unreadable:
            cut = np.concatenate([self._best(MARKER + word) for word in words])
        return PieceText(text, spelling, cut, " ".join(words) != text, unreadable)

    def _best(self, spelling: str) -> IntArray:
        """Of one word; pieces that hold the marker begin with it, so that words are cut one by one."""
        scores = self._inventory.scores
        assert scores is not None
        return np.array(
            max(cuts_of(self._inventory, spelling), key=lambda cut: math.fsum(scores[list(cut)])), dtype=np.int64
        )


class ToyPieceModel:
    """What comes next depends on the last pieces (``order`` - 1 of them), or on all (``order`` None).

    The distribution after each memory is drawn from a generator seeded by the memory itself: log odds are the scores of
    the pieces, plus ``spread`` times standard normal noise, with the end of the text at ``end_score``. Tokens that are
    in ``forbidden[token before]`` have probability zero after it (`BOS` stands before a text).
    """

    def __init__(
        self,
        inventory: PieceInventory,
        *,
        order: int | None = 2,
        seed: int = 0,
        spread: float = 0.7,
        end: bool = True,
        end_score: float = -2.0,
        longest: int | None = None,
        forbidden: Mapping[int, Sequence[int]] | None = None,
        name: str = "toy",
    ) -> None:
        self.name, self.longest, self.order = name, longest, order
        self.pieces = ToyTokenizer(inventory)
        self.around = (1, int(end))
        self.chosen_before: str | None = None
        self._seed, self._spread, self._end_score = seed, spread, end_score
        self._forbidden = forbidden or {}
        self._known: dict[tuple[int, ...], dict[int, float]] = {}
        self._scored: dict[bytes, float] = {}
        self.rows_scored = 0  #: rows given to `log_probs` so far
        self.tokens_scored = 0  #: tokens in them

    def memory(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """What is remembered of a text's tokens."""
        history = (BOS, *tokens)
        return history if self.order is None else history[len(history) - (self.order - 1) :]

    def expects(self, tokens: Sequence[int]) -> dict[int, float]:
        """Log probability of every token after a text's beginning, and of the end, under `END`."""
        memory = self.memory(tokens)
        if memory not in self._known:
            inventory = self.pieces.inventory
            assert inventory.scores is not None
            rng = np.random.default_rng([self._seed, *(token + 2 for token in memory)])
            logits = np.append(inventory.scores, self._end_score)
            logits = logits + self._spread * rng.standard_normal(len(logits))
            if not self.around[1]:
                logits[-1] = -math.inf
            for token in self._forbidden.get(memory[-1], ()) if memory else ():
                logits[np.flatnonzero(inventory.ids == token)] = -math.inf
            if logits.max() > -math.inf:  # else nothing may come
                logits -= logits.max() + math.log(np.exp(logits - logits.max()).sum())
            self._known[memory] = dict(zip([*inventory.ids.tolist(), END], logits.tolist(), strict=True))
        return self._known[memory]

    def log_prob_of(self, tokens: Sequence[int]) -> float:
        """Of one text and its end."""
        total = sum(self.expects(tokens[:i])[token] for i, token in enumerate(tokens))
        return total + (self.expects(tokens)[END] if self.around[1] else 0.0)

    def log_probs(self, rows: Sequence[IntArray]) -> FloatArray:
        self.rows_scored += len(rows)
        self.tokens_scored += sum(map(len, rows))
        if self.longest is not None and any(len(row) + self.around[0] > self.longest for row in rows):
            raise InputError("a row is longer than the model's positions")
        found = []
        for row in rows:
            key = np.asarray(row, dtype=np.int64).tobytes()
            if key not in self._scored:
                self._scored[key] = self.log_prob_of(np.asarray(row).tolist())
            found.append(self._scored[key])
        return np.array(found, dtype=np.float64)

    def token_steps(self, rows: Sequence[IntArray]) -> int:
        return sum(len(row) + self.around[0] for row in rows)

    def incremental_scorer(self) -> ToyScorer:
        return ToyScorer(self)

    def brute_log_p(self, spelling: str) -> float:
        """Log of the sum of P over all cuts."""
        return log_sum(self.brute(spelling).values())

    def brute(self, spelling: str) -> dict[tuple[int, ...], float]:
        """Log probability of every cut; cuts as indices into the pieces."""
        ids = self.pieces.inventory.ids
        return {cut: self.log_prob_of(ids[list(cut)].tolist()) for cut in cuts_of(self.pieces.inventory, spelling)}


class ToyScorer:
    """Remembers texts; equal memories of a model of finite order are one context, other contexts are all new."""

    def __init__(self, model: ToyPieceModel) -> None:
        self._model = model
        self._text: dict[int, tuple[int, ...]] = {}  # tokens, or what the model remembers of them
        self._number: dict[tuple[int, ...], int] = {}
        self._next = 0
        self.steps = 0

    def _context(self, tokens: tuple[int, ...]) -> int:
        memory = self._model.memory(tokens)
        if self._model.order is not None and memory in self._number:
            return self._number[memory]
        number = self._next
        self._next += 1
        self._text[number] = tokens
        self._number[memory] = number
        return number

    @property
    def held(self) -> int:
        """Contexts that are remembered."""
        return len(self._text)

    def begin(self) -> int:
        self.steps += self._model.around[0]
        return self._context(())

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        self.steps += len(contexts)
        pairs = zip(contexts.tolist(), tokens.tolist(), strict=True)
        return np.array([self._context((*self._text[c], t)) for c, t in pairs], dtype=np.int64)

    def log_prob(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        pairs = zip(contexts.tolist(), tokens.tolist(), strict=True)
        return np.array([self._model.expects(self._text[c])[t] for c, t in pairs], dtype=np.float64)

    def log_any(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        rows = [self.log_prob(np.full(len(tokens), c), tokens).tolist() for c in contexts.tolist()]
        return np.array([log_sum(row) for row in rows], dtype=np.float64)

    def log_end(self, contexts: IntArray) -> FloatArray:
        if not self._model.around[1]:
            return np.zeros(len(contexts))
        return np.array([self._model.expects(self._text[c])[END] for c in contexts.tolist()], dtype=np.float64)

    def keep(self, contexts: IntArray) -> None:
        kept = set(contexts.tolist())
        self._text = {c: text for c, text in self._text.items() if c in kept}
        self._number = {memory: c for memory, c in self._number.items() if c in kept}
