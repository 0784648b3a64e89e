"""The language that a tokeniser of pieces makes of a truth of words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from truesource.grammar.pieces.segmentation import Cut
from truesource.grammar.pieces.truth import TokenisedTruth, tokenised
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.truth import Truth
from truesource.lmtrain.loading import load_tokenizer
from truesource.lmtrain.pieces.inventory import read_tokenizer_json
from truesource.lmtrain.pieces.words import CutError, OffsetAligner, WordAligner
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary, is_ours, is_subword
from truesource.lmtrain.tokenizer import UNK

NEIGHBOURS = 8  #: words of a text that shows whether cuts depend on neighbours
ORDERS = 2  #: random orders of the vocabulary in such texts
KEPT = 4  #: languages of pieces that are kept in memory
_languages: dict[tuple[str, str], TokenisedTruth] = {}  # by digests of tokeniser and truth


class PieceCutter:
    """A fast tokeniser that cuts truths and sentences of words into pieces, by name.

    Args:
        tokenizer: made here or elsewhere.

    Raises:
        InputError: it is no fast tokeniser.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise InputError(
                "expecting a fast tokeniser of transformers (PreTrainedTokenizerFast), a model folder, a"
                f" tokenizer.json, 'characters' or 'bytes', got {type(tokenizer).__name__}"
            )
        ours = is_ours(tokenizer) and is_subword(tokenizer)
        self.aligner: WordAligner = SubwordVocabulary(tokenizer) if ours else OffsetAligner(tokenizer, "causal")
        self.names = token_names(tokenizer)  #: (V,)
        cuts = f"{tokenizer.unk_token} {tokenizer.backend_tokenizer.to_str()}"
        self._digest = hashlib.sha256(cuts.encode()).hexdigest()

    @property
    def around(self) -> tuple[int, int]:
        """The tokens before a text and at its end.

        Raises:
            InputError: there is no such token.
        """
        before, after, _, _ = self.aligner.marks
        if not before or not after:
            raise InputError("the tokeniser has no token for the beginning or the end of a text; give it both")
        return before[0], after[0]

    def language(self, truth: Truth) -> TokenisedTruth:
        """Return a language with its words cut into pieces; for errors see `cut_language`.

        The last few languages of all cutters are kept, so asking again costs nothing.
        """
        key = self._digest, truth.digest
        if key not in _languages:
            _languages[key] = cut_language(truth, self.aligner, self.names)
            while len(_languages) > KEPT:
                del _languages[next(iter(_languages))]
        return _languages[key]

    def cut(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the pieces of sentences; for errors see `cut_texts`."""
        return cut_texts(self.aligner, sentences, self.names)


def read_cutter(path: Path) -> PieceCutter:
    """Return the cutter of a model folder or a ``tokenizer.json``.

    Raises:
        InputError: there is no such file, or it is no fast tokeniser.
    """
    if path.is_dir():
        return PieceCutter(load_tokenizer(path))
    if not path.is_file():
        raise InputError(
            "there is no such tokeniser; name a model folder or a tokenizer.json, or write characters or bytes",
            path,
            code="missing",
        )
    if path.suffix == ".model":
        raise InputError(
            "this is a model of SentencePiece, not a tokenizer.json; load it with AutoTokenizer of transformers, save"
            " that with save_pretrained, and name the folder",
            path,
        )
    backend = read_tokenizer_json(path)
    unknown = getattr(backend.model, "unk_token", None)
    return PieceCutter(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token=unknown))


def token_names(tokenizer: PreTrainedTokenizerFast) -> tuple[str, ...]:
    """Return the name of each token; ``<unk>`` for unknown characters, empty for numbers without a token."""
    names = [""] * (1 + max(tokenizer.get_vocab().values()))
    for name, number in tokenizer.get_vocab().items():
        names[number] = UNK if number == tokenizer.unk_token_id else name
    return tuple(names)


def cut_language(truth: Truth, aligner: WordAligner, names: Sequence[str]) -> TokenisedTruth:
    """Return a language with its words cut as a tokeniser cuts them; words with the same pieces are one word.

    Args:
        truth: grammar, process or other truth of words.
        aligner: the tokeniser.
        names: name of each token.

    Raises:
        NothingToMeasureError: the pieces of a word depend on its neighbours (code ``depends-on-neighbours``), a word
            has no pieces of its own (``no-pieces``), or as `tokenised`.
    """
    words = truth.vocabulary
    first: dict[str, Cut] = {}
    later: dict[str, Cut] = {}
    pairs = [(word, word) for word in words]
    for word, (start, inner) in zip(words, _cuts(aligner, pairs, names), strict=True):
        first[word], later[word] = start, inner
    random = np.random.default_rng(0)
    for _ in range(ORDERS):
        order = [words[i] for i in random.permutation(len(words))]
        texts = [order[at : at + NEIGHBOURS] for at in range(0, len(order), NEIGHBOURS)]
        for text, cuts in zip(texts, _cuts(aligner, texts, names), strict=True):
            for at, (word, cut) in enumerate(zip(text, cuts, strict=True)):
                usual = later[word] if at else first[word]
                if cut != usual:
                    raise NothingToMeasureError(
                        f"the tokeniser cuts the word {word!r} into {' '.join(usual)!r}, but into {' '.join(cut)!r} in"
                        f" {' '.join(text)!r}; exact probabilities of pieces need a tokeniser whose cuts do not depend"
                        " on the neighbours of a word",
                        "depends-on-neighbours",
                    )
    return tokenised(truth, later.__getitem__, first.__getitem__)


def cut_texts(aligner: WordAligner, sentences: Sequence[Sequence[str]], names: Sequence[str]) -> list[list[str]]:
    """Return the pieces of sentences, by name.

    Raises:
        InputError: as `WordAligner.align`.
    """
    return [[names[number] for number in row] for row in aligner.align(sentences).rows()]


def _cuts(aligner: WordAligner, texts: Sequence[Sequence[str]], names: Sequence[str]) -> list[list[Cut]]:
    """Return the pieces of each word of some texts."""
    try:
        pieces = aligner.align(texts)
    except InputError as error:
        text = error.in_any_sentence if isinstance(error, CutError) else str(error)
        raise NothingToMeasureError(text, "no-pieces") from error
    starts = pieces.starts.tolist()
    cuts = [tuple(names[number] for number in pieces.ids[a:b]) for a, b in pairwise(starts)]
    bounds = [0, *np.cumsum(pieces.words).tolist()]
    return [cuts[a:b] for a, b in pairwise(bounds)]
