"""Documents of Markov chains whose probabilities are drawn from Dirichlet distributions, one chain a document."""

from __future__ import annotations

from pydantic import Field

from truesource.grammar.documents.document import DocumentProcess
from truesource.grammar.documents.rows import DirichletRows, context_moves
from truesource.grammar.documents.settings import DocumentSettings
from truesource.grammar.languages import Language
from truesource.grammar.support.errors import InputError


class DirichletMarkovSettings(DocumentSettings):
    """Parameters of documents of unknown Markov chains."""

    order: int = Field(1, ge=0, le=10, description="Number of previous words that the next word depends on.")
    vocabulary: int = Field(8, ge=1, le=10**6, description="Number of word types.")
    concentration: float = Field(0.3, ge=0.001, le=1e12, description="Dirichlet concentration of the next word.")
    mean_length: float = Field(8.0, ge=1.5, le=1e6, description="Mean number of words of a string.")


def process(settings: DirichletMarkovSettings, name: str) -> DocumentProcess:
    """Return the documents of given settings: a pool of all `ngram` languages of order + 1, by their prior."""
    v = settings.vocabulary
    if sum(v ** (length + 1) for length in range(settings.order + 1)) > 10**8:
        raise InputError(f"{v} words have too many contexts of {settings.order} words; lower either", code="too-large")
    words = [f"w{w}" for w in range(1, v + 1)]
    rows = DirichletRows(
        words, context_moves(settings.order, v), settings.concentration, settings.mean_length, alike=True
    )
    return DocumentProcess(name, rows, settings.count)


LANGUAGE = Language(
    title="documents of Markov chains of unknown probabilities",
    tests="learning in context from counts: unigrams, bigrams, induction heads",
    citation=(
        "Edelman, Edelman, Goel, Malach and Tsilivis (2024), The evolution of statistical induction heads: In-context"
        " learning Markov chains, NeurIPS"
    ),
    settings=DirichletMarkovSettings,
    process=process,
)
