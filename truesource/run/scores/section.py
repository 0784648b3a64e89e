"""The sections on scores: models against their bounds, and token by token."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.divergence.blocks import read_next_words
from truesource.evaluation.measures.contrast import Contrast, PairFamily, PairTest, SeedSums, difference
from truesource.evaluation.show import words
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell, score_cell
from truesource.generator.language_model import END
from truesource.generator.objectives import OBJECTIVES
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.report.environment import data_of_script
from truesource.report.finished_run import FinishedRun, Part, differences, shown_split, some_sentences
from truesource.run.scores import figures
from truesource.run.scores.tables import lines_table

LIKELY_SENTENCES = 40  #: the first ones, whose most likely words a run writes
LINES = "scores/lines.json"  #: of a run: bounds of the best predictors that see 0, 1, 2, ... words
MOST_BYTES = 700_000  #: of the data in the page
Place = tuple[int, int]


@dataclass
class _Model:
    """The scores that the run has of one model."""

    name: str
    objective: str
    scores: dict[Place, tuple[float, float]]  #: ln P and ln Q
    likely: dict[Place, dict[str, list[tuple[str, float]]]] = field(default_factory=dict)  #: by side
    classes: dict[Place, str] = field(default_factory=dict)


@dataclass
class _Words:
    """Words by number, so that each stands in the page once."""

    number: dict[str, int] = field(default_factory=dict)

    def of(self, word: str) -> int:
        return self.number.setdefault(word, len(self.number))


def token_view(run: FinishedRun) -> Markup | None:
    """The data of the view as JSON; None where no tokens were scored.

    Log probabilities are rounded to three places and probabilities to four digits, as they are shown.
    """
    models = [_read(run, row) for row in run.models]
    models = [model for model in models if model.scores]
    if not models:
        return None
    words, shown, size = _Words(), list[dict[str, Any]](), 0
    limit = run.config.get("evaluation", {}).get("sentences") or LIKELY_SENTENCES
    for number, sentence in enumerate(some_sentences(run.corpus, shown_split(run), min(LIKELY_SENTENCES, limit))):
        made = _sentence(number, sentence, models, words)
        size += len(json.dumps(made, separators=(",", ":")))
        if shown and size > MOST_BYTES:
            break
        shown.append(made)
    heads = [{"name": model.name, "objective": model.objective, "full": _is_full(model)} for model in models]
    return data_of_script({"words": list(words.number), "models": heads, "sentences": shown})


def _is_full(model: _Model) -> bool:
    return any("model" in sides for sides in model.likely.values())


def _read(run: FinishedRun, row: Mapping[str, Any]) -> _Model:
    """A model's scores and likely words of the first sentences; of several seeds, those of the first."""
    name = row["replicates"][0]["model"] if "replicates" in row else row["model"]
    model = _Model(row["model"], row["objective"], {})
    table = run.scores.get(name)
    if table is None:
        return model
    first = table["sentence"] < LIKELY_SENTENCES
    columns = [table[column][first].tolist() for column in ("sentence", "position", "oracle", "model")]
    model.scores = {(s, p): (truth, own) for s, p, truth, own in zip(*columns, strict=True)}
    path = run.path / "next_words" / f"{name}.parquet"
    for likely in read_next_words(path) if path.is_file() else ():
        place = likely["sentence"], likely["position"]
        sides = model.likely.setdefault(place, {})
        sides.setdefault(likely["side"], []).append((likely["word"], likely["log_prob"]))
        model.classes[place] = likely["class"]
    return model


def _sentence(number: int, sentence: Sequence[str], models: Sequence[_Model], words: _Words) -> dict[str, Any]:
    """Words, classes, and for each model its scores, its likely words, and which of the truths is its own."""
    texts = [*sentence, END] if any(model.objective == "causal" for model in models) else list(sentence)
    truths: list[Any] = []
    of_models = []
    for model in models:
        places = [(number, position) for position in range(len(texts))]
        truth = [_flat(model.likely.get(place, {}).get("truth"), words) for place in places]
        if truth not in truths:
            truths.append(truth)
        own = [_flat(model.likely.get(place, {}).get("model"), words) for place in places]
        scores = [[round(v, 3) for v in model.scores[place]] if place in model.scores else None for place in places]
        entry: dict[str, Any] = {"scores": scores, "truth": truths.index(truth)}
        of_models.append({**entry, "likely": own} if any(own) else entry)
    known = {place: name for model in models for place, name in model.classes.items() if name}
    classes = [known.get((number, at), "") for at in range(len(texts))]
    return {
        "length": len(sentence),
        "words": [words.of(text) for text in texts],
        "classes": [words.of(name) for name in classes],
        "truths": truths,
        "models": of_models,
    }


