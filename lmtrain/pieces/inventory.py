"""The pieces of any tokeniser, and texts cut into them, for sums over all ways to cut a text.

What is read: tokenisers of ours; ``tokenizer.json`` files of Unigram, BPE (byte-level, with ``▁`` or with an
end-of-word suffix) and WordPiece models; ``.model`` files of SentencePiece.

- Special, unknown and unused tokens are no pieces.
- Byte tokens (``<0x41>``, byte fallback) are pieces of one byte, since a run of them decodes to the letters that it
  spells. The tokeniser itself falls back on them only for characters without another piece. They are no pieces if they
  are special, if the decoder does not read them as bytes, or if words are marked by ``##`` or ``</w>``.
- Tokens that a user added, and that are not special, are pieces. The tokeniser looks for them before its model does, so
  its own cut always has them; other cuts may spell the same characters otherwise. In unigram models they score as in
  SentencePiece's own lattice, see `truesource.lmtrain.pieces.marking.added_score`.
- Rules that split a text before the model sees it (digits, punctuation, contractions) shape the tokeniser's own cut,
  but forbid no other: a language model of pieces can write any of them.

A tokeniser in a folder is read by the `tokenizers` library alone where `transformers` would change nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel
from tokenizers import AddedToken, Encoding, Tokenizer, decoders, models, normalizers, pre_tokenizers

from truesource.generator.piece_model import PieceInventory, PieceKind, PieceText, PieceTokenizer
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, read_record
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
BYTE_TOKEN = re.compile("<0x([0-9A-Fa-f]{2})>")
#: classes of `transformers` that take ``tokenizer.json`` as it is; others change parts of it
PLAIN = {"TokenizersBackend", "PreTrainedTokenizerFast"}
_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
#: special tokens of GPT-2, RoBERTa and BERT, for folders that name none
_USUAL = ("<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def read_pieces(source: Any) -> PieceTokenizer:
    """Read a tokeniser for sums over all ways to cut a text.

    Its ``read`` gives the tokeniser's own cut. A text is ``altered`` if its spelling differs from it: normalised
    characters, lower case, white space collapsed, dropped at the ends, or set between words and punctuation. A piece
    sequence then is the probability of all texts that are spelt alike. Characters that no piece spells are
    ``unreadable``, and so is a literal marker (``▁``, U+2581) in a text that writes spaces with it, the text of a
    special token, a word for which WordPiece gives up, and an added token that changes the spelling of its neighbours.

    Args:
        source: a fast tokeniser of ``transformers``, a ``tokenizers.Tokenizer``, a ``tokenizer.json`` file, a folder
            that holds one (read as ``transformers`` does if it has a configuration), or ``vocab.json`` with
            ``merges.txt``, or ``vocab.txt`` (see `read_plain`), or a SentencePiece ``.model``.

    Raises:
        InputError: there is no such file, it cannot be read, `sentencepiece` is needed and not installed, it does not
            cut words, or texts are not concatenations of pieces.
    """
    if isinstance(source, str | Path):
        return _read_path(Path(source))
    backend = getattr(source, "backend_tokenizer", source)
    if not hasattr(backend, "to_str"):
        raise InputError(f"a {type(source).__name__} is no fast tokeniser; its pieces cannot be listed")
    return HuggingFacePieces(backend, getattr(source, "all_special_ids", ()))


def _read_path(path: Path) -> PieceTokenizer:
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise InputError("there is no such file; name a model folder, a tokenizer.json or a SentencePiece .model", path)
    if path.suffix == ".json":
        with _located(path):
            return HuggingFacePieces(read_tokenizer_json(path))
    from truesource.lmtrain.pieces.sentencepiece_pieces import SentencePiecePieces

    return SentencePiecePieces.load(path)


def _read_folder(folder: Path) -> PieceTokenizer:
    plain = read_plain(folder)
    if plain is not None:
        with _located(folder):
            return HuggingFacePieces(*plain)
    from truesource.lmtrain.loading import load_tokenizer  # torch

    tokenizer = load_tokenizer(folder)
    with _located(folder):
        return read_pieces(tokenizer)


@contextmanager
def _located(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise error if error.path else InputError(str(error), path) from error


class HuggingFacePieces:
    """A tokeniser of the `tokenizers` library; a `PieceTokenizer`.

    Its own normaliser and pre-tokeniser give the spelling of a text. If these drop white space, and a prefix (``##``)
    or a suffix (``</w>``) of pieces shows the words, the marker is written here.
    """

    def __init__(self, backend: Tokenizer, special: Iterable[int] = ()) -> None:
        """Read a tokeniser; it is copied, without dropout, sampling, truncation or padding.

        Args:
            backend: the tokeniser.
            special: numbers of further special tokens.

        Raises:
            InputError: it has parts in Python, does not cut words, or its texts are not concatenations of pieces.
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
        self._falls_back = bool(model.get("byte_fallback"))
        self._reads_bytes = self._style == "joined" and not self._bytes and self._decodes_bytes()
        added = self._backend.get_added_tokens_decoder()
        self._added = {number: token.content for number, token in added.items() if not token.special}
        hidden = {number for number, token in added.items() if token.special} | {*special}
        self.inventory: PieceInventory = make_inventory(
            KINDS[model["type"]], self._entries(model, hidden), self._marking
        )
        is_byte = self.inventory.byte_tokens
        letters = self.inventory.pieces if is_byte is None else compress(self.inventory.names, ~is_byte)
        self._characters = set().union(*letters)
        self._single_bytes = set() if is_byte is None else set(compress(self.inventory.pieces, is_byte))
        self._check_marker()
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
        encoding = self._backend.encode(text, add_special_tokens=False)
        cut: IntArray = self._index[np.array(encoding.ids, dtype=np.int64)]
        unreadable = dict.fromkeys(
            text[a:b].strip() or text[a:b] or token
            for (a, b), token, at in zip(encoding.offsets, encoding.tokens, cut.tolist(), strict=True)
            if at < 0
        )
        if not unreadable:
            unreadable = dict.fromkeys(self._foreign(spelling))
        if not self._bytes and marker in text and marker != " ":
            unreadable |= {marker: None}
        spelled = self._marking.spelled(spelling, self.inventory)
        if not unreadable:
            joined = "".join(self.inventory.pieces[i] for i in cut.tolist())
            if joined != spelled:
                unreadable = dict.fromkeys(self._literal(text, encoding))
            if joined != spelled and not unreadable:
                raise no_joining(spelling, self.inventory.readable(joined))
        return PieceText(
            original=text,
            spelling=spelled,
            canonical=cut[:0] if unreadable else cut,
            altered=self._text(spelling) != text,
            unreadable=tuple(unreadable),
        )

    def _literal(self, text: str, encoding: Encoding) -> Iterator[str]:
        """Yield the added tokens of a text, and the byte tokens that it writes out, such as ``<0x41>``."""
        for number, token, (a, b) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True):
            if number in self._added or (BYTE_TOKEN.fullmatch(token) and text[a:b] == token):
                yield self._added.get(number, token)

    def _decodes_bytes(self) -> bool:
        """Return True if byte tokens are the bytes of a text."""
        decoder = self._backend.decoder
        return self._falls_back if decoder is None else bool(decoder.decode(["a", "<0x41>"]).endswith("A"))

    def _check_marker(self) -> None:
        """Refuse a decoder that reads the bytes of the marker, too, as white space."""
        marker, decoder = self._marking.marker, self._backend.decoder
        if marker == " " or decoder is None or not self._single_bytes.issuperset(marker.encode().decode("latin-1")):
            return
        in_bytes = (f"<0x{byte:02X}>" for byte in marker.encode())
        if decoder.decode(["a", *in_bytes, "b"]) == decoder.decode(["a", marker, "b"]):
            raise InputError(
                f"the tokeniser's decoder reads the bytes of {marker!r} as a space, too, so that texts are not"
                " concatenations of pieces; let it replace the marker before it joins the bytes"
            )

    def _entries(self, model: dict[str, Any], hidden: set[int]) -> Iterator[Entry]:
        """Yield the pieces, added tokens first."""
        for number, content in self._added.items():
            if number in hidden:
                continue
            if (byte := self._byte(content)) is not None:
                yield Entry.of_byte(byte, number, self._marking)
            else:
                spelling = self._spell_added(content)
                yield Entry(spelling, number, added_score(spelling))
        unigram = model["type"] == "Unigram"
        unknown = model["unk_id"] if unigram else model["vocab"].get(model["unk_token"])
        passed = {*hidden, *self._added, unknown}
        scored = model["vocab"] if unigram else [(piece, 0.0) for piece in model["vocab"]]
        for piece, score in scored:
            number = self._backend.model.token_to_id(piece)
            if number in passed:
                continue
            if (byte := self._byte(piece)) is not None:
                yield Entry.of_byte(byte, number, self._marking)
            elif not (self._falls_back and BYTE_TOKEN.fullmatch(piece)):
                yield Entry(self._spell_piece(piece), number, score)

    def _byte(self, token: str) -> int | None:
        """Return the byte of a byte token; None for other tokens."""
        match = BYTE_TOKEN.fullmatch(token) if self._reads_bytes else None
        return None if match is None else int(match[1], 16)

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
        """Return the text of a spelling."""
        bare = self._marking.bare(spelling)
        if not self._bytes:
            return bare.replace(self._marking.marker, " ")
        parts = bare.split(MARKER) if self._style != "joined" else [bare]
        return " ".join(bytes(_SYMBOL_BYTES.get(c, 0xFF) for c in part).decode(errors="replace") for part in parts)

    def _foreign(self, spelling: str) -> list[str]:
        """Return the characters that no piece holds; models without an unknown token drop them silently."""
        if not self._bytes:
            absent = [c for c in dict.fromkeys(spelling) if c not in self._characters]
            return [c for c in absent if not self._single_bytes.issuperset(self._marking.in_bytes(c))]
        spaces = set() if self._style == "joined" else {" "}  # others write no byte for them
        read = [c for c in dict.fromkeys(self._text(spelling)) if c not in spaces]
        return [c for c in read if not self._characters.issuperset(_byte_symbols(c))]


