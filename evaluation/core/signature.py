"""Signatures of numbers, with every choice that could change a value.

A signature is ``key:value`` pairs joined by ``|``, such as ``objective:causal|given:6..25|eos:in|...|v:0.1.0``. All
keys are in `KEYS`; `signature` refuses others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Annotated

from pydantic import AfterValidator

from truesource.generator.computing import precision_parts
from truesource.generator.dependence import is_unchecked
from truesource.generator.language_model import ScoringFrame
from truesource.generator.objectives import ORDERS

#: Keys and their meanings, each with one meaning only, by subject.
KEY_GROUPS: dict[str, dict[str, str]] = {
    "What is scored, and under which condition": {
        "model": "name of the model",
        "objective": "causal, masked or any-order",
        "orders": "of any-order scores: random orders of the words of each sentence",
        "given": "length condition of the truth (none: no condition; length: the very length, for masked scores)",
        "transform": "order of the words of the text, if it is not the order of the grammar",
        "truth": "of a transformed text, what the exact probabilities are of: token or sentence",
        "disjoint": "sentences that the split excludes: number and digest, or uncorrected if the truth keeps them",
        "reading": "how a model of pieces scores words",
        "odds": "of minimal pairs: sum (ln P of sentences), pseudo (of masked ln P), or given-length (any order)",
        "drawn": "length condition that minimal pairs were sampled under",
        "phenomenon": "of minimal pairs",
        "networks": "precision of the weights of networks, if it is not float32",
        "dependence": "unchecked: nothing shows that the model uses no later words and no other sentences",
        "parser": "how sentences were parsed, as its user names it",
        "brackets": "which brackets of trees count: evalb-collins",
    },
    "Scoring frame and vocabulary": {
        "eos": "whether the end of a sentence or text counts: in or out",
        "first": "whether the first word counts: in or out",
        "unk": "treatment of unknown words: token, skip, or form-class if a grammar has classes of their forms",
        "vocab": "number of words, and all (of the grammar) or a digest",
        "compared": "vocabulary of a comparison: common, or full and how <unk> is shared out (training+1 or uniform)",
        "before": "token before a text, if the user chose it",
        "window": "maximum number of tokens that the model reads, if it excludes segmentations",
    },
    "What was measured": {
        "unit": "unit of the value",
        "estimator": "how the value is estimated",
        "ratio": "numerator/denominator of a variance ratio",
        "q": "which distribution of the model: renormalised, given-possible, given-possible-sentence",
        "contexts-of": "whose text the contexts are from: truth or model",
        "k": "size of the sets of most probable events",
        "seen": "words that the best predictor sees, or a range of them, and placed if it knows the position",
        "bins": "of calibration",
        "outcomes": "of calibration: exact",
        "variant": "which of several published definitions: default or paper",
        "by": "what a table divides by",
        "group": "row of that table",
        "band": "row of that table, a range",
        "classes": "which classes of tags",
        "tags": "whose tags and depths: expected, drawn or paper",
        "lever": "training that differs in one setting from the training of the model",
        "rung": "reference between word frequencies and the truth",
        "step": "training step of the checkpoint",
        "steps": "training steps of all checkpoints",
        "filling": "order in which a sampler fills gaps: random, confidence or blocks",
        "fills": "steps that a sampler takes for a sentence, or all: one word a step",
        "denoiser": "what gives the words at gaps: model or exact",
        "event": "what sentences are steered to",
        "steered": "how: best-of, filter (of particles), model, tilted or tuned, with its number",
        "below": "threshold, nats a token",
        "family": "distribution that the languages of documents were drawn from",
        "members": "training sentences whose memory is measured: number and digest",
        "fresh": "which fresh sentences they are compared with: unseen without sentences of the training text",
    },
    "Sizes": {
        "sentences": "number that count",
        "excluded": "number of sentences that one side cannot make",
        "impossible": "number of sentences or documents that one side cannot make",
        "longest": "maximum length of a sentence that was scored",
        "longer": "number of sentences longer than that",
        "tokens": "number that count",
        "contexts": "number that count, or number/of all",
        "possible": "number of samples that the truth can make",
        "samples": "number of samples that the value is estimated from",
        "documents": "number that count",
        "left-out": "number of documents that do not count",
        "altered": "number of documents that the tokeniser alters",
        "set-aside-as-altered": "number of sentences left out because the tokeniser alters them",
        "sentences-a-document": "number of sentences joined to one document",
        "words": "number of words that count",
        "exact": "number of documents whose words have exact sums",
        "pairs": "number of minimal pairs that count",
        "unparsed": "number of sentences without a parse",
        "pairs-read": "number of minimal pairs given",
        "cells": "number of trained models in a fit",
        "suite": "of the benchmark: name, version and digest",
        "seeds": "number of trained models that the value is the mean of; of a difference model/baseline",
        "items": "number of words or spans that probes are trained and tested on",
        "labels": "number of labels of a probe",
    },
    "Unigram distributions": {
        "u": "source of the unigram distribution: oracle, train, test or model",
        "u-data": "digest of the text it was counted on",
        "u-smoothing": "added to every count",
        "u-words": "words that share the smoothing",
    },
    "Comparison of texts": {
        "against": "the reference that a sample is compared with",
        "reference": "what the value is compared with: digest of a text, or how a sum was computed",
        "null": "how chance is sampled: number and kind",
        "chance": "number of samples of the truth that show chance",
        "rarefied": "how numbers of types are taken to equal sizes: exact",
        "rarefied-from": "tokens before",
        "rarefied-to": "tokens or pairs of words after",
        "ranks": "how words are ranked",
        "support": "ranks that a law covers",
        "fit": "method that fits a law",
        "law": "formula that is fitted",
        "law-types": "number of types that a law is fitted to",
        "types": "n-grams that are compared: union or reference",
        "interval": "what the ends are, unless they are a confidence interval",
    },
    "Probes": {
        "target": "what is predicted: tag, state or span, or a belief",
        "posterior-given": "what the exact labels are given: sentence or left context",
        "right": "which label counts as right: argmax or sampled",
        "trained": "what a probe is trained on: soft, hard or random-labels",
        "probe": "kind of classifier, or of regression",
        "split": "what divides the items, and sizes of the parts",
        "grouped-by": "what is averaged first",
        "control": "of selectivity",
        "vectors": "which hidden states, or what replaces them",
        "layer": "of the network",
        "decay": "weight decay of the probe",
    },
    "Segmentations": {
        "sum": "what P sums: own-cut (canonical tokenisation), all-cuts or consistent-cuts",
        "bound": "exact, lower, unbiased or part",
        "b": "inverse temperature of the proposal",
        "candidates": "segmentations of a word that are considered",
        "particles": "of the particle filter",
        "tail": "whether unlisted segmentations of a word are sampled",
        "replicates": "independent filters",
        "most_prefixes": "maximum number of contexts of exact enumeration",
        "tolerance": "of bracket",
        "tokeniser": "kind of tokeniser",
        "pieces": "digest of the pieces",
        "scores": "scores of pieces: own, fitted or uniform",
        "proposal": "the same, of estimators",
        "q-scores": "digest of the scores on all lattices",
        "entropy-b": "inverse temperature of the distribution whose entropy is taken",
        "repeated-words": "which repeated words count: all or multi-token",
        "order": "order in which segmentations are summed: by the scores of the tokeniser, or of the model",
        "cuts": "number of segmentations that are summed",
        "training-grammar": "digest of the grammar that the model was trained on",
        "training-given": "its length condition",
        "less": "what is subtracted: digests of grammar and data",
        "baseline": "model or parser whose value is subtracted",
        "repeats": "runs of each estimator",
        "of-documents": "number of documents of the reference",
    },
    "How, and on what": {
        "ci": "method, unit and seed of the interval, or the reason for having none",
        "adjusted": "how p-values are adjusted for several tests, and their number",
        "seed": "of random numbers",
        "flops": "which operations count",
        "data": "digest of the sentences or documents",
        "grammar": "digest of the grammar (none, unknown)",
        "v": "version of truesource",
    },
}
KEYS: dict[str, str] = {key: meaning for group in KEY_GROUPS.values() for key, meaning in group.items()}
_BETWEEN = re.compile(rf"\|(?=(?:{'|'.join(map(re.escape, KEYS))}):)")
#: units of measures whose signatures otherwise say nats/token
_UNITS = {
    **dict.fromkeys(("ppl", "bound", "bound_unconditioned", "ppl_unigram", "pplu", "pplu_bound"), "perplexity"),
    **dict.fromkeys(("relative_ppl", "ratio", "ratio_to_reference"), "ratio"),
    "rho": "correlation",
    **dict.fromkeys(("r2_pearson", "r2_identity", "r2_released"), "share"),
    **dict.fromkeys(("tokens", "sentences", "excluded", "impossible_model", "impossible_oracle"), "count"),
}


def known_key(key: str) -> str:
    """Return the key, if it is one of `KEYS`.

    Raises:
        ValueError: it is not.
    """
    if key not in KEYS:
        raise ValueError(f"{key!r} is not a key of signatures")
    return key


SignatureKey = Annotated[str, AfterValidator(known_key)]


def signature(parts: Mapping[str, object]) -> str:
    """Return ``key:value`` pairs joined by ``|``, the version last.

    Raises:
        ValueError: a key is not one of `KEYS`.
    """
    return "|".join(f"{known_key(key)}:{value}" for key, value in {**signature_parts(parts), "v": _version()}.items())


def signature_parts(parts: Mapping[str, object]) -> dict[str, object]:
    """Return the parts, with the precision of networks unless it is float32: all of a signature but the version."""
    return {**parts, **precision_parts()}


def parts_of(text: str) -> dict[str, str]:
    """Return keys and values of a signature; a value may contain ``|``, but not before a key and a colon."""
    return dict(part.split(":", 1) for part in _BETWEEN.split(text) if ":" in part)


def unit_part(measure: str) -> dict[str, object]:
    """Return the part of a signature that gives the unit of a measure of scores; nats a token unless it has another."""
    return {"unit": _UNITS.get(measure, "nats/token")}


def frame_parts(frame: ScoringFrame, objective: str) -> dict[str, object]:
    """Return parts that say which positions count."""
    return {
        "eos": "in" if frame.eos and objective == "causal" else "out",
        "first": "in" if frame.first else "out",
        "unk": frame.unk,
        **({"orders": ORDERS} if objective == "any-order" else {}),
    }


def dependence_part(model: object) -> dict[str, object]:
    """Return the part of signatures on a custom model that may look ahead, known once it was scored."""
    return {"dependence": "unchecked"} if is_unchecked(model) else {}


def digest_sentences(sentences: Sequence[Sequence[str]]) -> str:
    """Return the first 8 hexadecimal digits of SHA-256 over the sentences, one a line."""
    sha = hashlib.sha256()
    for sentence in sentences:
        sha.update(" ".join(sentence).encode())
        sha.update(b"\n")
    return sha.hexdigest()[:8]


@cache
def _version() -> str:
    return version("truesource")