def _flat(likely: Sequence[tuple[str, float]] | None, words: _Words) -> list[float]:
    """Number of word and probability in turn."""
    return [value for word, log_prob in likely or () for value in (words.of(word), float(f"{math.exp(log_prob):.4g}"))]


def _notes(rows: Sequence[Record]) -> str:
    """What the vocabulary of a table means, and which of its models may look ahead."""
    signed = [(row["model"], row["signature"]) for row in rows]
    notes = words.vocabulary_note([signature for _, signature in signed]), words.unchecked_note(signed)
    return ". ".join(filter(None, notes))


def section(run: FinishedRun) -> Part:
    """A table for each objective, and intervals of the relative perplexities."""
    table = result_table(run)
    lines: Sequence[Record] = run.record(LINES, list[ScoreRecord]) or []  # type: ignore[assignment]
    bound = next((row["bound"] for row in run.results if (row["model"], row["objective"]) == ("oracle", "causal")), 1.0)
    of_all = all(vocabulary_of(row).endswith("/all") for row in run.models if row["objective"] == "causal")
    marks = {str(seen): line["value"] / bound for seen, line in enumerate(lines)} if of_all else {}
    content = {
        "table": table,
        "alarms": words.below_bound(run.models),
        "words": [_notes([row for row in rows if not is_oracle(row)]) for _, rows in table],
        "other_words": any(is_oracle(rows[0]) and len({vocabulary_of(row) for row in rows}) > 1 for _, rows in table),
        "own": own_table(run),
        "left_out": words.left_out,
        "too_few": words.too_few,
        "differences": [_differences(run, objective, {row["model"] for row in rows}) for objective, rows in table],
        "replicated": any("replicates" in row for _, rows in table for row in rows),
        "lines": None if not lines else lines_table(lines, bound),
        "forest": figures.forest_figure([row for _, rows in table for row in rows], marks) if run.models else None,
    }
    return Part("models", "Models against bounds", Path(__file__).with_name("section.html.j2"), content)


def tokens(run: FinishedRun) -> Part:
    """A picture of every token for each model."""
    content = {"scatters": _scatters(run), "view": token_view(run), "own": bool(run.compared)}
    return Part("tokens", "Token by token", Path(__file__).with_name("tokens.html.j2"), content)


def _scatters(run: FinishedRun) -> list[tuple[Record, str, dict[str, float]]]:
    drawn = []
    for number, model in enumerate(run.models):
        row = model["replicates"][0] if "replicates" in model else model  # one figure a model
        table = run.tokens_of(row["model"])
        if table is not None and len(table["model"]):
            gap = table["model"] - table["oracle"]
            note = {
                "mean": float(gap.mean()),
                "median": float(np.median(gap)),
                "near": float((np.abs(gap) <= 0.5).mean()),
            }
            drawn.append((row, figures.scatter_figure(number, row["model"], table["model"], table["oracle"]), note))
    return drawn


def _differences(run: FinishedRun, objective: str, models: Collection[str]) -> ReportTable | None:
    """The models less the first of the configuration, paired sentence by sentence; None where nothing was compared."""
    found = [record for record in differences(run.comparison, objective) if record["model"] in models]
    found = [record for record in found if record["baseline"] == found[0]["baseline"]]
    if not found:
        return None
    rows = [
        TableRow(
            [r["model"], score_cell(r, "+.4f"), words.p_value(r["p"]), words.p_value(r["p_adjusted"])], r["signature"]
        )
        for r in found
    ]
    columns = ("model", f"KL less the KL of {found[0]['baseline']}\n(nats per token)", "p", "p (Holm)")
    return ReportTable(columns=columns, rows=rows, title=f"Differences from {found[0]['baseline']}")


