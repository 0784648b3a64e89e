"""`truesource evaluate tendencies`: statistical tendencies of sampled text beside the truth or another text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from truesource.cli.console import console, echo
from truesource.cli.options import Force, Json, Seed, SplitName

if TYPE_CHECKING:
    from truesource.evaluation.tendencies.findings import Finding, Tendencies
    from truesource.evaluation.tendencies.table import TendencySettings
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.inference.exact import Variant
    from truesource.lmtrain.decoding.decode import StepwiseModel

NAME = "tendencies"
SHOWN = (
    ("length", "length_ks", "lengths: KS"),
    ("length", "length_mean_difference", "  mean, difference"),
    ("length", "length_impossible", "  share that cannot be"),
    ("stopwords", "stopwords_ks", "stopwords: KS of shares"),
    ("stopwords", "stopwords_mean_difference", "  mean share, difference"),
    ("symbols", "symbols_ks", "symbols: KS of shares"),
    ("symbols", "symbols_mean_difference", "  mean share, difference"),
    ("unigram", "unigram_tv", "words: total variation"),
    ("unigram", "unigram_linf", "  largest difference"),
    ("unigram", "unknown_share", "  share of <unk>"),
    ("unigram", "outside_share", "  share outside the grammar"),
    ("rank-frequency", "rank_ks", "rank-frequency: KS"),
    ("rank-frequency", "rank_ks_own_law", "  to its own Zipf law"),
    ("rank-frequency", "rank_ks_reference_law", "  to the reference's law"),
    ("rank-frequency", "zipf_exponent", "  Zipf exponent"),
    ("type-token", "heaps_beta", "types: Heaps exponent"),
    ("type-token", "heaps_beta_difference", "  difference"),
    ("type-token", "heaps_dispersion", "  dispersion"),
    ("type-token", "types_gap", "  at equal lengths, difference"),
    ("vocabulary", "types", "different words, equal tokens"),
    ("vocabulary", "bigram_types", "different pairs, equal pairs"),
)  #: rows of the table; the JSON has all
LEVEL = 0.05


def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SAMPLES...",
            help="Folders of samples or corpora, text (a tokenised sentence a line), or model folders to draw from;"
            " NAME=PATH names one.",
        ),
    ],
    oracle: Annotated[
        Path | None, typer.Option("--oracle", help="The grammar: compare with its exact distribution.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="Or a corpus, text or treebank: compare with its sentences.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(
            "--lengths",
            help="Sentence lengths, such as 6..25, or none. With --oracle: the condition of the corpus,"
            " by default as corpora and samples record it; with --reference: both sides without other lengths.",
        ),
    ] = None,
    vocabulary: Annotated[
        list[Path] | None,
        typer.Option(
            "--vocabulary", help="With --oracle: folder of the model that samples are from; other words are unknown."
        ),
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", min=2, help="Sentences to draw from a model folder.")] = 10_000,
    split: SplitName = "test",
    stopwords: Annotated[
        Path | None,
        typer.Option(help="Stopwords, one a line; default: an English list. Give your own for another language."),
    ] = None,
    chance: Annotated[
        int, typer.Option(min=19, help="With --oracle: samples of the truth that show what chance does.")
    ] = 99,
    permutations: Annotated[int, typer.Option(min=19, help="With --reference: permutations of sentences.")] = 999,
    variant: Annotated[
        Literal["default", "paper"],
        typer.Option(help="paper: laws of infinite support, tests as printed in Meister & Cotterell (2021)."),
    ] = "default",
    seed: Seed = 1,
    json: Json = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Also draw it to this SVG file.")] = None,
    force: Force = False,
) -> None:
    """Compare how samples look with the truth: lengths, words, Zipf, Heaps, stopwords, symbols.

    Every distance has a test that holds its size: sentences are independent, words of one sentence are not. p-values
    marked * stay below .05 after adjustment for the whole table.
    """
    from truesource.cli.claims import claim_files
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json, write_text

    if (oracle is None) == (reference is None):
        raise InputError("give either --oracle GRAMMAR, for the exact truth, or --reference TEXT")
    if variant == "paper" and oracle is not None:
        raise InputError("the paper compares with a text: --variant paper goes with --reference, not with --oracle")
    if vocabulary and oracle is None:
        raise InputError("--vocabulary goes with --oracle; with --reference, words are compared as they are")
    outputs = claim_files(json, figure, force=force)
    condition = None if lengths is None else LengthRange.parse(lengths)
    if oracle is not None:
        condition = condition_of(sources, lengths)
    kept = condition if oracle is None else None  # a sample that has other lengths than the truth differs from it
    texts, known = read_samples(sources, n=n, seed=seed, split=split, lengths=kept)
    options = _options(stopwords, list(texts.values()), chance, permutations, variant, seed)
    if oracle is not None:
        known += [words_of_model(folder) for folder in vocabulary or []]
        found = _against_truth(texts, oracle, condition, known, options, seed)
    else:
        found = _against_text(texts, str(reference), condition, split, options)
    print_table(found)
    for note in found.notes:
        echo(note, err=True)
    wrote = []
    with outputs.together():
        if json is not None:
            write_json(json, found.records())
            wrote.append(str(json))
        if figure is not None:
            from truesource.evaluators.tendencies.figures import tendencies_figure
            from truesource.report.figures import standalone

            write_text(figure, standalone(tendencies_figure(found)))
            wrote.append(str(figure))
    done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
    echo(f"{done}. Next: truesource cite")


def condition_of(sources: Sequence[str], lengths: str | None) -> LengthRange | None:
    """The length condition of the truth: as given, or else as the corpora, samples and models say it.

    Raises:
        InputError: two of them have different ones, or none says any and none is given.
    """
    from truesource.cli.sources import kind_of, recorded_condition
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError

    told: dict[str, str] = {}
    for given in sources:
        title, separator, rest = given.partition("=")
        path = rest if separator and title and not Path(given).exists() else given
        kind_of(path)  # refuses what is not there
        found = recorded_condition(Path(path))
        if found is not None:
            told[given] = found
    if len(set(told.values())) > 1:
        (one, first), (other, second) = list({c: (g, c) for g, c in told.items()}.values())[:2]
        raise InputError(
            f"the lengths of {one} are {first}, those of {other} {second}: no truth is that of both; compare each by"
            " itself"
        )
    if lengths is None:
        if not told:
            raise InputError(
                "no sample says under which condition on length it was drawn; give --lengths, such as 6..25, or none"
            )
        lengths = next(iter(told.values()))
        if len(told) < len(sources) or lengths != "none":
            echo(f"lengths of the truth: {lengths}, as those of {next(iter(told))}")
        return LengthRange.parse(lengths)
    condition = LengthRange.parse(lengths)
    for given, found in told.items():
        if LengthRange.parse(found) != condition:
            echo(
                f"Warning: the lengths of {given} are {found}, those of the truth here {lengths}; they differ for that"
                " reason alone",
                err=True,
            )
    return condition


def read_samples(
    sources: Sequence[str], *, n: int, seed: int, split: str, lengths: LengthRange | None = None
) -> tuple[dict[str, list[list[str]]], list[tuple[str, ...]]]:
    """Sentences by name, and the vocabularies of the models that some were drawn from here.

    Raises:
        InputError: two samples have one name, one cannot be read, or no sentence of one has such a length.
    """
    from truesource.cli.sources import read_source
    from truesource.grammar.errors import InputError

    texts: dict[str, list[list[str]]] = {}
    known: list[tuple[str, ...]] = []
    for given in sources:
        title, separator, rest = given.partition("=")
        path = Path(rest if separator and not Path(given).exists() else given)
        if (path / "config.json").is_file():
            name, text, words = _drawn(path, n, seed)
            name = title if separator and not Path(given).exists() else name
            known += [] if words is None else [words]
            drawn, text = len(text), text if lengths is None else [s for s in text if len(s) in lengths]
            left_out = drawn - len(text)
            if not text:
                raise InputError(f"none of the {drawn:,} sentences has {lengths} words; choose other --lengths", path)
        else:
            _refuse_beams(path)
            source = read_source(given, n=n, seed=seed, lengths=lengths, split=split)
            name, text, left_out = source.name, source.sentences, source.left_out
        if name in texts:
            raise InputError(f"two samples are called {name!r}; name one, NAME={given}")
        texts[name] = text
        echo_size(name, text, left_out)
    return texts, known


def echo_size(name: str, text: Sequence[Sequence[str]], left_out: int) -> None:
    """How many sentences are compared, and how many are not."""
    outside = f", {left_out:,} of other lengths left out" if left_out else ""
    echo(f"{name}: {len(text):,} sentences{outside}")


def _refuse_beams(path: Path) -> None:
    """Sentences of one beam are not independent, and every test here takes them to be."""
    from truesource.grammar.errors import InputError
    from truesource.lmtrain.decoding.folder import SampleFolder, is_sample_folder

    if is_sample_folder(path) and SampleFolder.load(path).decoding.at_most > 1:
        raise InputError("sentences of one beam are not independent, as every test needs; generate --keep best", path)


def words_of_model(folder: Path) -> tuple[str, ...]:
    """The words that a model tells apart.

    Raises:
        InputError: there is no such model, or it cuts words into pieces.
    """
    from truesource.grammar.errors import InputError
    from truesource.lmtrain.models import load_model

    words = load_model(folder).vocabulary
    if words is None:
        raise InputError("this model cuts words into pieces and has no list of words; leave --vocabulary out", folder)
    return words


def _drawn(folder: Path, n: int, seed: int) -> tuple[str, list[list[str]], tuple[str, ...] | None]:
    """Finished sentences of a model's own distribution."""
    from truesource.grammar.errors import InputError
    from truesource.lmtrain.decoding.decode import draw
    from truesource.lmtrain.decoding.settings import Decoding
    from truesource.lmtrain.models import load_model

    model = load_model(folder)
    if model.objective != "causal":
        raise InputError("a masked model has no distribution over sentences to draw from", folder)
    drawn = draw(cast("StepwiseModel", model), n, Decoding(), seed=seed)
    text = [s for s, finished in zip(drawn.sentences, drawn.finished, strict=True) if finished and s]
    if len(text) < n:
        echo(f"{n - len(text):,} of {n:,} sentences of {model.name} were cut or empty and are left out", err=True)
    return model.name, text, model.vocabulary


