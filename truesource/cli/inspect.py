"""`truesource inspect`: check a grammar, and how much of a text it covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.grammar.conditioning import length_condition
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Condition, Force, Grammar, Json, SplitName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from truesource.evaluation.show.table import ReportTable
    from truesource.generator.sampler import Derivations, Sampler
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.diagnostics import Coverage, Diagnosis
    from truesource.grammar.pcfg import PCFG


MOST = 10  #: unknown words listed
MOST_WORDS = 60  #: the words of a larger grammar are not listed
LONGEST_STRING = 60  #: maximum number of words shown of a sample
_STREAM = 0x1A46  #: separates these samples from a corpus sampled with the same seed


def command(
    grammar: Grammar,
    text: Annotated[
        Path | None, typer.Argument(help="Corpus folder, or text with one tokenised sentence per line.")
    ] = None,
    lengths: Condition = None,
    split: SplitName = "eval",
    number: Annotated[int, typer.Option("-n", "--number", min=0, max=1000, help="Number of sample sentences.")] = 3,
    distances: Annotated[
        int,
        typer.Option(min=0, max=1000, help="Mutual information of words 1 to N apart, and of sentence halves."),
    ] = 0,
    floor: Annotated[
        int | None,
        typer.Option(min=1, help="Distance from the truth of a learner that knows the rules and counts N trees."),
    ] = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Check a grammar: sizes, consistency, mean length, entropy, cycles, useless nonterminals, sample sentences.

    Also list the words of a small grammar: a misspelt nonterminal is read as a word. With TEXT, report its coverage:
    unknown words, impossible sentences, mean log probability. A line that starts with ! is a problem. --distances shows
    how fast the dependence of words falls. --floor shows the expected distance of a learner that knows the rules.

    Example: truesource inspect grammar.npz corpus/
    """
    from truesource.grammar.diagnostics import coverage, diagnose, is_serious
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.errors import InputError
    from truesource.terminal.inputs import read_text
    from truesource.terminal.output import OutputFiles, json_of
    from truesource.terminal.tables import keep

    files = OutputFiles(json=json, force=force)
    if text is None and lengths is not None and not distances:
        raise InputError("--lengths needs a TEXT or --distances; add one of them or remove --lengths")
    read = None if text is None else read_text(text, split)
    sentences, sampled = ([], None) if read is None else (read.sentences, read.lengths)
    condition = length_condition(lengths, sampled)
    pcfg = PCFG.load(grammar, lenient=True)
    diagnosis = diagnose(pcfg)
    if (language := pcfg.meta.get("language")) is not None:
        echo(f"language {pcfg.identity}; cite {language['citation']}")
    _show_grammar(diagnosis)
    show_words(pcfg)
    record: dict[str, object] = {
        **asdict(diagnosis),
        "reading": {key: pcfg.meta[key] for key in ("normalised", "empty") if key in pcfg.meta},
        "samples": [] if is_serious(diagnosis) else _show_samples(pcfg, number),
    }
    problems = list(diagnosis.problems)
    if text is not None:
        record["coverage"] = _show_coverage(coverage(pcfg, sentences, lengths=condition), condition, text, problems)
    if distances and not is_serious(diagnosis):
        record["mutual_information"] = _show_dependence(pcfg, distances, condition)
        if text is not None and (halves := _show_halves(pcfg, sentences)):
            record["halves"] = halves
    if floor is not None and not is_serious(diagnosis):
        record["data_floor"] = _show_floor(pcfg, floor)
    for problem in problems:
        echo(f"! {problem}")
    wrote = "" if problems else "No problem found. "
    keep(_table(record))
    if written := files.write(json=json_of(record)):
        wrote += f"Wrote {' and '.join(written)}. "
    sample = f"truesource sample {grammar} -n 100000 -o corpus/"
    echo(f"{wrote}Next: {f'correct {grammar}, then inspect it again' if is_serious(diagnosis) else sample}")


def _table(record: Mapping[str, object]) -> ReportTable:
    """Return a table with a row for each number of a record."""
    from truesource.evaluation.show.table import ReportTable, TableRow, number_cell

    seen = record.get("coverage")
    numbers = {**record, **(seen if isinstance(seen, dict) else {})}
    return ReportTable(
        columns=("measure", "value"),
        rows=[
            TableRow([name, number_cell(value, "," if isinstance(value, int) else ".6g")])
            for name, value in numbers.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        ],
    )


def _show_grammar(diagnosis: Diagnosis) -> None:
    echo(f"symbols {diagnosis.symbols:,}, words {diagnosis.words:,}")
    echo(f"rules: {diagnosis.binary:,} binary, {diagnosis.unary:,} unary, {diagnosis.lexical:,} lexical")
    echo(f"total mass {diagnosis.total_mass:.9f}, spectral radius {diagnosis.spectral_radius:.6f}")
    if diagnosis.mean_length is not None and diagnosis.derivational_entropy is not None:
        echo(
            f"mean length {diagnosis.mean_length:.3f} tokens,"
            f" derivational entropy {diagnosis.derivational_entropy:.3f} nats per sentence"
        )
    echo(_cycles("unary cycles", diagnosis.unary_cyclic, diagnosis.unary_cycle_groups, diagnosis.unary_cycle))
    echo(_cycles("left recursion", diagnosis.left_recursive, diagnosis.left_recursive_groups, diagnosis.left_cycle))


