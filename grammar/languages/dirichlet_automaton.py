"""Documents of automata with a known graph and unknown probabilities."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from truesource.grammar.building import LARGEST_SEED
from truesource.grammar.documents.document import DocumentProcess
from truesource.grammar.documents.rows import DirichletRows
from truesource.grammar.documents.settings import DocumentSettings
from truesource.grammar.languages import Language
from truesource.grammar.languages.pfsa import PfsaSettings, automaton
from truesource.grammar.support.printable import meter
from truesource.grammar.support.settings import DEFAULT_SEED


class DirichletAutomatonSettings(DocumentSettings):
    """Parameters of documents of automata of unknown probabilities."""

    states: int = Field(8, ge=1, le=10**6, description="Number of states.")
    vocabulary: int = Field(8, ge=1, le=10**6, description="Number of word types.")
    transitions: int = Field(4, ge=1, le=10**6, description="Number of transitions from a state; at most vocabulary.")
    concentration: float = Field(1.0, ge=0.001, le=1000.0, description="Dirichlet concentration of a state's words.")
    mean_length: float = Field(8.0, ge=1.5, le=1e6, description="Mean number of words of a string.")
    seed: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the graph.")


def process(settings: DirichletAutomatonSettings, name: str) -> DocumentProcess:
    """Return the documents of given settings; states and moves are as in `pfsa` with these settings."""
    with meter(f"building {name}"):
        graph = automaton(
            PfsaSettings(
                states=settings.states,
                vocabulary=settings.vocabulary,
                transitions=settings.transitions,
                mean_length=settings.mean_length,
                seed=settings.seed,
            )
        )
    used, word = np.unique(graph.word, return_inverse=True)
    target = np.full((settings.states, len(used)), -1, dtype=np.int32)
    target[graph.source, word.ravel()] = graph.target
    words = [graph.words[w] for w in used]
    rows = DirichletRows(words, target, settings.concentration, settings.mean_length, alike=False)
    return DocumentProcess(name, rows, settings.count)


LANGUAGE = Language(
    title="documents of automata of known states and unknown probabilities",
    tests="learning in context with a known structure",
    citation=(
        "Akyürek, Wang, Kim and Andreas (2024), In-context language learning: Architectures and algorithms, ICML"
    ),
    settings=DirichletAutomatonSettings,
    process=process,
)