def _options(
    stopwords: Path | None,
    texts: Sequence[list[list[str]]],
    chance: int,
    permutations: int,
    variant: Variant,
    seed: int,
) -> TendencySettings:
    from truesource.embedded import read_stopwords
    from truesource.evaluation.tendencies.decoding_schemes import classes_for
    from truesource.evaluation.tendencies.table import TendencySettings

    classes = classes_for(read_stopwords(stopwords, variant), texts)
    if "stopwords" not in classes:
        which = "the English list" if stopwords is None else str(stopwords)
        echo(
            f"No word of the samples is in {which} of stopwords, so their shares are left out; give a list for the"
            " language, one word a line: --stopwords FILE",
            err=True,
        )
    return TendencySettings(classes, chance=chance, permutations=permutations, variant=variant, seed=seed)


def _against_truth(
    texts: dict[str, list[list[str]]],
    grammar: Path,
    lengths: LengthRange | None,
    known: list[tuple[str, ...]],
    options: TendencySettings,
    seed: int,
) -> Tendencies:
    from truesource.evaluation.tendencies.against_truth import against_truth
    from truesource.evaluation.tendencies.truth import Truth
    from truesource.grammar.errors import InputError
    from truesource.grammar.pcfg import PCFG

    words = set.intersection(*map(set, known)) if known else None
    if words is None:
        for name, text in texts.items():
            if any("<unk>" in sentence for sentence in text):
                raise InputError(
                    f"the sample {name!r} has unknown words (<unk>), and which they are is up to its model;"
                    " name that: --vocabulary MODEL"
                )
    truth = Truth(PCFG.load(grammar), lengths, vocabulary=words)
    for name, text in texts.items():
        for habit in truth.habits(text, seed=seed):
            echo(f"Warning: {name} and the grammar are not cut alike: {habit}", err=True)
    return against_truth(texts, truth, options)


