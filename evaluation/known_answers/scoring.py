"""Log probabilities of a text by each convention and each known mistake, computed from its language.

A choice maps an axis, such as ``end``, to one of its options; an absent axis has its first option. No twin is run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from truesource.evaluation.known_answers.languages import (
    CONTINUES,
    MERGES,
    SPACE,
    CausalLanguage,
    Language,
    MaskedLanguage,
    log_softmax,
)
from truesource.grammar.support.arrays import FloatArray

WINDOW = 32  #: positions of the twin for windows
STRIDE = 16  #: tokens that a window with overlap adds

Choice = Mapping[str, str]


@dataclass(frozen=True)
class ScoredText:
    """Log probabilities of the scored tokens of each sentence or window, nats."""

    parts: list[list[float]]
    counts: list[int] | None  #: tokens that a mean divides by; None: segmentations are summed, so there are no tokens


@dataclass(frozen=True, eq=False)
class KitText:
    """A text of the kit: sentences of a language, as lines and as the tokens that its twins read."""

    name: str
    language: Language
    twins: tuple[str, ...]
    kind: str  #: ``sentences``, ``window``, ``segmented`` or ``masked``
    sentences: list[list[int]]

    @property
    def lines(self) -> list[str]:
        """The sentences as text."""
        return [line_of([self.language.tokens.names[token] for token in sentence]) for sentence in self.sentences]

    def score(self, choice: Choice) -> ScoredText | None:
        """Return the log probabilities by a choice; None: its options exclude each other."""
        if isinstance(self.language, MaskedLanguage):
            return masked(self.language, self.sentences, choice)
        if self.kind == "window":
            return windows(self.language, self.sentences[0], choice)
        if self.kind == "segmented":
            return segmented(self.language, self.sentences, choice)
        return causal(self.language, self.sentences, choice)

    def sizes(self) -> dict[str, int]:
        """Return the numbers of sentences, words, characters and bytes; lines have no line end."""
        lines = self.lines
        joined = "".join(lines)
        return {
            "sentences": len(lines),
            "tokens": sum(map(len, self.sentences)),
            "words": sum(len(line.split()) for line in lines),
            "characters": len(joined),
            "bytes": len(joined.encode()),
            "bytes and line ends": len(joined.encode()) + len(lines),
            "bytes without spaces": len(joined.replace(" ", "").encode()),
            "bytes of pieces": sum(
                len(self.language.tokens.names[token].encode()) for sentence in self.sentences for token in sentence
            ),
        }


def line_of(tokens: Sequence[str]) -> str:
    """Return words or pieces as a line of text."""
    if any(token.startswith(SPACE) for token in tokens):
        return "".join(tokens).replace(SPACE, " ").removeprefix(" ")
    return " ".join(tokens).replace(f" {CONTINUES}", "")


def causal(language: CausalLanguage, sentences: Sequence[Sequence[int]], choice: Choice) -> ScoredText | None:
    """Return log probabilities of next tokens; None: a beginning token is both absent and scored.

    Axes: ``shift``, ``first``, ``end``, ``begin``, ``padding``, ``context``.
    """
    tokens, longest, is_absent = language.tokens, max(map(len, sentences)), choice.get("first") == "not scored"
    if is_absent and choice.get("begin") == "scored":
        return None
    table = without_end(language) if choice.get("end") == "excluded" else language.log_probs
    parts, counts, previous = [], [], tokens.begin
    for sentence in sentences:
        begin, end = ([] if is_absent else [tokens.begin]), ([] if "end" in choice else [tokens.end])
        full, padding = [*begin, *sentence, *end], longest - len(sentence)
        values = []
        for place in range(1, len(full)):
            context = _context(full, place, choice)
            if place == 1:
                context = _first_context(language, choice, context, previous, padding)
            if context is not None:
                values.append(float(table[*context, full[place]]))
        if choice.get("begin") == "scored":
            values.append(float(table[tokens.begin, tokens.begin, tokens.begin]))
        count = len(values)
        if choice.get("padding") == "counted":
            count += padding
        elif choice.get("padding") == "scored" and padding:
            row = [full[-2], full[-1], *[tokens.pad] * padding]
            values += [float(table[row[i], row[i + 1], tokens.pad]) for i in range(padding)]
            count = len(values)
        parts.append(values)
        counts.append(count)
        previous = sentence[-1]
    return ScoredText(parts, counts)


def without_end(language: CausalLanguage) -> FloatArray:
    """Return log probabilities of the next token given that it is not the end, (V, V, V)."""
    logits = language.logits.copy()
    logits[:, :, language.tokens.end] = -np.inf
    return log_softmax(logits)


def _context(full: Sequence[int], place: int, choice: Choice) -> tuple[int, int] | None:
    """Return the token before the last and the last one that predict a place; None: the place is not scored."""
    shift = choice.get("shift")
    if shift == "twice" and place == 1:
        return None
    last = {"none": place, "twice": place - 2}.get(shift or "", place - 1)
    before, token = full[max(last - 1, 0)], full[last]
    if choice.get("context") == "one token":
        return token, token
    return (token, before) if choice.get("context") == "swapped" else (before, token)


def _first_context(
    language: CausalLanguage, choice: Choice, context: tuple[int, int] | None, previous: int, padding: int
) -> tuple[int, int] | None:
    """Return the context of the first token that has one; None: it is not scored."""
    tokens, first = language.tokens, choice.get("first")
    if first == "from padding":
        return tokens.pad, tokens.pad
    if first == "from the previous sentence" and previous != tokens.begin:
        return previous, tokens.end
    if choice.get("padding") == "attended" and padding and context is not None:
        return tokens.pad, context[1]
    return context


def windows(language: CausalLanguage, text: Sequence[int], choice: Choice) -> ScoredText:
    """Return log probabilities of a long text without an end; axes: ``first``, ``windows``."""
    full = [language.tokens.begin, *text]
    values = [float(language.log_probs[full[max(i - 1, 0)], full[i], full[i + 1]]) for i in range(len(text))]
    way = choice.get("windows", "overlapping")
    size = WINDOW - 1 if way == "cut, begin before each" else WINDOW
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    if way == "cut, begin before each":
        begin = language.tokens.begin
        for start, part in zip(range(0, len(text), size), parts, strict=True):
            part[0] = float(language.log_probs[begin, begin, text[start]])
    elif way == "overlapping, mean of window means":
        parts = [values[:WINDOW], *(values[i : i + STRIDE] for i in range(WINDOW, len(values), STRIDE))]
    elif way == "overlapping":
        parts = [values]
    else:
        parts = [parts[0], *(part[1:] for part in parts[1:])]
    if choice.get("first") == "not scored":
        parts[0] = parts[0][1:]
    counted = 1 if way == "cut, first tokens counted" else 0
    return ScoredText(parts, [len(part) + counted * (number > 0) for number, part in enumerate(parts)])


def segmented(language: CausalLanguage, sentences: Sequence[Sequence[int]], choice: Choice) -> ScoredText | None:
    """Return log probabilities of text whose words have several segmentations.

    Axes: as `causal`, and ``segmentation``. Summed segmentations exclude mistakes about single pieces.
    """
    names, way = language.tokens.names, choice.get("segmentation", "canonical")
    if way == "summed":
        if set(choice) - {"segmentation", "end", "number", "base"}:
            return None
        texts = ["".join(names[token] for token in sentence) for sentence in sentences]
        if choice.get("end") == "excluded":
            return None
        return ScoredText([[summed_log_prob(language, text, end="end" not in choice)] for text in texts], None)
    if way == "no space before the text":
        cut = [bpe("".join(names[token] for token in sentence).removeprefix(SPACE)) for sentence in sentences]
        return causal(language, [language.tokens.numbers(pieces) for pieces in cut], choice)
    if way == "first piece of each word":
        if set(choice) - {"segmentation", "end", "number", "base"}:
            return None
        scored = causal(language, sentences, choice)
        assert scored is not None
        parts = [
            [
                value
                for value, token in zip(part, [*sentence, language.tokens.end], strict=False)
                if token < language.tokens.first_word or names[token].startswith(SPACE)
            ]
            for part, sentence in zip(scored.parts, sentences, strict=True)
        ]
        return ScoredText(parts, [*map(len, parts)])
    return causal(language, sentences, choice)


def summed_log_prob(language: CausalLanguage, text: str, *, end: bool = True) -> float:
    """Return the log probability of a text, summed over all its segmentations, nats.

    Args:
        language: of pieces, a chain of order 1.
        text: with marks for spaces.
        end: multiply by the probability that the text ends.
    """
    table, tokens = language.log_probs[language.tokens.begin], language.tokens
    at: list[dict[int, float]] = [{} for _ in range(len(text) + 1)]  # by the last piece
    at[0][tokens.begin] = 0.0
    for place in range(len(text)):
        for piece in tokens.words.tolist():
            name = tokens.names[piece]
            if text.startswith(name, place) and at[place]:
                new = _log_sum([value + float(table[last, piece]) for last, value in at[place].items()])
                at[place + len(name)][piece] = new
    last = [value + (float(table[piece, tokens.end]) if end else 0.0) for piece, value in at[-1].items()]
    return _log_sum(last)


def _log_sum(values: Sequence[float]) -> float:
    highest = max(values)
    return highest + math.log(math.fsum(math.exp(value - highest) for value in values))


def bpe(text: str) -> list[str]:
    """Return the pieces of a text with marks for spaces, as its tokeniser cuts it: merges in their order, per word."""
    ranks = {pair: rank for rank, pair in enumerate(MERGES)}
    words = [part for part in text.replace(SPACE, f"\n{SPACE}").split("\n") if part]
    result = []
    for word in words:
        pieces = [*word]
        while True:
            pairs = [(ranks.get(pair, len(ranks)), i) for i, pair in enumerate(pairwise(pieces))]
            rank, place = min(pairs, default=(len(ranks), 0))
            if rank == len(ranks):
                break
            pieces[place : place + 2] = ["".join(pieces[place : place + 2])]
        result += pieces
    return result


def masked(language: MaskedLanguage, sentences: Sequence[Sequence[int]], choice: Choice) -> ScoredText | None:
    """Return log probabilities of masked tokens; axes: ``method``, ``special``, ``padding``."""
    tokens, method, longest = language.tokens, choice.get("method", "one mask"), max(map(len, sentences))
    parts, counts = [], []
    for sentence in sentences:
        full = [tokens.begin, *sentence, tokens.end]
        values = []
        for place in range(1, len(full) - 1):
            continues = tokens.names[full[place]].startswith(CONTINUES)
            if method == "first piece of each word" and continues:
                continue
            values.append(_masked_value(language, full, place, _masks(language, full, place, method)))
        if choice.get("special") == "scored":
            values += [_masked_value(language, full, place, {place}) for place in (0, len(full) - 1)]
        parts.append(values)
        counts.append(len(values) + (longest - len(sentence) if choice.get("padding") == "counted" else 0))
    return ScoredText(parts, counts)


def _masks(language: MaskedLanguage, full: Sequence[int], place: int, method: str) -> set[int]:
    """Return the places that are masked while a place is scored."""
    if method == "no mask":
        return set()
    if method == "all masked at once":
        return set(range(1, len(full) - 1))
    if method not in ("later pieces masked", "whole word masked"):
        return {place}
    start, end = place, place + 1
    while _continues(language, full[start]):
        start -= 1
    while _continues(language, full[end]):
        end += 1
    return set(range(place if method == "later pieces masked" else start, end))


def _continues(language: MaskedLanguage, token: int) -> bool:
    return language.tokens.names[token].startswith(CONTINUES)


def _masked_value(language: MaskedLanguage, full: Sequence[int], place: int, masks: set[int]) -> float:
    """Return the log probability of a token; at an end of the text, a twin reads the token as its own neighbour."""
    assert language.tokens.mask is not None
    visible = [language.tokens.mask if i in masks else token for i, token in enumerate(full)]
    row = language.log_probs(visible[max(place - 1, 0)], visible[place], visible[min(place + 1, len(full) - 1)])
    return float(row[full[place]])
