"""Derivations as rows of small numbers, and back: as trees, as Penn brackets.

The ``tree`` column of a corpus has the nodes of each derivation in preorder, each as ``3 * symbol + children``: the
number of its symbol, and 2, 1 or 0 children that are symbols (0: a word stands under it). The words are those of the
sentence, in order. This takes 2 to 3 bytes a token on disk, brackets take 6 to 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.generator.arrow_strings import strings
from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.grammar.tree import Tree


@dataclass(frozen=True)
class Reading:
    """How nodes are called, and which give their children to the node above."""

    names: tuple[str, ...]  #: (S,)
    dropped: BoolArray  #: (S,); the root and symbols over words stay all the same

    @classmethod
    def of(cls, symbols: Sequence[str], labels: Sequence[str], *, coarse: bool, binarised: bool) -> Reading:
        """Treebank labels if ``coarse``, else symbols; ``@`` nodes stay if ``binarised``."""
        dropped = [label.startswith("@") and not binarised for label in labels]
        return cls(tuple(labels if coarse else symbols), np.array(dropped, dtype=np.bool_))


def read_tree(codes: Sequence[int], tokens: Sequence[str], reading: Reading) -> Tree:
    """The tree of one sentence."""
    names, dropped = reading.names, reading.dropped
    words = iter(reversed(tokens))
    done: list[tuple[Tree | str, ...]] = []  # from the right, what is below a node is ready before it
    for i in range(len(codes) - 1, -1, -1):
        symbol, children = divmod(codes[i], 3)
        below: tuple[Tree | str, ...]
        if children == 0:
            below = (next(words),)
        else:
            below = done.pop() if children == 1 else done.pop() + done.pop()
            if i > 0 and dropped[symbol]:
                done.append(below)
                continue
        done.append((Tree(names[symbol], below),))
    ((root,),) = done
    assert isinstance(root, Tree)
    return root


def read_brackets(table: Any, names: tuple[NDArray[np.uint8], IntArray], dropped: BoolArray) -> Any:
    """Penn brackets of every row of a table with columns text and tree, as an array of strings.

    Args:
        table: of one shard.
        names: of symbols, escaped (`grammar.bracketing`), as `generator.arrow_strings.packed` gives them.
        dropped: (S,), as in `Reading`.
    """
    import pyarrow as pa

    from truesource.generator._kernels.text import spell_brackets

    text, nodes = (table.column(name).combine_chunks() for name in ("text", "tree"))
    if table.num_rows == 0:
        return pa.array([], type=pa.string())
    _, offsets, data = text.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[text.offset :][: len(text) + 1]
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = nodes.offsets.to_numpy()
    return strings(*spell_brackets(nodes.values.to_numpy(), ends, letters, bounds, *names, dropped))
