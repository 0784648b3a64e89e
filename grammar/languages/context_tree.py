"""Documents of Markov chains of unknown contexts, of variable length, and unknown probabilities."""

from __future__ import annotations

from pydantic import Field

from truesource.grammar.documents.context_tree import ContextTree
from truesource.grammar.documents.document import DocumentProcess
from truesource.grammar.documents.settings import DocumentSettings
from truesource.grammar.languages import Language


class ContextTreeSettings(DocumentSettings):
    """Parameters of documents of unknown context trees."""

    depth: int = Field(3, ge=0, le=20, description="Number of words of the longest context.")
    vocabulary: int = Field(4, ge=1, le=10**6, description="Number of word types.")
    split: float = Field(0.5, gt=0.0, lt=1.0, description="Probability that a context is split by the word before it.")
    concentration: float = Field(0.5, ge=0.001, le=1000.0, description="Dirichlet concentration of the next word.")
    mean_length: float = Field(8.0, ge=1.5, le=1e6, description="Mean number of words of a string.")


def process(settings: ContextTreeSettings, name: str) -> DocumentProcess:
    """Return the documents of given settings."""
    words = [f"w{w}" for w in range(1, settings.vocabulary + 1)]
    tree = ContextTree(words, settings.depth, settings.split, settings.concentration, settings.mean_length)
    return DocumentProcess(name, tree, settings.count)


LANGUAGE = Language(
    title="documents of variable-order Markov chains of unknown contexts and probabilities",
    tests="learning in context how many words of context matter",
    citation=(
        "Willems, Shtarkov and Tjalkens (1995), The context-tree weighting method: Basic properties, IEEE Transactions"
        " on Information Theory"
    ),
    settings=ContextTreeSettings,
    process=process,
)
