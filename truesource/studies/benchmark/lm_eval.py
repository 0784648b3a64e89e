"""Minimal pairs of the languages of a suite as tasks of EleutherAI's lm-evaluation-harness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truesource.evaluation.pairs import PHENOMENA, PairSettings
from truesource.evaluation.pairs.edits import MARGIN, common_words, edited_pairs, with_reasons
from truesource.evaluation.pairs.generate import make_pairs
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Pair, function_line, task_settings, write_reader, yaml_text
from truesource.generator.abilities import require
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.atomic_files import all_at_once, write_json_lines, write_text
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import refuse_existing, round_floats
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import load_truth
from truesource.studies.benchmark.suite import Suite, SuiteLanguage

PAIRS = 200  #: of each language
RARE = 10  #: a word of a pair is expected so many times as often in the training text as a word that models know
GRAMMATICAL = tuple(name for name in PHENOMENA if name != "word-order")  #: phenomena that edits do not cover


@dataclass(frozen=True)
class HarnessExport:
    """The files that were written."""

    group: str  #: of all tasks, for ``lm_eval --tasks``
    tasks: dict[str, str]  #: task of each language, by its name in the suite
    pairs: dict[str, list[Pair]]  #: of each language
    files: list[Path]

    @property
    def next_command(self) -> str:
        """The command that runs the harness on all of the export."""
        folder = self.files[0].parent
        return f"lm_eval --model hf --model_args pretrained=MODEL --tasks {self.group} --include_path {folder}"


def export_lm_eval(
    suite: Suite,
    folder: str | Path,
    *,
    pairs: int = PAIRS,
    seed: int = DEFAULT_SEED,
    languages: Sequence[str] | None = None,
    force: bool = False,
) -> HarnessExport:
    """Write minimal pairs as tasks: a group of all, and for each language a task with its pairs as lines of JSON.

    The good string of a pair is possible, and more probable than the bad one by at least one nat: see `language_pairs`.
    A harness has no end of a string unless the string has it as text, so that the tasks put ``<eos>`` after each. For a
    model whose tokeniser has another, ``lm_eval --metadata '{"end": "</s>"}'``; without one (``{"end": ""}``) the
    harness takes only the pairs that are decided before the end. Choices are in either order by turns, so that ties, as
    of a model that reads every word as ``<unk>``, count half.

    Args:
        suite: source of languages and lengths.
        folder: of the files, made if needed; other files in it stay.
        pairs: of each language, at most.
        seed: of the pairs; equal seeds write equal bytes.
        languages: names in the suite; None: all.
        force: overwrite files of an earlier export.

    Raises:
        InputError: a language is not in the suite, or a file exists and ``force`` is false.
        NothingToMeasureError: a language has no such pairs.
    """
    chosen = _chosen(suite, languages)
    group = f"truesource-{suite.label}"
    tasks = {name: f"{group}-{name}" for name in chosen}
    folder = Path(folder)
    targets = _targets(folder, group, tasks)
    for target in targets:
        refuse_existing(target, force)
    rarest = RARE * suite.training.min_count / suite.training.tokens
    by_language = {name: language_pairs(language, pairs, seed, rarest=rarest) for name, language in chosen.items()}
    for name, own_pairs in by_language.items():
        if not own_pairs:
            raise NothingToMeasureError(f"language {name} has no minimal pairs; leave it out", "no-pairs")
    with all_at_once(targets):
        _write(folder, group, tasks, suite, by_language)
    return HarnessExport(group, tasks, by_language, targets)


def language_pairs(language: SuiteLanguage, number: int, seed: int, *, rarest: float = 0.0) -> list[Pair]:
    """Return minimal pairs of a language under its lengths, with exact log odds, side ``a`` the good one.

    Up to half are the phenomena of English grammars (agreement, verb frames, attachment) where the language has them.
    The others are strings with one edit, see `truesource.evaluation.pairs.edits.edited_pairs`.

    Args:
        language: of a suite.
        number: of pairs.
        seed: of the pairs.
        rarest: least share of all tokens that a word of a pair has.
    """
    pcfg = require(load_truth(language.language), "parses", "a set of minimal pairs")
    grammatical = _grammatical(pcfg, language.range, number, seed, rarest)
    left = number - len(grammatical)
    return [*grammatical, *edited_pairs(pcfg, language.range, number=left, seed=seed, rarest=rarest)]


def pair_record(pair: Pair) -> dict[str, object]:
    """Return a line of a task's file, which ``truesource evaluate pairs --file`` reads too.

    ``kind`` is the edit or the phenomenon; ``impossible`` is true where the bad string has probability 0, and then
    ``log_odds`` (nats) is null.
    """
    record: dict[str, object] = round_floats({**pair.as_record(), "kind": pair.phenomenon})
    return record | {"impossible": pair.impossible is not None}


def _chosen(suite: Suite, languages: Sequence[str] | None) -> dict[str, SuiteLanguage]:
    unknown = [name for name in languages or () if name not in suite.languages]
    if unknown:
        raise InputError(
            f"suite {suite.name} has no language {unknown[0]!r}; it has {', '.join(suite.languages)}",
            code="unknown-language",
        )
    return {name: each for name, each in suite.languages.items() if languages is None or name in languages}


def _grammatical(pcfg: PCFG, lengths: LengthRange, number: int, seed: int, rarest: float) -> list[Pair]:
    each = number // 2 // len(GRAMMATICAL)
    if each == 0:
        return []
    try:
        grammatical = make_pairs(pcfg, lengths, PairSettings(number=each, phenomena=GRAMMATICAL), seed=seed)
    except NothingToMeasureError:
        return []
    is_common = common_words(Lexicon(pcfg, lengths), rarest)
    common = {word for word, is_word_common in zip(pcfg.vocabulary, is_common.tolist(), strict=True) if is_word_common}
    clear = [
        pair
        for pair in grammatical.pairs
        if (pair.log_odds is None or pair.log_odds >= MARGIN) and common.issuperset((*pair.a, *pair.b))
    ]
    return with_reasons(clear, pcfg, lengths)


def _targets(folder: Path, group: str, tasks: dict[str, str]) -> list[Path]:
    names = [f"{task}.{kind}" for task in tasks.values() for kind in ("jsonl", "yaml")]
    return [folder / name for name in (*names, f"{group}.py", f"{group}_template_yaml", f"{group}.yaml")]


def _write(folder: Path, group: str, tasks: dict[str, str], suite: Suite, by_language: dict[str, list[Pair]]) -> None:
    template = task_settings({"version": suite.version, "suite": suite.label, "digest": suite.digest})
    for name, task in tasks.items():
        write_json_lines(folder / f"{task}.jsonl", map(pair_record, by_language[name]))
        settings = {"include": f"{group}_template_yaml", "task": task, "dataset_kwargs": {"file": f"{task}.jsonl"}}
        write_text(folder / f"{task}.yaml", yaml_text(settings))
    write_reader(folder / f"{group}.py")
    write_text(folder / f"{group}_template_yaml", f"{function_line(group)}{yaml_text(template)}")
    together = {
        "group": group,
        "task": list(tasks.values()),
        "aggregate_metric_list": [{"metric": "acc", "aggregation": "mean", "weight_by_size": False}],
        "metadata": {"version": suite.version},
    }
    write_text(folder / f"{group}.yaml", yaml_text(together))
