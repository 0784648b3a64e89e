"""Exact bounds of a text per piece of a tokeniser, and in bits per byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truesource.evaluation.core.cutting import cutter
from truesource.evaluation.core.exclusion import disjoint_part
from truesource.evaluation.core.oracle import Oracle, condition_part
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.sentence_records import SentenceRecord
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.core.transformed import require_tokens, transform_parts
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratio

SAME_NATS = 1e-6  #: difference of the score of a sentence in words and in pieces, below which pieces spell it


def piece_bounds(
    setting: Setting, records: Sequence[SentenceRecord], tokenizer: Any, parts: Mapping[str, object]
) -> list[Score]:
    """Return ``piece_bound``, the perplexity of a piece or sentence end, and ``bits_per_byte`` of the text.

    Bytes are of UTF-8, with one for the space between two words; the ends of sentences are in the bits, not in the
    bytes. If words of the text share their pieces with others, as unknown words do, pieces do not spell the text, and
    ``bits_per_byte`` is left out.

    Args:
        setting: text and truth.
        records: causal records of `sentence_records`.
        tokenizer: see `truesource.evaluation.core.cutting.cutter`.
        parts: entries of the signature on the excluded sentences, their number, and the reading of words.

    Raises:
        InputError: its pieces have no exact distribution, or it cannot cut a word.
    """
    cut = cutter(tokenizer)
    language, truth = cut.language(setting.known), setting.known
    possible = [record for record in records if record["possible"]]
    pieces = cut.cut([record["tokens"] for record in possible])
    nats = -np.array([record["logprob"] for record in possible], dtype=np.float64)
    spells = True  # whether pieces tell the words of the text from all others
    if language.truth is not truth:  # several words have the same pieces, and together their probability
        require_tokens(setting.transform, "causal", "a bound of pieces that several words share")
        excluded = None if setting.excluded is None else setting.excluded.in_pieces(cut.cut)
        scores = Oracle(language, lengths=setting.lengths, excluded=excluded).score(pieces)
        together = np.bincount(scores.sentence, -scores.log_prob, minlength=len(pieces)).astype(np.float64)
        spells, nats = np.allclose(together, nats, rtol=0.0, atol=SAME_NATS), together
    counts = {"piece_bound": (nats, np.array([len(row) + 1.0 for row in pieces]))}
    if spells:
        lengths = np.array([float(len(" ".join(record["tokens"]).encode())) for record in possible])
        counts["bits_per_byte"] = nats / np.log(2.0), lengths
    shared = {
        "given": condition_part("causal", setting.lengths),
        **disjoint_part(setting.excluded),
        "eos": "in",
        "ci": ci_part(len(possible), setting.seed),
        "sentences": len(possible),
        "impossible": len(records) - len(possible),
        **transform_parts(truth, setting.transform, "causal"),
        **parts,
        "data": digest_sentences([record["tokens"] for record in records]),
        "grammar": truth.identity,
        "pieces": language.segmentation.digest[:8],
    }
    bounds = []
    for name, (total, count) in counts.items():
        mean, interval = total.sum() / count.sum(), np.maximum(resampled_ratio(total, count, seed=setting.seed), 0.0)
        per_piece = name == "piece_bound"
        signed = {**shared, "unit": "perplexity" if per_piece else "bits/byte", "tokens": int(count.sum())}
        value = float(np.exp(mean) if per_piece else mean)
        bounds.append(Score(name, value, signature(signed), *ends(*(np.exp(interval) if per_piece else interval))))
    return bounds
