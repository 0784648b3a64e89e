"""The pieces of any tokeniser, and texts cut into them, for sums over all ways to cut a text.

What is read: tokenisers of ours; ``tokenizer.json`` files of Unigram, BPE (byte-level, with ``▁`` or with an
end-of-word suffix) and WordPiece models; ``.model`` files of SentencePiece.

- Special, unknown, unused and byte tokens are no pieces. Byte pieces never compete with pieces that spell the same
  character, since the tokeniser falls back on them afterwards: sums over cuts leave out what a model gives to byte
  spellings, and a text that needs them is unreadable.
- Tokens that a user added, and that are not special, are pieces. The tokeniser looks for them before its model does, so
  its own cut always has them; other cuts may spell the same characters otherwise. In unigram models they score as in
  SentencePiece's own lattice, see `truesource.lmtrain.pieces.marking.added_score`.
- Rules that split a text before the model sees it (digits, punctuation, contractions) shape the tokeniser's own cut,
  but forbid no other: a language model of pieces can write any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from truesource.generator.language_model import PieceTokenizer
from truesource.grammar.support.errors import InputError


def read_pieces(source: Any) -> PieceTokenizer:
    """Read a tokeniser as sums over cuts see it.

    Its ``read`` gives the tokeniser's own cut. A text is ``altered`` if it is not, character by character, what its
    spelling says: normalised characters, lower case, white space collapsed, dropped at the ends, or set between
    words and punctuation. A piece sequence then is the probability of all texts that are spelt alike. Characters that
    no piece spells are ``unreadable``, and so is a literal marker (``▁``, U+2581) in a text that writes spaces with it,
    the text of a special token, a word for which WordPiece gives up, and an added token that makes the tokeniser spell
    what stands around it otherwise.

    Args:
        source: a fast tokeniser of ``transformers``, a ``tokenizers.Tokenizer``, a ``tokenizer.json`` file, a folder
            that holds one (read as ``transformers`` does where it has a configuration), or ``vocab.json`` with
            ``merges.txt``, or ``vocab.txt`` (see `lmtrain.pieces.tokenizer_folder`), or a SentencePiece ``.model``.

    Raises:
        InputError: there is no such file, it cannot be read, `sentencepiece` is needed and not installed, words are
            not cut at all, or texts are no joinings of pieces.
    """
    if isinstance(source, str | Path):
        return _read_path(Path(source))
    from truesource.lmtrain.pieces.huggingface_pieces import HuggingFacePieces

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
        return _read_json(path)
    from truesource.lmtrain.pieces.sentencepiece_pieces import SentencePiecePieces

    return SentencePiecePieces.load(path)


def _read_folder(folder: Path) -> PieceTokenizer:
    from truesource.lmtrain.pieces.huggingface_pieces import HuggingFacePieces
    from truesource.lmtrain.pieces.tokenizer_folder import read_plain

    found = read_plain(folder)
    if found is not None:
        with _located(folder):
            return HuggingFacePieces(*found)
    from truesource.lmtrain.loading import load_tokenizer  # torch

    tokenizer = load_tokenizer(folder)
    with _located(folder):
        return read_pieces(tokenizer)


def _read_json(path: Path) -> PieceTokenizer:
    from truesource.lmtrain.pieces.huggingface_pieces import HuggingFacePieces
    from truesource.lmtrain.pieces.tokenizer_folder import read_tokenizer_json

    with _located(path):
        return HuggingFacePieces(read_tokenizer_json(path))


@contextmanager
def _located(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise error if error.path else InputError(str(error), path) from error
