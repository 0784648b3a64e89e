"""The view of the report on single tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from truesource.evaluation.divergence.blocks import read_next_words
from truesource.evaluation.show.records import Record
from truesource.generator.language_model import END
from truesource.report.environment import data_of_script
from truesource.report.finished_run import FinishedRun, Part, shown_split, some_sentences
from truesource.run.scores import figures

LIKELY_SENTENCES = 40  #: number of first sentences whose most likely words a run writes
MOST_BYTES = 700_000  #: maximum size of the data in the page
Place = tuple[int, int]


@dataclass
class _Model:
    """The scores of one model in the run."""

    name: str
    objective: str
    scores: dict[Place, tuple[float, float]]  #: ln P and ln Q
    likely: dict[Place, dict[str, list[tuple[str, float]]]] = field(default_factory=dict)  #: by side
    classes: dict[Place, str] = field(default_factory=dict)


@dataclass
class _WordNumbers:
    """A numbering of words, so that each is in the page only once."""

    number: dict[str, int] = field(default_factory=dict)

    def of(self, word: str) -> int:
        return self.number.setdefault(word, len(self.number))


def token_view(run: FinishedRun) -> Markup | None:
    """Return the data of the view as JSON; None if no tokens were scored.

    Log probabilities are rounded to three places and probabilities to four digits, as displayed.
    """
    models = [_read(run, row) for row in run.models]
    models = [model for model in models if model.scores]
    if not models:
        return None
    words, sentence_views, size = _WordNumbers(), list[dict[str, object]](), 0
    limit = run.config.get("evaluation", {}).get("sentences") or LIKELY_SENTENCES
    for number, sentence in enumerate(some_sentences(run.corpus, shown_split(run), min(LIKELY_SENTENCES, limit))):
        sentence_view = _sentence(number, sentence, models, words)
        size += len(json.dumps(sentence_view, separators=(",", ":")))
        if sentence_views and size > MOST_BYTES:
            break
        sentence_views.append(sentence_view)
    heads = [{"name": model.name, "objective": model.objective, "full": _is_full(model)} for model in models]
    return data_of_script({"words": list(words.number), "models": heads, "sentences": sentence_views})


def _is_full(model: _Model) -> bool:
    return any("model" in sides for sides in model.likely.values())


def _read(run: FinishedRun, row: Mapping[str, Any]) -> _Model:
    """Read scores and likely words of a model on the first sentences; of several seeds, the first."""
    name = row["replicates"][0]["model"] if "replicates" in row else row["model"]
    model = _Model(row["model"], row["objective"], {})
    table = run.scores.get(name)
    if table is None:
        return model
    first = table["sentence"] < LIKELY_SENTENCES
    columns = [table[column][first].tolist() for column in ("sentence", "position", "oracle", "model")]
    model.scores = {(s, p): (truth, score) for s, p, truth, score in zip(*columns, strict=True)}
    path = run.path / "next_words" / f"{name}.parquet"
    for likely in read_next_words(path) if path.is_file() else ():
        place = likely["sentence"], likely["position"]
        sides = model.likely.setdefault(place, {})
        sides.setdefault(likely["side"], []).append((likely["word"], likely["log_prob"]))
        model.classes[place] = likely["class"]
    return model


def _sentence(number: int, sentence: Sequence[str], models: Sequence[_Model], words: _WordNumbers) -> dict[str, object]:
    """Return words, classes, and for each model its scores, likely words, and number of its truth."""
    texts = [*sentence, END] if any(model.objective == "causal" for model in models) else list(sentence)
    truths: list[Any] = []
    of_models = []
    for model in models:
        places = [(number, position) for position in range(len(texts))]
        truth = [_flat(model.likely.get(place, {}).get("truth"), words) for place in places]
        if truth not in truths:
            truths.append(truth)
        likely_words = [_flat(model.likely.get(place, {}).get("model"), words) for place in places]
        scores = [[round(v, 3) for v in model.scores[place]] if place in model.scores else None for place in places]
        entry: dict[str, object] = {"scores": scores, "truth": truths.index(truth)}
        of_models.append({**entry, "likely": likely_words} if any(likely_words) else entry)
    class_of = {place: name for model in models for place, name in model.classes.items() if name}
    classes = [class_of.get((number, at), "") for at in range(len(texts))]
    return {
        "length": len(sentence),
        "words": [words.of(text) for text in texts],
        "classes": [words.of(name) for name in classes],
        "truths": truths,
        "models": of_models,
    }


def _flat(likely: Sequence[tuple[str, float]] | None, words: _WordNumbers) -> list[float]:
    """Return numbers and probabilities of words, alternating."""
    return [value for word, log_prob in likely or () for value in (words.of(word), float(f"{math.exp(log_prob):.4g}"))]


def tokens(run: FinishedRun) -> Part:
    """Build the part with a picture of every token for each model."""
    content = {"scatters": _scatters(run), "view": token_view(run), "own": bool(run.compared)}
    return Part("tokens", "Token by token", Path(__file__).with_name("tokens.html.j2"), content)


def _scatters(run: FinishedRun) -> list[tuple[Record, str, dict[str, float]]]:
    scatters = []
    for number, model in enumerate(run.models):
        row = model["replicates"][0] if "replicates" in model else model  # one figure per model
        table = run.tokens_of(row["model"])
        if table is not None and len(table["model"]):
            gap = table["model"] - table["oracle"]
            note = {
                "mean": float(gap.mean()),
                "median": float(np.median(gap)),
                "near": float((np.abs(gap) <= 0.5).mean()),
            }
            scatters.append((row, figures.scatter_figure(number, row["model"], table["model"], table["oracle"]), note))
    return scatters
