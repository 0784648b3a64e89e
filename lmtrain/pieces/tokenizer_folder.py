"""Tokenisers in folders, read by the `tokenizers` library alone where `transformers` would change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, read_record

#: classes of `transformers` that take ``tokenizer.json`` as it is; others change parts of it
PLAIN = {"TokenizersBackend", "PreTrainedTokenizerFast"}
_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
#: special tokens of GPT-2, RoBERTa and BERT, for folders that name none
_USUAL = ("<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class _SpecialToken(BaseModel):
    model_config = STRICT

    content: str


class _Config(BaseModel):
    """What is read of ``tokenizer_config.json``."""

    model_config = STRICT

    tokenizer_class: str | None = None
    do_lower_case: bool | None = None
    added_tokens_decoder: dict[str, Any] | None = None
    extra_special_tokens: list[str | _SpecialToken] | dict[str, str | _SpecialToken] | None = None
    additional_special_tokens: list[str | _SpecialToken] | None = None

    def special(self) -> list[str]:
        """The special tokens that it names."""
        extra = self.extra_special_tokens or []
        listed = [*(extra.values() if isinstance(extra, dict) else extra), *(self.additional_special_tokens or [])]
        named = [(self.model_extra or {}).get(name) for name in _NAMES]
        texts = [entry.get("content") if isinstance(entry, dict) else entry for entry in named]
        texts += [entry.content if isinstance(entry, _SpecialToken) else entry for entry in listed]
        return [text for text in texts if isinstance(text, str)]


def read_plain(folder: Path) -> tuple[Tokenizer, list[int]] | None:
    """The tokeniser of a folder and the numbers of its special tokens.

    ``tokenizer.json``; else ``vocab.json`` with ``merges.txt``, byte-level BPE as GPT-2 has it; else ``vocab.txt``,
    WordPiece as BERT has it, lower-cased as ``tokenizer_config.json`` says or, without one, where no piece has a
    capital letter.

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
        found = sorted(folder.glob("*.model"))
        hint = f"; name {found[0]} for the SentencePiece model" if found else ""
        raise InputError(f"the folder has no tokenizer.json, vocab.json with merges.txt, or vocab.txt{hint}", folder)
    numbers = [backend.token_to_id(text) for text in ([] if config is None else config.special())]
    return backend, [number for number in numbers if number is not None]


def read_tokenizer_json(path: Path) -> Tokenizer:
    """A ``tokenizer.json``.

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
