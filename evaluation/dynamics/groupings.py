"""Groups of scored positions: shares of tokens, and means and medians of groups with intervals.

Classes of words and depths come from derivations: expected, sampled or input trees.
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

CELLS = 2**20  #: maximum size of an array of resamples, unless a single resample is larger
WINDOW = 6.0  #: standard deviations of a resampled median on either side of the median
By = Literal["all", "class", "length", "position", "frequency", "depth"]
BY: tuple[By, ...] = get_args(By)
ALL = "all tokens"
DEEPEST = 15  #: words under this many constituents or more are one group


@dataclass(frozen=True, eq=False)
class Structure:
    """The tags and depths of the T words of concatenated sentences."""

    labels: tuple[str, ...]  #: (L,) labels of preterminals
    tags: FloatArray  #: (T, L) share of each label in the preterminal of the word; rows sum to one
    #: (T,) constituents above the preterminal, including the root; nodes from binarisation (``@``) do not count
    depth: FloatArray


def expected_structure(oracle: Oracle, sentences: Sequence[Sequence[str]]) -> Structure:
    """Compute exact posterior tags and expected depths given whole sentences.

    The grammar reads every word. Only sentences of probability 0, or with words that the grammar lacks, are
    read as the model reads them, with ``<unk>``.

    Raises:
        InputError: the grammar gives a sentence probability 0 in both readings.
    """
    posteriors: dict[tuple[str, ...], tuple[FloatArray, FloatArray]] = {}
    labels = tags_of(require(oracle.truth, "parses", "a structure of sentences"))
    structures = []
    with meter("exact posterior of word classes in sentences", len(sentences)) as progress:
        for sentence in map(tuple, sentences):
            if sentence not in posteriors:
                posteriors[sentence] = _expected(_posterior(oracle, sentence), labels)
            structures.append(posteriors[sentence])
            progress.advance(1)
    return Structure(
        labels, np.concatenate([tags for tags, _ in structures]), np.concatenate([depth for _, depth in structures])
    )


def drawn_structure(oracle: Oracle, sentences: Sequence[Sequence[str]], seed: int) -> Structure:
    """Sample one derivation of each sentence from its exact posterior, and return its tags and depths."""
    rng = np.random.default_rng(seed)
    label_of = dict(zip(oracle.truth.symbols, oracle.truth.labels, strict=True))

    def draw() -> Iterable[Tree]:
        with meter("sampled derivations of sentences", len(sentences)) as progress:
            for sentence in sentences:
                yield _posterior(oracle, sentence).sample(rng)
                progress.advance(1)

    return tree_structure(draw(), label_of)


def tree_structure(trees: Iterable[Tree], label_of: Mapping[str, str] | None = None) -> Structure:
    """Return tags and depths of derivations; ``label_of`` names the label of each node, None: nodes have labels."""
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
        except InputError:  # impossible, unless rare words are replaced
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
    """The member tokens of a group."""

    token: IntArray  #: (n,) numbers of tokens, ascending, at least one
    share: FloatArray  #: (n,) share of each token in the group, above 0


class Means(NamedTuple):
    """The means of C columns in G groups; groups in too few sentences only have ``value``, the rest is NaN."""

    value: FloatArray  #: (C, G)
    low: FloatArray  #: (C, G) lower end of the 95% interval
    high: FloatArray  #: (C, G)
    resampled: FloatArray  #: (R, C, G) means of each resample; NaN if the group does not occur in it
    total: FloatArray  #: (G, N) sum of the last column in each sentence
    tokens: FloatArray  #: (G, N) tokens of each sentence in the group


def enough_sentences(share: FloatArray) -> bool:
    """Return True if a group is in enough sentences for an interval: their effective number is `FEWEST` or more.

    It is ``(sum of s)^2 / sum of s^2`` (Kish 1965), the number of sentences if all have the same share s of tokens
    in the group; a sentence with a tiny share hardly counts.

    Args:
        share: (N,) tokens of each sentence in the group.
    """
    return bool(share.sum() ** 2 >= (FEWEST - 1e-9) * np.square(share).sum())


def group_means(values: FloatArray, groups: Sequence[Members], sentence: Int32Array, *, seed: int) -> Iterator[Means]:
    """Yield weighted means of several groups at a time, in order, with common resamples for all.

    Args:
        values: finite values, (T, C).
        groups: groups of the tokens.
        sentence: (T,) sentence of each token, ascending.
        seed: seed of the bootstrap.
    """
    row = _rows(sentence)
    n, columns = int(row[-1]) + 1, values.shape[1]
    step = max(1, CELLS // (5 * columns * max(n, REPLICATES)))
    for start in range(0, len(groups), step):
        some = groups[start : start + step]
        sums = np.empty((n, columns + 1, len(some)))  # sums by sentence; the last column counts tokens
        for g, (token, share) in enumerate(some):
            row_of_token = row[token]
            sums[:, columns, g] = _sums(row_of_token, share, n)
            for c in range(columns):
                sums[:, c, g] = _sums(row_of_token, share * values[token, c], n)
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
    """Compute the weighted median of each group, (G,), or the middle of two medians.

    Args:
        values: finite values, (T,).
        groups: groups of the tokens.
    """
    medians = np.empty(len(groups))
    for g, (token, share) in enumerate(groups):
        order = np.argsort(values[token], kind="stable")
        reached = np.cumsum(share[order])
        medians[g] = _medians(values[token][order], reached[None], reached[-1:] / 2.0)[0]
    return medians


def median_intervals(values: FloatArray, groups: Sequence[Members], sentence: Int32Array, *, seed: int) -> FloatArray:
    """Compute 95% intervals of weighted medians, (2, G); NaN for groups in too few sentences.

    Values are sorted once. A resample counts how often each sentence is sampled, and only the few values near the
    median of all are compared one by one; smaller values count in sums by sentence. If the median of a resample is
    elsewhere, all values are compared, so intervals are exact.

    Args:
        values: finite values, (T,).
        groups: groups of the tokens.
        sentence: (T,) sentence of each token, ascending.
        seed: seed of the bootstrap.
    """
    row = _rows(sentence)
    n = int(row[-1]) + 1
    near = [_near_median(values, group, row, n) for group in groups]
    resampled = np.full((REPLICATES, len(groups)), np.nan)
    done = 0
    for times in resampled_times(n, seed=seed):
        for g, (window, group) in enumerate(zip(near, groups, strict=True)):
            if window is None:
                continue
            medians, inside = window.medians(times)
            if not inside.all():
                medians[~inside] = _sorted(values, group, row, n).medians(times[~inside])[0]
            resampled[done : done + len(times), g] = medians
        done += len(times)
    return np.stack(_ends(resampled))


@dataclass(frozen=True, eq=False)
class _Window:
    """A window of neighbouring values of a group, ascending, with the group's weight in every sentence."""

    values: FloatArray  #: (M,)
    share: FloatArray  #: (M,)
    row: IntArray  #: (M,) sentence of each
    below: FloatArray  #: (N,) weight of smaller values in each sentence
    total: FloatArray  #: (N,) weight of all values in each sentence

    def medians(self, times: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Compute medians if sentence i is sampled ``times[r, i]`` times; also True if inside the window, (R,) each."""
        medians, inside = np.full(len(times), np.nan), np.ones(len(times), dtype=bool)
        step = max(1, CELLS // len(self.values))
        for start in range(0, len(times), step):
            part = times[start : start + step]
            half, before = part @ self.total / 2.0, part @ self.below
            reached = part[:, self.row]
            reached *= self.share
            np.cumsum(reached, axis=1, out=reached)
            reached += before[:, None]
            slack = _slack(half)
            inside[start : start + step] = ((before < half - slack) & (reached[:, -1] > half + slack)) | (half == 0.0)
            medians[start : start + step] = _medians(self.values, reached, half)
        return medians, inside


def _sorted(values: FloatArray, group: Members, row: IntArray, n: int) -> _Window:
    """Return all values of a group."""
    order = np.argsort(values[group.token], kind="stable")
    at, share = row[group.token][order], group.share[order]
    return _Window(values[group.token][order], share, at, np.zeros(n), _sums(at, share, n))


def _near_median(values: FloatArray, group: Members, row: IntArray, n: int) -> _Window | None:
    """Return the values that include nearly every resampled median; None for too few sentences."""
    whole = _sorted(values, group, row, n)
    if not enough_sentences(whole.total):
        return None
    reached = np.cumsum(whole.share)
    half = reached[-1] / 2.0
    middle = int(np.searchsorted(reached, half)) + 1
    lower = _sums(whole.row[:middle], whole.share[:middle], n)
    spread = WINDOW * float(np.sqrt(np.square(lower - whole.total / 2.0).sum()))
    start, stop = (int(i) for i in np.searchsorted(reached, (half - spread, half + spread)))
    window = slice(max(0, start - 1), stop + 2)
    below = _sums(whole.row[: window.start], whole.share[: window.start], n)
    share, rows = whole.share[window].copy(), whole.row[window].copy()
    return _Window(whole.values[window].copy(), share, rows, below, whole.total)


def _medians(values: FloatArray, reached: FloatArray, half: FloatArray) -> FloatArray:
    """Find values (M,) at which cumulative weights (R, M) reach and pass half (R,); NaN if none does."""
    slack = _slack(half)
    low = np.argmax(reached >= (half - slack)[:, None], axis=1)
    high = np.argmax(reached > (half + slack)[:, None], axis=1)
    return np.where(half > 0.0, (values[low] + values[high]) / 2.0, np.nan)


def _sums(row: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Sum values in each of n sentences, (n,)."""
    return np.bincount(row, values, minlength=n).astype(np.float64, copy=False)


def _slack(half: FloatArray) -> FloatArray:
    return np.asarray(1e-12 * half)


def _rows(sentence: Int32Array) -> IntArray:
    """Number sentences from 0 without gaps, (T,)."""
    return np.asarray(np.cumsum(np.diff(sentence, prepend=-1) != 0) - 1, dtype=np.int64)


def _ends(resampled: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute quantiles over resamples (R, ...) that are not NaN; NaN if all are NaN."""
    low, high = np.full((2, *resampled.shape[1:]), np.nan)
    missing = np.isnan(resampled)
    every, some = ~missing.any(axis=0), missing.any(axis=0) & ~missing.all(axis=0)
    low[every], high[every] = np.quantile(resampled[:, every], TAILS, axis=0)
    if some.any():
        low[some], high[some] = np.nanquantile(resampled[:, some], TAILS, axis=0)
    return low, high


@dataclass(frozen=True, eq=False)
class Grouping:
    """A grouping of tokens into G groups; the shares of a token sum to one."""

    by: By
    names: tuple[str, ...]  #: (G,)
    members: tuple[Members, ...]  #: (G,)


@dataclass(frozen=True, eq=False)
class Places:
    """The T scored positions of sentences."""

    paired: Paired
    sentences: Sequence[Sequence[str]]  #: all input sentences
    numbers: IntArray  #: numbers of the sentences with a scored position

    @property
    def is_end(self) -> BoolArray:
        """Mask of positions at the end of their sentence, (T,)."""
        return np.asarray(self.paired.position == self.length)

    @property
    def length(self) -> IntArray:
        """Number of words in the sentence of each position, (T,)."""
        return np.array([len(s) for s in self.sentences], dtype=np.int64)[self.paired.sentence]

    @property
    def word(self) -> IntArray:
        """Index of each position's word among the words of kept sentences, (T,); at an end, of the last word."""
        sizes = np.zeros(len(self.sentences), dtype=np.int64)
        sizes[self.numbers] = [len(self.sentences[i]) for i in self.numbers.tolist()]
        first = np.cumsum(sizes) - sizes
        return np.asarray(first[self.paired.sentence] + np.minimum(self.paired.position, self.length - 1))


def by_all(places: Places) -> Grouping:
    """Group all tokens together."""
    return _parted("all", np.zeros(places.paired.tokens, dtype=np.int64), (ALL,))


def by_class(places: Places, structure: Structure, classes: TagClasses) -> Grouping:
    """Group by class of tag; sentence ends are a separate group.

    Raises:
        InputError: ``classes`` miss a tag.
    """
    used = np.flatnonzero(structure.tags.max(axis=0))
    names, of_tag = classes.table([structure.labels[i] for i in used.tolist()])
    shares = structure.tags[:, used] @ of_tag
    is_word, word = np.flatnonzero(~places.is_end), places.word
    members = {}
    for name, share in zip(names, shares.T, strict=True):
        word_share = share[word[is_word]]
        if word_share.any():
            members[name] = Members(is_word[word_share > 0.0], word_share[word_share > 0.0])
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
    """Group by place in the sentence, from 1; the end of a sentence of n words is at n + 1."""
    return _parted("position", places.paired.position.astype(np.int64) + 1)


def by_frequency(places: Places, events: Events, bands: IntArray, names: Sequence[str]) -> Grouping:
    """Group by the exact probability of the word among all tokens, in the vocabulary of the model.

    ``bands`` and ``names`` come from `truesource.evaluation.divergence.blocks.frequency_bands`.
    """
    column = {word: i for i, word in enumerate(events.words)}
    unknown = len(events.words)
    words = [word for i in places.numbers.tolist() for word in places.sentences[i]]
    group = bands[[column.get(word, unknown) for word in words]][places.word]
    if events.causal:
        group = np.where(places.is_end, bands[unknown + 1], group)
    return _parted("frequency", group, names)


def _parted(by: By, value: IntArray, names: Sequence[str] | None = None) -> Grouping:
    """Build a group for each value, ascending; ``names`` has a name for each value from 0; None: the number."""
    order = np.argsort(value, kind="stable")
    values, start = np.unique(value[order], return_index=True)
    members = tuple(Members(tokens, np.ones(len(tokens))) for tokens in np.split(order, start[1:]))
    return Grouping(by, tuple(str(v) if names is None else names[v] for v in values.tolist()), members)
