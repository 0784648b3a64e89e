"""Naturalness in one call: texts and grammars of all kinds compared with a treebank or another text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.differences import of_grammar, of_lengths
from truesource.evaluation.naturalness.compare import Naturalness, compare_naturalness
from truesource.evaluation.naturalness.evaluator import NaturalnessSettings
from truesource.evaluation.naturalness.report import drawn_of, measures_table, naturalness_figure
from truesource.evaluation.show.result import Result
from truesource.evaluation.sources import Source, by_name, first_condition, read_source
from truesource.generator.arguments import as_truth
from truesource.grammar.pcfg import PCFG

if TYPE_CHECKING:
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.conventions import Name
    from truesource.grammar.truth import Truth

KIND = "evaluate naturalness"


@dataclass(frozen=True)
class MeasuredNaturalness:
    """Texts that were compared, and the comparison."""

    sources: Sequence[Source]  #: the reference first
    comparison: Naturalness


def evaluate(
    sources: Any,
    reference: Any,
    oracle: Truth | str | Path | bool = True,
    *,
    settings: NaturalnessSettings,
    split: str = "train",
    lengths: LengthRange | tuple[int, int] | str | None = None,
    seed: int,
    convention: Name = "penn",
    after_reading: Callable[[Source], None] | None = None,
) -> Result:
    """Compare texts with a reference: words, lengths, n-grams.

    Args:
        sources: one or a list, or a mapping by name, of what `truesource.evaluation.sources.read_source` takes.
        reference: one of these, usually held-out trees.
        oracle: grammar of the corpora, for their exact lengths; True: the one in each folder; False: none.
        settings: of the evaluator.
        split: of corpora.
        lengths: of the sentences; None: as the first of the sources records them.
        seed: of samples, halves and intervals.
        convention: of treebanks.
        after_reading: is called with each text that was read.

    Returns:
        A result whose ``detail`` is `MeasuredNaturalness`.

    Raises:
        InputError: something cannot be read, or two sources have one name.
        NothingToMeasureError: a text has too few words.
    """
    named_sources = [("", reference), *by_name(sources)]
    condition, line = first_condition(lengths, [each for _, each in named_sources])
    texts = []
    for name, each in named_sources:
        text = read_source(
            each, name=name, n=settings.sentences, seed=seed, lengths=condition, split=split, convention=convention
        )
        texts.append(text)
        if after_reading is not None:
            after_reading(text)
    Source.refuse_same_names(texts)
    grammars, notes = _grammars(texts, oracle, condition)
    comparison = measure(
        {source.name: source.sentences for source in texts},
        grammars,
        settings,
        lengths=condition,
        seed=seed,
        documents=texts[0].documents,
    )
    return Result(
        kind=KIND,
        scores=comparison.as_scores(),
        tables=[measures_table(comparison.records(), comparison.sentences)],
        inputs=[*filter(None, [line]), *map(str, texts)],
        notes=[*(note for source in texts for note in source.notes), *notes],
        draw=lambda: naturalness_figure(drawn_of(comparison)),
        detail=MeasuredNaturalness(texts, comparison),
    )


def measure(
    sources: Mapping[str, Sequence[Sequence[str]]],
    grammars: Mapping[str, PCFG],
    settings: NaturalnessSettings,
    *,
    lengths: LengthRange | None,
    seed: int,
    documents: Sequence[int] | None = None,
) -> Naturalness:
    """Compare the first sentences; see `truesource.evaluation.naturalness.compare.compare_naturalness`.

    Args:
        sources: sentences by name, the reference first.
        grammars: by name of the source that each generated under ``lengths``.
        settings: of the comparison.
        lengths: condition of the grammars.
        seed: of all that is random.
        documents: of the reference, the number of the document of each sentence; None: not known.
    """
    used = {name: sentences[: settings.sentences] for name, sentences in sources.items()}
    high = max((len(sentence) for sentences in used.values() for sentence in sentences), default=0)
    return compare_naturalness(
        used,
        next(iter(used)),
        exact={name: pcfg.exact.length_pmf(high, lengths) for name, pcfg in grammars.items()},
        variant=settings.definitions,
        seed=seed,
        documents=None if documents is None else documents[: settings.sentences],
    )


def _grammars(
    texts: Sequence[Source], oracle: Truth | str | Path | bool, lengths: LengthRange | None
) -> tuple[dict[str, PCFG], list[str]]:
    """Return grammars of the sampled texts and of the corpora, by name, and notes on corpora that differ from them."""
    grammars = {source.name: source.pcfg for source in texts if source.pcfg is not None}
    if oracle is False:
        return grammars, []
    notes: list[str] = []
    other = None if oracle is True else as_truth(oracle)
    for source in texts:
        corpus = source.corpus
        if corpus is None or (other is None and (corpus.grammar_file is None or corpus.transform is not None)):
            continue
        truth = corpus.truth if other is None else other
        if isinstance(truth, PCFG):
            notes += [*of_grammar(corpus, truth), *of_lengths(corpus, corpus.lengths, lengths)]
            grammars[source.name] = truth
    return grammars, notes
