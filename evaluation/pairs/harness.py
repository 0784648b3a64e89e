"""Minimal pairs as a task of EleutherAI's lm-evaluation-harness: its settings, and the reader of the pairs.

A task is three files in one folder: the pairs as lines of JSON, ``NAME.yaml`` with the settings and ``NAME.py``, which
reads the pairs. The harness takes the folder as it is: ``lm_eval --tasks NAME --include_path FOLDER``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from truesource.grammar.support.files import write_text

END = "<eos>"  #: how the tokenisers of models that truesource trains write the end of a string
READER = '''\
"""Reads the pairs of a task from the file beside this one."""

import json
from pathlib import Path

import datasets

KEYS = ("sentence_good", "sentence_bad", "phenomenon", "kind", "log_odds", "impossible")


def load(file, end="", **_):
    """Pairs with their two choices: each string with the end of strings, as the tokeniser writes it.

    Without an end, pairs that it decides are left out. The good choice is the first of every other pair, so
    that a model which prefers neither has half of them right: of equal choices the harness takes the first.
    """
    lines = (Path(__file__).parent / file).read_text(encoding="utf-8").split("\\n")
    pairs = [json.loads(line) for line in lines if line.strip()]
    if not end:
        pairs = [pair for pair in pairs if pair.get("strata", {}).get("decided") != "end"]
    docs = []
    for number, pair in enumerate(pairs):
        choices = [pair["sentence_good"] + end, pair["sentence_bad"] + end]
        target = number % 2
        doc = {"choices": choices[::-1] if target else choices, "target": target}
        docs.append({**doc, **{key: pair.get(key) for key in KEYS}})
    return {"test": datasets.Dataset.from_list(docs)}
'''


@dataclass(frozen=True)
class TaskFiles:
    """The files of a task beside its pairs."""

    name: str  #: for ``lm_eval --tasks``
    settings: Path
    reader: Path

    @classmethod
    def of(cls, pairs: Path) -> TaskFiles:
        """Those beside the file of pairs ``pairs``, named after it."""
        name = re.sub(r"[^\w-]", "-", pairs.name.partition(".")[0]) or "pairs"
        return cls(name, pairs.with_name(f"{name}.yaml"), pairs.with_name(f"{name}.py"))

    @property
    def next_command(self) -> str:
        """That runs the harness on the task."""
        folder = self.settings.parent
        return f"lm_eval --model hf --model_args pretrained=MODEL --tasks {self.name} --include_path {folder}"

    def write_settings(self, path: Path, pairs: str) -> None:
        """Write the settings to ``path``; ``pairs`` is the name of the file of pairs."""
        own = {"task": self.name, "dataset_kwargs": {"file": pairs}, **task_settings({"version": 1})}
        write_text(path, f"{function_line(self.name)}{yaml_text(own)}")


def task_settings(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What all tasks have in common: a choice between two strings, by their probability.

    Args:
        metadata: ``version`` and what else is worth keeping with the results.
    """
    return {
        "output_type": "multiple_choice",
        "test_split": "test",
        "doc_to_text": "",
        "doc_to_target": "target",
        "doc_to_choice": "choices",
        "target_delimiter": "",
        "num_fewshot": 0,
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {**metadata, "end": END},
    }


def function_line(module: str) -> str:
    """The setting that names the reader, whose tag YAML writers do not know."""
    return f"custom_dataset: !function {module}.load\n"


def write_reader(path: Path) -> None:
    """Write the module that reads the pairs."""
    write_text(path, READER)


def yaml_text(value: Mapping[str, Any]) -> str:
    """Settings as the harness reads them."""
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True)
