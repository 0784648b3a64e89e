"""Languages of the kit: first-order and second-order chains, each with the logits of its twins.

All logits are multiples of 1/16 below 16, or `ABSENT`. Such numbers are exact in float64, float32, float16 and
bfloat16, so a twin has the same logits in each of these types, and probabilities follow from them in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesource.generator.language_model import END
from truesource.grammar.building import Automaton
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

ABSENT = -32.0  #: logit of a token that cannot follow; its probability is below 1e-13
SEED = 72  #: of the random logits
KEEPS = 4.0  #: logit that a masked twin adds to a token that is not masked
_GRID = 16.0  #: logits are multiples of 1 / _GRID
#: words of several lengths, some with letters of two bytes
WORDS = ("a", "the", "old", "café", "naïve", "girl", "señor", "sees", "hears", "über", "rain", "piñata")
MERGES = (("a", "n"), ("n", "é"), ("▁", "t"), ("an", "a"), ("▁t", "a"), ("▁", "a"))  #: of characters into pieces
CONTINUES = "##"  #: beginning of a piece that continues a word
SPACE = "▁"  #: beginning of a piece that begins a word
_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True, eq=False)
class TokenNames:
    """Tokens of a language by number, with the special ones.

    Numbers of words are consecutive and last.
    """

    names: tuple[str, ...]
    begin: int
    end: int
    pad: int
    first_word: int  #: number of the first word; smaller numbers are special tokens
    unk: int
    mask: int | None = None  #: None: the twins predict the next token

    def __len__(self) -> int:
        return len(self.names)

    @property
    def words(self) -> IntArray:
        """Numbers of the words, or of the pieces, (W,)."""
        return np.arange(self.first_word, len(self.names))

    def numbers(self, tokens: Sequence[str]) -> list[int]:
        """Return the numbers of words or pieces.

        Raises:
            InputError: the language lacks one.
        """
        by_name = {name: number for number, name in enumerate(self.names) if number >= self.first_word}
        for token in tokens:
            if token not in by_name:
                raise InputError(f"the language has no word {token!r}; its words are {' '.join(by_name)}")
        return [by_name[token] for token in tokens]


@dataclass(frozen=True, eq=False)
class CausalLanguage:
    """A language whose twins predict the next token from the last one or two.

    ``logits`` is (V, V, V) by the token before the last, the last token and the next. At the beginning of a text
    there is no token before the last; the last one takes its place. A first-order chain has equal logits for all tokens
    before the last.
    """

    name: str
    tokens: TokenNames
    logits: FloatArray
    order: int  #: of the chain, 1 or 2

    @cached_property
    def log_probs(self) -> FloatArray:
        """Log probabilities of the next token, (V, V, V), nats."""
        return log_softmax(self.logits)

    @cached_property
    def grammar(self) -> PCFG:
        """Grammar of the same language; its words are tokens of the twins."""
        tokens, first, second = self.tokens, [self.tokens.begin], [self.tokens.begin]
        for word in tokens.words:
            earlier = [tokens.begin, *tokens.words.tolist()] if self.order == 2 else [tokens.begin]
            first += earlier
            second += [int(word)] * len(earlier)
        states = {pair: number for number, pair in enumerate(zip(first, second, strict=True))}
        rows = np.exp(self.log_probs[first, second])  # (S, V)
        rows[self.logits[first, second] <= ABSENT] = 0.0
        source, word = np.nonzero(rows[:, tokens.words])
        word_number = tokens.words[word]
        before = np.array(second)[source] if self.order == 2 else np.full(len(source), tokens.begin)
        target = np.array([states[pair] for pair in zip(before.tolist(), word_number.tolist(), strict=True)])
        return PCFG.of(
            Automaton(
                states=[self._state(pair) for pair in states],
                words=[tokens.names[number] for number in tokens.words],
                source=source,
                word=word,
                target=target,
                weight=rows[source, word_number],
                end=rows[:, tokens.end],
            ).grammar()
        )

    def _state(self, pair: tuple[int, int]) -> str:
        names = [self.tokens.names[number] for number in pair if number != self.tokens.begin]
        return " ".join(["after", *(names or ["nothing"])])

    def continuation(self, text: Sequence[int]) -> FloatArray:
        """Return the log probabilities of what follows the beginning of a sentence, (V,).

        Args:
            text: numbers of its words, without the mark of the beginning.
        """
        context = [self.tokens.begin, *text]
        result: FloatArray = self.log_probs[context[-2] if text else context[-1], context[-1]]
        return result


@dataclass(frozen=True, eq=False)
class MaskedLanguage:
    """A first-order chain whose twins predict a token from its neighbours.

    The log weight of a sentence is the sum of ``left`` over pairs of neighbours, and of ``right[end]`` at its last
    word. Logits at a position are the sum of ``left[token before]``, ``right[token after]`` and ``unmasked[token]``,
    which is 0 for a mask, (V, V) each, the last axis the target.
    """

    name: str
    tokens: TokenNames
    left: FloatArray
    right: FloatArray
    unmasked: FloatArray

    def log_probs(self, before: int, token: int, after: int) -> FloatArray:
        """Return the log probabilities of the tokens at a position, (V,), nats."""
        return log_softmax(self.left[before] + self.right[after] + self.unmasked[token])

    @cached_property
    def transitions(self) -> FloatArray:
        """Probabilities of the chain, (V, V), from its weights by Doob's transform; rows of words and the beginning.

        With M the weights among words and m of the end, h = (I - M)^-1 m is the weight of all continuations, and the
        chain moves from a to b with probability M[a, b] h[b] / h[a].
        """
        tokens, words = self.tokens, self.tokens.words
        weight = np.exp(np.where(self.left > ABSENT, self.left, -np.inf))
        weight[words, tokens.end] = np.exp(self.right[tokens.end, words])
        among = weight[np.ix_(words, words)]
        onward = np.zeros(len(tokens))
        onward[words] = np.linalg.solve(np.eye(len(words)) - among, weight[words, tokens.end])
        onward[tokens.end] = 1.0
        result = np.zeros((len(tokens), len(tokens)))
        for row in (tokens.begin, *words):
            product = weight[row] * onward
            result[row] = product / product.sum()
        return result

    @cached_property
    def grammar(self) -> PCFG:
        """Grammar of the same language; its words are tokens of the twins."""
        tokens, words = self.tokens, self.tokens.words
        rows = self.transitions[[tokens.begin, *words]]
        source, word = np.nonzero(rows[:, words])
        return PCFG.of(
            Automaton(
                states=["after nothing", *(f"after {tokens.names[number]}" for number in words)],
                words=[tokens.names[number] for number in words],
                source=source,
                word=word,
                target=word + 1,
                weight=rows[source, words[word]],
                end=rows[:, tokens.end],
            ).grammar()
        )

    def continuation(self, text: Sequence[int]) -> FloatArray:
        """Return the log probabilities of what follows the beginning of a sentence, (V,); -inf: impossible."""
        with np.errstate(divide="ignore"):
            result: FloatArray = np.log(self.transitions[text[-1] if text else self.tokens.begin])
        return result


Language = CausalLanguage | MaskedLanguage


def log_softmax(logits: FloatArray) -> FloatArray:
    """Return logits minus the logarithm of the sum of their exponentials, over the last axis."""
    highest = logits.max(axis=-1, keepdims=True)
    result: FloatArray = logits - highest - np.log(np.exp(logits - highest).sum(axis=-1, keepdims=True))
    return result


def _random_logits(rng: np.random.Generator, shape: tuple[int, ...], span: float) -> FloatArray:
    """Return multiples of 1/16 between -span and 0."""
    result: FloatArray = np.round(-span * rng.random(shape) * _GRID) / _GRID
    return result


CAUSAL = TokenNames(("<pad>", "<unk>", "<s>", END, *WORDS), begin=2, end=3, pad=0, unk=1, first_word=4)
PAIRS = TokenNames(("<|endoftext|>", "<pad>", "red", "grün", "blå", "rosé"), 0, 0, 1, 2, unk=0)
#: pieces with the mark of a space; `MERGES` makes them from characters
PIECES = TokenNames(
    ("<|endoftext|>", "<pad>", "▁", "a", "n", "é", "t", "an", "né", "ana", "▁t", "▁ta", "▁a"), 0, 0, 1, 2, unk=0
)
MASKED_WORDS = TokenNames((*_BERT, *WORDS[:10]), begin=2, end=3, pad=0, unk=1, mask=4, first_word=5)
MASKED_PIECES = TokenNames(
    (*_BERT, "walk", "sing", "béb", "the", "old", "rain", "##s", "##er", "##ing", "##é"),
    begin=2,
    end=3,
    pad=0,
    unk=1,
    mask=4,
    first_word=5,
)


def _causal(name: str, tokens: TokenNames, number: int, order: int, end: float) -> CausalLanguage:
    """Return a chain with random logits; special tokens cannot follow a word or the beginning."""
    rng, size = np.random.default_rng([SEED, number]), len(tokens)
    logits = _random_logits(rng, (size, size, size) if order == 2 else (size, size), 3.5)
    if order == 1:
        logits = np.repeat(logits[None], size, axis=0)
    possible = [tokens.begin, *tokens.words] if tokens.begin != tokens.end else tokens.words
    for row in possible:
        logits[:, row, : tokens.first_word] = ABSENT
        if row != tokens.begin:
            logits[:, row, tokens.end] = end
    if tokens.begin == tokens.end:  # what follows the end of a text is what can begin one
        logits[:, tokens.begin, : tokens.first_word] = ABSENT
    logits[logits > ABSENT] += 1.75  # around 0, so that errors of the scale in float32 are smallest
    return CausalLanguage(name, tokens, logits, order)


def _spaced(language: CausalLanguage) -> CausalLanguage:
    """Forbid texts that do not begin with the mark of a space, and words without a letter."""
    tokens, logits = language.tokens, language.logits.copy()
    begins = np.array([name.startswith(SPACE) for name in tokens.names])
    logits[:, tokens.begin, ~begins] = ABSENT
    space = tokens.names.index(SPACE)
    logits[:, space, begins] = ABSENT
    logits[:, space, tokens.end] = ABSENT
    return CausalLanguage(language.name, tokens, logits, language.order)


def _masked(name: str, tokens: TokenNames, number: int, end: float) -> MaskedLanguage:
    """Return a chain with random log weights between neighbours."""
    rng, size, words = np.random.default_rng([SEED, number]), len(tokens), tokens.words
    assert tokens.mask is not None
    left, right, unmasked = (np.zeros((size, size)) for _ in range(3))
    left[:], right[:, : tokens.first_word] = ABSENT, ABSENT / 4
    left[:, words] = _random_logits(rng, (size, len(words)), 2.5) - 1.5
    left[tokens.begin, [number for number in words if tokens.names[number].startswith(CONTINUES)]] = ABSENT
    for word in words:
        right[word, words] = left[words, word]
        unmasked[word, word] = KEEPS
    right[tokens.end, words] = end
    for special in set(range(tokens.first_word)) - {tokens.mask}:  # twins do not tell them apart
        left[special], right[special] = left[tokens.begin], right[tokens.end]
    return MaskedLanguage(name, tokens, left, right, unmasked)


def words_language() -> CausalLanguage:
    """Return the first-order chain over twelve words."""
    return _causal("words", CAUSAL, 1, 1, end=-0.75)


def pairs_language() -> CausalLanguage:
    """Return the second-order chain over four words."""
    return _causal("pairs", PAIRS, 2, 2, end=-1.5)


def pieces_language() -> CausalLanguage:
    """Return the first-order chain over eleven pieces, in which many words have several segmentations."""
    return _spaced(_causal("pieces", PIECES, 3, 1, end=-1.25))


def masked_words_language() -> MaskedLanguage:
    """Return the first-order chain over ten words, for masked twins."""
    return _masked("masked-words", MASKED_WORDS, 4, end=-2.5)


def masked_pieces_language() -> MaskedLanguage:
    """Return the first-order chain over ten pieces of words, for masked twins."""
    return _masked("masked-pieces", MASKED_PIECES, 5, end=-2.5)


def draw(language: Language, number: int, longest: int, seed: int) -> list[list[int]]:
    """Draw sentences of 2 to ``longest`` tokens from a chain; longer and shorter ones are drawn again.

    Args:
        language: the chain.
        number: of sentences.
        longest: most tokens of a sentence.
        seed: of the random numbers.
    """
    rng, sentences = np.random.default_rng([SEED, seed]), list[list[int]]()
    while len(sentences) < number:
        text: list[int] = []
        while len(text) <= longest:
            sums = np.cumsum(np.exp(language.continuation(text)))
            token = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
            if token < language.tokens.first_word:
                break
            text.append(token)
        if 2 <= len(text) <= longest:
            sentences.append(text)
    return sentences


def draw_endless(language: CausalLanguage, words: int, seed: int) -> list[int]:
    """Draw words of a chain that does not end."""
    rng, text = np.random.default_rng([SEED, seed]), list[int]()
    first = language.tokens.first_word
    for _ in range(words):
        sums = np.cumsum(np.exp(language.continuation(text)[first:]))
        text.append(first + int(np.searchsorted(sums, rng.random() * sums[-1], side="right")))
    return text
