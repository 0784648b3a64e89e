"""What a run was asked to measure and found nothing to measure, for the sections of the report."""

from __future__ import annotations

from truesource.report.folder import FinishedRun

#: section in which each kind of stage reports
SECTIONS = {
    "naturalness": "naturalness",
    "divergence": "divergence",
    "tokenisation": "cuts",
    "samples": "tendencies",
    "tendencies": "tendencies",
    "pplu": "tendencies",
    "pairs": "pairs",
    "dynamics": "dynamics",
    "probing": "probing",
}


def unmeasured(run: FinishedRun) -> dict[str, list[str]]:
    """By section, why there was nothing to measure: a sentence a reason, naming the models it holds for."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, stage in run.stages.items():
        kind, _, model = name.partition(":")
        note = stage["unmeasured"]
        if note is not None and kind in SECTIONS:
            found.setdefault(SECTIONS[kind], {}).setdefault(note["reason"], []).append(model)
    for model, record in run.probing.items():
        for target, note in record.get("missing", {}).items():
            found.setdefault("probing", {}).setdefault(note["reason"], []).append(f"{target} of {model}")
    return {part: [_sentence(reason, models) for reason, models in notes.items()] for part, notes in found.items()}


def _sentence(reason: str, models: list[str]) -> str:
    """The first stage of a kind that all models share has no model; the others only repeat its reason."""
    whom = "" if "" in models else f" ({', '.join(models)})"
    return f"Nothing to measure{whom}: {reason}."
