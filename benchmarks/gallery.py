"""The gallery of languages: one experiment for each, and the page ``docs/gallery/languages.md``.

``python benchmarks/gallery.py run [LANGUAGE ...]`` runs ``data/gallery.yaml`` with each language (all by default) and
keeps its numbers in ``docs/gallery/numbers.json`` and its picture in ``docs/gallery/LANGUAGE.svg``; a run that was
stopped continues. Of a language of documents, nothing is trained: the picture shows what is learned by reading.
``python benchmarks/gallery.py page`` writes the page from these numbers, from the languages
themselves and from what ``docs/gallery/LANGUAGE.md`` says of each. Sample strings have seed 1.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from truesource import PCFG, Tree, language
from truesource.evaluation.show.figures import MODEL, TRUTH, figure, standalone, to_svg
from truesource.generator.process_sampler import sampler_of
from truesource.generator.sampler import Sampler
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages import grammars, languages, parameters, parse, presets, reference
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.atomic_files import write_json, write_text
from truesource.grammar.truth import Truth, load_truth
from truesource.run import experiment

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "gallery"
NUMBERS = FOLDER / "numbers.json"
ENTRIES = (*grammars(), "cfg3b")  #: rows of the table
READ = 400  #: documents over which the loss of a perfect reader is a mean
SHOWN = 3  #: sample strings
WIDTH = 110  #: characters of a sample string that are shown

HEAD = """\
# Languages of known truth

Much of what is known about language models comes from artificial languages: brackets, automata, hierarchies. Each
language of this page is a grammar of truesource, or a process, so **the exact truth is known for all of them**:
probabilities of strings, prefixes and next tokens; of grammars also of masked tokens, entropies, expected counts.

    truesource language                                        # the list
    truesource language dyck:k=3                               # parameters, entropy, sample strings
    truesource sample dyck:k=3,depth=4 -n 100000 -o corpus/    # a corpus
    truesource score model/ corpus/ --oracle dyck:k=3,depth=4  # a model against the truth

A *reference* such as `dyck:k=3,depth=4` can replace a grammar file in every command. A configuration has
`grammar: {language: dyck, k: 3, depth: 4}`, and Python has `language("dyck", k=3, depth=4)`. Random languages have a
`seed`; the same settings always give the same grammar. `truesource cite dyck` says what to cite.
"""

TABLE = """\
## What a small model learns of each

