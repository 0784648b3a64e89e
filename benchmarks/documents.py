"""The figures of docs/howto/documents.md, from the runs of three rows.

truesource reproduce park-chains edelman-stages akyurek-orders --runs runs
python benchmarks/documents.py runs docs/images
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, figure, step_axis, to_svg, write_figure
from truesource.grammar.support.records import read_record

Record = dict[str, Any]
MODELS = {"gpt2": ("GPT-2", "-", "o"), "lstm": ("LSTM", "--", "s")}
LANGUAGES = (4, 16, 64, 256, 1024)


def study(folder: Path) -> list[Record]:
    return read_record(folder / "study.json", list[Record], remedy="run the row")


def documents(folder: Path, model: str) -> list[Record]:
    return read_record(folder / "documents" / f"{model}.json", Record, remedy="run the row")["records"]


def some(records: list[Record], **wanted: Any) -> list[Record]:
    """The records that have these fields and no others of groups and readers."""
    fields = {"by": None, "reader": None, **wanted}
    return [each for each in records if all(each.get(key) == value for key, value in fields.items())]


def curve(axes: Axes, x: Any, found: list[Record], color: str, label: str, line: str = "-", mark: str = "o") -> None:
    """Values with their intervals."""
    axes.plot(x, [each["value"] for each in found], line, marker=mark, markersize=4, color=color, label=label)
    if all(each.get("low") is not None for each in found):
        axes.vlines(x, [each["low"] for each in found], [each["high"] for each in found], color=color, alpha=0.6)


def finish(axes: Axes, title: str, y: str) -> None:
    axes.set_title(title)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0.0)
    axes.grid(axis="y")
    axes.legend()


def languages(runs: Path) -> str:
    """KL to both truths by the number of languages, and by position for the fewest and the most."""
    folders = {k: runs / f"park2025-k{k}" for k in LANGUAGES}
    fresh = {k: study(folder) for k, folder in folders.items()}
    with figure(11.0, 7.2, "documents-languages") as drawn:
        (seen, unseen), below = drawn.subplots(2, 2)
        at = np.arange(len(LANGUAGES))
        for model, (title, line, mark) in MODELS.items():
            own = [documents(folder, model) for folder in folders.values()]
            found = [some(records, name="kl")[0] for records in own]
            curve(seen, at, found, TRUTH, f"KL(pool‖{title})", line, mark)
            found = [some(records, name="kl_family", by="reader", group="family")[0] for records in own]
            curve(seen, at, found, SECOND, f"KL(family‖{title})", line, mark)
            found = [some(records, name="kl", model=model, on="fresh")[0] for records in fresh.values()]
            curve(unseen, at, found, SECOND, f"KL(family‖{title})", line, mark)
        of_pool = {"by": "reader", "group": "pool", "model": "gpt2", "on": "fresh"}
        lost = [some(records, name="family_above", **of_pool)[0] for records in fresh.values()]
        curve(unseen, at, lost, QUIET, "what the reader of the pool loses", ":", "x")
        for axes in (seen, unseen):
            axes.set_xticks(at, [f"{k:,}" for k in LANGUAGES])
            axes.set_xlabel("languages in training (K)")
        finish(seen, "Documents of the pool", "nats a token")
        seen.set_ylim(0.0, 0.3)
        seen.legend(loc="upper right", ncols=2)
        finish(unseen, "Documents of new languages", "nats a token")
        for axes, k in zip(below, (LANGUAGES[0], LANGUAGES[-1]), strict=True):
            for model, (title, line, mark) in MODELS.items():
                found = some(documents(folders[k], model), name="kl", by="position")
                bands = [each["group"] for each in found]
                curve(axes, np.arange(len(bands)), found, TRUTH, f"KL(pool‖{title})", line, mark)
                found = some(documents(folders[k], model), name="kl_family", by="position", reader="family")
                curve(axes, np.arange(len(bands)), found, SECOND, f"KL(family‖{title})", line, mark)
            axes.set_xticks(np.arange(len(bands)), bands)
            axes.set_xlabel("words before, in the document")
            finish(axes, f"By position, K = {k:,}", "nats a token")
        top = max(axes.get_ylim()[1] for axes in below)
        for axes in below:
            axes.set_ylim(0.0, top)
            axes.legend_.remove()  # that of the first panel
        return to_svg(drawn, "documents-languages", "Memorising or generalising by the number of languages")


def stages(runs: Path) -> str:
    """Distances of three readers from networks along their training, and their weights; a line for each seed."""
    seeds = [documents(runs / "edelman2024", f"gpt2-seed{seed}") for seed in (1, 2, 3)]
    steps = [int(each["group"]) for each in some(seeds[0], name="kl", by="step")]
    with figure(10.4, 3.8, "documents-stages") as drawn:
        both = drawn.subplots(1, 2)
        readers = {"uniform": (QUIET, ":"), "unigram": (MODEL, "--"), None: (TRUTH, "-")}
        for axes, kind in zip(both, ("kl", "weight"), strict=True):
            for reader, (color, line) in readers.items():
                name = {"kl": "kl", "weight": "weight_truth"}[kind] if reader is None else f"{kind}_family"
                found = [some(records, name=name, by="step", reader=reader) for records in seeds]
                table = np.array([[each["value"] for each in records] for records in found])
                for row, label in zip(table, (reader or "bigram, the truth", None, None), strict=True):
                    axes.plot(np.log1p(steps), row, line, color=color, label=label)
            step_axis(axes, np.array(steps, dtype=np.float64))
        finish(both[0], "KL(reader‖model), three seeds", "nats a token (logarithmic)")
        both[0].set_ylim(0.008, 2.0)
        both[0].set_yscale("log")
        finish(both[1], "Weights of the mixture nearest to the model", "weight")
        return to_svg(drawn, "documents-stages", "Stages of training: uniform, unigram, bigram")


def orders(runs: Path) -> str:
    """What models know of the language by the number of the sentence, and what it costs them."""
    records = study(runs / "akyurek2024-orders")
    readers = {"reader": ("perfect reader", TRUTH), "gpt2": ("GPT-2", MODEL), "lstm": ("LSTM", SECOND)}
    with figure(10.4, 3.8, "documents-orders") as drawn:
        both = drawn.subplots(1, 2)
        for axes, name in zip(both, ("weight_own", "kl_told"), strict=True):
            for model, (title, color) in readers.items():
                found = [each for each in records if each["model"] == model and each["name"] == name]
                curve(axes, [each["sentence"] for each in found], found, color, title)
            axes.set_xlabel("sentence of the document")
        finish(both[0], "Weight of the right language", "weight, before the sentence")
        finish(both[1], "KL(reader who is told‖reader or model)", "nats a token")
        return to_svg(drawn, "documents-orders", "Which word order a model expects, by sentence")


def main(runs: Path, images: Path) -> None:
    for draw in (languages, stages, orders):
        write_figure(images / f"documents_{draw.__name__}.svg", partial(draw, runs))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
