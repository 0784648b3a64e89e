"""Measurement, tables and figure of `evaluate beliefs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from truesource.evaluation.beliefs.evaluator import BeliefSettings
from truesource.evaluation.beliefs.measure import picture
from truesource.evaluation.beliefs.reading import BeliefReading, BeliefText, PatchedDivergence, patch, read_beliefs
from truesource.evaluation.core.evaluator import EvaluatorOutput
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.measures.bootstrap import Interval, ci_part
from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import ReportTable, TableRow, score_cell
from truesource.evaluation.show.words import count
from truesource.generator.language_model import LanguageModel
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import require_items

TITLES = {
    "state": "state of the automaton",
    "preterminal": "preterminal of the next word",
    "open": "open constituents by label",
    "depth": "number of open constituents",
    "next-word": "exact probabilities of the next word",
    "outside": "preterminal, given all other words; the word masked",
    "inside-outside": "preterminal, given all words",
}
PATCHED = {
    "before": "nothing changed",
    "random": "changed as much in a random direction",
    "after": "the other belief written in",
    "own": "after the other words themselves",
}


def measure(model: LanguageModel, setting: Setting, settings: BeliefSettings) -> EvaluatorOutput:
    """Read the requested beliefs, and write them into networks with known layers.

    Raises:
        InputError: the text is transformed, such a truth lacks a belief, or a layer is missing.
        NothingToMeasureError: there are too few sentences, or a belief never changes.
    """
    require_order(setting.transform, "evaluate beliefs")
    text = BeliefText(model, setting, settings)
    scores: list[Score] = []
    pictures: dict[str, dict[str, object]] = {}
    for reading in read_beliefs(text):
        target = reading.target
        scores += _read(setting, model, reading, text)
        pictures[target] = _picture(reading)
        require_items(text.settings.pairs, "pairs of prefixes", 32)
        try:
            patched = patch(text, reading)
        except InputError as error:
            text.notes.append(f"Note: no beliefs are written into layers: {error}")
            continue
        if patched is not None:
            scores += _written(setting, model, target, patched)
    return EvaluatorOutput(scores=scores, entries={"pictures": pictures}, notes=text.notes)


def _read(setting: Setting, model: LanguageModel, reading: BeliefReading, text: BeliefText) -> Iterator[Score]:
    """Yield one record a number."""
    parts, words = reading.parts, text.sentence
    shared = {
        "target": reading.target,
        "probe": "ridge",
        "items": len(reading.beliefs),
        "labels": len(reading.beliefs.columns),
        "split": f"position/{len(parts.train)}-{len(parts.dev)}-{len(parts.test)}",
        "ci": ci_part(len(np.unique(words[parts.test])), text.seed),
    }

    def of(value: Interval, vectors: str, layer: int | None = None, **more: object) -> Score:
        place = {} if layer is None else {"layer": layer}
        signed = {**shared, "vectors": vectors, **place, **more}
        keys = {"target": reading.target, "vectors": vectors, "layer": layer, "numbers": len(reading.beliefs.columns)}
        return setting.score(model, "r2", value.value, value.low, value.high, **signed).at(**keys)

    for layer in reading.layers:
        yield of(layer.value, "word", layer.number, decay=f"{layer.decay:g}")
    for number, value in reading.untrained.items():
        yield of(value, "untrained", number)
    for k, value in reading.after_words.items():
        yield of(value, f"{'next' if reading.target == 'outside' else 'last'}-{k}-words")
    if reading.next_word is not None:
        yield of(reading.next_word, "own-next-word")


def _written(setting: Setting, model: LanguageModel, target: str, patched: PatchedDivergence) -> Iterator[Score]:
    shared = {"unit": "nats/token", "ci": ci_part(patched.pairs, setting.seed, "pair")}
    for name in PATCHED:
        value: Interval = getattr(patched, "other" if name == "own" else name)
        signed = {"target": target, "layer": patched.layer, "vectors": name, "pairs": patched.pairs}
        score = setting.score(model, "patched_kl", value.value, value.low, value.high, **signed, **shared)
        yield score.at(target=target, vectors=name, layer=patched.layer)


def _picture(reading: BeliefReading) -> dict[str, object]:
    test, best = reading.parts.test, reading.best
    plane = picture(reading.beliefs.values[test], best.read[test])
    rounded = {name: np.round(getattr(plane, name), 4).tolist() for name in ("truth", "read", "colour")}
    return {"layer": best.number, "share": plane.share, **rounded}


def of_target(record: Record, target: str, name: str = "r2") -> list[Record]:
    """Return the records of one measure and belief."""
    return [each for each in record["records"] if each["target"] == target and each["name"] == name]


def r2_table(record: Record, target: str) -> ReportTable:
    """Return a row for each layer, and for each baseline."""
    records = of_target(record, target)
    untrained = {each["layer"]: each for each in records if each["vectors"] == "untrained"}
    rows = [
        TableRow((f"layer {each['layer']}", score_cell(each, ".3f"), score_cell(untrained.get(each["layer"]), ".3f")))
        for each in records
        if each["vectors"] == "word"
    ]
    rows += [
        TableRow((_beside(each["vectors"]), score_cell(each, ".3f"), None)) for each in records if each["layer"] is None
    ]
    size = count(records[0]["numbers"], "number")
    return ReportTable(
        title=f"{record['model']} ({record['objective']}): {TITLES[target]}, {size} a word",
        columns=("read from", "R2", "R2, untrained"),
        rows=rows,
        note="R2: share of the variance of the exact belief that a linear map explains, in other sentences; 95%"
        f" intervals from resampling sentences. {_words_note(target)}",
    )


def _beside(vectors: str) -> str:
    """Return what replaces the hidden states, for readers."""
    if vectors == "own-next-word":
        return "the model's own next-word probabilities"
    where, number = vectors.split("-")[:2]
    if where == "next":
        return "the words next to it alone" if number == "1" else f"the next {number} words on either side alone"
    return "the last word alone" if number == "1" else f"the last {number} words alone"


def _words_note(target: str) -> str:
    """Return a note on the baseline of words, which is not exact."""
    where, name = ("between", "Words next to it") if target == "outside" else ("after", "Last words")
    return (
        f"{name}: not the exact belief given these alone, but the mean of the exact beliefs {where} the same words in"
        " the sentences that maps are fitted to"
    )


def patched_table(record: Record, target: str) -> ReportTable | None:
    """Return KL after each change of the best layer; None if nothing was changed."""
    records = of_target(record, target, "patched_kl")
    if not records:
        return None
    return ReportTable(
        title=f"{record['model']}: another belief written into layer {records[0]['layer']} ({TITLES[target]})",
        columns=("layer at the last word", "KL"),
        rows=[TableRow((PATCHED[each["vectors"]], score_cell(each, ".3f"))) for each in records],
        note="KL(P‖Q), nats, of the next word: P after other words, Q after the model's own; 95% intervals from"
        " resampling pairs",
    )


def targets_of(record: Record) -> list[str]:
    """Return the beliefs that were read, in order."""
    return list(dict.fromkeys(each["target"] for each in record["records"]))


def tables(record: Record, title: str) -> list[ReportTable]:
    """Return tables of each belief: R2, and KL after it is written."""
    pairs = [(r2_table(record, target), patched_table(record, target)) for target in targets_of(record)]
    return [table for pair in pairs for table in pair if table is not None]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if nothing was measured."""
    records = run.of_models("beliefs")
    if not records:
        return None
    models = [
        {"model": name, "figure": figure(record, f"beliefs-{name}"), "tables": tables(record, "")}
        for name, record in records.items()
    ]
    return {"models": models}


