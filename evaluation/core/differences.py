"""Notes on differences of a text from its truth: in grammar, order of words, disjoint splits, conditions.

A number is a bound for the text only if there are none.
"""

from __future__ import annotations

from collections.abc import Iterator

from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import original_digest
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange, condition_text
from truesource.grammar.truth import Truth


def notes_on(setting: Setting, uncorrected: str = "") -> list[str]:
    """Return the notes of the text of a setting, and its differences from the truth; arguments as of `differences`."""
    return [*(() if setting.text is None else setting.text.notes), *differences(setting, uncorrected)]


def differences(setting: Setting, uncorrected: str = "") -> list[str]:
    """Name all differences between the corpus of a setting and its truth; none are known of other texts.

    Args:
        setting: text and truth.
        uncorrected: numbers of full distributions, which the correction for disjoint splits does not change; may be
            empty.
    """
    text, truth = setting.text, setting.language
    if text is None or text.corpus is None or truth is None:
        return []
    return corpus_differences(
        text.corpus, text.split, truth, text.lengths, setting.lengths, setting.excluded, uncorrected=uncorrected
    )


def corpus_differences(
    corpus: Corpus,
    split: str,
    truth: Truth,
    sampled: LengthRange | None,
    condition: LengthRange | None,
    excluded: Exclusion | None,
    *,
    uncorrected: str = "",
) -> list[str]:
    """Name all differences between a split of a corpus and a truth.

    Args:
        corpus: the folder.
        split: the name of the split.
        truth: the grammar or process of the oracle.
        sampled: the length range that the corpus was sampled under.
        condition: the length range of the oracle.
        excluded: the sentences that the oracle excludes, because the splits of the corpus are disjoint.
        uncorrected: as for `differences`.
    """
    exact = excluded is not None and excluded.exact
    return [
        *of_grammar(corpus, truth),
        *_of_transform(corpus),
        *(_of_exclusion(corpus, split, excluded, uncorrected) if excluded is not None and exact else ()),
        *of_conditions(corpus, split, corrected=exact),
        *of_lengths(corpus, sampled, condition),
    ]


def is_sampled_from(corpus: Corpus | None, truth: Truth) -> bool:
    """Return True for a corpus that was known to be sampled from this grammar."""
    return corpus is not None and corpus.grammar_digest == original_digest(truth)


def of_grammar(corpus: Corpus, truth: Truth) -> Iterator[str]:
    """Warn if a corpus was not sampled from this very grammar."""
    if not is_sampled_from(corpus, truth):
        source, digest = corpus.grammar_digest, original_digest(truth)
        yield (
            f"Warning: {corpus.path} was sampled from another grammar ({source[:8]}, not {digest[:8]}), so these"
            " numbers are not bounds, unless the two differ by rounding only."
        )


def _of_transform(corpus: Corpus) -> Iterator[str]:
    transform = corpus.transform
    if transform is not None and not transform.has_grammar:
        yield (
            f"{corpus.path} is transformed by {transform}: the probabilities of sentences and of masked tokens are"
            " exact; the probabilities of tokens given the words before them are unknown."
        )


def _of_exclusion(corpus: Corpus, split: str, excluded: Exclusion, uncorrected: str) -> Iterator[str]:
    but = f" But {uncorrected} are of the grammar itself (disjoint:uncorrected)." if uncorrected else ""
    yield (
        f"{split} of {corpus.path} excludes the {len(excluded.sentences):,} sentences of earlier splits"
        f" ({excluded.probability:.6g} of the probability); the oracle excludes them exactly.{but}"
    )


def of_conditions(corpus: Corpus, split: str, *, corrected: bool = False) -> Iterator[str]:
    """Warn of conditions of a corpus that the oracle lacks.

    Args:
        corpus: the folder.
        split: the name of the split.
        corrected: the oracle excludes what disjoint splits exclude.
    """
    record = corpus.record
    cap, excluded = record["height_cap"], corpus.excluded(split)
    if cap is not None:
        yield (
            f"Warning: {corpus.path} has no trees higher than {cap['max_height']}, but the oracle has: it"
            f" underestimates ln P of each sentence by up to {-cap['log_probability']:.3g} nats."
        )
    if excluded is not None and not corrected:
        yield (
            f"Warning: {split} of {corpus.path} excludes the sentences of earlier splits, but the oracle does not: add"
            f" {excluded['log_correction']:.6g} nats to the log probability of each sentence"
            " (disjoint:uncorrected)."
        )
    if record["call"]["overlap"] == "unique":
        yield (
            f"Warning: no sentence occurs twice in {corpus.path}, so frequent sentences are too rare, and the"
            " oracle's perplexity is not a bound."
        )


def disjoint_exactly(corpus: Corpus, split: str) -> bool:
    """Return True if a corpus records exactly what its disjoint splits exclude from this one."""
    excluded = corpus.excluded(split)
    return excluded is not None and bool(excluded["exact"])


def of_lengths(corpus: Corpus, sampled: LengthRange | None, condition: LengthRange | None) -> Iterator[str]:
    """Warn if the length ranges of a corpus and of the oracle differ."""
    if sampled != condition:
        yield (
            f"Warning: {corpus.path} was sampled with {condition_text(sampled)}, but the oracle has"
            f" {condition_text(condition)}, so its numbers are not bounds for this corpus."
        )
