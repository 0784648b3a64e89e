"""Pairs of sentences that differ in one controlled thing, as lines of JSON and as a task of EleutherAI's harness.

A task of lm-evaluation-harness is three files in one folder: the pairs as lines of JSON, ``NAME.yaml`` with the
settings and ``NAME.py``, which reads the pairs. The harness takes the folder as it is: ``lm_eval --tasks NAME
--include_path FOLDER``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.atomic_files import write_json_lines, write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import read_records

ALL = "all"  #: in tables, all phenomena together
Words = tuple[str, ...]
Stratum = str | int | bool | None
_LINE = '{"sentence_good": "...", "sentence_bad": "...", "phenomenon": "..."}'
RESERVED = ("log_odds", "choice")  #: groups of all pairs, so no stratum has these names
_SIDES = {"good": "a", "bad": "b"}
END = "<eos>"  #: how the tokenisers of models that truesource trains write the end of a string
READER = '''\
"""Reads the pairs of a task from the file next to this one."""

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
class Pair:
    """Sentences ``a`` and ``b``; in pairs made from a grammar, ``a`` is the more probable one.

    Log probabilities are of the grammar without a condition: two sentences within the range of lengths that a corpus
    was drawn under have the same odds given the range. None is a probability of zero.
    """

    a: Words
    b: Words
    phenomenon: str
    log_p_a: float | None  #: nats
    log_p_b: float | None
    unigram_log_odds: (
        float | None
    )  #: sum of ln u(w) over ``a`` less the sum over ``b``; None: the unigram of one side is zero
    positions: tuple[int, ...] = ()  #: where the two differ, from 0; empty if their lengths differ
    source: int = 0  #: pairs made from one sentence share this number; resampled together
    sampled_side: str | None = None  #: ``a`` or ``b``; None: not sampled by truesource
    strata: Mapping[str, Stratum] = field(default_factory=dict)  #: properties to report by; None: unknown
    facts: Mapping[str, float | None] = field(default_factory=dict)  #: other exact numbers; None: not finite

    @property
    def possible(self) -> bool:
        """The grammar can make both."""
        return self.log_p_a is not None and self.log_p_b is not None

    @property
    def log_odds(self) -> float | None:
        """Ln P(a)/P(b), nats; None if a side is impossible."""
        if self.log_p_a is None or self.log_p_b is None:
            return None
        return self.log_p_a - self.log_p_b

    @property
    def impossible(self) -> str | None:
        """Impossible side: ``a``, ``b`` or ``both``; None if the grammar can make both."""
        sides = [side for side, value in (("a", self.log_p_a), ("b", self.log_p_b)) if value is None]
        return "both" if len(sides) == 2 else sides[0] if sides else None

    def as_record(self) -> dict[str, object]:
        """Return plain values for JSON, in the manner of BLiMP (Warstadt et al. 2020): good is ``a``, bad is ``b``."""
        return {
            "sentence_good": " ".join(self.a),
            "sentence_bad": " ".join(self.b),
            "phenomenon": self.phenomenon,
            "positions": list(self.positions),
            "log_p_good": self.log_p_a,
            "log_p_bad": self.log_p_b,
            "log_odds": self.log_odds,
            "impossible": {"a": "good", "b": "bad"}.get(self.impossible or "", self.impossible),
            "unigram_log_odds": self.unigram_log_odds,
            "drawn": {"a": "good", "b": "bad", None: None}[self.sampled_side],
            "source": self.source,
            "strata": dict(self.strata),
            "facts": dict(self.facts),
        }


def differing(a: Sequence[str], b: Sequence[str]) -> tuple[int, ...]:
    """Return positions at which two sentences of one length differ; none if their lengths do."""
    if len(a) != len(b):
        return ()
    return tuple(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)


def write_pairs(path: str | Path, pairs: Sequence[Pair]) -> None:
    """Write a pair a line, atomically."""
    write_json_lines(path, (pair.as_record() for pair in pairs))


def read_pairs(path: str | Path, words: Collection[str], lengths: LengthRange | None = None) -> list[Pair]:
    """Read pairs; sides keep the order of the file, and its probabilities are ignored.

    The fields ``sentence_good`` and ``sentence_bad`` (words separated by spaces) are needed; ``phenomenon`` (by default
    ``pairs``), ``strata``, ``facts``, ``source`` and ``drawn`` are kept, others are ignored.

    Args:
        path: lines of JSON, empty ones ignored.
        words: of the grammar.
        lengths: the condition that the truth is under.

    Raises:
        InputError: the file cannot be read or holds no pair, or a line is malformed, has a word that the grammar does
            not have, or a sentence outside ``lengths``; the message names file and line.
    """
    path = Path(path)
    vocabulary = frozenset(words)
    lines = read_records(path, dict[str, object], remedy=f"a pair is {_LINE}")
    pairs = [_read(record, number, path, vocabulary, lengths) for number, record in lines]
    if not pairs:
        raise InputError(f"the file holds no pairs; a line is {_LINE}", path)
    return pairs


def filter_pairs(
    pairs: Sequence[Pair],
    path: str | Path,
    *,
    phenomena: Collection[str] | None = None,
    number: int | None = None,
    possible: bool = False,
) -> list[Pair]:
    """Select pairs of a file, in its order.

    Args:
        pairs: with log probabilities, see `truesource.evaluation.pairs.odds.with_truth`.
        path: of the file, for messages.
        phenomena: to select; None: all.
        number: of selected pairs of each phenomenon, from the first; None: all.
        possible: only pairs of which the grammar can make both sentences.

    Raises:
        InputError: a phenomenon has no pair in the file, or no pair is left.
    """
    there = list(dict.fromkeys(pair.phenomenon for pair in pairs))
    strange = [name for name in phenomena or () if name not in there]
    if strange:
        raise InputError(f"the file has no pairs of {strange[0]!r}; it has {', '.join(there)}", Path(path))
    selected: list[Pair] = []
    counts: Counter[str] = Counter()
    for pair in pairs:
        name = pair.phenomenon
        matches = (phenomena is None or name in phenomena) and (pair.possible or not possible)
        if matches and (number is None or counts[name] < number):
            counts[name] += 1
            selected.append(pair)
    if not selected:
        raise InputError("the grammar can make both sentences of none of these pairs", Path(path))
    return selected


def _read(record: dict[str, Any], number: int, path: Path, known: frozenset[str], lengths: LengthRange | None) -> Pair:
    a, b = (_sentence(record, key, path, number, known, lengths) for key in ("sentence_good", "sentence_bad"))
    if a == b:
        raise InputError("the two sentences of the pair are the same", path, number)
    phenomenon, source, side = record.get("phenomenon", "pairs"), record.get("source", number), record.get("drawn")
    strata, facts = record.get("strata", {}), record.get("facts", {})
    if not isinstance(phenomenon, str) or phenomenon in ("", ALL):
        raise InputError(f"the phenomenon of a pair is a text, not {ALL!r}, which means all pairs", path, number)
    if type(source) is not int or abs(source) >= 2**63:
        raise InputError(
            "the source of a pair is a whole number of at most 18 digits, the same for pairs that belong together",
            path,
            number,
        )
    if side not in (None, *_SIDES):
        raise InputError("the drawn side of a pair is good, bad or null", path, number)
    if not _plain(strata, (str, int, bool)) or not _plain(facts, (int, float)):
        raise InputError("strata are texts, whole numbers or true and false by name; facts are numbers", path, number)
    taken = [name for name in strata if name in RESERVED]
    if taken:
        raise InputError(f"a stratum cannot be named {taken[0]!r}, which all pairs are grouped by", path, number)
    return Pair(
        *(a, b, phenomenon, None, None, None, differing(a, b), source),
        None if side is None else _SIDES[side],
        strata,
        facts,
    )


def _sentence(
    record: Mapping[str, object], key: str, path: Path, number: int, known: frozenset[str], lengths: LengthRange | None
) -> Words:
    text = record.get(key)
    if not isinstance(text, str) or not text.split():
        raise InputError(f"this line lacks {key}, a text of words separated by spaces", path, number)
    words = tuple(text.split())
    strange = [word for word in words if word not in known]
    if strange:
        raise InputError(f"the word {strange[0]!r} is not one of the grammar", path, number)
    if lengths is not None and len(words) not in lengths:
        raise InputError(
            f"a sentence of {len(words)} words is outside the length range {lengths}; remove it, or give a wider range",
            path,
            number,
        )
    return words


def _plain(value: Any, kinds: tuple[type, ...]) -> bool:
    """Return True if a value is a mapping of names to values of some kinds, or None."""
    return isinstance(value, dict) and all(v is None or isinstance(v, kinds) for v in value.values())


@dataclass(frozen=True)
class TaskFiles:
    """The files of a task next to its pairs."""

    name: str  #: for ``lm_eval --tasks``
    settings: Path
    reader: Path

    @classmethod
    def of(cls, pairs: Path) -> TaskFiles:
        """Name the files of a task after the file of pairs ``pairs``."""
        name = re.sub(r"[^\w-]", "-", pairs.name.partition(".")[0]) or "pairs"
        return cls(name, pairs.with_name(f"{name}.yaml"), pairs.with_name(f"{name}.py"))

    @property
    def next_command(self) -> str:
        """Command that runs the harness on the task."""
        folder = self.settings.parent
        return f"lm_eval --model hf --model_args pretrained=MODEL --tasks {self.name} --include_path {folder}"

    def write_settings(self, path: Path, pairs: str) -> None:
        """Write the settings to ``path``; ``pairs`` is the name of the file of pairs."""
        settings = {"task": self.name, "dataset_kwargs": {"file": pairs}, **task_settings({"version": 1})}
        write_text(path, f"{function_line(self.name)}{yaml_text(settings)}")


def task_settings(metadata: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings that all tasks have in common: a choice between two strings, by their probability.

    Args:
        metadata: ``version`` and further entries to keep with the results.
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
    """Return the setting that names the reader, whose tag YAML writers do not know."""
    return f"custom_dataset: !function {module}.load\n"


def write_reader(path: Path) -> None:
    """Write the module that reads the pairs."""
    write_text(path, READER)


def yaml_text(value: Mapping[str, Any]) -> str:
    """Return the settings as the harness reads them."""
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True)
