"""A whole experiment, and reading it from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from truesource.config.evaluation import EvaluationConfig
from truesource.config.reading import read_settings
from truesource.config.section import Section
from truesource.config.sources import CorpusConfig, GrammarConfig, ModelEntry, TreebankConfig
from truesource.grammar.errors import InputError
from truesource.grammar.records import explain


class RunConfig(Section):
    """A whole experiment."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str | None = None  #: of the report
    seed: int = Field(1, ge=0, lt=2**32)  # what numpy and torch take
    treebank: TreebankConfig | None = None
    grammar: GrammarConfig = GrammarConfig()
    corpus: CorpusConfig = CorpusConfig()
    models: list[ModelEntry] = []
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if (self.grammar.method == "file") == (self.treebank is not None):
            raise ValueError("give a treebank to induce from, or grammar: {method: file}, not both and not neither")
        names = [model.name for model in self.models]
        if len(set(names)) < len(names) or "oracle" in names:
            raise ValueError("model names must differ, and 'oracle' is taken")
        if self.evaluation.split not in self.corpus.splits:
            raise ValueError(f"evaluation.split {self.evaluation.split!r} is not among the splits of the corpus")
        if self.models and "train" not in self.corpus.splits:
            raise ValueError("corpus.splits needs a split train for the models to learn from")
        if self.evaluation.naturalness is not None and self.treebank is None:
            raise ValueError("evaluation.naturalness compares with held-out trees, so it needs a treebank")
        if self.evaluation.dynamics is not None and not any(model.keeps_snapshots for model in self.models):
            raise ValueError("evaluation.dynamics needs a model with snapshots; set its training.snapshots to log")
        if self.evaluation.dynamics is not None and self.evaluation.dynamics.tags == "paper" and not self.corpus.trees:
            raise ValueError("evaluation.dynamics.tags: paper needs corpus.trees; or take tags: drawn")
        asked = self.evaluation.tokenisation
        counted = [m.name for m in self.models if m.of_pieces and m.resolve()[0].counts]
        if asked is not None and counted and (asked.before is not None or not asked.end):
            raise ValueError(
                f"evaluation.tokenisation.before and end are for networks, and {counted[0]} counts n-grams of pieces;"
                " leave them out, or the model"
            )
        if any(model.oracle_monitor for model in self.models) and "dev" not in self.corpus.splits:
            raise ValueError("corpus.splits needs a split dev for models with oracle_monitor: true")
        if self.corpus.lengths is not None:
            longest = self.corpus.lengths.high
            for entry in self.models:
                most = entry.resolve()[0].longest
                if most is not None and longest >= most:
                    raise ValueError(
                        f"the corpus has sentences of up to {longest} words, too long for {entry.name};"
                        f" set its model.max_positions to {longest + 2}, which leaves room for <bos> and <eos>"
                    )
        return self


def load_config(path: str | Path, overrides: list[str] | None = None) -> RunConfig:
    """Read a YAML configuration; ``overrides`` are ``a.b=value`` with YAML values.

    Raises:
        InputError: the file cannot be read, or a key or value is wrong; the message names the key.
    """
    values = read_settings(Path(path), overrides)
    try:
        return RunConfig(**values)
    except ValidationError as error:
        raise InputError(explain(error), path) from error
