"""Places where a model is off, and sentences that it memorised: explanations that need no training."""

from __future__ import annotations

from collections.abc import Sequence

from truesource.evaluation.core.score import Key
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.divergence import OF_EVENTS, By
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.memory.measure import memory
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell, score_cell
from truesource.generator.abilities import offers
from truesource.generator.language_model import LanguageModel
from truesource.grammar.support.errors import NothingToMeasureError

PLACES: tuple[By, ...] = ("phrase", "ambiguity", "distance", "probability")
SENTENCES = 300  #: that are compared in every context
MEMBERS = 1000  #: training sentences that are scored
SHOWN = 4  #: groups of each kind in the table
TITLES: dict[By, str] = {
    "phrase": "lowest phrase over the word",
    "ambiguity": "entropy of the parse, nats",
    "distance": "words back that matter",
    "probability": "true probability of the word",
}


def places_of(model: LanguageModel, setting: Setting) -> list[dict[str, object]]:
    """Return the divergence of a model attributed to groups of contexts and words, one record a group.

    The parts of each kind of group sum to the divergence. The list is empty for a masked model, a model without full
    distributions, and a truth without rules. Models of pieces have no groups by probability.

    Args:
        model: to explain.
        setting: text and truth, of which the first `SENTENCES` are used.
    """
    ordered = setting.transform is None and model.objective == "causal"
    some = setting.first(SENTENCES)
    if not ordered or some.distributed(model) is None or not offers(setting.known, "windows"):
        return []
    places = PLACES if offers(model, "distributions") else tuple(by for by in PLACES if by not in OF_EVENTS)
    comparison = compare_distributions(model, some, by=places)
    records = []
    for by, rows in comparison.tables.items():
        parts = {row.group: row.tokens * row.scores["kl"].value for row in rows if "kl" in row.scores}
        whole = sum(parts.values())
        for row in rows:
            if row.group in parts:
                share = parts[row.group] / whole if whole else 0.0
                head = {"by": by, "group": row.group, "tokens": row.tokens, "share": share}
                records.append({**head, **row.scores["kl"].as_record()})
    return records


def memory_of(model: LanguageModel, setting: Setting, trained: Sequence[Sequence[str]]) -> list[dict[str, Key]]:
    """Return memorisation records, one a number; empty if nothing can be compared."""
    try:
        memorised = memory(model, setting, trained, sentences=MEMBERS)
    except NothingToMeasureError:
        return []
    return [each.as_record() for each in memorised.as_scores() if each.get("by") is None]


def places_table(record: Record) -> ReportTable | None:
    """Return the groups with most of the divergence, of each kind; None if there are none."""
    rows = []
    for by in PLACES:
        groups = [each for each in record["where"] if each["by"] == by]
        total = sum(each["tokens"] for each in groups)
        groups.sort(key=lambda each: -each["share"])
        for number, each in enumerate(groups[:SHOWN]):
            cells = [
                TITLES[by] if number == 0 else "",
                each["group"],
                number_cell(100.0 * each["tokens"] / total, ".1f"),
                score_cell(each, ".4f"),
                number_cell(100.0 * each["share"], ".1f"),
            ]
            rows.append(TableRow(cells))
    if not rows:
        return None
    sentences = parts_of(record["where"][0]["signature"])["sentences"]
    return ReportTable(
        title=f"Where {record['model']} is off",
        columns=("by", "group", "% of tokens", "KL", "% of the KL"),
        rows=rows,
        text=(0, 1),
        note=f"Exact attributions of KL(P‖Q) in the first {sentences} sentences, the {SHOWN} largest of each kind;"
        " evaluate divergence --by has all",
    )


def memory_sentence(record: Record) -> str:
    """Return the memorisation of a model in words; empty if it was not measured."""
    measures = {each["name"]: each for each in record["memory"]}
    if not measures:
        return ""
    auroc = measures["auroc"]
    ends = "" if auroc["low"] is None else f" [{auroc['low']:.3f}, {auroc['high']:.3f}]"
    gap = measures["gap"]["value"]
    return (
        f"The exact likelihood ratio distinguishes training from fresh sentences in {auroc['value']:.3f}{ends} of"
        f" pairs (0.5 is chance); it is {abs(gap):.2f} bits {'higher' if gap > 0 else 'lower'} for training sentences."
    )
