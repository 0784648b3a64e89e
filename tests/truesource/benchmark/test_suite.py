"""Suites: what they hold, what their digest depends on, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tiny_benchmark import SUITE, mini_suite

from truesource.grammar.support.errors import InputError
from truesource.studies.benchmark.suite import ALL, Suite, candidates, load_suite


def changed(folder: Path, change) -> Suite:  # type: ignore[no-untyped-def]
    values = yaml.safe_load(SUITE)
    change(values)
    path = folder / "changed.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return load_suite(str(path))


def test_the_digest_is_of_what_decides_results(tmp_path: Path) -> None:
    suite = mini_suite(tmp_path)
    described = changed(tmp_path, lambda v: v["languages"]["chain"].update(kind="other", tests="other"))
    fewer = changed(tmp_path, lambda v: v["baselines"].pop("small"))
    titled = changed(tmp_path, lambda v: v.update(title="other"))
    assert suite.digest == described.digest == fewer.digest == titled.digest
    for change in (
        lambda v: v.update(seed=2),
        lambda v: v["training"].update(tokens=4000),
        lambda v: v["sizes"].update(test=41),
        lambda v: v["languages"]["chain"].update(lengths="1..9"),
        lambda v: v["languages"].pop("chain"),
    ):
        assert changed(tmp_path, change).digest != suite.digest


def test_one_language_keeps_its_digest_where_another_changes(tmp_path: Path) -> None:
    suite = mini_suite(tmp_path)
    other = changed(tmp_path, lambda v: v["languages"]["chain"].update(lengths="1..9"))
    assert other.digest_of("brackets") == suite.digest_of("brackets")
    assert other.digest_of("chain") != suite.digest_of("chain")


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v["languages"]["brackets"].update(longer="9..20"),
        lambda v: v["languages"]["brackets"].update(lengths="none"),
        lambda v: v["languages"].update({"no good": v["languages"].pop("chain")}),
        lambda v: v["training"].update(seeds=[]),
        lambda v: v["sizes"].update(blocks=2),
        lambda v: v.update(unknown=1),
    ],
)
def test_a_wrong_suite_is_refused(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError):
        changed(tmp_path, change)


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        load_suite("huge")
    assert refused.value.code == "unknown-suite"


@pytest.mark.long
def test_suites_that_come_with_truesource_name_models_that_can_be_built() -> None:
    for name in ("tiny",):
        suite = load_suite(name)
        asked = candidates(suite, [ALL], [], None)
        for language in suite.languages.values():
            for candidate in asked:
                if candidate.trained:
                    candidate.resolve(suite, language)


@pytest.mark.parametrize(
    ("asked", "overrides", "name", "code"),
    [
        (["gpt2", "lstm"], ["model.dim=8"], None, "several-models"),
        (["all"], [], "mine", "several-models"),
        (["small", "small"], [], None, "repeated-name"),
        (["gpt2"], ["training.max_steps=5"], None, "fixed-setting"),
        (["gpt2"], ["model.tokenizer=bpe"], None, "fixed-setting"),
        (["gpt2"], ["model.dims=8"], None, "model-settings"),
        (["gpt3"], [], None, "model-settings"),
        (["oracle"], ["model.dim=8"], None, "model-settings"),
    ],
)
def test_a_wrong_model_is_refused(
    tmp_path: Path, asked: list[str], overrides: list[str], name: str | None, code: str
) -> None:
    suite = mini_suite(tmp_path)
    with pytest.raises(InputError) as refused:
        for candidate in candidates(suite, asked, overrides, name):
            candidate.resolve(suite, suite.languages["chain"])
    assert refused.value.code == code


def test_settings_of_the_suite_and_of_the_model_meet(tmp_path: Path) -> None:
    suite = mini_suite(tmp_path)
    (candidate,) = candidates(suite, ["small"], ["training.learning_rate=0.5", "model.dim=16"], None)
    shape, training = candidate.resolve(suite, suite.languages["brackets"])
    assert (shape.dim, shape.max_positions, shape.heads) == (16, 18, 1)  # type: ignore[attr-defined]
    assert training is not None
    assert (training.learning_rate, training.epochs, training.batch_tokens) == (0.5, 1.0, 128)
    assert candidate.name == "gpt2-1x16"