def _against_text(
    texts: dict[str, list[list[str]]], given: str, lengths: LengthRange | None, split: str, options: TendencySettings
) -> Tendencies:
    from truesource.cli.sources import read_source
    from truesource.evaluation.tendencies.against_sample import against_sample
    from truesource.evaluation.tendencies.same_tokens import differing_habits

    source = read_source(given, n=1, seed=0, lengths=lengths, split=split)
    echo_size(source.name, source.sentences, source.left_out)
    for name, text in texts.items():
        for habit in differing_habits(text, source.sentences):
            echo(f"Warning: {name} and {source.name} are not cut alike: {habit}", err=True)
    return against_sample(texts, source.sentences, options, name=source.name)


def print_table(found: Tendencies) -> None:
    """A row a measure, a column a sample: value, p-value, and what chance gives."""
    from rich.table import Table

    against = "the exact distribution" if found.against == "truth" else "the reference"
    table = Table(
        caption=f"against {against}; p: probability of such a value, or one farther off, by chance; * at most {LEVEL}"
        f" after adjustment (Holm) for {_family(found)}; ~ mean by chance"
    )
    table.add_column("measure", no_wrap=True)
    for name in found.findings:
        table.add_column(name, justify="right", overflow="fold")
    for _, measure, title in SHOWN:
        row = [found.findings[name].get(measure) for name in found.findings]
        if any(row):
            table.add_row(title, *(_cell(finding) for finding in row))
    console(40 + 36 * len(found.findings)).print(table)
    first = next(iter(next(iter(found.findings.values())).values()))
    echo(str(first.score))


def _family(found: Tendencies) -> str:
    """Which tests p-values are adjusted for."""
    named = (finding.family for row in found.findings.values() for finding in row.values())
    return next((family for family in named if family is not None), "no test")


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "-"
    value = finding.score.value
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4f}"
    if finding.test is None:
        return text
    star = "*" if finding.p_holm is not None and finding.p_holm <= LEVEL else ""
    chance = finding.test.null_mean
    usual = f"{chance:,.0f}" if abs(chance) >= 100 else f"{chance if abs(chance) >= 5e-5 else 0.0:.4f}"
    return f"{text} ~{usual} p={finding.test.p:.3g}{star}"
