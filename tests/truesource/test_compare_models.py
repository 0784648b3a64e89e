"""`truesource.compare_models`: models as objects; which folders are seeds of one model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from toy_models import Table

import truesource
from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.show.table import Cell
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.training_record import training_of
from truesource.studies.compare.named_models import common_name, named_models
from truesource.studies.compare.tables import comparison_table, mean_exact_kl

TOY = truesource.PCFG.from_text("S -> a S 0.3 | b S 0.2 | a 0.3 | b 0.2")
TEXT = [list(sentence) for sentence in ["a", "ba", "aab", "b", "ab", "aba", "bb", "abba", "aa", "bab", "a", "aaaa"]]


def model(a: float, b: float, objective: str = "causal") -> Table:
    row = {"a": a, "b": b, "</s>": 1.0 - a - b}
    return Table(dict.fromkeys(("<s>", "a", "b"), row), ("a", "b"), objective)  # type: ignore[arg-type]


@pytest.mark.long
def test_models_and_seeds_in_python() -> None:
    seeds = [model(0.35, 0.25), model(0.3, 0.3), model(0.3, 0.2)]
    both = {"one": model(0.4, 0.3), "three": seeds, "m1": model(0.5, 0.5, "masked"), "m2": model(0.6, 0.3, "masked")}
    causal, masked = truesource.compare(both, TEXT, TOY, exact_kl=len(TEXT)).detail
    assert (causal.objective, masked.objective) == ("causal", "masked")
    alone = [compare_in(one, Setting(TOY, TEXT)).measures["kl"] for one in (both["one"], *seeds)]
    assert causal.rows[0].measures["kl"] == alone[0]
    assert causal.rows[1].measures["kl"].value == pytest.approx(np.mean([kl.value for kl in alone[1:]]), abs=1e-12)
    assert [found.model for found in masked.differences] == ["m2"]
    table = comparison_table(causal, ["seeds", "kl", "exact_kl", "difference", "p"])
    assert [row.cells[0] for row in table.rows] == ["oracle", "one", "three"]
    assert "one with one seed: of this trained model only" in table.note
    exact = [seed.exact for seed in causal.rows[1].model.seeds]
    assert all(score is not None and score.name == "kl" and score.value > 0.0 for score in exact)
    assert table.columns[3] == f"exact KL\n({len(TEXT)} sentences)"


def test_the_exact_kl_has_its_interval_in_the_usual_table() -> None:
    both = {"one": model(0.4, 0.3), "two": [model(0.35, 0.25), model(0.3, 0.2)]}
    (found,) = truesource.compare(both, TEXT, TOY, exact_kl=len(TEXT) - 1).detail
    table = comparison_table(found)
    column = table.keys.index("exact_kl")
    assert table.columns[column] == f"exact KL\n({len(TEXT) - 1} sentences)"
    _, one, two = (row.cells[column] for row in table.rows)
    (score,) = [seed.exact for seed in found.rows[0].model.seeds]
    assert isinstance(one, Cell) and score is not None and score.low is not None and score.high is not None
    assert one.score == (score.value, score.low, score.high) and one.ends == (f"{score.low:.4f}", f"{score.high:.4f}")
    assert isinstance(two, Cell) and two.ends is not None and two.score is not None
    seeds = [seed.exact for seed in found.rows[1].model.seeds if seed.exact is not None]
    value, low, high = two.score
    assert value == pytest.approx(np.mean([each.value for each in seeds]))
    assert low is not None and high is not None and low < min(each.value for each in seeds) < value < high


def test_the_interval_of_a_mean_exact_kl_holds() -> None:
    """Sentences and seeds with known errors: the interval covers the mean in 95% of cases or more."""
    rng, k, n, hits, trials = np.random.default_rng(3), 3, 40, 0, 400
    for _ in range(trials):
        seed_effect, sentence_effect = rng.normal(0.0, 0.03, k), rng.normal(0.0, 0.2, n)
        rows = 1.0 + seed_effect[:, None] + sentence_effect + rng.normal(0.0, 0.1, (k, n))
        half = 2.0227 * rows.std(axis=1, ddof=1) / np.sqrt(n)
        ends = zip(rows.mean(axis=1).tolist(), half.tolist(), strict=True)
        found = mean_exact_kl([Score("kl", v, "", v - h, v + h) for v, h in ends])
        assert found.low is not None and found.high is not None
        hits += found.low <= 1.0 <= found.high
    assert hits >= 0.94 * trials
    missing = [Score("kl", 0.1, ""), Score("kl", 0.2, "", 0.1, 0.3)]
    assert mean_exact_kl(missing) == (pytest.approx(0.15), None, None)


def test_one_model_is_none_to_compare() -> None:
    with pytest.raises(InputError) as refused:
        truesource.compare({"one": model(0.4, 0.3)}, TEXT, TOY)
    assert refused.value.code == "too-few-models"


def trained(folder: Path, name: str, seed: int | None, **changed: object) -> Path:
    """A folder with a record of training, and nothing else."""
    record = {
        "model": {"architecture": "gpt2", "name": name, "dim": 16},
        "training": {"max_steps": 12},
        "corpus_digest": "ab",
        "name": name,
        "seed": seed,
        "final": {"loss": 1.0 + (seed or 0)},
        "files": {"config.json": "0" * 63 + str(seed or 0)},
        **changed,
    }
    (folder / name).mkdir()
    (folder / name / "training.json").write_text(json.dumps(record), encoding="utf-8")
    return folder / name


def test_folders_that_differ_in_the_seed_alone_are_one_model(tmp_path: Path) -> None:
    places = [
        trained(tmp_path, "net-seed1", 1),
        trained(tmp_path, "wide-seed1", 1, model={"dim": 32}),
        trained(tmp_path, "net-seed2", 2),
        trained(tmp_path, "net-again", 2),  # a second training with a seed is no other seed
        trained(tmp_path, "longer", 3, training={"max_steps": 13}),
        trained(tmp_path, "elsewhere", 3, corpus_digest="cd"),
    ]
    found = named_models([*map(str, places), f"mine={trained(tmp_path, 'x', 9)}", f"mine={trained(tmp_path, 'y', 9)}"])
    assert [(one.name, [Path(seed.text).name for seed in one.seeds]) for one in found] == [
        ("net", ["net-seed1", "net-seed2"]),
        ("wide-seed1", ["wide-seed1"]),
        ("net-again", ["net-again"]),
        ("longer", ["longer"]),
        ("elsewhere", ["elsewhere"]),
        ("mine", ["x", "y"]),
    ]


def test_models_of_one_name_are_told_apart_by_their_reference(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    places = [str(trained(tmp_path / name, "net", 1, training={"of": name})) for name in ("a", "b")]
    assert [one.name for one in named_models(places)] == places


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (["gpt2-seed1", "gpt2-seed2"], "gpt2"),
        (["gpt2-1", "gpt2-2"], "gpt2"),
        (["lstm", "lstm"], "lstm"),
        (["a", "b"], "a"),
        (["seed1", "seed2"], "seed"),
        (["net_seed11", "net_seed12"], "net"),
    ],
)
def test_the_name_of_seeds(names: list[str], common: str) -> None:
    assert common_name(names) == common


def test_a_folder_without_a_seed_is_no_replicate(tmp_path: Path) -> None:
    assert training_of(tmp_path) is None
    assert training_of(trained(tmp_path, "net", None)) is None
