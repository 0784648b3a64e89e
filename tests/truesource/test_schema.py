"""`truesource new --schema`: what it accepts, what it refuses, and that editors find it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from truesource.cli.new import DIALECT, Kind, Of, editor_line, json_schema, schema_text
from truesource.grammar.languages import languages, presets
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder
from truesource.grammar.support.records import parse_yaml
from truesource.lmtrain.architectures.settings import names
from truesource.run.experiment import load_config

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = """
name: mine
treebank: {files: trees, normalise: {lengths: 1..60}}
grammar: {method: split_merge, split_merge: {cycles: 1}}
corpus: {lengths: 6..25, splits: {train: 300, eval: 20}}
models:
  - {name: net, preset: tiny, model: {architecture: lstm, layers: 3}, training: {max_steps: 2}}
  - {name: default, preset: tiny, model: {heads: 2}}
  - {name: own, preset: tiny, model: {architecture: "net.py:Net", anything: 3}}
evaluation: {divergence: true, tendencies: {schemes: [ancestral, {scheme: nucleus, top_p: 0.9}]}}
"""


@cache
def _validator(of: Of = Of.RUN) -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(json_schema(of))
    return jsonschema.Draft202012Validator(json_schema(of))


def _mistakes(text: str, of: Of = Of.RUN) -> list[str]:
    values = parse_yaml(text, what="the text", remedy="mend it")
    return [f"{error.json_path}: {error.message}" for error in _validator(of).iter_errors(values)]


def _configurations() -> Iterator[tuple[str, Of, str]]:
    for path in sorted([*data_folder().glob("*.yaml"), *(data_folder() / "new").glob("*.yaml")]):
        yield path.name, Of.SCALING if path.stem == "scaling" else Of.RUN, path.read_text("utf-8")
    for path in sorted((data_folder() / "benchmark").glob("*.yaml")):
        yield path.name, Of.BENCHMARK, path.read_text("utf-8")
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]:
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            if "name:" in block and "models:" in block and "rows:" not in block:
                yield page.name, Of.RUN, block if re.search("^name:", block, re.MULTILINE) else f"name: x\n{block}"


@pytest.mark.long
@pytest.mark.parametrize(("file", "of", "text"), [*_configurations()])
def test_all_configurations_of_the_project_are_accepted(file: str, of: Of, text: str) -> None:
    assert _mistakes(text, of) == []


@pytest.mark.long
def test_own_configurations_are_accepted() -> None:
    assert _mistakes(TEXT) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("name: mine", "nam: mine"),
        ("lengths: 6..25", "lengths: 6-25"),
        ("normalise: {lengths", "normalise: {length"),
        ("cycles: 1", "cycle: 1"),
        ("cycles: 1", "cycles: -1"),
        ("method: split_merge", "method: split"),
        ("layers: 3", "lyers: 3"),
        ("layers: 3", "layers: 0"),
        ("layers: 3", "heads: 3"),
        ("{heads: 2}", "{kernel_size: 2}"),
        ("architecture: lstm", "architecture: lsmt"),
        ("max_steps", "max_step"),
        ("divergence: true", "divergance: true"),
        ("divergence: true", "divergence: {topk: 3}"),
        ("divergence: true", "divergence: {top_k: 0}"),
        ("scheme: nucleus", "scheme: nuclear"),
        ("top_p: 0.9", "top_p: 1.9"),
        ("[ancestral", "[ancestor"),
    ],
)
def test_mistakes_that_the_reader_refuses_are_refused(right: str, wrong: str, tmp_path: Path) -> None:
    assert right in TEXT
    text = TEXT.replace(right, wrong)
    assert _mistakes(text) != []
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        load_config(tmp_path / "x.yaml")


@pytest.mark.parametrize("language", [*languages(), *presets()])
def test_each_language_has_its_own_settings(language: str) -> None:
    kind = languages()[presets().get(language, language)].settings
    values = kind().model_dump(mode="json", exclude_none=True)
    grammar = json.dumps({"language": language, **values})
    assert _mistakes(f"name: x\ngrammar: {grammar}") == []
    wrong = json.dumps({"language": language, "no_such_setting": 1})
    assert _mistakes(f"name: x\ngrammar: {wrong}") != []
    sweep = f"name: x\ngrammar: {wrong}\ncorpus: c\nbase: {{}}\naxes: {{sentences: [1]}}"
    assert _mistakes(sweep, Of.SCALING) != [] == _mistakes(sweep.replace(wrong, grammar), Of.SCALING)


def test_a_language_that_does_not_exist_is_refused() -> None:
    assert _mistakes("name: x\ngrammar: {language: dyke}") != []
    assert _mistakes("name: x\ngrammar: {language: 'dyck:k=3', method: language}") == []


def _objects(value: Any, place: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield place, value
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _objects(each, f"{place}.{key}")


@pytest.mark.parametrize("of", Of)
def test_every_key_has_a_description_and_no_settings_take_others(of: Of) -> None:
    schema = json_schema(of)
    assert schema["$schema"] == DIALECT
    settings = [(place, each) for place, each in _objects(schema) if "additionalProperties" in each]
    assert settings
    for place, each in settings:
        own_keys = place.endswith(("OwnSettings", "properties.splits", "properties.also", "languages", "baselines"))
        assert each["additionalProperties"] is False or own_keys or "properties" not in each, place
        keys = each.get("properties", {}).items()  # what a reference leads to may say it too
        missing = [name for name, found in keys if found and not {"description", "$ref"} & found.keys()]
        assert missing == [], place
    if of is not Of.BENCHMARK:
        consts = {each["const"] for _, each in _objects(schema) if "const" in each}
        assert consts >= {*names()}


@pytest.mark.long
def test_it_is_printed_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.chdir(tmp_path)
    printed = command("new", "--schema", "run")
    assert printed.code == 0 and json.loads(printed.out) == json_schema()
    wrote = command("new", "--schema", "scaling", "-o", "sweep.schema.json")
    assert wrote.code == 0 and editor_line("sweep.schema.json") in wrote.out
    assert json.loads(Path("sweep.schema.json").read_text("utf-8")) == json_schema(Of.SCALING)
    again = command("new", "--schema", "run", "-o", "sweep.schema.json")
    assert again.code == 2 and "sweep.schema.json" in again.err


@pytest.mark.long
@pytest.mark.parametrize("kind", Kind)
def test_new_configurations_name_their_schema(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("new", kind, "mine").code == 0
    first, *_ = Path("mine/experiment.yaml").read_text("utf-8").splitlines()
    assert first == "# yaml-language-server: $schema=experiment.schema.json"
    assert Path("mine/experiment.schema.json").read_text("utf-8") == schema_text()