def nearer_test(run: FinishedRun, best: Record, other: Record) -> PairTest | None:
    """The KL of a model less that of the best, tested among all pairs of their objective; None without scores.

    Args:
        run: that both are of.
        best: row of the model that came out nearest.
        other: row of the next one.
    """
    nearest, next_one = best["model"], other["model"]
    for row in differences(run.comparison, best["objective"]):
        if {row["model"], row["baseline"]} == {nearest, next_one}:
            return _tested(row) if row["model"] == next_one else _tested(row).reversed
    rows = [
        row for row in run.models if (row["objective"], vocabulary_of(row)) == (best["objective"], vocabulary_of(best))
    ]
    sums = _gaps(run, rows, words.partial(best))
    if nearest not in sums or next_one not in sums:
        return None
    seed = run.config.get("seed", DEFAULT_SEED)
    return PairFamily.test(list(sums), lambda a, b: difference(sums[a], sums[b], seed=seed)).of(next_one, nearest)


def _tested(row: Record) -> PairTest:
    """A record of ``comparison.json`` as a test."""
    tests = int(parts_of(row["signature"])["adjusted"].partition("/")[2])
    return PairTest(Contrast(row["value"], row["low"], row["high"], row["p"]), row["p_adjusted"], tests)


def _gaps(run: FinishedRun, rows: Sequence[Record], partial: bool) -> dict[str, SeedSums]:
    """Sums of ln P - ln Q of the models with scores of tokens, on the sentences that all of these can make.

    Args:
        run: that they are of.
        rows: of one objective and vocabulary.
        partial: take those that leave out many sentences, or those that do not.
    """
    tables = {}
    for row in rows:
        seeds = [seed["model"] for seed in row.get("replicates", [row])]
        found = [table for name in seeds if (table := run.tokens_of(name)) is not None and len(table["model"])]
        if words.partial(row) == partial and len(found) == len(seeds):
            tables[row["model"]] = found
    n = 1 + max((int(table["sentence"].max()) for of in tables.values() for table in of), default=-1)
    counts = {name: np.stack([np.bincount(t["sentence"], minlength=n) for t in of]) for name, of in tables.items()}
    common = np.all([count.all(axis=0) for count in counts.values()], axis=0)
    if not np.any(common):
        return {}
    gaps = {
        name: np.stack([np.bincount(t["sentence"], t["oracle"] - t["model"], n) for t in of]).astype(np.float64)
        for name, of in tables.items()
    }
    return {name: SeedSums(gaps[name][:, common], counts[name][:, common].astype(np.float64)) for name in tables}


def is_oracle(row: Record) -> bool:
    """True of the truth's own row."""
    return bool(row["model"] == "oracle")


def vocabulary_of(row: Record) -> str:
    """The vocabulary of a row, as its signature has it."""
    return parts_of(row.get("signature") or "").get("vocab", "")


def own_table(run: FinishedRun) -> ReportTable | None:
    """Models in their own vocabularies, if they are compared in another; in the order of the configuration."""
    rows = [
        TableRow(
            [
                row["model"],
                row["objective"],
                number_cell(int(vocabulary_of(row).partition("/")[0]), ","),
                *(number_cell(row[name], spec) for name, spec in (("ppl", ".2f"), ("bound", ".2f"))),
                score_cell({"value": row["relative_ppl"], **_ends(row, "relative_ppl")}, ".4f"),
            ],
            row["signature"],
        )
        for row in run.results
        if row["objective"] in run.compared_objectives and not is_oracle(row)
    ]
    if not rows:
        return None
    return ReportTable(
        columns=("model", "objective", "words", "PPL", "bound", "relative PPL"),
        keys=("model", "objective", "words", "ppl", "bound", "relative_ppl"),
        text=(0, 1),
        rows=rows,
        title="Each model in its own vocabulary",
        note="Not a ranking: each row predicts other words, and the fewer words a model knows, the easier its text is."
        " All words that it does not know are <unk>, to its bound too",
    )


def _ends(row: Record, name: str) -> dict[str, Any]:
    return {"low": row.get(f"{name}_low"), "high": row.get(f"{name}_high")}


def result_table(run: FinishedRun) -> list[tuple[str, list[Record]]]:
    """Rows by objective and vocabulary, the oracle first, then by relative perplexity."""
    tables: list[tuple[str, list[Record]]] = []
    for objective in OBJECTIVES:
        rows = [row for row in run.summaries if row["objective"] == objective]
        truth, models = [row for row in rows if is_oracle(row)], [row for row in rows if not is_oracle(row)]
        for group in words.by_vocabulary(models) or [[]]:
            rows = [*truth, *words.ranked(group)]
            if rows:
                tables.append((objective, rows))
            truth = []
    return tables
