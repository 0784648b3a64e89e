"""Groups of scored positions: how much a token counts towards each, and their means and medians with intervals.

Classes of words and depths are those of derivations: expected ones, drawn ones, or those of given trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.divergence.blocks import END, Events, TagClasses, tags_of
from truesource.evaluation.measures.bootstrap import REPLICATES, TAILS, ratio_draws, resampled_times, studentised
from truesource.evaluation.measures.paired import Paired
from truesource.generator.abilities import require
from truesource.grammar.inference.posterior import Posterior, posterior
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import FEWEST, meter
from truesource.grammar.tree import Tree

CELLS = 2**20  #: numbers that an array of a resampling holds, unless a single resample has more
WINDOW = 6.0  #: standard deviations of a resampled median on either side of the median
By = Literal["all", "class", "length", "position", "frequency", "depth"]
BY: tuple[By, ...] = get_args(By)
ALL = "all tokens"
DEEPEST = 15  #: words under so many constituents or more are one group


@dataclass(frozen=True, eq=False)
class Structure:
    """Tags and depths of the T words of some sentences, one sentence after the other."""

    labels: tuple[str, ...]  #: (L,) of symbols that make words
    tags: FloatArray  #: (T, L) share of each label in the symbol that makes the word; rows sum to one
    #: (T,) constituents above that symbol, the root included; nodes that binarisation made (``@``) do not count
    depth: FloatArray


def expected_structure(oracle: Oracle, sentences: Sequence[Sequence[str]]) -> Structure:
    """Posterior tags and expected depths given whole sentences, exact.

    The grammar reads every word. Only a sentence that it cannot make, or that has a word which it does not have, is
    read as the model reads it, with ``<unk>``.

    Raises:
        InputError: the grammar cannot make one of the sentences in either way.
    """
    known: dict[tuple[str, ...], tuple[FloatArray, FloatArray]] = {}
    labels = tags_of(require(oracle.truth, "parses", "a structure of sentences"))
    structures = []
    with meter("exact posterior of word classes in sentences", len(sentences)) as progress:
        for sentence in map(tuple, sentences):
            if sentence not in known:
                known[sentence] = _expected(_posterior(oracle, sentence), labels)
            structures.append(known[sentence])
            progress.advance(1)
    return Structure(
        labels, np.concatenate([tags for tags, _ in structures]), np.concatenate([depth for _, depth in structures])
    )


def drawn_structure(oracle: Oracle, sentences: Sequence[Sequence[str]], seed: int) -> Structure:
    """Tags and depths of one derivation of each sentence, drawn from its exact posterior; words as above."""
    rng = np.random.default_rng(seed)
    label_of = dict(zip(oracle.truth.symbols, oracle.truth.labels, strict=True))

    def draw() -> Iterable[Tree]:
        with meter("sampled derivations of sentences", len(sentences)) as progress:
            for sentence in sentences:
                yield _posterior(oracle, sentence).sample(rng)
                progress.advance(1)

    return tree_structure(draw(), label_of)


def tree_structure(trees: Iterable[Tree], label_of: Mapping[str, str] | None = None) -> Structure:
    """Tags and depths of given derivations; ``label_of`` names the label of each node, None: nodes have labels."""
    tags: list[str] = []
    depth: list[float] = []
    for tree in trees:
        stack: list[tuple[Tree, int]] = [(tree, 0)]
        while stack:
            node, above = stack.pop()
            label = node.label if label_of is None else label_of[node.label]
            if node.is_preterminal:
                tags.append(label)
                depth.append(float(above))
            else:
                below = above + (not label.startswith("@"))
                stack.extend((child, below) for child in reversed(node.children) if isinstance(child, Tree))
    labels = tuple(dict.fromkeys(tags))
    table = np.zeros((len(tags), len(labels)))
    table[np.arange(len(tags)), [labels.index(tag) for tag in tags]] = 1.0
    return Structure(labels, table, np.array(depth))


def _posterior(oracle: Oracle, sentence: Sequence[str]) -> Posterior:
    unknown = next((word for word in sentence if word not in oracle.truth.word_ids), None)
    if unknown is None:
        try:
            return posterior(require(oracle.truth, "parses", "a structure of sentences"), sentence)
        except InputError:  # impossible, unless rare words stand for others
            if not oracle.collapsed:
                raise
    elif not oracle.collapsed:
        raise InputError(f"the grammar has no word {unknown!r}, so the tags of its sentence are unknown")
    return posterior(oracle.grammar, oracle.read(sentence))


def _expected(posterior: Posterior, labels: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    order = [posterior.labels.index(label) for label in labels]
    plain = np.array([not label.startswith("@") for label in posterior.pcfg.labels])
    n = len(posterior)
    nodes = np.zeros((n, n + 1))  #: expected constituents over tokens i to j-1
    expected = (posterior.closed * posterior.chart.inside) @ plain.astype(np.float64)
    for j in range(1, n + 1):
        nodes[:j, j] = expected[j * (j - 1) // 2 : j * (j + 1) // 2]
    covering = np.cumsum(np.cumsum(nodes, axis=0)[:, ::-1], axis=1)[:, ::-1]
    above = covering[np.arange(n), np.arange(n) + 1] - posterior.preterminals @ plain
    return posterior.tags[:, order], above


class Members(NamedTuple):
    """The tokens of a group."""

    token: IntArray  #: (n,) numbers of tokens, ascending, at least one
    share: FloatArray  #: (n,) how much of each is in the group, above 0


class Means(NamedTuple):
    """Means of C columns in G groups; those that stand in too few sentences are NaN but for ``value``."""

    value: FloatArray  #: (C, G)
    low: FloatArray  #: (C, G) lower end of the 95% interval
    high: FloatArray  #: (C, G)
    resampled: FloatArray  #: (R, C, G) of each resample; NaN where the group does not occur in it
    total: FloatArray  #: (G, N) sum of the last column in each sentence
    tokens: FloatArray  #: (G, N) tokens of each sentence in the group


def enough_sentences(share: FloatArray) -> bool:
    """Return True if a group is in enough sentences for an interval: their effective number is `FEWEST` or more.

    It is ``(sum of s)^2 / sum of s^2`` (Kish 1965), the number of sentences where all have the same share s of tokens
    in the group; a sentence that is in it by a hair hardly counts.

    Args:
        share: (N,) tokens of each sentence in the group.
    """
    return bool(share.sum() ** 2 >= (FEWEST - 1e-9) * np.square(share).sum())


def group_means(values: FloatArray, groups: Sequence[Members], sentence: Int32Array, *, seed: int) -> Iterator[Means]:
    """Weighted means, a few groups at once, in order; all groups and columns share their resamples.

    Args:
        values: (T, C), finite.
        groups: of the tokens.
        sentence: (T,) sentence of each token, ascending.
        seed: of the bootstrap.
    """
    row = _rows(sentence)
    n, columns = int(row[-1]) + 1, values.shape[1]
    step = max(1, CELLS // (5 * columns * max(n, REPLICATES)))
    for start in range(0, len(groups), step):
        some = groups[start : start + step]
        sums = np.empty((n, columns + 1, len(some)))  # of each sentence; the last column counts tokens
        for g, (token, share) in enumerate(some):
            own = row[token]
            sums[:, columns, g] = _sums(own, share, n)
            for c in range(columns):
                sums[:, c, g] = _sums(own, share * values[token, c], n)
        few = [not enough_sentences(share) for share in sums[:, columns].T]
        total = sums[:, :columns].reshape(n, -1)
        count = np.tile(sums[:, columns], columns)
        draws = ratio_draws(total, count, seed=seed)
        shape = columns, len(some)
        low, high = studentised(draws).reshape(2, *shape)
        means = draws.resampled.reshape(-1, *shape)
        for numbers in (low, high, means):
            numbers[..., few] = np.nan
        yield Means(draws.value.reshape(shape), low, high, means, sums[:, columns - 1].T, sums[:, columns].T)


def group_medians(values: FloatArray, groups: Sequence[Members]) -> FloatArray:
    """Weighted median of each group, (G,): of equal weights the median, the middle of the two values if two are.

    Args:
        values: (T,) finite.
        groups: of the tokens.
    """
    medians = np.empty(len(groups))
    for g, (token, share) in enumerate(groups):
        order = np.argsort(values[token], kind="stable")
        reached = np.cumsum(share[order])
        medians[g] = _medians(values[token][order], reached[None], reached[-1:] / 2.0)[0]
    return medians


def median_intervals(values: FloatArray, groups: Sequence[Members], sentence: Int32Array, *, seed: int) -> FloatArray:
    """Their 95% intervals, (2, G), NaN where a group stands in too few sentences.

    Values are sorted once. A resample counts how often each sentence is drawn, and only the few values near the median
    of all are looked at one by one; those below them count in sums by sentence. Where the median of a resample lies
    elsewhere, all values are looked at, so that intervals are exact.

    Args:
        values: (T,) finite.
        groups: of the tokens.
        sentence: (T,) sentence of each token, ascending.
        seed: of the bootstrap.
    """
    row = _rows(sentence)
    n = int(row[-1]) + 1
    near = [_near_median(values, own, row, n) for own in groups]
    drawn = np.full((REPLICATES, len(groups)), np.nan)
    done = 0
    for times in resampled_times(n, seed=seed):
        for g, (window, own) in enumerate(zip(near, groups, strict=True)):
            if window is None:
                continue
            medians, known = window.medians(times)
            if not known.all():
                medians[~known] = _sorted(values, own, row, n).medians(times[~known])[0]
            drawn[done : done + len(times), g] = medians
        done += len(times)
    return np.stack(_ends(drawn))


@dataclass(frozen=True, eq=False)
class _Window:
    """Some neighbouring values of a group, rising, with the group's weight in every sentence."""

    values: FloatArray  #: (M,)
    share: FloatArray  #: (M,)
    row: IntArray  #: (M,) sentence of each
    below: FloatArray  #: (N,) weight of smaller values in each sentence
    total: FloatArray  #: (N,) weight of all values in each sentence

    def medians(self, times: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The median where sentence i is drawn ``times[r, i]`` times, and whether it lies in the window, (R,) each."""
        medians, known = np.full(len(times), np.nan), np.ones(len(times), dtype=bool)
        step = max(1, CELLS // len(self.values))
        for start in range(0, len(times), step):
            part = times[start : start + step]
            half, before = part @ self.total / 2.0, part @ self.below
            reached = part[:, self.row]
            reached *= self.share
            np.cumsum(reached, axis=1, out=reached)
            reached += before[:, None]
            slack = _slack(half)
            known[start : start + step] = ((before < half - slack) & (reached[:, -1] > half + slack)) | (half == 0.0)
            medians[start : start + step] = _medians(self.values, reached, half)
        return medians, known


def _sorted(values: FloatArray, own: Members, row: IntArray, n: int) -> _Window:
    """All values of a group."""
    order = np.argsort(values[own.token], kind="stable")
    at, share = row[own.token][order], own.share[order]
    return _Window(values[own.token][order], share, at, np.zeros(n), _sums(at, share, n))


def _near_median(values: FloatArray, own: Members, row: IntArray, n: int) -> _Window | None:
    """The values among which nearly every resampled median is; None: too few sentences."""
    whole = _sorted(values, own, row, n)
    if not enough_sentences(whole.total):
        return None
    reached = np.cumsum(whole.share)
    half = reached[-1] / 2.0
    middle = int(np.searchsorted(reached, half)) + 1
    lower = _sums(whole.row[:middle], whole.share[:middle], n)
    spread = WINDOW * float(np.sqrt(np.square(lower - whole.total / 2.0).sum()))
    start, stop = (int(i) for i in np.searchsorted(reached, (half - spread, half + spread)))
    kept = slice(max(0, start - 1), stop + 2)
    below = _sums(whole.row[: kept.start], whole.share[: kept.start], n)
    return _Window(whole.values[kept].copy(), whole.share[kept].copy(), whole.row[kept].copy(), below, whole.total)


def _medians(values: FloatArray, reached: FloatArray, half: FloatArray) -> FloatArray:
    """Values where cumulated weights (R, M) of rising values (M,) reach half (R,), and pass it; NaN for none."""
    slack = _slack(half)
    low = np.argmax(reached >= (half - slack)[:, None], axis=1)
    high = np.argmax(reached > (half + slack)[:, None], axis=1)
    return np.where(half > 0.0, (values[low] + values[high]) / 2.0, np.nan)


def _sums(row: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Sum of values in each of n sentences, (n,)."""
    return np.bincount(row, values, minlength=n).astype(np.float64, copy=False)


def _slack(half: FloatArray) -> FloatArray:
    return np.asarray(1e-12 * half)


def _rows(sentence: Int32Array) -> IntArray:
    """Sentences numbered from 0 without gaps, (T,)."""
    return np.asarray(np.cumsum(np.diff(sentence, prepend=-1) != 0) - 1, dtype=np.int64)


def _ends(drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Quantiles over resamples (R, ...) that are not NaN; NaN where all are."""
    low, high = np.full((2, *drawn.shape[1:]), np.nan)
    missing = np.isnan(drawn)
    every, some = ~missing.any(axis=0), missing.any(axis=0) & ~missing.all(axis=0)
    low[every], high[every] = np.quantile(drawn[:, every], TAILS, axis=0)
    if some.any():
        low[some], high[some] = np.nanquantile(drawn[:, some], TAILS, axis=0)
    return low, high


@dataclass(frozen=True, eq=False)
class Grouping:
    """Shares of tokens in G groups; the shares of a token sum to one."""

    by: By
    names: tuple[str, ...]  #: (G,)
    members: tuple[Members, ...]  #: (G,)


@dataclass(frozen=True, eq=False)
class Places:
    """The T scored positions of some sentences."""

    paired: Paired
    sentences: Sequence[Sequence[str]]  #: all that were given
    kept: IntArray  #: numbers of those that have a position

    @property
    def is_end(self) -> BoolArray:
        """Mask of the positions that are the end of their sentence, (T,)."""
        return np.asarray(self.paired.position == self.length)

    @property
    def length(self) -> IntArray:
        """Words of the sentence of each position, (T,)."""
        return np.array([len(s) for s in self.sentences], dtype=np.int64)[self.paired.sentence]

    @property
    def word(self) -> IntArray:
        """Number of each position's word among all words of the kept sentences, (T,); at an end that of the last."""
        sizes = np.zeros(len(self.sentences), dtype=np.int64)
        sizes[self.kept] = [len(self.sentences[i]) for i in self.kept.tolist()]
        first = np.cumsum(sizes) - sizes
        return np.asarray(first[self.paired.sentence] + np.minimum(self.paired.position, self.length - 1))


def by_all(places: Places) -> Grouping:
    """Group all tokens together."""
    return _parted("all", np.zeros(places.paired.tokens, dtype=np.int64), (ALL,))


def by_class(places: Places, structure: Structure, classes: TagClasses) -> Grouping:
    """Group by class of tag; the end of a sentence is one of its own.

    Raises:
        InputError: ``classes`` miss a tag.
    """
    used = np.flatnonzero(structure.tags.max(axis=0))
    names, of_tag = classes.table([structure.labels[i] for i in used.tolist()])
    shares = structure.tags[:, used] @ of_tag
    is_word, word = np.flatnonzero(~places.is_end), places.word
    members = {}
    for name, share in zip(names, shares.T, strict=True):
        own = share[word[is_word]]
        if own.any():
            members[name] = Members(is_word[own > 0.0], own[own > 0.0])
    if len(end := np.flatnonzero(places.is_end)):
        members[END] = Members(end, np.ones(len(end)))
    return Grouping("class", tuple(members), tuple(members.values()))


def by_depth(places: Places, structure: Structure) -> Grouping:
    """Group by the (expected) number of constituents above the word, rounded."""
    depth = np.minimum(np.floor(structure.depth + 0.5), DEEPEST).astype(np.int64)[places.word]
    names = (*map(str, range(DEEPEST)), f"{DEEPEST}+", END)
    return _parted("depth", np.where(places.is_end, DEEPEST + 1, depth), names)


def by_length(places: Places) -> Grouping:
    """Group by number of words of the sentence."""
    return _parted("length", places.length)


def by_position(places: Places) -> Grouping:
    """Group by place in the sentence, from 1; the end of a sentence of n words stands at n + 1."""
    return _parted("position", places.paired.position.astype(np.int64) + 1)


def by_frequency(places: Places, events: Events, bands: IntArray, names: Sequence[str]) -> Grouping:
    """Group by the exact probability of the word among all tokens, as the model tells words apart.

    ``bands`` and ``names`` are those of `truesource.evaluation.divergence.blocks.frequency_bands`.
    """
    column = {word: i for i, word in enumerate(events.words)}
    unknown = len(events.words)
    words = [word for i in places.kept.tolist() for word in places.sentences[i]]
    group = bands[[column.get(word, unknown) for word in words]][places.word]
    if events.causal:
        group = np.where(places.is_end, bands[unknown + 1], group)
    return _parted("frequency", group, names)


def _parted(by: By, value: IntArray, names: Sequence[str] | None = None) -> Grouping:
    """A group for each value, in rising order; ``names`` has that of each value from 0 on, None: the number itself."""
    order = np.argsort(value, kind="stable")
    values, start = np.unique(value[order], return_index=True)
    members = tuple(Members(own, np.ones(len(own))) for own in np.split(order, start[1:]))
    return Grouping(by, tuple(str(v) if names is None else names[v] for v in values.tolist()), members)
