"""A language is named wherever a grammar is: by verbs, in configurations, among sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from command_line import Command

from truesource.evaluation.sources import kind_of, named, read_source
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.languages import languages
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError
from truesource.grammar.variants import parse_variant
from truesource.run.config import RunConfig
from truesource.run.experiment import execute, load_config
from truesource.studies.scaling.config import load_sweep
from truesource.studies.scaling.run import truth_of

REFERENCE = "dyck:k=2,depth=3"
RUN = "name: toy\nmodels: []\ncorpus: {lengths: none, splits: {eval: 20}}\ngrammar: "
SWEEP = "name: toy\ncorpus: c\nbase: {training: {max_steps: 1}}\naxes: {sentences: [1]}\ngrammar: "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "toy.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def config_of(folder: Path, grammar: str) -> RunConfig:
    return load_config(written(folder, RUN + grammar))


def made(folder: Path, grammar: str) -> list[str]:
    """The stages that a run of a configuration with this grammar makes."""
    execute(config_of(folder, grammar), base=folder, runs=folder / "runs")
    stages = json.loads((folder / "runs" / "toy" / "stages.json").read_text(encoding="utf-8"))["stages"]
    return [name for name, entry in stages.items() if not entry["skipped"]]


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        "inspect {}",
        "convert {} new.npz",
        "sample {} -n 20 -o new --lengths none --shares train=1",
        "vary {} --variant zipf=1.5 --lengths none -o variants",
        "parse {} text.txt -o trees.mrg",
        "bound {} text.txt --json new.json",
        "induce --start-from {} --unbracketed text.txt --iterations 1 -o new.npz",
        "evaluate naturalness {} mine={} --reference corpus --lengths none --sentences 50",
        "evaluate tendencies corpus --oracle {} --split eval --chance 19",
    ],
)
def test_verbs_take_a_language_and_explain_one_that_is_misspelt(line: str, folder: Path, command: Command) -> None:
    (folder / "text.txt").write_text("(1 1)\n(1 (2 2) 1)\n(2 2) (1 1)\n" * 20, encoding="utf-8")
    Corpus.sample(
        language(REFERENCE), {"train": 40, "eval": 40}, seed=1, lengths=LengthRange(2, 8), path=folder / "corpus"
    )
    wrong = command(*line.replace("{}", "dick:k=2").split())
    assert wrong.code == 2
    assert "there is no such file and no language 'dick' (similar: dyck); truesource language lists all" in wrong.err
    wrong = command(*line.replace("{}", "dyck:k=0").split())
    assert wrong.code == 2
    assert "language dyck: k: expected 1 or more, not 0" in wrong.err
    found = command(*line.replace("{}", REFERENCE).split())
    assert found.code == 0, found.err


@pytest.mark.long
def test_a_file_comes_before_the_language_of_its_name(folder: Path) -> None:
    PCFG.from_text("S -> a 1").save(folder / "dyck")
    assert PCFG.load("dyck").vocabulary == ("a",)
    assert config_of(folder, "{language: dyck}").grammar.language == "dyck:k=2,depth=4"
    made(folder, "{language: dyck}")
    assert PCFG.load(folder / "runs" / "toy" / "grammar" / "grammar.npz") == language("dyck")
    made(folder, "{method: file, file: dyck}")
    assert PCFG.load(folder / "runs" / "toy" / "grammar" / "grammar.npz").vocabulary == ("a",)


def test_a_language_has_no_format_and_one_start(folder: Path, command: Command) -> None:
    for option in ("--from text", "--start S"):
        found = command("convert", REFERENCE, "new.txt", *option.split())
        assert (found.code, (folder / "new.txt").exists()) == (2, False)
        assert "dyck:k=2,depth=3 is a language" in found.err


def test_sources_have_the_name_of_the_language_or_their_own(folder: Path) -> None:
    assert named(REFERENCE) == (REFERENCE, Path(REFERENCE))
    assert named(f"mine={REFERENCE}") == ("mine", Path(REFERENCE))
    assert named("dyck=corpus") == ("dyck", Path("corpus"))
    assert named("dick:k=2") == ("dick:k=2", Path("dick:k=2"))
    (folder / "a.txt").touch()
    assert named("b:c=a.txt") == ("b:c", Path("a.txt"))
    assert kind_of(REFERENCE) == "grammar"
    source = read_source(f"mine={REFERENCE}", n=30, seed=1, lengths=None)
    assert (source.name, source.pcfg) == ("mine", language(REFERENCE))
    assert len(source.sentences) == 30


@pytest.mark.parametrize(
    "grammar", ["{language: dyck, k: 2, depth: 3}", "{language: 'dyck:k=2', depth: 3}", "{language: 'dyck:depth=3'}"]
)
def test_a_configuration_gathers_the_settings_of_its_language(grammar: str, folder: Path) -> None:
    config = config_of(folder, grammar)
    assert (config.grammar.method, config.grammar.language) == ("language", REFERENCE)
    again = yaml.safe_dump(config.model_dump(mode="json"))
    assert load_config(written(folder, again)) == config
    assert truth_of(load_sweep(written(folder, SWEEP + grammar)), folder) == language(REFERENCE)


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("{language: dick}", "grammar: there is no language 'dick'"),
        ("{language: dyck, k: 0}", "grammar: language dyck: k: expected 1 or more, not 0"),
        ("{language: dyck, q: 1}", "grammar: language dyck: q: unknown key"),
        ("{language: dyck, 1: 1}", "grammar: language dyck: 1: unknown key"),
        ("{language: dyck, method: split_merge}", "grammar: method: language and a language go together"),
        ("{method: language}", "grammar: method: language and a language go together"),
        ("{language: dyck, file: a.npz}", "grammar: method: file and a file name go together"),
    ],
)
def test_a_wrong_language_in_a_configuration_names_the_key(grammar: str, message: str, folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        config_of(folder, grammar)
    assert message in str(caught.value)


def test_a_wrong_language_of_a_sweep_names_the_key(folder: Path) -> None:
    with pytest.raises(InputError, match="grammar: language dyck: k: expected 1 or more, not 0"):
        load_sweep(written(folder, SWEEP + "{language: dyck, k: 0}"))
    with pytest.raises(InputError, match="no language 'dick'"):
        truth_of(load_sweep(written(folder, SWEEP + "'dick:k=2'")), folder)


def test_a_language_and_a_treebank_are_one_too_many(folder: Path) -> None:
    with pytest.raises(InputError, match="not both"):
        load_config(written(folder, RUN + "{language: dyck}\ntreebank: {embedded: english}\n"))


@pytest.mark.long
def test_a_run_depends_on_all_settings_of_its_language(folder: Path) -> None:
    every = ["grammar", "corpus", "score:oracle", "report"]
    assert made(folder, "{language: dyck, k: 2}") == every
    assert made(folder, "{language: dyck, depth: 4}") == [], "the same settings, of which others are defaults"
    assert made(folder, "{method: file, file: 'dyck:k=2'}")[0] == "grammar"
    assert made(folder, "{method: file, file: 'dyck:k=2'}") == []
    assert made(folder, "{language: dyck, k: 3}") == every
    found = PCFG.load(folder / "runs" / "toy" / "grammar" / "grammar.npz")
    assert found.identity == language("dyck", k=3).identity
    report = (folder / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    assert f"<code>{found.identity}</code>; source: Hewitt, Hahn" in report
    with pytest.raises(InputError, match="no such file and no language 'dick'"):
        made(folder, "{method: file, file: 'dick:k=2'}")


def test_no_setting_of_a_language_is_a_key_of_its_own_in_a_configuration() -> None:
    keys = RunConfig.model_fields["grammar"].annotation.model_fields.keys()  # type: ignore[union-attr]
    for name, each in languages().items():
        assert not keys & each.settings.model_fields.keys(), name


@pytest.mark.long
def test_a_run_takes_a_variant_of_its_grammar(folder: Path) -> None:
    every = ["grammar", "corpus", "score:oracle", "report"]
    assert made(folder, "{language: dyck, k: 2}") == every
    assert made(folder, "{language: dyck, k: 2, variant: mirror=all}") == every
    assert made(folder, "{language: dyck, k: 2, variant: mirror=all}") == []
    found = PCFG.load(folder / "runs" / "toy" / "grammar" / "grammar.npz")
    assert found.digest == parse_variant("mirror=all")(language("dyck", k=2)).pcfg.digest
    report = (folder / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    assert "It was changed by <code>mirror=all</code>" in report
    with pytest.raises(InputError, match=r"grammar\.variant.*there is no variant 'miror'"):
        config_of(folder, "{language: dyck, variant: miror=all}")