One configuration, `data/gallery.yaml`, with each language in its default settings: 97,000 training strings, a GPT-2
with two layers of width 128, 2,000 steps (about two minutes on two cores). *Entropy* is the entropy of
derivations, and of strings if each string has one derivation. *Bound* is the perplexity of the truth on the 1,000
strings of the split eval, per token with the end of the string; no model has a lower one in the long run. *GPT-2* is
the model's perplexity on the same strings. *KL* is the exact divergence of its next-token distributions from the
true ones
at all positions of 300 of them, with a 95% interval: zero for a model that has learned the language.
"""


def run(names: list[str], runs: Path) -> None:
    """Run the experiment for each language, and keep its numbers and its picture."""
    for name in names:
        if languages()[parse(name)[0]].build is None:
            write_text(FOLDER / f"{name}.svg", standalone(picture_of_documents(name)))
            continue
        settings = parse(name)[1].model_dump(mode="json", exclude_none=True)
        grammar = json.dumps({"language": parse(name)[0], **settings})
        config = experiment.load_config(
            ROOT / "data" / "gallery.yaml", [f"name={name}", f"title=A tiny GPT-2 on {name}", f"grammar={grammar}"]
        )
        folder = experiment.execute(config, base=ROOT, runs=runs).parent
        numbers = json.loads(NUMBERS.read_text()) if NUMBERS.is_file() else {}
        numbers[name] = measured(folder)
        write_json(NUMBERS, {name: numbers[name] for name in sorted(ENTRIES) if name in numbers})
        write_text(FOLDER / f"{name}.svg", standalone(picture(name, folder)))


def measured(folder: Path) -> dict[str, Any]:
    """What the table says of a finished run."""
    grammar = PCFG.load(folder / "grammar" / "grammar.npz")
    scores = {record["model"]: record for record in json.loads((folder / "results.json").read_text())}
    divergence = json.loads((folder / "divergence" / "gpt2-tiny.json").read_text())["records"]
    kl = next(record for record in divergence if record["name"] == "kl")
    return {
        "language": grammar.meta["language"]["reference"],
        "symbols": len(grammar.symbols),
        "words": len(grammar.vocabulary),
        "rules": grammar.n_rules,
        "mean_length": grammar.exact.mean_length,
        "entropy": derivational_entropy(grammar),
        "bound": scores["gpt2-tiny"]["bound"],
        "ppl": scores["gpt2-tiny"]["ppl"],
        "kl": {key: kl[key] for key in ("value", "low", "high")},
        "signature": kl["signature"],
    }


def picture(name: str, folder: Path) -> str:
    """The exact distribution of lengths, and the exact divergence of the model during its training."""
    grammar = PCFG.load(folder / "grammar" / "grammar.npz")
    lines = [json.loads(line) for line in (folder / "models" / "gpt2-tiny" / "metrics.jsonl").open()]
    steps = [(line["step"], line["kl"]) for line in lines if line.get("kl") is not None]
    with figure(8.4, 2.7, name) as drawn:
        left, right = drawn.subplots(1, 2)
        lengths = grammar.exact.length_pmf(longest(grammar))
        left.bar(np.arange(len(lengths))[1:], lengths[1:], width=1.0, color=TRUTH)
        left.set_xlabel("tokens of a string")
        left.set_ylabel("probability (exact)")
        right.plot([step for step, _ in steps], [kl for _, kl in steps], color=MODEL)
        right.set_xlabel("training step of a tiny GPT-2")
        right.set_ylabel("exact KL, nats a token")
        if steps and min(kl for _, kl in steps) > 0.0:
            right.set_yscale("log")
        for axes in (left, right):
            axes.grid(which="major")
        return to_svg(drawn, name, f"{name}: lengths, and what a tiny GPT-2 learns")


def picture_of_documents(name: str) -> str:
    """The exact distribution of lengths, and what a word costs a perfect reader the further it has read."""
    truth = load_truth(name)
    sampler = sampler_of(truth)
    drawn_documents = sampler.draw(READ, random_state(1))
    documents = sampler.sentences(drawn_documents)
    readers = {"a perfect reader": truth.exact.causal_log_probs(documents)}
    if drawn_documents.language is not None:
        told = [
            truth.knowing(k).exact.causal_log_probs([d])
            for k, d in zip(drawn_documents.language, documents, strict=True)
        ]
        readers["one who is told the language"] = [row for (row,) in told]
    with figure(8.4, 2.7, name) as drawn:
        left, right = drawn.subplots(1, 2)
        lengths = truth.exact.length_pmf(longest(truth))
        left.bar(np.arange(len(lengths))[1:], lengths[1:], width=1.0, color=TRUTH)
        left.set_xlabel("tokens of a document")
        left.set_ylabel("probability (exact)")
        bands = [2**k // 2 for k in range(int(np.frexp(truth.exact.mean_length)[1]) + 1)]
        for (label, rows), color in zip(readers.items(), (TRUTH, MODEL), strict=False):
            band = np.concatenate([np.frexp(np.arange(len(row)))[1] for row in rows])
            loss = (np.bincount(band, -np.concatenate(rows)) / np.bincount(band))[: len(bands)]
            right.plot(range(len(loss)), loss, color=color, marker="o", markersize=4, label=label)
        right.set_xticks(range(len(bands)), [f"{low}" if low < 2 else f"{low}-" for low in bands])
        right.set_xlabel("words before, in the document")
        right.set_ylabel("cost of a word, nats")
        right.legend()
        for axes in (left, right):
            axes.grid(which="major")
        return to_svg(drawn, name, f"{name}: lengths, and what a word costs a perfect reader")


def longest(grammar: Truth) -> int:
    """The 99.5th percentile of the lengths of strings."""
    high = 64
    while float(grammar.exact.length_pmf(high).sum()) < 0.995:
        high *= 2
    return int(np.searchsorted(np.cumsum(grammar.exact.length_pmf(high)), 0.995))


def page() -> str:
    """The page, in Markdown."""
    numbers = json.loads(NUMBERS.read_text())
    parts = [HEAD, TABLE, "\n".join(rows(numbers)), ""]
    for name in languages():
        parts += section(name, numbers)
    return "\n".join(parts).rstrip() + "\n"


def rows(numbers: dict[str, Any]) -> Iterator[str]:
    """The table of all languages."""
    yield "| language | words | rules | mean length | entropy, nats a string | bound | GPT-2 | KL, nats a token |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for name, found in numbers.items():
        kl = found["kl"]
        yield (
            f"| [`{name}`](#{presets().get(name, name)}) | {found['words']:,} | {found['rules']:,}"
            f" | {found['mean_length']:.2f} | {found['entropy']:.3f} | {found['bound']:.3f} | {found['ppl']:.3f}"
            f" | {kl['value']:.4f} ({kl['low']:.4f} to {kl['high']:.4f}) |"
        )


def section(name: str, numbers: dict[str, Any]) -> Iterator[str]:
    """One language: what it is, its parameters, sample strings, a tree, its numbers and its picture."""
    each = languages()[name]
    yield f"## {name}\n\n*{each.title[:1].upper()}{each.title[1:]}.*\n\n{(FOLDER / f'{name}.md').read_text()}"
    yield f"**Tests** {each.tests}. **Source:** {each.citation}.\n"
    yield "| parameter | default | range | meaning |\n| --- | --- | --- | --- |"
    for row in parameters(parse(name)[1]):
        yield f"| `{row.key}` | {row.value or 'none'} | {row.values} | {row.meaning} |"
    yield ""
    if each.presets:
        listed = ", ".join(f"`{preset}`" for preset in each.presets)
        yield f"Names for settings: {listed}.\n"
    yield from (strings_of(name) if each.build is None else facts(name, numbers))


def strings_of(name: str) -> Iterator[str]:
    """A language without rules: its words, and sample strings."""
    truth = load_truth(name)
    sampler = sampler_of(truth)
    sentences = sampler.sentences(sampler.draw(SHOWN, random_state(1)))
    yield (
        f"Default, `{reference(*parse(name))}`: {len(truth.vocabulary):,} words and no rules; mean length"
        f" {truth.exact.mean_length:.3f} tokens. Documents:\n"
    )
    yield "\n".join(f"    {shortened(' '.join(sentence))}" for sentence in sentences) + "\n"
    yield f"![Exact lengths of {name}, and what a word costs a perfect reader by the words before]({name}.svg)\n"


def facts(name: str, numbers: dict[str, Any]) -> Iterator[str]:
    """A language that is a grammar: its numbers, sample strings, a tree and its picture."""
    grammar = language(name)
    entropy = derivational_entropy(grammar)
    yield (
        f"Default, `{reference(*parse(name))}`: {len(grammar.symbols):,} symbols, {len(grammar.vocabulary):,} words,"
        f" {grammar.n_rules:,} rules; mean length {grammar.exact.mean_length:.3f} tokens, entropy {entropy:.3f} nats a"
        f" string ({entropy / math.log(2.0):.3f} bits). Strings:\n"
    )
    sampler = Sampler(grammar, None)
    sentences = sampler.sentences(sampler.draw(40, random_state(1)))
    yield "\n".join(f"    {shortened(' '.join(sentence))}" for sentence in sentences[:SHOWN]) + "\n"
    chosen = min(sentences, key=lambda sentence: abs(len(sentence) - 7))
    tree = grammar.viterbi(chosen)[0]
    yield f"The most probable tree of one:\n\n{drawn_tree(tree)}\n"
    for row in (row for row in numbers if parse(row)[0] == name):
        yield f"![Exact lengths of {row}, and the divergence of a model in training]({row}.svg)\n"


def shortened(text: str) -> str:
    """A string of the language that fits the page."""
    return text if len(text) <= WIDTH else text[: text.rindex(" ", 0, WIDTH)] + " ..."


def drawn_tree(tree: Tree) -> str:
    """A tree in letters, without the symbols that binarisation made; of a wide one as many levels as fit the page."""
    from nltk import Tree as Drawable
    from nltk.tree.prettyprinter import TreePrettyPrinter

    def below(node: Tree | str, level: int) -> list[Any]:
        if isinstance(node, str):
            return [node]
        if node.label.startswith("@"):  # made by binarisation
            return [each for child in node.children for each in below(child, level)]
        if level == 0:
            return ["..."]
        return [Drawable(node.label, [each for child in node.children for each in below(child, level - 1)])]

    for levels in range(tree.height(), 0, -1):
        text = TreePrettyPrinter(below(tree, levels)[0]).text(unicodelines=True)
        lines = [f"    {line.rstrip()}" for line in text.splitlines() if line.strip()]
        if max(map(len, lines)) <= WIDTH:
            break
    return "\n".join(lines)


def main() -> None:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("names", nargs="*", help="languages (default: all)")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "gallery")
    given = parser.parse_args()
    if given.what == "run":
        run(given.names or [*ENTRIES, *(set(languages()) - set(grammars()))], given.runs)
    write_text(ROOT / "docs" / "gallery" / "languages.md", page())


if __name__ == "__main__":
    main()
