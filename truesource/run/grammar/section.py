"""The section on the grammar: its rules, figures of it and of its training, and a typical tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truesource.evaluation.show.figures import BARS, MODEL, PHASES, QUIET, SECOND, TRUTH, figure, superscript, to_svg
from truesource.evaluation.show.records import Record, nested
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell, score_cell
from truesource.evaluation.show.words import count
from truesource.generator.abilities import require
from truesource.grammar.inference.nonnegative_matrices import CRITICAL
from truesource.grammar.pcfg import PCFG
from truesource.grammar.process import Process
from truesource.grammar.tree import Tree
from truesource.report.finished_run import FinishedRun, Part, shown_split
from truesource.run.grammar.induce import useless_cycles
from truesource.run.grammar.quality import ALL, INDUCED, PARSED, PLAIN, QUALITY, QualityRecord

MOST_LABELS = 60  #: maximum number of bars
BIN = 0.25  #: width of a step of the spectrum, powers of ten
KINDS = (
    ("binary", "two children", MODEL, "-"),
    ("unary", "one child", TRUTH, "--"),
    ("lexical", "a word", SECOND, "-."),
)
_BAR_NAMES = {
    "phrase": "labels of phrases",
    "word": "labels of words",
    "intermediate": "intermediate nodes (@)",
}
LEVEL = 44.0  #: points between levels
GAP = 16.0  #: points between neighbouring words
CHARACTER = 7.6  #: width of a character of a word, points
LABEL = 8.2  #: width of a character of a label, points
#: fonts of words, of labels above one word, of other labels
FONTS = {
    "word": {"fontsize": 14, "fontstyle": "italic"},
    "tag": {"fontsize": 12.5, "color": MODEL},
    "label": {"fontsize": 13, "fontweight": "bold"},
}
TITLES_OF_KINDS = {"binary": "two children", "unary": "one child", "lexical": "a word"}
PARSING = (
    ("labelled_f1", "labelled F1"),
    ("labelled_precision", "precision"),
    ("labelled_recall", "recall"),
    ("exact_match", "exact match"),
    ("tagging_accuracy", "tags"),
)  #: measures of parsers, and their headings
COUNTED = (("sentences", "number of trees"), ("unparsed", "without a parse"))


def possible_held_out(trace: Sequence[Record], trees: int | None) -> list[int] | None:
    """Return the number of possible held-out trees at each step; None if a step does not record it."""
    missing = [row.get("held_out_impossible") for row in trace if row["log_likelihood"] is not None]
    n_possible = [trees - n for n in missing if trees is not None and n is not None]
    return n_possible if n_possible and len(n_possible) == len(missing) else None


def trace_figure(trace: Sequence[Record], held_out_trees: int | None = None) -> str | None:
    """Draw log-likelihood per token and number of states against EM steps, with phases; None without a trace.

    Args:
        trace: a record for each step.
        held_out_trees: number of held-out trees; if given, the possible number at each step is also drawn.
    """
    rows = [row for row in trace if row["log_likelihood"] is not None]
    if not rows:
        return None
    at = range(len(rows))
    possible = possible_held_out(trace, held_out_trees)
    with figure(9.4, 3.9 if possible is None else 4.7, "trace") as canvas:
        top, below, *more = canvas.subplots(
            2 if possible is None else 3, 1, sharex=True, height_ratios=[3, 1] if possible is None else [3, 1, 1]
        )
        phases = _shade(top, below, rows)
        top.plot(
            at, [row["log_likelihood"] for row in rows], color=MODEL, marker="o", markersize=2.5, label="training trees"
        )
        held = [(i, row["held_out"]) for i, row in enumerate(rows) if row.get("held_out") is not None]
        if held:
            top.plot(*zip(*held, strict=True), color=TRUTH, linestyle="--", linewidth=1.5, label="held-out trees")
        top.set_ylabel("log-likelihood\n(nats per token)")
        canvas.legend(handles=[*top.get_lines(), *phases], loc="outside upper right", ncols=5)
        top.grid(axis="y")
        if all(row.get("substates") is not None for row in rows):
            below.step(at, [row["substates"] for row in rows], color=QUIET, where="post")
        below.set_ylabel("states")
        below.set_ylim(bottom=0)
        for axes in more:
            axes.step(at, possible, color=TRUTH, where="post")
            axes.set_ylim(0, 1.05 * (held_out_trees or 1))
            axes.set_title("held-out trees that the grammar can make", loc="left", fontsize=9)
            axes.set_ylabel("trees")
            axes.grid(axis="y")
        (more or [below])[-1].set_xlabel("steps of expectation-maximisation")
        below.set_xlim(-0.5, len(rows) - 0.5)
        below.grid(axis="y")
        return to_svg(canvas, "trace", "Log-likelihood of the treebank during induction")


def _shade(top: Any, below: Any, rows: Sequence[Record]) -> list[Any]:
    """Shade the phases and number the cycles; return a patch for each kind of phase, for the legend."""
    from matplotlib.patches import Patch

    begin, ends = 0, dict[int, tuple[int, int]]()
    for (cycle, phase), group in groupby(rows, key=lambda row: (row["cycle"], row["phase"])):
        end = begin + len(list(group))
        if phase in PHASES:
            for axes in (top, below):
                axes.axvspan(begin - 0.5, end - 0.5, color=PHASES[phase], linewidth=0)
            ends[cycle] = (ends.get(cycle, (begin, end))[0], end)
        begin = end
    for cycle, (first, last) in ends.items():
        if last - first >= len(rows) / 25:
            name = f"cycle {cycle}" if last - first >= len(rows) / 12 else f"{cycle}"
            place = {"transform": top.get_xaxis_transform(), "ha": "center", "va": "bottom"}
            top.text((first + last - 1) / 2, 1.015, name, fontsize=8, color="#4B5563", **place)
    seen = {row["phase"] for row in rows}
    return [
        Patch(facecolor=colour, edgecolor=QUIET, linewidth=0.5, label=phase)
        for phase, colour in PHASES.items()
        if phase in seen
    ]


def substates_figure(pcfg: PCFG) -> str | None:
    """Draw the number of substates of each label, descending (Petrov et al. 2006, table 2); None without splits."""
    of_label = Counter(pcfg.labels)
    if max(of_label.values()) == 1:
        return None
    from matplotlib.ticker import MaxNLocator

    above_words = {pcfg.labels[i] for i in np.unique(pcfg.lexical[:, 0])}
    above_phrases = {pcfg.labels[i] for rules in (pcfg.binary, pcfg.unary) for i in np.unique(rules[:, 0])}

    def kind(label: str) -> str:
        if label.startswith("@"):
            return "intermediate"
        return "word" if label in above_words - above_phrases else "phrase"

    most_split = of_label.most_common(MOST_LABELS)
    colours = {"phrase": MODEL, "word": SECOND, "intermediate": QUIET}
    with figure(9.4, 3.2, "substates") as canvas:
        axes = canvas.subplots()
        for name, colour in colours.items():
            at = [i for i, (label, _) in enumerate(most_split) if kind(label) == name]
            if at:
                axes.bar(at, [most_split[i][1] for i in at], color=colour, width=0.75, label=_BAR_NAMES[name])
        size = 9 if len(most_split) <= 30 else 6.5
        names = [label for label, _ in most_split]
        axes.set_xticks(range(len(most_split)), names, rotation=90, fontsize=size)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.7, max(len(most_split), 24) - 0.3)  # few bars stay slim
        axes.set_ylabel("states")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")
        axes.legend(loc="upper right")
        return to_svg(canvas, "substates", "Number of states of each label")


def spectrum_figure(pcfg: PCFG) -> str:
    """Draw the number of rules of each kind by power of ten of their probability."""
    kinds = [(name, getattr(pcfg, f"{kind}_logp") / np.log(10.0), colour, line) for kind, name, colour, line in KINDS]
    least = min(float(values.min()) for _, values, _, _ in kinds if len(values))
    edges = np.arange(min(np.floor(least / BIN) * BIN, -1.0), BIN / 2, BIN)
    with figure(9.4, 2.9, "spectrum") as canvas:
        axes = canvas.subplots()
        for name, values, colour, line in kinds:
            if len(values):
                counts, _ = np.histogram(np.clip(values, edges[0], 0.0), edges)
                axes.stairs(counts, edges, color=colour, linestyle=line, linewidth=1.6, label=f"rules to {name}")
        axes.set_xlabel("probability of the rule")
        axes.set_ylabel("rules")
        axes.set_xlim(edges[0], 0.0)
        axes.set_ylim(bottom=0)
        ticks = list(range(int(np.ceil(edges[0])), 1))[:: 1 if edges[0] > -12 else 2]
        axes.set_xticks(ticks, [f"10{superscript(tick)}" if tick else "1" for tick in ticks])
        axes.grid()
        canvas.legend(loc="outside upper right", ncols=3)
        return to_svg(canvas, "spectrum", "Number of rules by probability")


def typical_tree(trees: Iterable[Tree], low: int = 8, high: int = 12, most: int = 300) -> Tree | None:
    """Return a tree of medium length and, among these, of medium height; None without trees."""
    seen = list(islice(trees, most))
    if not seen:
        return None
    middle = (low + high) / 2
    sized = [(len(tree.leaves()), tree) for tree in seen]
    fitting = [tree for n, tree in sized if low <= n <= high]
    if not fitting:
        return min(sized, key=lambda pair: abs(pair[0] - middle))[1]
    return sorted(fitting, key=lambda tree: tree.height())[len(fitting) // 2]


class PlacedNode(NamedTuple):
    """A placed label or word of a tree; points from the top left."""

    text: str
    kind: str  #: key of `FONTS`
    x: float
    y: float
    parent: int  #: number of the parent; -1 for the root


def placed_nodes(tree: Tree) -> list[PlacedNode]:
    """Place labels and words, parents before children; iterative, so only memory bounds the depth.

    A node is drawn at its depth and words are on the bottom line, so no lines cross.
    """
    nodes, children = _flatten(tree)
    n = len(nodes)
    first, last, depth, parent = list(range(n)), list(range(n)), [0] * n, [-1] * n
    for i in range(n):
        for c in children[i]:
            depth[c], parent[c] = depth[i] + 1, i
    for i in reversed(range(n)):  # parents precede their children
        if children[i]:
            first[i], last[i] = first[children[i][0]], last[children[i][-1]]
    bottom = max(depth)
    width = {i: CHARACTER * len(_name(nodes[i])) for i in range(n) if not children[i]}
    for i in range(n):
        if children[i] and first[i] == last[i]:
            width[first[i]] = max(width[first[i]], LABEL * len(_name(nodes[i])))
    x, right = [0.0] * n, 0.0
    for i, wide in sorted(width.items()):
        x[i] = right + (wide + GAP) / 2
        right += wide + GAP
    for i in reversed(range(n)):
        if children[i]:
            x[i] = (x[children[i][0]] + x[children[i][-1]]) / 2
    placed = []
    for i in range(n):
        word, above_word = not children[i], any(not children[c] for c in children[i])
        kind = "word" if word else "tag" if above_word and len(children[i]) == 1 else "label"
        y = LEVEL * (bottom if word else depth[i]) + 18
        placed.append(PlacedNode(_name(nodes[i]), kind, x[i], y, parent[i]))
    return placed


def draw_tree(tree: Tree) -> str:
    """Draw the tree as an ``<svg>`` element, whose title is its bracketing."""
    from matplotlib.collections import LineCollection

    nodes = placed_nodes(tree)
    near, far = [], []
    for node in nodes:
        if node.parent < 0:
            continue
        above = nodes[node.parent]
        bend = above.y + LEVEL - 14  # the line to a word below a wide node first goes sideways, then down
        line = [(above.x, above.y + 6), (node.x, bend)]
        if node.kind == "word" and node.y - above.y > LEVEL + 1:
            far.append([*line, (node.x, node.y - 14)])
        else:
            near.append(line)
    width = max(node.x + (CHARACTER * len(node.text) + GAP) / 2 for node in nodes)
    height = max(node.y for node in nodes) + 12
    with figure(width / 72.0, height / 72.0, "tree") as canvas:
        canvas.set_layout_engine("none")
        axes = canvas.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(0.0, width)
        axes.set_ylim(height, 0.0)
        for lines, style in ((near, "-"), (far, (0, (2, 3)))):
            axes.add_collection(LineCollection(lines, colors=BARS, linewidths=1.3, linestyles=[style]))
        scale = min(canvas.get_size_inches() * 72.0 / (width, height))  # for a size other than the size on the page
        for node in nodes:
            font = {**FONTS[node.kind], "fontsize": scale * FONTS[node.kind]["fontsize"]}
            axes.text(node.x, node.y, node.text, ha="center", va="baseline", **font)
        return to_svg(canvas, "tree", str(tree)).replace("<svg ", f'<svg style="width: {width:.0f}px" ', 1)


def _flatten(tree: Tree) -> tuple[list[Tree | str], list[list[int]]]:
    """Return nodes and words in pre-order, and the places of the children of each (empty for a word)."""
    nodes: list[Tree | str] = []
    children: list[list[int]] = []
    stack: list[tuple[Tree | str, int]] = [(tree, -1)]
    while stack:
        node, parent = stack.pop()
        if parent >= 0:
            children[parent].append(len(nodes))
        nodes.append(node)
        children.append([])
        if isinstance(node, Tree):
            stack.extend((child, len(nodes) - 1) for child in reversed(node.children))
    return nodes, children


def _name(node: Tree | str) -> str:
    return node if isinstance(node, str) else node.label


@dataclass(frozen=True)
class FrequentRule:
    """A rule over treebank labels, summed over the states that project to them."""

    parent: str
    children: tuple[str, ...]
    expected: float  #: uses in a sentence, on average
    probability: float  #: given the parent label, 0 to 1


def frequent_rules(pcfg: PCFG, kind: str, most: int = 15) -> list[FrequentRule]:
    """Return the most used rules of a kind, in descending order.

    The expected count of a rule is the count of its parent state times its probability; states with the same label
    are added. It is not conditioned on length.

    Args:
        pcfg: a grammar with spectral radius below 1.
        kind: ``binary``, ``unary`` or ``lexical``.
        most: number of rules.

    Raises:
        InputError: the spectral radius is 1 or more.
    """
    names = tuple(dict.fromkeys(pcfg.labels))
    numbers = {name: i for i, name in enumerate(names)}
    label = np.array([numbers[name] for name in pcfg.labels], dtype=np.int64)
    states = pcfg.exact.expected_symbols
    parents = np.bincount(label, states, len(names))
    rules = getattr(pcfg, kind).astype(np.int64)
    if not len(rules):
        return []
    uses = states[rules[:, 0]] * np.exp(getattr(pcfg, f"{kind}_logp"))
    right = len(pcfg.vocabulary) if kind == "lexical" else len(names)
    key = label[rules[:, 0]]
    for column in rules.T[1:]:
        key = key * right + (column if kind == "lexical" else label[column])
    keys, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, uses)
    frequent = []
    for i in np.argsort(-total, kind="stable")[:most]:
        rest, children = int(keys[i]), []
        for _ in range(rules.shape[1] - 1):
            rest, child = divmod(rest, right)
            children.append(pcfg.vocabulary[child] if kind == "lexical" else names[child])
        if total[i] > 0.0:
            share = float(total[i] / parents[rest])
            frequent.append(FrequentRule(names[rest], tuple(reversed(children)), float(total[i]), share))
    return frequent


def section(run: FinishedRun) -> Part:
    """Build the section: sizes, rules, training and a tree; for a process, its numbers."""
    if isinstance(run.truth, Process):
        return _of_process(run.truth)
    pcfg = require(run.truth, "parses", "the section on the grammar")
    diagnosis = {"held_out": None, **run.diagnosis}
    entropy, length = diagnosis.get("derivational_entropy"), diagnosis.get("mean_length")
    finite = pcfg.exact.spectral_radius < 1.0 - CRITICAL
    tree = typical_tree(run.corpus.trees(shown_split(run))) if run.corpus.trees_as != "none" else None
    trees = pcfg.meta.get("held_out", {}).get("trees")
    possible = possible_held_out(run.trace, trees)
    kinds = [
        (kind, name, frequent_rules(pcfg, kind))
        for kind, name in TITLES_OF_KINDS.items()
        if finite and len(getattr(pcfg, kind))
    ]
    quality = run.record(QUALITY, QualityRecord)
    content = {
        "opening": [
            *([] if quality is None else [parsing_sentence(quality["records"])]),
            *([warning] if (warning := useless_cycles(run.trace, trees)) else []),
        ],
        "parsing": None if quality is None else parsing_table(quality["records"]),
        "language": pcfg.meta.get("language"),
        "variant": pcfg.meta.get("variant"),
        "identity": pcfg.identity,
        "sizes": pcfg.sizes(),
        "diagnosis": diagnosis,
        "entropy_per_token": entropy / length if entropy is not None and length else None,
        "kinds": kinds,
        "binarised": any(label.startswith("@") for label in pcfg.labels),
        "trace": trace_figure(run.trace, trees),
        "held_out_trees": None if not possible or trees is None else (min(possible), max(possible), trees),
        "substates": substates_figure(pcfg),
        "spectrum": spectrum_figure(pcfg),
        "filter": pcfg.meta.get("filter"),
        "tree": None if tree is None else draw_tree(tree),
    }
    return Part("grammar", "The grammar", Path(__file__).with_name("section.html.j2"), content)


def parsing_table(records: Sequence[Record]) -> ReportTable:
    """Build the table of parses of held-out trees, with a row for each grammar."""
    rows = [
        TableRow(
            [
                parser,
                trees,
                *(score_cell(of.get(name), ".4f") for name, _ in PARSING),
                *(number_cell(of[name]["value"], ",") for name, _ in COUNTED),
            ],
            of["labelled_f1"]["signature"],
        )
        for (trees, parser), of in nested(records, itemgetter("trees", "parser")).items()
    ]
    return ReportTable(
        columns=("grammar", "trees", *(heading for _, heading in (*PARSING, *COUNTED))),
        keys=("parser", "trees", *(name for name, _ in (*PARSING, *COUNTED))),
        text=(0, 1),
        rows=rows,
        title="Parses of held-out trees",
        note="max-rule parses by the conventions of evalb; intervals: 95%, trees resampled; a tree without a parse has"
        " no bracket right. The plain grammar has the relative frequencies of the same trees, without splits",
    )


def parsing_sentence(records: Sequence[Record]) -> str:
    """Compare the labelled F1 of the grammar and of the plain grammar of the same trees, in a sentence."""
    trees = {of: [record for record in records if record["trees"] == of] for of in (ALL, PARSED)}
    number = {of: next((r["value"] for r in some if r["name"] == "sentences"), 0) for of, some in trees.items()}
    scores = {record["parser"]: record for record in trees[PARSED] if record["name"] == "labelled_f1"}
    if not scores:
        return (
            f"None of {count(number[ALL], 'held-out tree')} has a parse: each has words that the training trees lack."
        )
    which, how = (f"the {number[PARSED]:,} of ", " that can be parsed") if number[PARSED] < number[ALL] else ("", "")
    plain = f"; the plain grammar of the same trees, {_f1(scores[PLAIN])}" if PLAIN in scores else ""
    return (
        f"On {which}{count(number[ALL], 'held-out tree')}{how}, the induced grammar has a labelled F1 of"
        f" {_f1(scores[INDUCED])}{plain}."
    )


def _f1(record: Record) -> str:
    low, high = record.get("low"), record.get("high")
    return f"{record['value']:.3f}" + (" [-]" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")


def _of_process(process: Process) -> Part:
    content = {
        "language": process.meta["language"],
        "identity": process.identity,
        "words": len(process.vocabulary),
        "mean_length": process.exact.mean_length,
    }
    return Part("grammar", "The process", Path(__file__).with_name("process.html.j2"), content)