def _settled(backend: Tokenizer) -> tuple[Tokenizer, dict[str, Any]]:
    """Return a deterministic copy of a tokeniser, and its configuration."""
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
    """Return True if a part of a tokeniser is, or holds, one of some type."""
    if isinstance(part, dict):
        return part.get("type") == kind or any(_has(value, kind) for value in part.values())
    return isinstance(part, list) and any(_has(value, kind) for value in part)


def _byte_alphabet() -> dict[int, str]:
    """Return the character of each byte in byte-level BPE (Radford et al. 2019): itself if it is visible."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(visible)]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


_BYTE_SYMBOLS = _byte_alphabet()
_SYMBOL_BYTES = {symbol: byte for byte, symbol in _BYTE_SYMBOLS.items()}


def _byte_symbols(character: str) -> str:
    return "".join(_BYTE_SYMBOLS[byte] for byte in character.encode(errors="surrogatepass"))


class _SpecialToken(BaseModel):
    model_config = STRICT

    content: str


class _Config(BaseModel):
    """The part of ``tokenizer_config.json`` that is read."""

    model_config = STRICT

    tokenizer_class: str | None = None
    do_lower_case: bool | None = None
    added_tokens_decoder: dict[str, object] | None = None
    extra_special_tokens: list[str | _SpecialToken] | dict[str, str | _SpecialToken] | None = None
    additional_special_tokens: list[str | _SpecialToken] | None = None

    def special(self) -> list[str]:
        """Return the special tokens that it names."""
        extra = self.extra_special_tokens or []
        listed = [*(extra.values() if isinstance(extra, dict) else extra), *(self.additional_special_tokens or [])]
        named = [(self.model_extra or {}).get(name) for name in _NAMES]
        texts = [entry.get("content") if isinstance(entry, dict) else entry for entry in named]
        texts += [entry.content if isinstance(entry, _SpecialToken) else entry for entry in listed]
        return [text for text in texts if isinstance(text, str)]


def read_plain(folder: Path) -> tuple[Tokenizer, list[int]] | None:
    """Return the tokeniser of a folder and the numbers of its special tokens.

    ``tokenizer.json``; else ``vocab.json`` with ``merges.txt``, byte-level BPE as GPT-2 has it; else ``vocab.txt``,
    WordPiece as BERT has it, lower-cased as ``tokenizer_config.json`` says or, without one, if no piece has a capital
    letter.

    Returns:
        None: only `transformers` can read this folder as it would.

    Raises:
        InputError: a file is damaged, ``vocab.json`` is not byte-level, or there is no tokeniser at all.
    """
    path = folder / "tokenizer_config.json"
    config: _Config | None = None
    if path.is_file():
        config = read_record(path, _Config, what="the configuration of the tokeniser", remedy="save it again")
    if (folder / "tokenizer.json").is_file():
        if config is None and (folder / "config.json").is_file():
            return None
        if config is not None and (config.tokenizer_class not in PLAIN or config.added_tokens_decoder is not None):
            return None
        backend = read_tokenizer_json(folder / "tokenizer.json")
    elif (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        backend = _byte_level(folder)
    elif (folder / "vocab.txt").is_file():
        backend = _wordpiece(folder, config)
    else:
        others = sorted(folder.glob("*.model"))
        hint = f"; name {others[0]} for the SentencePiece model" if others else ""
        raise InputError(f"the folder has no tokenizer.json, vocab.json with merges.txt, or vocab.txt{hint}", folder)
    numbers = [backend.token_to_id(text) for text in ([] if config is None else config.special())]
    return backend, [number for number in numbers if number is not None]


def read_tokenizer_json(path: Path) -> Tokenizer:
    """Read a ``tokenizer.json``.

    Raises:
        InputError: it is damaged.
    """
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise _unreadable(error, path) from error


def _byte_level(folder: Path) -> Tokenizer:
    path = folder / "vocab.json"
    try:
        backend = Tokenizer(models.BPE.from_file(str(path), str(folder / "merges.txt")))
    except Exception as error:  # the library raises Exception itself
        raise _unreadable(error, path) from error
    absent = set(pre_tokenizers.ByteLevel.alphabet()) - backend.get_vocab().keys()
    if absent:
        raise InputError(
            f"vocab.json is not of byte-level BPE, it lacks {len(absent)} of 256 bytes; save the tokeniser as"
            " tokenizer.json, which says how it reads a text",
            path,
        )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return _with_usual(backend)


def _wordpiece(folder: Path, config: _Config | None) -> Tokenizer:
    path = folder / "vocab.txt"
    try:
        backend = Tokenizer(models.WordPiece.from_file(str(path), unk_token="[UNK]"))
    except Exception as error:  # the library raises Exception itself
        raise _unreadable(error, path) from error
    lower = None if config is None else config.do_lower_case
    if lower is None:
        lower = not any(piece != piece.lower() for piece in backend.get_vocab() if piece not in _USUAL)
    backend.normalizer = normalizers.BertNormalizer(lowercase=lower)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    return _with_usual(backend)


def _with_usual(backend: Tokenizer) -> Tokenizer:
    vocabulary = backend.get_vocab()
    backend.add_special_tokens([AddedToken(text, special=True) for text in _USUAL if text in vocabulary])
    return backend


def _unreadable(error: Exception, path: Path) -> InputError:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(f"the tokeniser cannot be loaded: {first}", path)
