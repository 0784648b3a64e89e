"""The evaluators: one folder each, and the only list of them."""

from __future__ import annotations

from truesource.evaluators.beliefs import BELIEFS
from truesource.evaluators.context import CONTEXT
from truesource.evaluators.control import CONTROL
from truesource.evaluators.diffusion import DIFFUSION
from truesource.evaluators.divergence import DIVERGENCE
from truesource.evaluators.documents import DOCUMENTS
from truesource.evaluators.dynamics import DYNAMICS
from truesource.evaluators.explain import EXPLAIN
from truesource.evaluators.memory import MEMORY
from truesource.evaluators.naturalness import NATURALNESS
from truesource.evaluators.pairs import PAIRS
from truesource.evaluators.pplu import PPLU
from truesource.evaluators.probing import PROBING
from truesource.evaluators.tendencies import TENDENCIES
from truesource.evaluators.tokenisation import TOKENISATION
from truesource.evaluators.treebank_baseline import TREEBANK_BASELINE
from truesource.run.evaluator import Evaluator

#: in the order of the report
EVALUATORS: tuple[Evaluator, ...] = (
    EXPLAIN,
    NATURALNESS,
    TREEBANK_BASELINE,
    DIVERGENCE,
    CONTEXT,
    DOCUMENTS,
    DIFFUSION,
    CONTROL,
    MEMORY,
    TOKENISATION,
    PPLU,
    TENDENCIES,
    PAIRS,
    DYNAMICS,
    PROBING,
    BELIEFS,
)
