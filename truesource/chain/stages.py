"""The stages of the chain that every run goes through."""

from __future__ import annotations

from collections.abc import Callable

from truesource.chain.corpus.stage import stages as corpus
from truesource.chain.grammar.stage import stages as grammar
from truesource.chain.loaded.stage import stages as loaded
from truesource.chain.models.stage import stages as models
from truesource.chain.scores.stage import stages as scores
from truesource.chain.treebank.stage import stages as treebank
from truesource.run.config import RunConfig
from truesource.run.stage import Stage

#: what gives the stages of each step, in order
CHAIN: tuple[Callable[[RunConfig], list[Stage]], ...] = (loaded, treebank, grammar, corpus, models, scores)
