"""What derivations say about the words of a sentence: their tags, and how deep they stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.tag_classes import tags_of
from truesource.grammar.inference.posterior import Posterior, posterior
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.grammar.tree import Tree


@dataclass(frozen=True, eq=False)
class Structure:
    """What is known of the T words of some sentences, one sentence after the other."""

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
    labels = tags_of(oracle.pcfg)
    found = []
    with meter("exact posterior of word classes in sentences", len(sentences)) as progress:
        for sentence in map(tuple, sentences):
            if sentence not in known:
                known[sentence] = _expected(_posterior(oracle, sentence), labels)
            found.append(known[sentence])
            progress.advance(1)
    return Structure(labels, np.concatenate([tags for tags, _ in found]), np.concatenate([depth for _, depth in found]))


def drawn_structure(oracle: Oracle, sentences: Sequence[Sequence[str]], seed: int) -> Structure:
    """Tags and depths of one derivation of each sentence, drawn from its exact posterior; words as above."""
    rng = np.random.default_rng(seed)
    label_of = dict(zip(oracle.pcfg.symbols, oracle.pcfg.labels, strict=True))

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
    unknown = next((word for word in sentence if word not in oracle.pcfg.word_ids), None)
    if unknown is None:
        try:
            return posterior(oracle.pcfg, sentence)
        except InputError:  # impossible, unless rare words stand for others
            if not oracle.collapsed:
                raise
    elif not oracle.collapsed:
        raise InputError(f"the grammar has no word {unknown!r}, so the tags of its sentence are unknown")
    return posterior(oracle.language, oracle.read(sentence))


def _expected(found: Posterior, labels: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    order = [found.labels.index(label) for label in labels]
    plain = np.array([not label.startswith("@") for label in found.pcfg.labels])
    n = len(found)
    nodes = np.zeros((n, n + 1))  #: expected constituents over tokens i to j-1
    expected = (found.closed * found.chart.inside) @ plain.astype(np.float64)
    for j in range(1, n + 1):
        nodes[:j, j] = expected[j * (j - 1) // 2 : j * (j + 1) // 2]
    covering = np.cumsum(np.cumsum(nodes, axis=0)[:, ::-1], axis=1)[:, ::-1]
    above = covering[np.arange(n), np.arange(n) + 1] - found.preterminals @ plain
    return found.tags[:, order], above
