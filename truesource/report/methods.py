"""The methods paragraph of a run: what was trained, measured, tested and corrected, from its records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.show.records import ProvenanceRecord, ResultRow
from truesource.evaluation.show.words import count
from truesource.grammar.support.printable import listed
from truesource.grammar.support.records import read_record
from truesource.report.works import works

REMEDY = "run the experiment again"
METHODS = {
    "split_merge": "a split-merge grammar",
    "relative_frequency": "a grammar of relative frequencies",
    "file": "a grammar read from a file",
}
#: evaluators of a configuration, as a paper says what they measure
MEASURED = {
    "naturalness": "naturalness of the corpus next to its treebank",
    "treebank_baseline": "models of the treebank's own sentences",
    "divergence": "the divergence of full next-word distributions",
    "context": "the best predictors of k words",
    "documents": "languages inferred in context",
    "diffusion": "samplers of diffusion models",
    "control": "the frontier of reward and KL",
    "memory": "memorisation of training sentences",
    "tokenisation": "sums over tokenisations",
    "pplu": "perplexity relative to word frequencies (PPLu)",
    "tendencies": "statistical tendencies of generated text",
    "pairs": "minimal pairs",
    "dynamics": "the divergence through training",
    "probing": "probes",
    "beliefs": "beliefs in the layers of networks",
    "explain": "levers of the distance from the truth",
}


def methods(folder: Path) -> str:
    """Return the methods paragraph of a run.

    Args:
        folder: of a run that has results.

    Raises:
        InputError: the folder has no results, or a record is damaged.
    """
    config = read_record(folder / "config.json", dict[str, Any], remedy=REMEDY)
    provenance = read_record(folder / "provenance.json", ProvenanceRecord, remedy=REMEDY)
    results = read_record(folder / "results.json", list[ResultRow], remedy=REMEDY)
    parts = [
        _truth(config),
        _corpus(config, results),
        *(_model(entry, folder, config) for entry in config["models"]),
        _measured(config, results),
        _tested(results, of_seeds=bool(config.get("seeds"))),
        f"Computed with truesource {provenance['truesource']} (seed {provenance['seed']}).",
    ]
    return " ".join(part for part in parts if part)


def _truth(config: Mapping[str, Any]) -> str:
    grammar, bank = config["grammar"], config.get("treebank")
    if grammar.get("language"):
        return f"The truth is the language {grammar['language']}."
    what = METHODS.get(grammar["method"], grammar["method"])
    if bank is None:
        return f"The truth is {what}."
    files = bank.get("files") or bank.get("nltk") or "a dataset"
    source = listed([Path(each).name for each in ([files] if isinstance(files, str) else files)])
    if bank.get("embedded"):
        source = f"{bank['sentences']:,} trees of the embedded grammar {bank['embedded']}"
    cycles = (grammar.get("split_merge") or {}).get("cycles")
    if grammar["method"] == "split_merge" and cycles is not None:
        what += f" ({count(cycles, 'cycle')}; {_cite('split-merge')})"
    return f"The truth is {what}, induced from {source}, read by the convention {bank['normalise']['convention']}."


def _corpus(config: Mapping[str, Any], results: list[ResultRow]) -> str:
    corpus = config["corpus"]
    sizes = listed([f"{n:,} ({name})" for name, n in corpus["splits"].items()])
    lengths = f", conditioned on {corpus['lengths']} words" if corpus.get("lengths") else ""
    disjoint = any("disjoint" in str(row.get("signature")) for row in results)
    return (
        f"Sentences were sampled from it independently{lengths}: {sizes}"
        f"{'; no evaluation sentence is in the training split' if disjoint else ''}."
    )


def _model(entry: Mapping[str, Any], folder: Path, config: Mapping[str, Any]) -> str:
    if entry.get("load") is not None:
        return f"{entry['name']} was loaded from {entry['load']}."
    path = folder / "models" / str(entry["name"]) / "training.json"
    seeds = f" with {config['seeds']} seeds" if config.get("seeds") else ""
    if not path.is_file():
        return f"{entry['name']} is a {entry['model'].get('architecture', 'gpt2')}{seeds}."
    record = read_record(path, dict[str, Any], remedy=REMEDY)
    model, training = record["model"], record.get("training")
    shape = [f"{model[key]} {name}" for key, name in (("layers", "layers"), ("dim", "dimensions")) if model.get(key)]
    order = f"order {model['order']}, {model['smoothing']}" if training is None else ", ".join(shape)
    steps = (
        ""
        if training is None
        else (
            f", trained for {record['steps']:,} steps (AdamW, peak learning rate {training['learning_rate']:g},"
            f" {training['schedule']} schedule)"
        )
    )
    size = f"{record['parameters']:,} " + ("n-grams" if training is None else "parameters")
    vocabulary = f"{record['vocabulary']:,} {'words' if model.get('tokenizer', 'word') == 'word' else 'pieces'}"
    return f"{entry['name']} is a {model['architecture']} ({order}; {size}, {vocabulary}){steps}{seeds}."


def _measured(config: Mapping[str, Any], results: list[ResultRow]) -> str:
    evaluation = config["evaluation"]
    rows = [row for row in results if row["model"] != "oracle"]
    used = [text for name, text in MEASURED.items() if evaluation.get(name) is not None]
    objectives = listed(sorted({str(row["objective"]) for row in rows}))
    number = max((int(row["sentences"]) for row in rows), default=0)
    more = f" Also measured: {listed(used)}." if used else ""
    if not rows:
        return more.strip()
    parts = (parts_of(row["signature"]) for row in rows)
    compared = sorted({part["compared"].split("/")[0] for part in parts if "compared" in part})
    words = f" in the vocabulary {listed(compared)}" if compared else ""
    return (
        f"On {number:,} sentences, the {objectives} scores of models and truth give perplexity, the bound, and relative"
        f" perplexity{words} ({_cite('truth')}); the intervals are 95%, sentences resampled.{more}"
    )


def _tested(results: list[ResultRow], *, of_seeds: bool) -> str:
    """Return the tests between models, and how they are corrected."""
    groups: dict[str, set[str]] = {}
    for row in results:
        if row["model"] != "oracle":
            groups.setdefault(str(row["objective"]), set()).add(str(row["model"]))
    pairs = {objective: len(names) * (len(names) - 1) // 2 for objective, names in groups.items() if len(names) > 1}
    if not pairs:
        return ""
    family = listed([f"{count(n, 'pair')} ({objective})" for objective, n in pairs.items()])
    over = "training seeds, by Welch's t test with Satterthwaite's degrees of freedom" if of_seeds else "sentences"
    cited = _cite("tests", "holm", *(["satterthwaite"] if of_seeds else []))
    return f"Models are compared over {over}; p-values are adjusted by Holm over {family} ({cited})."


def _cite(topic: str, *authors: str) -> str:
    """Cite the works of a topic, or only works of some authors."""
    chosen = (work for work in works() if work.topic == topic)
    shorts = [work.short for work in chosen if not authors or work.short.split()[0].strip(",").lower() in authors]
    return "; ".join(short.replace(" (", ", ").rstrip(")") for short in shorts)
