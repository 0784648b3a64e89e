"""Every key of a configuration and every option from a settings class says what it means, in one place."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import truesource
from truesource.cli.app import evaluators
from truesource.evaluation.pplu.evaluator import PpluSettings
from truesource.evaluation.probing.evaluator import ProbingSettings
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import check_fields
from truesource.grammar.support.settings import Settings, field_description, fields_of, is_advanced
from truesource.grammar.treebank.binarise import Binarisation
from truesource.grammar.treebank.normalise import Normalisation
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.terminal.help import verb_help

ROOT = Path(truesource.__file__).parent
DEFINES = re.compile(r"^class \w+\(\w*(Settings|ModelConfig)\)", re.MULTILINE)


def _defining_settings() -> list[Path]:
    """Source files; the packages below are links, which `Path.rglob` follows only where it begins."""
    paths = [path for folder in ROOT.iterdir() if folder.is_dir() for path in folder.rglob("*.py")]
    return [path for path in paths if DEFINES.search(path.read_text(encoding="utf-8"))]


def _subclasses(kind: type) -> set[type]:
    return {kind}.union(*(_subclasses(each) for each in kind.__subclasses__()))


def _settings_classes() -> list[type]:
    """All that the source defines; those of tests and of generated configurations aside."""
    for path in _defining_settings():
        importlib.import_module(".".join(("truesource", *path.relative_to(ROOT).with_suffix("").parts)))
    found = {*_subclasses(Settings), *_subclasses(ModelConfig), TrainConfig, SplitMerge, Binarisation, Normalisation}
    ours = [kind for kind in found if kind.__module__.startswith("truesource.")]
    return [kind for kind in ours if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind]


def test_every_field_says_what_it_means() -> None:
    kinds = _settings_classes()
    assert len(kinds) > 60
    texts = {(kind.__name__, name): field.description for kind in kinds for name, field in fields_of(kind).items()}
    assert len(texts) > 350
    assert [place for place, text in texts.items() if not text] == []
    assert [place for place, text in texts.items() if text and not re.fullmatch(r"[A-Z].*\.", text)] == []


def test_advanced_settings_are_settings_and_most_of_what_help_shows_first_is_not_advanced() -> None:
    kinds = _settings_classes()
    unknown = {kind.__name__: vars(kind).get("advanced", frozenset()) - fields_of(kind).keys() for kind in kinds}
    assert {name: fields for name, fields in unknown.items() if fields} == {}
    assert is_advanced(PpluSettings, "smoothing") and not is_advanced(PpluSettings, "unigram")
    assert is_advanced(ProbingSettings, "mdl"), "of the class that it extends"
    shown = verb_help(get_command(evaluators()).commands["pplu"], "truesource evaluate pplu").panels  # type: ignore[attr-defined]
    names = {panel: {each.names[0].split()[0] for each in options} for panel, options in shown.items()}
    assert "--smoothing" in names["Advanced"] and "--unigram" in names["Options"] and list(names)[-1] == "Advanced"


def test_no_field_says_it_in_a_comment() -> None:
    comment = re.compile(r"^    \w+: .*Field\(.*#:", re.MULTILINE)
    paths = _defining_settings()
    assert len(paths) > 40
    assert [path for path in paths if comment.search(path.read_text(encoding="utf-8"))] == []


def test_fields_of_a_dataclass_have_their_description_and_default() -> None:
    assert fields_of(SplitMerge)["cycles"].default == SplitMerge().cycles
    assert field_description(SplitMerge, "cycles") == fields_of(SplitMerge)["cycles"].description
    assert field_description(TrainConfig, "clip") == TrainConfig.model_fields["clip"].description
    assert fields_of(int) == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (lambda: SplitMerge(cycles=-1), "split-merge: cycles: expected 0 or more, not -1"),
        (lambda: SplitMerge(cycles=1.5), "split-merge: cycles: expected a whole number, not 1.5"),  # type: ignore[arg-type]
        (lambda: SplitMerge(noise=1.0), "split-merge: noise: expected less than 1, not 1"),
        (lambda: SplitMerge(prior_rules=float("inf")), "split-merge: prior_rules: expected a finite number, not inf"),
        (lambda: Binarisation(vertical=0), "binarisation: vertical: expected 1 or more, not 0"),
        (lambda: Normalisation(convention="mine"), "normalisation: convention: expected one of 'penn'"),  # type: ignore[arg-type]
    ],
)
def test_settings_of_the_engines_refuse_what_their_annotations_do_not_allow(settings, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as error:
        settings()
    assert str(error.value).startswith(message)
    assert error.value.code == "bad-setting"


def test_settings_that_fit_are_not_refused() -> None:
    check_fields(SplitMerge(noise=0, merge_fraction=1), "split-merge")
    check_fields(Normalisation(root=None, rare_below=2, unknown="unk"), "normalisation")
