"""Samples of models by several decoding schemes, compared with the truth or a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.against_sample import against_sample
from truesource.evaluation.tendencies.against_truth import against_truth
from truesource.evaluation.tendencies.findings import Tendencies
from truesource.evaluation.tendencies.truth import TrueText, stopwords_among, symbols

Sentences = list[list[str]]
ORACLE = "oracle"  #: fresh samples of the truth
_STREAM = 0x6F7261636C65  #: keeps these apart from the samples that show chance
HEADLINE = ("length_ks", "stopwords_ks", "symbols_ks", "unigram_tv", "rank_ks", "types")  #: columns of the report
NEAR = 0.9  #: samples with more than this share of the sentences are taken at one size


@dataclass(frozen=True)
class ModelSample:
    """Sentences of a model by a decoding scheme."""

    model: str
    scheme: str
    sentences: Sentences  #: that the model ended and that have words
    unfinished: int  #: number of sentences that reached the maximum length, excluded
    empty: int  #: number of sentences without words, excluded


def classes_for(
    stopwords: Sequence[str], texts: Sequence[Sentences]
) -> dict[str, Callable[[Sequence[str]], Sequence[str]]]:
    """Return classes whose shares are measured; stopwords only if some of these texts have any."""
    words = {word for text in texts for sentence in text for word in sentence}
    if not stopwords_among(words, stopwords):
        return {"symbols": symbols}
    return {"stopwords": partial(stopwords_among, stopwords=stopwords), "symbols": symbols}


def same_size(samples: Sequence[ModelSample]) -> list[ModelSample]:
    """Cut samples with few missing sentences to one size, so that one null distribution serves them."""
    most = max((len(sample.sentences) for sample in samples), default=0)
    size = min((len(sample.sentences) for sample in samples if len(sample.sentences) >= NEAR * most), default=0)
    return [
        replace(sample, sentences=sample.sentences[:size]) if len(sample.sentences) >= size else sample
        for sample in samples
    ]


def compare(
    samples: Sequence[ModelSample],
    truth: TrueText,
    options: TendencySettings,
    reference: Sentences | None = None,
) -> Mapping[str, Tendencies]:
    """Compare all samples, and fresh ones of the truth, by scheme.

    Args:
        samples: samples that are not empty.
        truth: of the vocabulary that all are read in.
        options: of the comparison.
        reference: a text to compare with; None: the truth itself.

    Returns:
        For each scheme, findings and curves of ``oracle`` and of the models by name (and of ``reference``). P-values
        of `HEADLINE` are adjusted (Holm) for all models of a scheme, for the oracle in its own row; p-values of other
        measures for all tests of the comparison.
    """
    size = max(len(sample.sentences) for sample in samples)
    (fresh,) = truth.samples(size, 1, seed=options.seed + _STREAM)  # chance has the seed itself
    words, codes, of_truth = truth.words, iter(fresh.tokens.tolist()), []
    for length in fresh.lengths.tolist():
        of_truth.append([words[next(codes)] for _ in range(length)])
    sources: dict[str, Sentences] = {ORACLE: of_truth}
    keys = {f"{sample.model} / {sample.scheme}": sample for sample in samples}
    sources |= {key: sample.sentences for key, sample in keys.items()}
    if reference is None:
        compared = against_truth(sources, truth, options)
    else:
        read = {key: truth.read_as_text(sentences) for key, sentences in sources.items()}
        compared = against_sample(read, truth.read_as_text(reference), options)
    parts = {}
    for scheme in dict.fromkeys(sample.scheme for sample in samples):
        names = {ORACLE: ORACLE, **{key: sample.model for key, sample in keys.items() if sample.scheme == scheme}}
        if reference is not None:
            names["reference"] = "reference"
        part = replace(
            compared,
            findings={name: compared.findings[key] for key, name in names.items()},
            curves={name: compared.curves[key] for key, name in names.items()},
        )
        models = [name for name in names.values() if name not in (ORACLE, "reference")]
        what = f"the {{}} tests of {', '.join(HEADLINE)}"
        part = part.adjusted_for(dict.fromkeys(models, HEADLINE), f"{what} of all models by {scheme}")
        parts[scheme] = part.adjusted_for({ORACLE: HEADLINE}, f"{what} of the oracle")
    return parts


def record_of(
    parts: Mapping[str, Tendencies], samples: Sequence[ModelSample], truth: TrueText, notes: Sequence[str] = ()
) -> dict[str, object]:
    """Return all but the curves, for JSON, with further notes."""
    first = next(iter(parts.values()))
    return {
        "against": first.against,
        "grammar": truth.signature_part,
        "words": len(truth.words),
        "collapsed": truth.collapsed,
        "samples": [
            {
                "model": sample.model,
                "scheme": sample.scheme,
                "sentences": len(sample.sentences),
                "cut": sample.unfinished,
                "empty": sample.empty,
            }
            for sample in samples
        ],
        "tokens": first.tokens,
        "draws_needed": first.draws_needed,
        "notes": [*first.notes, *notes],
        "records": [
            {"scheme": scheme, **record} for scheme, tendencies in parts.items() for record in tendencies.records()
        ],
    }
