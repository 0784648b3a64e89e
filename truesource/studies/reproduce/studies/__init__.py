"""Measurements of rows next to the evaluators, in the folder of a finished run, by the name of a row's ``study``.

Each takes the folder and its configuration, and returns records with a seed if a network is one of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from truesource.run.config import RunConfig
from truesource.studies.reproduce.run_records import RunRecord
from truesource.studies.reproduce.studies.construction import construction_frequency
from truesource.studies.reproduce.studies.documents import fresh_documents, sentences_until_known
from truesource.studies.reproduce.studies.first_phase import first_languages
from truesource.studies.reproduce.studies.orders import local_entropy
from truesource.studies.reproduce.studies.samples import generated_strings, k_gram_samples

STUDIES: Mapping[str, Callable[[Path, RunConfig], list[RunRecord]]] = {
    "fresh-documents": fresh_documents,
    "sentences-until-known": sentences_until_known,
    "construction-frequency": construction_frequency,
    "local-entropy": local_entropy,
    "generated-strings": generated_strings,
    "k-gram-samples": k_gram_samples,
    "first-languages": first_languages,
}
