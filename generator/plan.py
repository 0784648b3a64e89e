"""Plan of a corpus: splits, columns, shards, and a transform of its sentences.

Transforms are bijections of the sentences of one length that reorder the words of a text. They are from Kallini et al.
(2024), "Mission: Impossible Language Models", as far as they depend only on the length n of a sentence. Word p of the
transformed sentence is word ``order[p]`` of the original, so for every transform

- a sentence has the log probability of its original: ``P_T(w) = P(undo(w))``, end of the sentence included, under
  every length condition;
- ``P_T(word p | all other words, n) = P(word order[p] of undo(w) | all other words, n)``: the condition names the same
  words at the same positions of the original.

``P_T(word p | words before it)`` sums over later words, whose positions in the original are arbitrary; it is known if
the transformed language again has a grammar: a reversal mirrors every rule.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar, get_args

from pydantic import Field, ValidationError

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import explain
from truesource.grammar.support.room import approximate, require_disk, require_memory
from truesource.grammar.support.settings import DEFAULT_SEED, Settings, join_reference, split_reference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.arrays import BoolArray, IntArray
    from truesource.grammar.truth import Truth


T = TypeVar("T")
SHARD_SIZE = 50_000  #: sentences of a shard
SHARES = "train=.96,dev=.01,test=.01,eval=.02"  #: default shares of the splits of a corpus
LONG = 1000  #: tokens; `truesource sample` warns of a longer mean length without a range of lengths
_SENTENCE = 1  #: bytes of a sentence of unknown length on the disk at least, and
_TOKEN = 0.75  #: of each token after the first in packed text, a little less than languages of few rules take
_TOKEN_OF_TREE = 0.5  #: of each of these in packed trees, likewise
_MANY = 10**8  #: number of sentences above which their mean length is computed for an estimate
_DRAWN = 32  #: bytes of a sentence in memory while its file is sampled
_FILE = 1000  #: least bytes of a file on the disk, and in memory


class Transform(Settings):
    """An order of words for each sentence length; written ``name`` or ``name:key=value,key=value``."""

    name: ClassVar[str]

    @abstractmethod
    def permutation(self, n: int) -> IntArray:
        """Return the number of the original word at each position of a sentence of ``n`` words, (n,)."""

    def grammar(self, pcfg: PCFG) -> PCFG | None:
        """Return the grammar of the transformed language, None if it has none."""
        return None

    @property
    def has_grammar(self) -> bool:
        """True if `grammar` returns one, and hence token probabilities given the previous tokens."""
        return type(self).grammar is not Transform.grammar

    def apply(self, words: Sequence[T]) -> list[T]:
        """Return a sentence of the original language in the new order."""
        return [words[i] for i in order(self, len(words)).tolist()]

    def undo(self, words: Sequence[T]) -> list[T]:
        """Return the original of a sentence."""
        result = list(words)
        for word, i in zip(words, order(self, len(words)).tolist(), strict=True):
            result[i] = word
        return result

    def __str__(self) -> str:
        return join_reference(self.name, self.model_dump())


class Reversal(Transform):
    """The words in reverse order."""

    name = "reversal"

    def permutation(self, n: int) -> IntArray:
        """Return the order of the words, as `Transform.permutation` describes it."""
        import numpy as np

        return np.arange(n)[::-1]

    def grammar(self, pcfg: PCFG) -> PCFG:
        """Return the grammar with children of binary rules exchanged; ``meta["transform"]`` records it."""
        mirrored = replace(pcfg, binary=pcfg.binary[:, [0, 2, 1]])
        return mirrored.with_meta(transform={"spec": str(self), "original": pcfg.digest})


class OddEven(Transform):
    """Every second word, then the others."""

    name = "odd-even"
    first: Literal["odd", "even"] = Field("odd", description="Which words come first; they are counted from 1.")

    def permutation(self, n: int) -> IntArray:
        """Return the order of the words, as `Transform.permutation` describes it."""
        import numpy as np

        odd, even = np.arange(0, n, 2), np.arange(1, n, 2)
        return np.concatenate([odd, even] if self.first == "odd" else [even, odd])


class BlockShuffle(Transform):
    """One random order inside each block of ``size`` words; a last, shorter block has another order."""

    name = "block-shuffle"
    size: int = Field(3, ge=2, description="Number of words in a block.")
    seed: int = Field(DEFAULT_SEED, ge=0, description="Random seed of the order in a block.")

    def permutation(self, n: int) -> IntArray:
        """Return the order of the words, as `Transform.permutation` describes it."""
        import numpy as np

        whole, rest = divmod(n, self.size)
        if not whole:
            return shuffled(rest, self.seed)
        blocks = np.arange(whole)[:, None] * self.size + shuffled(self.size, self.seed)
        return np.concatenate([blocks.ravel(), n - rest + shuffled(rest, self.seed)])


class LengthShuffle(Transform):
    """One random order of all words for each sentence length."""

    name = "length-shuffle"
    seed: int = Field(DEFAULT_SEED, ge=0, description="Random seed of the order for each sentence length.")

    def permutation(self, n: int) -> IntArray:
        """Return the order of the words, as `Transform.permutation` describes it."""
        return shuffled(n, self.seed)


TRANSFORMS: dict[str, type[Transform]] = {kind.name: kind for kind in (Reversal, OddEven, BlockShuffle, LengthShuffle)}


def parse_transform(text: str) -> Transform:
    """Read ``reversal`` or ``block-shuffle:size=3,seed=7``.

    >>> str(parse_transform("block-shuffle:seed=7"))
    'block-shuffle:size=3,seed=7'

    Raises:
        InputError: there is no such transform or setting, or a value is outside its range.
    """
    name, values = split_reference(text)
    if name not in TRANSFORMS:
        raise InputError(f"there is no transform {name!r}; choose one of {', '.join(TRANSFORMS)}", code="no-transform")
    try:
        return TRANSFORMS[name].model_validate(values)
    except ValidationError as error:
        raise InputError(f"transform {name}: {explain(error)}", code="bad-setting") from error


@cache
def order(transform: Transform, n: int) -> IntArray:
    """Return `Transform.permutation`, cached and read-only."""
    result = transform.permutation(n)
    result.flags.writeable = False
    return result


def text_order(transform: Transform, lengths: NDArray[np.integer]) -> IntArray:
    """Return the order of the words of all sentences of a text, one after the other.

    Args:
        transform: transform of the text.
        lengths: (S,) words of each sentence, T together.

    Returns:
        (T,) for each position of the transformed text, the position in the original text.
    """
    import numpy as np

    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    result = np.empty(int(lengths.sum()), dtype=np.int64)
    for n in np.unique(lengths).tolist():
        begins = starts[lengths == n][:, None]
        result[begins + np.arange(n)] = begins + order(transform, n)
    return result


def shuffled(n: int, seed: int) -> IntArray:
    """Return a random order of ``n`` things, (n,): uniform except the identity; same on every machine.

    Only the raw bits of the generator are used: they are the same in all versions of numpy.
    """
    import numpy as np

    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(n,)))
    while True:
        result = np.argsort(bits.random_raw(n), kind="stable")
        if n < 2 or (result != np.arange(n)).any():
            return result


Overlap = Literal["iid", "disjoint", "unique"]
#: form of derivations: complete, as numbers; as Penn brackets with treebank labels; none
Trees = Literal["ids", "text", "none"]


@dataclass(frozen=True)
class Columns:
    """Columns of a corpus in addition to ``text``, ``n_tokens`` and ``logprob``.

    Raises:
        InputError: ``trees`` has another value.
    """

    trees: Trees = "ids"  #: the derivation of each sentence, see `truesource.generator.sampler`
    string_logprob: bool = False  #: log probability of the sentence, summed over its derivations; slow
    ids: bool = False  #: the words as numbers of ``symbols.json``
    split: bool = True  #: the name of the split

    def __post_init__(self) -> None:
        if self.trees not in get_args(Trees):
            raise InputError(f"trees must be one of {', '.join(get_args(Trees))}, got {self.trees!r}")


def split_sizes(text: str, total: int) -> dict[str, int]:
    """Return the sentences of each split, integers that sum to ``total``, from ``train=.98,dev=.01,test=.01``.

    Raises:
        InputError: the text has another form, the shares do not sum to 1, or a split would be empty.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, separator, share = part.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            separator = ""
        if not separator or not name.strip() or not shares[name.strip()] > 0.0:
            raise InputError(f"write splits as train=.98,dev=.01,test=.01, not as {text!r}")
    if len(shares) < text.count(",") + 1:
        raise InputError(f"a split is given twice in {text!r}; remove one")
    if abs(sum(shares.values()) - 1.0) > 1e-9:
        raise InputError(f"the shares of the splits sum to {sum(shares.values()):g}; change them to sum to 1")
    sizes = {name: int(share * total) for name, share in shares.items()}
    sizes[max(shares, key=lambda name: shares[name])] += total - sum(sizes.values())
    if min(sizes.values()) < 1:
        raise InputError(f"{total} sentences are too few for the splits {text!r}; sample more, or use --shares train=1")
    return sizes


