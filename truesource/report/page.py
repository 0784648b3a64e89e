"""Builds the page: gathers what each section shows, then fills the template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.chain.corpus import figures as figures_corpus
from truesource.chain.grammar import figures as figures_grammar
from truesource.chain.grammar.rules import frequent_rules
from truesource.chain.grammar.trees import draw_tree, typical_tree
from truesource.chain.scores import figures as figures_models
from truesource.grammar.arrays import FloatArray, IntArray
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.files import write_text
from truesource.grammar.inference.expected import expected_counts
from truesource.report import words
from truesource.report.environment import FOLDER, render
from truesource.report.finished_run import FinishedRun, Record, read_run, some_sentences
from truesource.report.unmeasured import unmeasured

if TYPE_CHECKING:
    from truesource.run.evaluator import Evaluator

SAMPLES = 8  #: sentences shown
LONGEST = 120  #: tokens; lengths beyond are left out of the figures
FIRST_FURTHER = 7  #: number of the first section that not every report has
ALARM = 0.001  #: p-value of the test of lengths below which a reader is asked to look into it
FEWEST_WORDS = 10  #: different words from which frequency against rank is drawn
KINDS = {"binary": "two children", "unary": "one child", "lexical": "a word"}


def write_page(run: Path, evaluators: Sequence[Evaluator]) -> Path:
    """Write ``report.html`` into a run folder, atomically: one file without anything outside it.

    Args:
        run: a folder that `truesource run` made.
        evaluators: whose sections follow, in order, where the run asked for them.

    Returns:
        The path of the page.

    Raises:
        InputError: a required file of the run is missing or damaged, or the page cannot be written.
    """
    run = Path(run)
    target = run / "report.html"
    found = read_run(run)
    sections = {evaluator.name: evaluator.template for evaluator in evaluators}
    context = _context(found, evaluators)
    write_text(target, render(FOLDER / "page.html.j2", run, templates=sections, **context))
    return target


def _context(run: FinishedRun, evaluators: Sequence[Evaluator]) -> dict[str, Any]:
    models, name, table = run.models, run.config.get("name") or run.path.name, _table(run)
    parts = {each.name: each.section(run) if run.asks(each.name, each.formerly) else None for each in evaluators}
    notes = unmeasured(run, evaluators)
    further = [(each.name, each.title) for each in evaluators if parts[each.name] or each.name in notes]
    further.append(("provenance", "Provenance"))
    return {
        "run": run,
        "name": name,
        "title": run.config.get("title") or f"Report of the run {name}",
        "answer": words.answer(models),
        "verdict": words.verdict(models),
        "alarms": words.below_bound(models),
        "grammar": _grammar(run),
        "corpus": _corpus(run),
        "curves": _curves(run),
        "bounded": _bounded(run),
        "table": table,
        "other_words": _other_words(table),
        "left_out": words.left_out,
        "too_few": words.too_few,
        "forest": figures_models.forest_figure([row for _, rows in table for row in rows]) if models else None,
        "scatters": _scatters(run),
        "parts": parts,
        "further": further,
        "unmeasured": {part: notes.get(part, []) for part in parts},
        "number": {part: FIRST_FURTHER + i for i, (part, _) in enumerate(further)},
    }


def _grammar(run: FinishedRun) -> dict[str, Any]:
    found = {"held_out": None, **run.diagnosis}
    entropy, length = found.get("derivational_entropy"), found.get("mean_length")
    finite = run.pcfg.exact.spectral_radius < 1.0
    tree = typical_tree(run.corpus.trees(_shown_split(run))) if run.corpus.record["call"]["trees"] else None
    trees = run.pcfg.meta.get("held_out", {}).get("trees")
    possible = figures_grammar.possible_held_out(run.trace, trees)
    kinds = [
        (kind, name, frequent_rules(run.pcfg, kind))
        for kind, name in KINDS.items()
        if finite and len(getattr(run.pcfg, kind))
    ]
    return {
        "sizes": run.pcfg.sizes(),
        "diagnosis": found,
        "entropy_per_token": entropy / length if entropy is not None and length else None,
        "kinds": kinds,
        "binarised": any(label.startswith("@") for label in run.pcfg.labels),
        "trace": figures_grammar.trace_figure(run.trace, trees),
        "held_out_trees": None if not possible or trees is None else (min(possible), max(possible), trees),
        "substates": figures_grammar.substates_figure(run.pcfg),
        "spectrum": figures_grammar.spectrum_figure(run.pcfg),
        "filter": run.pcfg.meta.get("filter"),
        "tree": None if tree is None else draw_tree(tree),
    }


def _corpus(run: FinishedRun) -> dict[str, Any]:
    split = "train" if "train" in run.corpus.splits else next(iter(run.corpus.splits))
    sentences = some_sentences(run.corpus, split)
    lengths = run.corpus.lengths
    counts = np.bincount(run.corpus.token_counts(split))
    high = min(LONGEST, max(len(counts) - 1, lengths.high + 4 if lengths else 0))
    free = run.pcfg.exact.length_pmf(high)
    exact = run.pcfg.exact.length_pmf(high, lengths) if lengths else free
    shown = np.zeros(high + 1, dtype=np.int64)
    shown[: len(counts)] = counts[: high + 1]
    tokens = np.array(list(Counter(token for s in sentences for token in s).values()), dtype=np.int64)
    finite = lengths is not None or run.pcfg.exact.spectral_radius < 1.0
    expected = expected_counts(run.pcfg, lengths).words if finite else None
    bank = (run.treebank or {}).get("lengths")
    long = min(LONGEST, max(len(bank) - 1, 2)) if bank else 0
    return {
        "split": split,
        "read": len(sentences),
        "sentences": run.corpus.n_sentences(split),
        "alarm": ALARM,
        "lengths": lengths,
        "range_mass": run.pcfg.exact.range_mass(lengths) if lengths else None,
        "length_figure": figures_corpus.length_figure(shown, exact, free, lengths),
        "length_test": _fit(counts, run.pcfg.exact.length_pmf(len(counts) - 1, lengths)),
        "bank_figure": figures_corpus.treebank_length_figure(bank, run.pcfg.exact.length_pmf(long)) if bank else None,
        "zipf_figure": figures_corpus.zipf_figure(tokens, expected) if len(tokens) >= FEWEST_WORDS else None,
        "types": len(tokens),
        "tokens": int(tokens.sum()),
        "samples": _samples(run, lengths),
        "samples_split": _shown_split(run),
    }


def _shown_split(run: FinishedRun) -> str:
    """The split whose sentences and trees are shown: the one that is evaluated, where it is named."""
    wanted = run.config.get("evaluation", {}).get("split")
    return wanted if wanted in run.corpus.splits else list(run.corpus.splits)[-1]


def _samples(run: FinishedRun, lengths: LengthRange | None) -> list[tuple[str, int, float]]:
    """Sentences with their number of tokens and exact log probability in the corpus, nats."""
    sentences = some_sentences(run.corpus, _shown_split(run), SAMPLES)
    log_probs = run.pcfg.exact.string_log_probs(sentences)
    if lengths is not None:
        log_probs = log_probs - np.log(run.pcfg.exact.range_mass(lengths))
    return [(" ".join(s), len(s), float(p)) for s, p in zip(sentences, log_probs, strict=True)]


def _fit(counts: IntArray, exact: FloatArray) -> tuple[float, int, float] | None:
    """Chi-square, degrees of freedom and p-value of sampled lengths against exact ones; None with too few cells.

    Lengths that are expected fewer than five times are one cell, with all that are longer than any sampled.
    """
    from scipy.stats import chi2

    expected = counts.sum() * np.append(exact, max(0.0, 1.0 - float(exact.sum())))
    seen = np.append(counts, 0).astype(np.float64)
    large = expected >= 5.0
    cells = [(seen[large], expected[large])]
    if expected[~large].sum() >= 5.0:
        cells.append((seen[~large].sum(keepdims=True), expected[~large].sum(keepdims=True)))
    observed, wanted = (np.concatenate(parts) for parts in zip(*cells, strict=True))
    if len(observed) < 3:
        return None
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    return statistic, len(observed) - 1, float(chi2.sf(statistic, len(observed) - 1))


def _curves(run: FinishedRun) -> list[tuple[Record, str]]:
    drawn = []
    for number, row in enumerate(run.models):
        figure = figures_models.curve_figure(number, run.metrics.get(row["model"], ()), row, bounded=_bounded(run))
        if figure is not None:
            drawn.append((row, figure))
    return drawn


def _bounded(run: FinishedRun) -> bool:
    """Whether training and evaluation count the same positions, so that the bound is one of the training curves."""
    return bool(run.config.get("evaluation", {}).get("frame", "default") == "default")


def _scatters(run: FinishedRun) -> list[tuple[Record, str, dict[str, float]]]:
    drawn = []
    for number, row in enumerate(run.models):
        table = run.scores.get(row["model"])
        if table is not None and len(table["model"]):
            gap = table["model"] - table["oracle"]
            note = {
                "mean": float(gap.mean()),
                "median": float(np.median(gap)),
                "near": float((np.abs(gap) <= 0.5).mean()),
            }
            drawn.append(
                (row, figures_models.scatter_figure(number, row["model"], table["model"], table["oracle"]), note)
            )
    return drawn


def _other_words(table: Sequence[tuple[str, list[Record]]]) -> bool:
    """Whether a model has another bound than the oracle's own row: it has fewer words, or other sentences."""
    return any(
        abs(row["bound"] / rows[0]["bound"] - 1.0) > words.PERFECT
        for _, rows in table
        for row in rows
        if rows[0]["model"] == "oracle"
    )


def _table(run: FinishedRun) -> list[tuple[str, list[Record]]]:
    """Rows by objective, the oracle first, then by relative perplexity."""
    tables = []
    for objective in ("causal", "masked"):
        rows = [row for row in run.results if row["objective"] == objective]
        rows.sort(key=lambda row: (row["model"] != "oracle", words.partial(row), row["relative_ppl"]))
        if rows:
            tables.append((objective, rows))
    return tables
