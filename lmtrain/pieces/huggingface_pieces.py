"""Tokenisers of the `tokenizers` library as sums over cuts see them: Unigram, BPE and WordPiece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
from tokenizers import Tokenizer

from truesource.generator.language_model import PieceInventory, PieceKind, PieceText
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.pieces.marking import (
    MARKER,
    PROBE,
    Entry,
    Marking,
    added_score,
    check_text,
    make_inventory,
    no_joining,
)

KINDS: dict[str, PieceKind] = {"Unigram": "unigram", "BPE": "bpe", "WordPiece": "wordpiece"}
BYTE_TOKENS = frozenset(f"<0x{byte:02X}>" for byte in range(256))


class HuggingFacePieces:
    """A tokeniser of the `tokenizers` library; a `PieceTokenizer`.

    How it spells a text is read off its own normaliser and pre-tokeniser. Where these drop white space, and pieces tell
    by a prefix (``##``) or a suffix (``</w>``) how words hang together, the marker is written here.
    """

    def __init__(self, backend: Tokenizer, special: Iterable[int] = ()) -> None:
        """Read a tokeniser; it is copied, without dropout, sampling, truncation or padding.

        Args:
            backend: the tokeniser.
            special: numbers that are special besides those it calls so itself.

        Raises:
            InputError: it has parts written in Python, does not cut words, or its texts are no joinings of pieces.
        """
        self._backend, config = _settled(backend)
        model = config["model"]
        self._bytes = _has(config["pre_tokenizer"], "ByteLevel") or _has(config["normalizer"], "ByteLevel")
        self._prefix: str = model.get("continuing_subword_prefix") or ""
        self._suffix: str = model.get("end_of_word_suffix") or ""
        self._style: Literal["joined", "prefix", "suffix"] = "joined"
        if self._prefix or self._suffix:
            self._style = "suffix" if self._suffix else "prefix"
            self._marking = Marking(MARKER, leads=not self._suffix, ends=bool(self._suffix))
        else:
            self._marking = Marking.of(self._spell(PROBE))
        added = self._backend.get_added_tokens_decoder()
        self._added = {number: token.content for number, token in added.items() if not token.special}
        hidden = {number for number, token in added.items() if token.special} | {*special}
        self.inventory: PieceInventory = make_inventory(
            KINDS[model["type"]], self._entries(model, hidden), self._marking, self._fallback(model)
        )
        self._characters = set().union(*self.inventory.pieces)
        size = max(self._backend.get_vocab(with_added_tokens=True).values()) + 1
        self._index: IntArray = np.full(size, -1, dtype=np.int64)
        self._index[self.inventory.ids] = np.arange(len(self.inventory.ids))

    def read(self, text: str) -> PieceText:
        """Normalise a text and cut it.

        Raises:
            InputError: the text is empty, the tokeniser keeps nothing of it, or its pieces spell something else.
        """
        check_text(text)
        spelling, marker = self._spell(text), self._marking.marker
        if not spelling.replace(marker, "") and marker not in text:
            raise InputError(f"the tokeniser keeps nothing of the text {text[:20]!r}")
        found = self._backend.encode(text, add_special_tokens=False)
        cut: IntArray = self._index[np.array(found.ids, dtype=np.int64)]
        unreadable = dict.fromkeys(
            text[a:b].strip() or text[a:b] or token
            for (a, b), token, at in zip(found.offsets, found.tokens, cut.tolist(), strict=True)
            if at < 0
        )
        if not unreadable:
            unreadable = dict.fromkeys(self._foreign(spelling))
        if not self._bytes and marker in text and marker != " ":
            unreadable |= {marker: None}
        if not unreadable:
            joined = "".join(self.inventory.pieces[i] for i in cut.tolist())
            if joined != spelling:
                unreadable = dict.fromkeys(self._added[number] for number in found.ids if number in self._added)
            if joined != spelling and not unreadable:
                raise no_joining(spelling, joined)
        return PieceText(
            original=text,
            spelling=spelling,
            canonical=cut[:0] if unreadable else cut,
            altered=self._text(spelling) != text,
            unreadable=tuple(unreadable),
        )

    def _entries(self, model: dict[str, Any], hidden: set[int]) -> Iterator[Entry]:
        """Added tokens first, since the tokeniser looks for them first."""
        for number, content in self._added.items():
            if number not in hidden:
                spelling = self._spell_added(content)
                yield Entry(spelling, number, added_score(spelling))
        unigram = model["type"] == "Unigram"
        unknown = model["unk_id"] if unigram else model["vocab"].get(model["unk_token"])
        passed = {*hidden, *self._added, unknown}
        scored = model["vocab"] if unigram else [(piece, 0.0) for piece in model["vocab"]]
        fallback = BYTE_TOKENS if model.get("byte_fallback") else frozenset()
        for piece, score in scored:
            number = self._backend.model.token_to_id(piece)
            if number not in passed and piece not in fallback:
                yield Entry(self._spell_piece(piece), number, score)

    def _fallback(self, model: dict[str, Any]) -> int:
        """How many byte tokens it falls back on."""
        known = (self._backend.token_to_id(token) is not None for token in BYTE_TOKENS)
        return sum(known) if model.get("byte_fallback") else 0

    def _spell_piece(self, piece: str) -> str:
        if self._style == "prefix":
            return piece.removeprefix(self._prefix) if piece.startswith(self._prefix) else MARKER + piece
        if self._style == "suffix" and piece.endswith(self._suffix):
            return piece.removesuffix(self._suffix) + MARKER
        return piece

    def _spell_added(self, content: str) -> str:
        spelt = "".join(map(_byte_symbols, content)) if self._bytes else content.replace(" ", self._marking.marker)
        return {"joined": spelt, "prefix": MARKER + spelt, "suffix": spelt + MARKER}[self._style]

    def _spell(self, text: str) -> str:
        normalizer, splitter = self._backend.normalizer, self._backend.pre_tokenizer
        if normalizer is not None:
            text = normalizer.normalize_str(text)
        words = [text] if splitter is None else [word for word, _ in splitter.pre_tokenize_str(text)]
        if self._style == "joined":
            return "".join(words)
        return "".join(word + MARKER if self._style == "suffix" else MARKER + word for word in words)

    def _text(self, spelling: str) -> str:
        """The text that is spelt so."""
        bare = self._marking.bare(spelling)
        if not self._bytes:
            return bare.replace(self._marking.marker, " ")
        parts = bare.split(MARKER) if self._style != "joined" else [bare]
        return " ".join(bytes(_SYMBOL_BYTES.get(c, 0xFF) for c in part).decode(errors="replace") for part in parts)

    def _foreign(self, spelling: str) -> list[str]:
        """Characters that no piece holds; models without an unknown token drop them and say nothing."""
        if not self._bytes:
            return [c for c in dict.fromkeys(spelling) if c not in self._characters]
        spaces = set() if self._style == "joined" else {" "}  # others write no byte for them
        read = [c for c in dict.fromkeys(self._text(spelling)) if c not in spaces]
        return [c for c in read if not self._characters.issuperset(_byte_symbols(c))]


def _settled(backend: Tokenizer) -> tuple[Tokenizer, dict[str, Any]]:
    """A copy that always cuts a text in the same way, and what it is made of."""
    try:
        config = json.loads(backend.to_str())
    except Exception as error:  # the library raises Exception itself
        raise InputError("the tokeniser has parts that are written in Python, so it cannot be read here") from error
    model = config["model"]
    if model["type"] not in KINDS:
        raise InputError(f"a {model['type']} tokeniser does not cut words into pieces; there is one way to read a text")
    config |= {"truncation": None, "padding": None}
    for setting in {"dropout", "alpha", "nbest_size"} & set(model):
        model[setting] = None
    return Tokenizer.from_str(json.dumps(config)), config


def _has(part: Any, kind: str) -> bool:
    """Whether a part of a tokeniser is, or holds, one of some type."""
    if isinstance(part, dict):
        return part.get("type") == kind or any(_has(value, kind) for value in part.values())
    return isinstance(part, list) and any(_has(value, kind) for value in part)


def _byte_alphabet() -> dict[int, str]:
    """The character that stands for each byte in byte-level BPE (Radford et al. 2019): itself if it is visible."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(visible)]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


_BYTE_SYMBOLS = _byte_alphabet()
_SYMBOL_BYTES = {symbol: byte for byte, symbol in _BYTE_SYMBOLS.items()}


def _byte_symbols(character: str) -> str:
    return "".join(_BYTE_SYMBOLS[byte] for byte in character.encode(errors="surrogatepass"))