@dataclass(frozen=True)
class Plan:
    """Settings that determine the bytes of a corpus, in addition to the grammar.

    ``overlap`` is the condition on shared sentences. ``iid``: every sentence is sampled independently. In ``disjoint``
    splits no sentence of an earlier split occurs (within a split, sentences repeat): the first split is i.i.d., a later
    one follows ``P(. | not in the earlier ones)``. In ``unique`` splits no sentence occurs twice at all: they are the
    first distinct sentences of one i.i.d. stream, dealt to the splits at random; frequent sentences are then
    underrepresented, equally in all splits.

    Raises:
        InputError: an impossible request.
    """

    splits: Mapping[str, int]  #: sentences of each split
    seed: int
    lengths: LengthRange | None = None
    overlap: Overlap = "iid"
    max_height: int | None = None
    columns: Columns = field(default_factory=Columns)
    shard_size: int = SHARD_SIZE
    transform: Transform | None = None  #: order of the words in the text; trees belong to the original sentences
    stratified: bool = False  #: see `truesource.generator.strata`

    def __post_init__(self) -> None:
        from truesource.grammar.support.arrays import random_state

        if not self.splits:
            raise InputError("a corpus needs at least one split, such as train")
        for name, n in self.splits.items():
            if not re.fullmatch(r"[A-Za-z0-9_]+", name):
                raise InputError(f"the name of a split must have letters, digits and _, got {name!r}")
            if n < 1:
                raise InputError(f"the split {name!r} has {n} sentences; it needs at least one")
        if self.overlap not in get_args(Overlap):
            raise InputError(f"overlap must be one of {', '.join(get_args(Overlap))}, got {self.overlap!r}")
        if self.stratified and (self.overlap != "iid" or self.max_height is not None):
            raise InputError("a stratified corpus needs independent splits (overlap iid), and trees of any height")
        if self.shard_size < 1:
            raise InputError(f"the shard size must be 1 or more, got {self.shard_size}")
        random_state(self.seed)


