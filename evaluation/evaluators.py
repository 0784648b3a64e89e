"""The evaluators: one folder each, and the only list of them."""

from __future__ import annotations

from truesource.evaluation.beliefs.evaluator import BELIEFS
from truesource.evaluation.context.evaluator import CONTEXT
from truesource.evaluation.control.evaluator import CONTROL
from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.diffusion.evaluator import DIFFUSION
from truesource.evaluation.divergence.evaluator import DIVERGENCE
from truesource.evaluation.documents.evaluator import DOCUMENTS
from truesource.evaluation.dynamics.evaluator import DYNAMICS
from truesource.evaluation.explain.evaluator import EXPLAIN
from truesource.evaluation.memory.evaluator import MEMORY
from truesource.evaluation.naturalness.evaluator import NATURALNESS
from truesource.evaluation.pairs.evaluator import PAIRS
from truesource.evaluation.pplu.evaluator import PPLU
from truesource.evaluation.probing.evaluator import PROBING
from truesource.evaluation.tendencies.evaluator import TENDENCIES
from truesource.evaluation.tokenisation.evaluator import TOKENISATION
from truesource.evaluation.treebank_baseline.evaluator import TREEBANK_BASELINE

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