def figure(record: Record, salt: str) -> str:
    """Draw for each belief R2 by layer, and the exact and read belief in the plane in which it varies most."""
    targets = targets_of(record)
    with new_figure(11.0, 4.2 * len(targets), salt) as canvas:
        rows = canvas.subplots(len(targets), 3, squeeze=False)
        for axes, target in zip(rows, targets, strict=True):
            _curves(axes[0], of_target(record, target))
            axes[0].set_title(TITLES[target], fontsize=9)
            _planes(axes[1:], record["pictures"][target])
        return to_svg(canvas, salt, f"Beliefs in the layers of {record['model']}")


def _curves(axes: Any, records: Sequence[Record]) -> None:
    for vectors, colour, label in (("word", MODEL, "trained"), ("untrained", QUIET, "untrained")):
        curve = [each for each in records if each["vectors"] == vectors]
        if not curve:
            continue
        layers, values = [each["layer"] for each in curve], [each["value"] for each in curve]
        with_interval = [each for each in curve if each["low"] is not None]
        axes.vlines(
            [each["layer"] for each in with_interval],
            [each["low"] for each in with_interval],
            [each["high"] for each in with_interval],
            color=colour,
            alpha=0.5,
        )
        axes.plot(layers, values, color=colour, marker="o", markersize=4, label=label)
    lines = [each for each in records if each["layer"] is None]
    styles = ((0, (1, 1)), (0, (4, 2)), (0, (4, 1, 1, 1)), "-.", "--", ":")
    words = [each for each in lines if each["vectors"] != "own-next-word"]
    for each, style in zip(words, styles, strict=False):
        axes.axhline(each["value"], color=SECOND, linestyle=style, linewidth=1.2, label=_beside(each["vectors"]))
    for each in lines:
        if each["vectors"] == "own-next-word":
            axes.axhline(each["value"], color=TRUTH, linewidth=1.2, label="own next-word probabilities")
    axes.set_ylim(min(-0.02, *(max(each["value"], -0.3) - 0.03 for each in records)), 1.03)
    axes.set_xticks(sorted({each["layer"] for each in records if each["layer"] is not None}))
    axes.set_xlabel("layer (0: word vectors)")
    axes.set_ylabel("R2 in other sentences")
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)


def _planes(panels: Sequence[Any], data: Mapping[str, Any]) -> None:
    """Draw the plane of the truth, and the same plane with read beliefs, with common limits."""
    both = np.concatenate([np.array(data[name]) for name in ("truth", "read")])
    low, high = both.min(axis=0), both.max(axis=0)
    margin = 0.05 * np.where(high > low, high - low, 1.0)
    for axes, name, title in zip(panels, ("truth", "read"), ("exact", f"read from layer {data['layer']}"), strict=True):
        points = np.array(data[name])
        axes.scatter(points[:, 0], points[:, 1], c=np.array(data["colour"]), s=5, linewidths=0, rasterized=False)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel(f"first component (the plane has {data['share']:.0%} of the variance)", fontsize=8)
        axes.set_ylabel("second component", fontsize=8)
        axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
        axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