@dataclass(frozen=True)
class Shard:
    """One file of a corpus, as planned."""

    split: str
    number: int  #: 0 .. of - 1 within its split
    of: int  #: shards of its split
    sentences: int
    stream: tuple[int, int]  #: numbers of split and shard: the key of its random numbers
    #: blocks of a common stream and (b,) which sentences of each, in place of an own stream
    picks: tuple[tuple[int, BoolArray], ...] | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """File name, in a pattern that `datasets` recognises."""
        return f"{self.split}-{self.number:05d}-of-{self.of:05d}.parquet"


def require_room(splits: Mapping[str, int], shard_size: int, folder: Path) -> None:
    """Refuse sentences that do not fit memory and disk, before sampling.

    Args:
        splits: sentences of each split.
        shard_size: sentences per file.
        folder: folder to create.

    Raises:
        NoRoomError: there is less space (code ``too-large``).
    """
    n, files = sum(splits.values()), sum(-(-each // shard_size) for each in splits.values())
    what = f"{approximate(n)} sentences in {approximate(files)} files"
    require_disk(what, max(n * _SENTENCE, files * _FILE), folder, "sample fewer sentences, in files of more sentences")
    require_memory(what, files * _FILE, "write more sentences to a file (shard_size)")
    largest = min(shard_size, max(splits.values()))
    require_memory(
        f"drawing {approximate(largest)} sentences of a file", largest * _DRAWN, "write fewer to a file (shard_size)"
    )


def require_text_room(truth: Truth, plan: Plan, folder: Path) -> None:
    """Refuse sentences that do not fit the disk by the mean length of the truth, before sampling.

    Args:
        truth: the truth.
        plan: number, conditions and columns of the sentences.
        folder: folder to create.

    Raises:
        NoRoomError: there is less space (code ``too-large``).
    """
    n = sum(plan.splits.values())
    if n < _MANY:
        return
    shortest = 1 if plan.lengths is None else plan.lengths.low
    mean = truth.exact.mean_length if plan.lengths is None and plan.max_height is None else shortest
    tokens = max(mean if math.isfinite(mean) else shortest, 1) - 1
    trees = plan.columns.trees != "none"
    size = max(_SENTENCE, tokens * (_TOKEN + (_TOKEN_OF_TREE if trees else 0.0)))
    what = f"{approximate(n)} sentences{' with trees' if trees else ''}"
    require_disk(what, n * size, folder, f"sample fewer sentences{', or omit trees' if trees else ''}")


def plan_shards(splits: Mapping[str, int], shard_size: int) -> list[Shard]:
    """Divide every split into shards of ``shard_size`` sentences, the last one smaller."""
    shards = []
    for i, (split, n) in enumerate(splits.items()):
        of = -(-n // shard_size)
        for k in range(of):
            shards.append(Shard(split, k, of, min(shard_size, n - k * shard_size), (i, k)))
    return shards


def sentences_for(truth: Truth, tokens: int, lengths: LengthRange | None = None, max_height: int | None = None) -> int:
    """Return the number of sentences with ``tokens`` expected tokens, by the exact mean length; at least 1.

    A fixed number of sentences keeps them independent; stopping at a number of tokens would not.

    Raises:
        InputError: ``tokens`` is below 1, or there is no sentence.
    """
    if tokens < 1:
        raise InputError(f"a corpus needs at least one token, got {tokens}")
    mean = mean_length(truth, lengths, max_height)
    if not math.isfinite(mean):
        raise InputError("sentences of this grammar have no finite mean length; set sentences, or a length range")
    return max(1, round(tokens / mean))


def mean_length(truth: Truth, lengths: LengthRange | None, max_height: int | None) -> float:
    """Return the exact mean number of tokens of a sentence, under both conditions.

    Raises:
        InputError: no sentence meets them, or there is a cap on heights and the truth has no trees.
    """
    import numpy as np

    from truesource.generator.abilities import require
    from truesource.grammar.inference.heights import capped_mean_length

    if max_height is not None:
        return capped_mean_length(require(truth, "parses", "a highest tree (max_height)"), max_height, lengths)
    if lengths is None:
        return truth.exact.mean_length
    return float(np.arange(lengths.high + 1) @ truth.exact.length_pmf(lengths.high, lengths))
