"""Documents of several sets taken together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from truesource.evaluation.tokenisation.results import Evaluation
from truesource.evaluation.tokenisation.run_estimators import digest_scores


def pool(evaluations: Mapping[str, Evaluation]) -> Evaluation:
    """The evaluation of all documents of some sets, in their order; of one set, the set's own.

    Numbers of documents go on from set to set. Signatures name the data of each set.

    Args:
        evaluations: by name of the set, all of one model with the same runs.
    """
    first, *others = evaluations.values()
    if not others:
        return first
    if any(other.model != first.model or list(other.runs) != list(first.runs) for other in others):
        raise ValueError("sets are pooled of one model and with the same runs")
    numbers, left_out, begin = [], [], 0
    for found in evaluations.values():
        numbers.append(found.numbers + begin)
        left_out += [replace(text, number=text.number + begin) for text in found.left_out]
        begin += 1 + max([*found.numbers.tolist(), *(text.number for text in found.left_out)])
    documents = tuple(document for found in evaluations.values() for document in found.documents)
    parts: dict[str, object] = {}
    for found in evaluations.values():
        parts |= found.parts  # a window is told where it leaves out segmentations of some text
    parts |= {
        "documents": len(documents),
        "left-out": len(left_out),
        "altered": sum(document.text.altered for document in documents),
        "q-scores": digest_scores(documents),
        "data": "+".join(f"{name}:{found.parts['data']}" for name, found in evaluations.items()),
    }
    return replace(
        first,
        documents=documents,
        numbers=np.concatenate(numbers),
        estimates={label: sum((found.estimates[label] for found in evaluations.values()), ()) for label in first.runs},
        left_out=tuple(left_out),
        parts=parts,
    )
