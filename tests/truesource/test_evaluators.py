"""What holds for every evaluator: its verb and its stage are one, and a new one is a folder and a line."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Command
from tiny_run import BANK, prepare, run

import truesource.evaluators
from truesource.evaluators import EVALUATORS
from truesource.experiment import build_report, execute, load_config, plan
from truesource.grammar.support.settings import Settings
from truesource.run.evaluator import Evaluator

TOY = {
    "settings.py": """
from pydantic import Field
from truesource.grammar.support.settings import Settings

class CountSettings(Settings):
    sentences: int = Field(5, ge=1, description="Number of sentences to count.")
""",
    "__init__.py": """
from toy_evaluator.settings import CountSettings
from truesource.run.evaluator import Evaluator

COUNT = Evaluator(
    name="count", title="Number of tokens", summary="Count tokens.", package=__name__, settings=CountSettings
)
""",
    "stage.py": """
from toy_evaluator.settings import CountSettings
from truesource.grammar.support.files import digest_json, write_json
from truesource.run.stage import of_settings
from truesource.run.stage import Stage

def stages(config):
    return [Stage("count", ("count/count.json",), inputs, make)]

def inputs(run):
    return {**of_settings(run, CountSettings), "corpus": run.outputs["corpus"]}

def make(run):
    settings = run.settings(CountSettings)
    tokens = sum(map(len, run.corpus.sentences(run.config.evaluation.split)[: settings.sentences]))
    write_json(run.folder / "count" / "count.json", {"tokens": tokens})
    return digest_json(tokens)
""",
    "section.py": """
from typing import Any



def section(run):
    return run.record("count/count.json", dict[str, Any])
""",
    "section.html.j2": "<p>number of tokens: {{ section.tokens }}</p>",
    "command.py": """
from pathlib import Path
from truesource.cli.console import echo
from truesource.cli.settings import with_options
from toy_evaluator.settings import CountSettings

@with_options(CountSettings)
def command(corpus: Path, settings: CountSettings) -> None:
    '''Count the tokens of a corpus.'''
    from truesource.generator.corpus import Corpus

    echo(sum(map(len, Corpus.load(corpus).sentences("eval")[: settings.sentences])))
""",
}
CONFIG = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..8, splits: {eval: 20}}
evaluation: {count: {sentences: 7}}
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a grammar, a configuration and an evaluator of its own, which is registered."""
    package = tmp_path / "toy_evaluator"
    package.mkdir()
    for name, text in TOY.items():
        (package / name).write_text(text.lstrip("\n"), encoding="utf-8")
    (tmp_path / "toy.txt").write_text("S -> S S 0.3 | 'a' 0.7\n", encoding="utf-8")
    (tmp_path / "toy.yaml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    from toy_evaluator import COUNT  # type: ignore[import-not-found]

    monkeypatch.setattr(truesource.evaluators, "EVALUATORS", (*EVALUATORS, COUNT))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("toy_evaluator")]:
        del sys.modules[name]


def test_a_new_evaluator_is_a_folder_and_a_line(toy: Path) -> None:
    from typer.testing import CliRunner

    from truesource.cli import evaluate

    config = load_config(toy / "toy.yaml")
    assert [stage.name for stage in plan(config)][-2:] == ["count", "report"]
    report = execute(config, base=toy, runs=toy / "runs")
    tokens = json.loads((report.parent / "count" / "count.json").read_text("utf-8"))["tokens"]
    assert f"</span>Number of tokens</h2>\n<p>number of tokens: {tokens}</p>" in report.read_text("utf-8")
    with pytest.raises(ValueError, match=r"evaluation\.count\.sentences"):
        load_config(toy / "toy.yaml", ["evaluation.count.sentences=0"])
    verbs = CliRunner()
    told = verbs.invoke(evaluate.verbs(), ["count", str(report.parent / "corpus"), "--sentences", "7"])
    assert told.exit_code == 0 and told.stdout.strip() == str(tokens)
    assert "Number of sentences to count" in verbs.invoke(evaluate.verbs(), ["count", "--help"]).stdout
    assert build_report(report.parent) == report


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda each: each.name)
def test_an_evaluator_has_its_modules(evaluator: Evaluator) -> None:
    assert callable(evaluator.command)
    assert evaluator.template.is_file()
    assert issubclass(evaluator.settings, Settings)
    for name, field in evaluator.settings.model_fields.items():
        assert name in evaluator.settings.yaml_only or field.description, f"{name} has no help"


