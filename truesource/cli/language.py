"""`truesource language`: list the languages of known truth, describe one, and write its grammar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Force, Json, License, Overrides

if TYPE_CHECKING:
    from truesource.grammar.languages import LanguageSettings
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.process import Process
    from truesource.grammar.tree import Tree
    from truesource.grammar.truth import Truth
    from truesource.terminal.output import OutputFiles

WIDTH = 100  #: characters, without a terminal
LONGEST_TREE = 40  #: lines
SAMPLES = 5  #: default number of sample strings


def command(
    name: Annotated[
        str | None, typer.Argument(help="Language to describe, such as dyck or dyck:k=3 (default: list all).")
    ] = None,
    set_: Overrides = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write the grammar to this file (.npz, or text).")
    ] = None,
    number: Annotated[int, typer.Option("-n", "--number", min=0, max=1000, help="Number of sample strings.")] = SAMPLES,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed of the sample strings.")
    ] = DEFAULT_SEED,
    license: License = None,  # noqa: A002
    json: Json = None,
    force: Force = False,
) -> None:
    """List the languages whose exact grammar comes with truesource, or describe one of them.

    The list shows parameters, purpose and source of each language. The description of one language also shows its
    citation, its exact mean length and entropy, and sample strings.

    Every command that takes a grammar also takes a language, such as dyck, or dyck:k=3,depth=5 to set parameters. -o
    writes the grammar of the language to a file.

    Example: truesource language

    Example: truesource language dyck

    Example: truesource language dyck --set k=3 --set depth=5 -o dyck.npz
    """
    from truesource.terminal.output import OutputFiles

    if name is None:
        if (set_, output, license, number, seed) != (None, None, None, SAMPLES, DEFAULT_SEED):
            raise InputError(
                "--set, -o, -n, --seed and --license are for one language; name it, as in truesource language dyck"
            )
        _list(OutputFiles(json=json, force=force))
        return
    from truesource.generator.abilities import require
    from truesource.grammar.formats import target_files
    from truesource.grammar.languages import languages, parse, reference
    from truesource.grammar.truth import load_truth
    from truesource.terminal.output import json_of

    title, settings = parse(name, _overrides(set_ or ()))
    files = [] if output is None else target_files(output)
    outputs = OutputFiles(more=files, json=json, force=force)
    truth = load_truth(reference(title, settings))
    if license is not None:
        truth = _licensed(require(truth, "parses", "--license"), license, output)
    language = languages()[title]
    echo(f"{title}: {language.title}")
    echo(f"tests      {language.tests}")
    echo(f"cite       {language.citation}")
    _show_parameters(settings)
    numbers, samples = _described(truth, number, seed)
    about = {"language": title, "title": language.title, "tests": language.tests, "citation": language.citation}
    record = {**about, "parameters": settings.model_dump(mode="json"), **numbers, "samples": samples}
    if output is not None:
        target = output
        also = outputs.write_with(lambda: _save(truth, target), files, {"json": json_of(record)})
        wrote = " and ".join([*map(str, files), *also])
        echo(f"Wrote {wrote}: {truth!r}. Next: truesource sample {output} -n 100000 -o corpus/")
        return
    also = outputs.write(json=json_of(record))
    wrote = f"Wrote {' and '.join(also)}. " if also else ""
    echo(f"{wrote}Next: truesource sample {reference(title, settings)} -n 100000 -o corpus/")


def _described(truth: Truth, number: int, seed: int) -> tuple[dict[str, object], list[str]]:
    """Print numbers and samples of a grammar or a process, and return them for JSON."""
    from truesource.generator.abilities import require
    from truesource.grammar.process import Process

    if isinstance(truth, Process):
        return _show_process(truth), _show_strings(truth, number, seed) if number else []
    pcfg = require(truth, "parses", "truesource language")
    return _show_figures(pcfg), _show_samples(pcfg, number, seed) if number else []


def _save(truth: Truth, path: Path) -> None:
    from truesource.generator.abilities import require
    from truesource.grammar.formats import save_grammar
    from truesource.grammar.process import Process

    if isinstance(truth, Process):
        truth.save(path, force=True)
    else:
        save_grammar(require(truth, "parses", "a grammar file"), path, force=True)


def _list(files: OutputFiles) -> None:
    """Print all languages: parameters, purpose, source."""
    from textwrap import fill

    from truesource.evaluation.show.table import ReportTable, TableRow
    from truesource.grammar.languages import languages, parameters, short_citation
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    rows, records = [], []
    for name, language in languages().items():
        defaults = {each.key: each.value for each in parameters(language.settings()) if each.value}
        setting_texts = " ".join(f"{key}={value}" for key, value in defaults.items())
        rows.append(TableRow([name, setting_texts, language.tests, short_citation(language.citation)]))
        records.append(
            {
                "language": name,
                "title": language.title,
                "parameters": defaults,
                "presets": list(language.presets),
                "tests": language.tests,
                "citation": language.citation,
            }
        )
    columns = ("language", "parameters and their defaults", "what it tests", "source")
    show(ReportTable(columns=columns, text=(0, 1, 2, 3), rows=rows), WIDTH)
    for name, language in languages().items():
        if language.presets:
            echo(fill(f"Names for settings of {name}: {', '.join(language.presets)}", WIDTH, subsequent_indent="  "))
    written = files.write(json=json_of(records))
    wrote = f"Wrote {' and '.join(written)}. " if written else ""
    echo(f"{wrote}Next: truesource language dyck")


def _licensed(pcfg: PCFG, license: str, output: Path | None) -> PCFG:  # noqa: A002
    """Return the grammar under another licence, which its corpora inherit."""
    from truesource.grammar.support.hub_card import checked_license

    if output is None or output.suffix != ".npz":
        raise InputError("--license is kept in .npz files only; add -o FILE.npz, or use it with truesource sample")
    return replace(pcfg, meta={**pcfg.meta, "license": checked_license(license)})


def _overrides(texts: Sequence[str]) -> dict[str, str]:
    """Read the settings of ``--set``.

    Raises:
        InputError: one is not written ``key=value``, or a key is given twice.
    """
    pairs = [text.partition("=") for text in texts]
    overrides = {key.strip(): value.strip() for key, _, value in pairs}
    if not all(key.strip() and value.strip() for key, _, value in pairs) or len(overrides) < len(pairs):
        raise InputError(f"write --set key=value, each key once, not {' '.join(f'--set {text}' for text in texts)}")
    return overrides


def _show_parameters(settings: LanguageSettings) -> None:
    from truesource.evaluation.show.table import ReportTable, TableRow
    from truesource.grammar.languages import parameters
    from truesource.terminal.tables import show

    rows = [TableRow([each.key, each.value or "none", each.values, each.meaning]) for each in parameters(settings)]
    show(ReportTable(columns=("parameter", "value", "range", "meaning"), text=(0, 1, 2, 3), rows=rows), WIDTH)


def _show_figures(pcfg: PCFG) -> dict[str, object]:
    """Print sizes, mean length and entropy, and return them for JSON."""
    from truesource.grammar.inference.expected import derivational_entropy

    sizes = pcfg.sizes()
    length, entropy = pcfg.exact.mean_length, derivational_entropy(pcfg)
    echo(
        f"symbols {sizes['symbols']:,}, words {sizes['words']:,}; rules: {sizes['binary']:,} binary,"
        f" {sizes['unary']:,} unary, {sizes['lexical']:,} lexical"
    )
    echo(f"mean length {length:.3f} tokens, derivational entropy {entropy:.3f} nats per string")
    return {"digest": pcfg.digest, "sizes": sizes, "mean_length": length, "derivational_entropy": entropy}


def _show_process(process: Process) -> dict[str, object]:
    """Print the numbers of a process, and return them for JSON."""
    length = process.exact.mean_length
    echo(f"process    {len(process.vocabulary):,} words; no rules, but exact next-word distributions")
    echo(f"mean length {length:.3f} tokens")
    return {"digest": process.digest, "sizes": process.sizes(), "mean_length": length}


def _show_strings(process: Process, number: int, seed: int) -> list[str]:
    """Print sampled strings, and return them for JSON."""
    from truesource.cli.inspect import show_strings, stream
    from truesource.generator.process_sampler import sampler_of

    sampler = sampler_of(process)
    sentences = sampler.sentences(sampler.draw(number, stream(seed)))
    show_strings(sentences)
    return [" ".join(sentence) for sentence in sentences]


def _show_samples(pcfg: PCFG, number: int, seed: int) -> list[str]:
    """Print sampled strings and the tree of the shortest; return the strings."""
    from truesource.cli.inspect import draw, show_strings

    sampler, derivations = draw(pcfg, number, seed)
    sentences = sampler.sentences(derivations)
    show_strings(sentences)
    echo("tree of the shortest:")
    shortest = min(sampler.trees(derivations), key=lambda tree: len(tree.leaves()))
    lines = list(_outline(shortest))
    echo("\n".join([*lines[:LONGEST_TREE], *(["  ..."] if len(lines) > LONGEST_TREE else [])]))
    return [" ".join(sentence) for sentence in sentences]


def _outline(tree: Tree) -> Iterator[str]:
    """Yield a line for each node, indented by its depth; a word follows its preterminal."""
    stack: list[tuple[Tree | str, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, str):
            yield f"{'  ' * depth}{node}"
        elif node.is_preterminal:
            yield f"{'  ' * depth}{node.label}  {node.children[0]}"
        else:
            yield f"{'  ' * depth}{node.label}"
            stack += [(child, depth + 1) for child in reversed(node.children)]
