"""What the section on the grammar shows."""

from __future__ import annotations

from pathlib import Path

from truesource.chain.grammar import figures
from truesource.chain.grammar.rules import frequent_rules
from truesource.chain.grammar.trees import draw_tree, typical_tree
from truesource.report.finished_run import FinishedRun, shown_split
from truesource.report.part import Part

KINDS = {"binary": "two children", "unary": "one child", "lexical": "a word"}


def section(run: FinishedRun) -> Part:
    """Sizes, rules, training and a tree."""
    found = {"held_out": None, **run.diagnosis}
    entropy, length = found.get("derivational_entropy"), found.get("mean_length")
    finite = run.pcfg.exact.spectral_radius < 1.0
    tree = typical_tree(run.corpus.trees(shown_split(run))) if run.corpus.trees_as != "none" else None
    trees = run.pcfg.meta.get("held_out", {}).get("trees")
    possible = figures.possible_held_out(run.trace, trees)
    kinds = [
        (kind, name, frequent_rules(run.pcfg, kind))
        for kind, name in KINDS.items()
        if finite and len(getattr(run.pcfg, kind))
    ]
    content = {
        "language": run.pcfg.meta.get("language"),
        "variant": run.pcfg.meta.get("variant"),
        "identity": run.pcfg.identity,
        "sizes": run.pcfg.sizes(),
        "diagnosis": found,
        "entropy_per_token": entropy / length if entropy is not None and length else None,
        "kinds": kinds,
        "binarised": any(label.startswith("@") for label in run.pcfg.labels),
        "trace": figures.trace_figure(run.trace, trees),
        "held_out_trees": None if not possible or trees is None else (min(possible), max(possible), trees),
        "substates": figures.substates_figure(run.pcfg),
        "spectrum": figures.spectrum_figure(run.pcfg),
        "filter": run.pcfg.meta.get("filter"),
        "tree": None if tree is None else draw_tree(tree),
    }
    return Part("grammar", "The grammar", Path(__file__).with_name("section.html.j2"), content)
