"""Statistical tendencies in one call: samples compared with an exact truth or with another text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.given import given_truth
from truesource.evaluation.core.oracle import UNKNOWN
from truesource.evaluation.show.result import Result
from truesource.evaluation.sources import Source, by_name, is_truth_source, kind_of, named, read_source
from truesource.evaluation.sources import recorded_condition as recorded_lengths
from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.against_sample import against_sample
from truesource.evaluation.tendencies.against_truth import against_truth
from truesource.evaluation.tendencies.decoding_schemes import classes_for
from truesource.evaluation.tendencies.evaluator import TendenciesSettings
from truesource.evaluation.tendencies.figures import drawn_of, tendencies_figure
from truesource.evaluation.tendencies.report import measures_table
from truesource.evaluation.tendencies.truth import TrueText, differing_habits
from truesource.generator.abilities import require
from truesource.generator.arguments import as_lengths
from truesource.grammar.conditioning import LengthRange, length_condition
from truesource.grammar.embedded import read_stopwords
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.evaluation.tendencies.findings import Tendencies
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.truth import Truth

KIND = "evaluate tendencies"


def evaluate(
    samples: Any,
    reference: Any,
    oracle: Truth | str | Path | bool = True,
    *,
    settings: TendenciesSettings,
    split: str = "test",
    lengths: LengthRange | tuple[int, int] | str | None = None,
    seed: int,
    vocabulary: Sequence[LanguageModel | str | Path] = (),
) -> Result:
    """Compare samples with an exact distribution, or with the sentences of another text.

    Args:
        samples: one or a list, or a mapping by name, of what `truesource.evaluation.sources.read_source` takes.
        reference: a grammar, its file or a language: compare with its exact distribution. Or a text.
        oracle: the truth of a corpus that is the reference: True: the grammar in its folder; False: its sentences.
        settings: of the evaluator.
        split: of corpora.
        lengths: the condition of the truth; None: as the samples record it. With a text: lengths to keep; None: all.
        seed: of samples and tests.
        vocabulary: models of the samples, if these have unknown words; words that one does not know are ``<unk>``.

    Returns:
        A result whose ``detail`` is `truesource.evaluation.tendencies.findings.Tendencies`.

    Raises:
        InputError: something cannot be read, two samples have one name or conflicting lengths, or sentences of one
            beam, which are not independent.
    """
    by_title = by_name(samples)
    for _, sample in by_title:
        _refuse_beams(sample)
    exact = not isinstance(oracle, bool) or (oracle and is_truth_source(reference))
    if not exact and vocabulary:
        raise InputError("--vocabulary goes with --oracle; with --reference, words are compared as they are")
    if exact and settings.definitions == "paper":
        raise InputError("the paper compares with a text: --definitions paper goes with --reference, not with --oracle")
    lines: list[str] = []
    notes: list[str] = []
    if exact:
        truth, recorded = given_truth(reference, oracle)
        condition = _condition(by_title, reference, lengths, recorded, lines, notes)
        pcfg: PCFG = require(truth, "parses", KIND)
        # a sample that has other lengths than the truth differs from it
        texts = _read(by_title, settings.number, seed, split, None, lines, notes)
        words = [source.words for source in texts if source.words is not None]
        words += [words_of_model(model) for model in vocabulary]
        tendencies = _against_truth(texts, pcfg, condition, words, settings, seed, notes)
    else:
        condition = as_lengths(lengths)
        texts = _read(by_title, settings.number, seed, split, condition, lines, notes)
        tendencies = _against_text(texts, reference, condition, split, settings, seed, lines, notes)
    notes += tendencies.notes
    if tendencies.draws_needed is not None:
        notes.append(f"Stars need {tendencies.draws_needed:,} draws or more of each test; some have fewer")
    table = {
        name: {measure: finding.as_score().as_record() for measure, finding in row.items()}
        for name, row in tendencies.findings.items()
    }
    return Result(
        kind=KIND,
        scores=tendencies.as_scores(),
        tables=[measures_table(table, f"Against {'the exact distribution' if exact else 'the reference'}")],
        inputs=lines,
        notes=notes,
        draw=lambda: tendencies_figure(drawn_of(tendencies)),
        detail=tendencies,
    )


def engine_settings(
    settings: TendenciesSettings, texts: Sequence[list[list[str]]], words: Sequence[str], seed: int
) -> TendencySettings:
    """Return the settings of the comparison; stopwords are a class only if the texts or the grammar have some.

    Args:
        settings: of the evaluator.
        texts: that are compared.
        words: of the grammar; none if it is not known.
        seed: of all that is random.
    """
    return TendencySettings(
        classes_for(read_stopwords(settings.stopwords, settings.definitions), [*texts, [list(words)]]),
        chance=settings.chance,
        permutations=settings.permutations,
        variant=settings.definitions,
        seed=seed,
    )


def words_of_model(model: LanguageModel | str | Path) -> tuple[str, ...]:
    """Return the words that a model knows.

    Raises:
        InputError: there is no such model, or it splits words into pieces.
    """
    from truesource.lmtrain.models import as_loaded

    words: tuple[str, ...] = tuple(require(as_loaded(model), "words", "--vocabulary").vocabulary)
    return words


def _condition(
    samples: Sequence[tuple[str, Any]],
    reference: Any,
    lengths: LengthRange | tuple[int, int] | str | None,
    recorded: LengthRange | None,
    lines: list[str],
    notes: list[str],
) -> LengthRange | None:
    """Return the length condition of the truth: the requested one, or else the one that samples or corpus record.

    Raises:
        InputError: two samples have different ones, or no sample records any and none is given.
    """
    recorded_by = {_title(each): text for _, each in samples if (text := recorded_lengths(each)) is not None}
    if len(set(recorded_by.values())) > 1:
        (one, first), (other, second) = list({c: (g, c) for g, c in recorded_by.items()}.values())[:2]
        raise InputError(
            f"the lengths of {one} are {first}, of {other} {second}: no truth has both; compare each by itself"
        )
    if lengths is not None:
        condition = as_lengths(lengths)
        notes += [
            f"Warning: the lengths of {name} are {other}, of the truth here {condition or 'none'}; they differ"
            " for that reason alone"
            for name, other in recorded_by.items()
            if length_condition(other) != condition
        ]
        return condition
    if not recorded_by and recorded is not None:
        recorded_by = {_title(reference): str(recorded)}
    if not recorded_by:
        raise InputError("no sample records the length condition of its corpus; give --lengths, such as 6..25, or none")
    text = next(iter(recorded_by.values()))
    if len(recorded_by) < len(samples) or text != "none":
        lines.append(f"lengths of the truth: {text}, as recorded by {next(iter(recorded_by))}")
    return length_condition(text)


def _title(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else repr(source)


def _read(
    samples: Sequence[tuple[str, Any]],
    n: int,
    seed: int,
    split: str,
    lengths: LengthRange | None,
    lines: list[str],
    notes: list[str],
) -> list[Source]:
    """Read the samples, drawing ``n`` sentences from models; adds a line for each.

    Raises:
        InputError: two samples have one name, one cannot be read, or no sentence of one has such a length.
    """
    texts = [read_source(each, name=name, n=n, seed=seed, lengths=lengths, split=split) for name, each in samples]
    Source.refuse_same_names(texts, "samples")
    lines += map(str, texts)
    notes += [note for source in texts for note in source.notes]
    return texts


def _refuse_beams(sample: Any) -> None:
    """Refuse a file that is not there, and sentences of one beam, which are not independent, as every test assumes."""
    from truesource.lmtrain.decoding.folder import SampleFolder, is_sample_folder

    if not isinstance(sample, str | Path):
        return
    path = named(str(sample))[1]
    kind_of(str(path))
    if is_sample_folder(path) and SampleFolder.load(path).decoding.at_most > 1:
        raise InputError("sentences of one beam are not independent, as every test needs; generate --keep best", path)


def _options(
    settings: TendenciesSettings, texts: Sequence[Source], words: Sequence[str], seed: int, notes: list[str]
) -> TendencySettings:
    """Return the settings of the comparison; notes if it has no stopwords."""
    options = engine_settings(settings, [source.sentences for source in texts], words, seed)
    if "stopwords" not in options.classes:
        which = "the English list" if settings.stopwords is None else str(settings.stopwords)
        notes.append(
            f"No word of the samples is in {which} of stopwords, so their shares are left out; give a list for the"
            " language, one word per line: --stopwords FILE"
        )
    return options


def _against_truth(
    texts: Sequence[Source],
    pcfg: PCFG,
    lengths: LengthRange | None,
    vocabularies: Sequence[tuple[str, ...]],
    settings: TendenciesSettings,
    seed: int,
    notes: list[str],
) -> Tendencies:
    words = set.intersection(*map(set, vocabularies)) if vocabularies else None
    for source in texts if words is None else ():
        if any(UNKNOWN in sentence for sentence in source.sentences):
            raise InputError(
                f"the sample {source.name!r} has unknown words (<unk>), and which they are is up to its model;"
                " name that: --vocabulary MODEL"
            )
    truth = TrueText(pcfg, lengths, vocabulary=words)
    notes += [
        f"Warning: {source.name} and the grammar are not tokenised alike: {habit}"
        for source in texts
        for habit in truth.habits(source.sentences, seed=seed)
    ]
    samples = {source.name: source.sentences for source in texts}
    return against_truth(samples, truth, _options(settings, texts, truth.words, seed, notes))


def _against_text(
    texts: Sequence[Source],
    reference: Any,
    lengths: LengthRange | None,
    split: str,
    settings: TendenciesSettings,
    seed: int,
    lines: list[str],
    notes: list[str],
) -> Tendencies:
    other = read_source(reference, n=settings.number, seed=seed, lengths=lengths, split=split)
    lines.append(str(other))
    notes += [
        *other.notes,
        *(
            f"Warning: {source.name} and {other.name} are not tokenised alike: {habit}"
            for source in texts
            for habit in differing_habits(source.sentences, other.sentences)
        ),
    ]
    samples = {source.name: source.sentences for source in texts}
    return against_sample(samples, other.sentences, _options(settings, texts, (), seed, notes), name=other.name)