def _show_samples(pcfg: PCFG, number: int) -> list[str]:
    """Print sampled sentences, and return them for JSON."""
    if not number:
        return []
    sampler, derivations = draw(pcfg, number, DEFAULT_SEED)
    sentences = sampler.sentences(derivations)
    echo("for example:")
    show_strings(sentences)
    return [" ".join(sentence) for sentence in sentences]


def _cycles(what: str, symbols: int, groups: int, example: tuple[str, ...]) -> str:
    """Return one line on cycles, which inference handles exactly."""
    if not symbols:
        return f"{what}: none"
    some = f"{symbols:,} symbol{'s' if symbols > 1 else ''} in {groups:,} group{'s' if groups > 1 else ''}"
    return f"{what}: {some}, such as {' -> '.join(example)}"


def _show_coverage(seen: Coverage, lengths: LengthRange | None, text: Path, problems: list[str]) -> dict[str, object]:
    """Print and return the coverage of a text by a grammar. A text without any word of the grammar is a problem."""
    from truesource.grammar.support.printable import list_lines

    words = ", ".join(f"{word} ({n:,})" for word, n in seen.unknown[:MOST])
    more = "" if seen.unknown_types <= MOST else ", ..."
    echo(f"text: {seen.sentences:,} sentences, {seen.tokens:,} tokens, {seen.types:,} types")
    echo(
        f"unknown words: {seen.unknown_tokens:,} tokens ({seen.unknown_tokens / seen.tokens:.2%}),"
        f" {seen.unknown_types:,} types ({seen.unknown_types / seen.types:.2%})" + (f": {words}{more}" if words else "")
    )
    within = "" if lengths is None else f" with {lengths} tokens"
    where = f": {list_lines(seen.impossible)}" if seen.impossible else ""
    echo(f"sentences with probability 0{within}: {len(seen.impossible):,}{where}")
    if seen.mean_log_prob is not None:
        echo(f"mean log probability of the others: {seen.mean_log_prob:.4f} nats per sentence")
    if seen.unknown_tokens == seen.tokens:
        problems.append(f"no word of {text} is in the grammar; compare the words above with the words of the text")
    return asdict(seen)


def _show_dependence(pcfg: PCFG, most: int, lengths: LengthRange | None) -> list[float]:
    """Print and return the mutual information of words 1 to ``most`` words apart, in nats."""
    from truesource.grammar.inference.dependence import mutual_information

    values: list[float] = mutual_information(pcfg, most, lengths).tolist()
    within = "" if lengths is None else f", sentences of {lengths} tokens"
    echo(f"mutual information of words 1, 2, ... apart, nats{within}: {', '.join(f'{value:.4f}' for value in values)}")
    return values


def _show_floor(pcfg: PCFG, trees: int) -> dict[str, float]:
    """Print and return the expected distance of a learner that counts trees from the grammar."""
    from truesource.grammar.estimate.data_floor import data_floor, free_parameters

    floor = data_floor(pcfg, trees)
    a_token, free = floor / (pcfg.exact.mean_length + 1.0), free_parameters(pcfg)
    echo(
        f"floor of the data: a learner that knows the rules and counts {trees:,} trees is {floor:.4f} nats a sentence"
        f" ({a_token:.4f} a token) from the truth on average; {free:,} free probabilities"
    )
    return {"trees": trees, "nats_a_sentence": floor, "nats_a_token": a_token, "free_probabilities": free}


def _show_halves(pcfg: PCFG, sentences: Sequence[Sequence[str]]) -> dict[str, float | None]:
    """Print and return the mutual information of the two halves of a sentence, in nats."""
    import numpy as np

    from truesource.evaluation.measures.bootstrap import Interval, ends, resampled_ratio
    from truesource.grammar.inference.dependence import halves_information

    values = halves_information(pcfg, sentences)
    values = values[np.isfinite(values)]
    if not len(values):
        return {}
    interval = ends(*resampled_ratio(values, np.ones(len(values)), seed=DEFAULT_SEED))
    value, low, high = Interval(float(values.mean()), *interval)
    within = "" if low is None else f" [{low:.4f}, {high:.4f}]"
    echo(f"mutual information of the halves of a sentence, given its length, nats: {value:.4f}{within}")
    return {"value": value, "low": low, "high": high}


def draw(pcfg: PCFG, number: int, seed: int) -> tuple[Sampler, Derivations]:
    """Sample derivations to show, and return them with the sampler that reads them."""
    from truesource.generator.sampler import Sampler

    sampler = Sampler(pcfg)
    return sampler, sampler.draw(number, stream(seed))


def stream(seed: int) -> NDArray[np.uint64]:
    """Return the random numbers of samples to show."""
    from truesource.grammar.support.arrays import random_state

    return random_state(seed, _STREAM)


def show_strings(sentences: list[list[str]]) -> None:
    """Print a line for each sentence; long ones are cut."""
    for sentence in sentences:
        more = "" if len(sentence) <= LONGEST_STRING else f" ... ({len(sentence):,} words)"
        echo(f"  {' '.join(sentence[:LONGEST_STRING])}{more}")


def show_words(pcfg: PCFG) -> None:
    """Print the words of a small grammar, which would include a misspelt nonterminal."""
    if len(pcfg.vocabulary) <= MOST_WORDS:
        echo(f"the words: {' '.join(pcfg.vocabulary)}")