#: a run with every evaluator whose verb is called below
EVERYTHING = """\
name: toy
treebank: {files: bank.mrg, held_out: 0.4}
grammar: {method: relative_frequency}
corpus: {lengths: 2..9, splits: {train: 120, dev: 20, eval: 40}}
models:
  - {name: net, model: {architecture: ngram}}
  - {name: gpt2, model: {dim: 8, heads: 2, layers: 1}, training: {max_steps: 2, snapshots: log}}
  - {name: pieces, model: {architecture: ngram, order: 2, tokenizer: bpe, vocab_size: 30}}
evaluation:
  naturalness: {sentences: 100, definitions: paper}
  divergence: {sentences: 30, top_k: 3, by: [position]}
  pairs: {number: 5, phenomena: [word-order]}
  pplu: {unigram: train, smoothing: 1, reduce: true, split_words: [dog, the], beta: 0.3, rank: 2}
  dynamics: {sentences: 30, contexts: 40, by: [class, depth], measure: median}
  tokenisation: {estimators: [wor1, dpf], samples: 4, candidates: 3, sentences: 12, also: {other: other.txt},
    out_of_domain: [respell=0.5], grid: true, curves: true, caching: true, canonical: true, equal_cost: 1}
  probing: {targets: [tag, span], mdl: false, control: none, split_by: position, right: sampled}
  treebank_baseline: true
"""
MODEL = "runs/toy/models/net runs/toy/corpus --oracle runs/toy/grammar/grammar.npz"
TWINS = "runs/toy/treebank_baseline/models/net"
GPT2 = MODEL.replace("/net ", "/gpt2 ")
#: by evaluator: what its stage leaves, and the verb that measures the same
SAME = {
    "naturalness": (
        "naturalness/naturalness.json",
        "'trees learned from=runs/toy/treebank/treebank.mrg.gz' corpus=runs/toy/corpus"
        " --reference 'held-out trees=runs/toy/treebank/held_out.mrg.gz' --oracle runs/toy/grammar/grammar.npz"
        " --sentences 100 --definitions paper",
    ),
    "treebank_baseline": (
        "treebank_baseline/net.json",
        f"treebank={TWINS}/treebank sampled-equal={TWINS}/sampled-equal sampled=runs/toy/models/net"
        " --held-out runs/toy/treebank_baseline/text/held_out.txt --corpus runs/toy/corpus"
        " --oracle runs/toy/grammar/grammar.npz",
    ),
    "divergence": ("divergence/net.json", f"{MODEL} --sentences 30 --top-k 3 --by position"),
    "pairs": (
        "pairs/models/net.json",
        "runs/toy/models/net --oracle runs/toy/grammar/grammar.npz --lengths 2..9 -n 5 --phenomena word-order",
    ),
    "pplu": (
        "pplu/net.json",
        f"{MODEL} --unigram train --smoothing 1 --reduce --split-words dog,the --beta 0.3 --rank 2",
    ),
    "dynamics": (
        "dynamics/gpt2.json",
        f"{GPT2} --sentences 30 --contexts 40 --by class,depth --measure median",
    ),
    "tokenisation": (
        "tokenisation/pieces.json",
        "runs/toy/models/pieces eval=runs/toy/corpus --oracle runs/toy/grammar/grammar.npz --estimators wor1,dpf"
        " --samples 4 --candidates 3 --sentences 12 --also other.txt --out-of-domain respell=0.5 --grid --curves"
        " --caching --canonical --equal-cost 1",
    ),
    "probing": (
        "probing/gpt2.json",
        f"{GPT2} --targets tag,span --no-mdl --control none --split-by position --right sampled",
    ),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run of everything; not to be changed."""
    folder = prepare(tmp_path_factory.mktemp("everything"), EVERYTHING, "")
    (folder / "bank.mrg").write_text(8 * BANK, encoding="utf-8")
    (folder / "other.txt").write_text("the dog sees the dog\na cat in a park\n", encoding="utf-8")
    run(folder)
    return folder


@pytest.mark.parametrize("name", SAME)
def test_verb_and_stage_write_the_same_records(
    name: str, finished: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    left, line = SAME[name]
    called = command("evaluate", name, *shlex.split(line), "--json", tmp_path / "verb.json")
    assert called.code == 0, called.err
    record = json.loads((finished / "runs" / "toy" / left).read_text("utf-8"))
    by_stage = record["records"] if "records" in record else [r for rows in record["targets"].values() for r in rows]
    assert by_stage and json.loads((tmp_path / "verb.json").read_text("utf-8")) == by_stage


SAMPLED = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..9, splits: {train: 120, eval: 40}}
models: [{name: net, model: {architecture: ngram}}]
evaluation: {tendencies: {schemes: [ancestral], number: 60, chance: 19}}
"""


def test_tendencies_of_a_sample_are_those_of_the_run(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the adjustment of p-values: a run has a sample of the truth, and tables of decoding schemes."""
    run(prepare(tmp_path, SAMPLED, "S -> A S 0.4 | A 0.6\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.2\n"))
    monkeypatch.chdir(tmp_path / "runs" / "toy")
    files = ("net=samples/net/ancestral", "--oracle", "grammar/grammar.npz", "--vocabulary", "models/net")
    called = command("evaluate", "tendencies", *files, "--chance", 19, "--json", "verb.json")
    assert called.code == 0, called.err
    by_verb = json.loads(Path("verb.json").read_text("utf-8"))
    by_stage = json.loads(Path("tendencies/tendencies.json").read_text("utf-8"))["records"]
    of_table = {"scheme", "p_holm", "family"}
    of_model = [{k: v for k, v in r.items() if k not in of_table} for r in by_stage if r["source"] == "net"]
    assert of_model and [{k: v for k, v in r.items() if k not in of_table} for r in by_verb] == of_model


def test_no_evaluator_is_left_out() -> None:
    assert {*SAME, "tendencies"} == {each.name for each in EVALUATORS}


def test_the_page_of_settings_is_that_of_the_classes() -> None:
    from truesource.cli.settings_table import page

    written = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"
    assert written.read_text("utf-8").rstrip("\n") == page().rstrip("\n"), "run `make settings`"
