"""Training n-gram models: what it leaves, what it refuses, files that come back, and what is said of coverage."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from transformers import AutoTokenizer

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.models import NgramModel, load_ngram
from truesource.lmtrain.architectures.ngram.training import _lengths_text, _runs
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.training import train

Sentences = list[list[str]]
TRIGRAMS = model_settings(architecture="ngram")
UNSMOOTHED = model_settings(architecture="ngram", order=3, smoothing="mle")


def language(n: int, seed: int) -> Sentences:
    rng = np.random.default_rng(seed)
    return [[f"w{i}" for i in (12 * rng.random(rng.integers(1, 8)) ** 3).astype(int)] for _ in range(n)]


class Source:
    splits = ("train", "dev")

    def sentences(self, split: str) -> Sequence[Sequence[str]]:
        return {"train": language(300, 0), "dev": language(60, 1)}[split]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of each kind."""
    root = tmp_path_factory.mktemp("finished")
    for config in (TRIGRAMS, UNSMOOTHED):
        train(Source(), config, None, root / config.smoothing, seed=3)
    return {config.smoothing: root / config.smoothing for config in (TRIGRAMS, UNSMOOTHED)}


def test_single_discounts_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Tiny:
        splits = ("train",)

        def sentences(self, split: str) -> Sentences:
            return [["a", "b"], ["a"]]

    train(Tiny(), TRIGRAMS, None, tmp_path / "tiny", seed=0)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "a single discount" in warning
    assert re.search(r": 1 to 3 \(0\.5 to [\d.]+\)$", warning)
    caplog.clear()
    train(Source(), TRIGRAMS, None, tmp_path / "usual", seed=0)
    discounts = json.loads((tmp_path / "usual" / "config.json").read_text())["discounts"]
    assert bool([r for r in caplog.records if r.levelname == "WARNING"]) == any(len(set(d)) == 1 for d in discounts)


def test_lengths_of_single_discounts_are_ranges() -> None:
    discounts = {1: 0.5, 2: 0.5, 4: 0.7, 5: 0.6, 6: 0.6, 9: 0.25}
    assert [_lengths_text(run, discounts) for run in _runs(list(discounts))] == [
        "1 to 2 (0.5)",
        "4 to 6 (0.6 to 0.7)",
        "9 (0.25)",
    ]


@pytest.mark.long
@pytest.mark.parametrize("smoothing", ["mle", "kneser_ney"])
def test_an_order_above_all_sentences_is_that_of_the_longest(
    smoothing: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    longest = max(map(len, Source().sentences("train")))
    models = {}
    for order in (longest + 2, longest + 3, 1_000_000):
        caplog.clear()
        config = model_settings(architecture="ngram", order=order, smoothing=smoothing)
        train(Source(), config, None, tmp_path / str(order), seed=0)
        models[order] = load_model(tmp_path / str(order))
        above = [m for m in caplog.messages if "longer than any sentence" in m]
        assert len(above) == (order > longest + 2)
        assert all(len(message) < 500 for message in caplog.messages)
        assert json.loads((tmp_path / str(order) / "config.json").read_text())["order"] == longest + 2
    sentences = Source().sentences("dev")
    first, *others = [model.score(sentences, ScoringFrame()) for model in models.values()]
    for scores in others:
        assert np.array_equal(scores.log_prob, first.log_prob)
        assert np.array_equal(scores.impossible, first.impossible)


@pytest.mark.parametrize("smoothing", ["mle", "kneser_ney"])
def test_a_finished_folder_is_complete(finished: dict[str, Path], smoothing: str) -> None:
    folder = finished[smoothing]
    model = load_model(folder)
    assert isinstance(model, NgramModel)
    assert model.name == f"ngram-3-{smoothing.replace('_', '-')}"
    config = json.loads((folder / "config.json").read_text())
    assert (config["model_type"], config["order"], config["smoothing"]) == ("ngram", 3, smoothing)
    assert config["discounts"] == model.estimate.discount.tolist()
    record = json.loads((folder / "training.json").read_text())
    assert (record["name"], record["objective"], record["training"]) == (model.name, "causal", None)
    assert (record["parameters"], record["vocabulary"]) == (model.n_ngrams, len(model.vocabulary))
    assert set(record["versions"]) >= {"python", "numpy"}
    (row,) = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert row == record["final"]
    assert row["tokens"] == sum(len(s) + 1 for s in Source().sentences("train"))
    card = (folder / "README.md").read_text()
    assert yaml.safe_load(card.split("---\n")[1]) == {
        "library_name": "truesource",
        "license": "unknown",
        "tags": ["truesource", "synthetic", "n-gram"],
    }
    assert ("that the model gives a probability" in card) == (smoothing == "mle")
    words = ["w0", "w3"]
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    assert tokenizer(" ".join(words))["input_ids"] == model.read([words]).tokens[:-1].tolist()


@pytest.mark.parametrize("smoothing", ["mle", "kneser_ney"])
@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_losses_are_those_of_the_scores(order: int, smoothing: Any, tmp_path: Path) -> None:
    config = model_settings(architecture="ngram", order=order, smoothing=smoothing, min_count=2)
    model = train(Source(), config, None, tmp_path / "m", seed=0)
    final = json.loads((tmp_path / "m" / "training.json").read_text())["final"]
    on_train = model.score(Source().sentences("train"), ScoringFrame())
    assert not len(on_train.impossible)
    assert final["loss"] == pytest.approx(-on_train.log_prob.mean(), abs=1e-12)
    dev = Source().sentences("dev")
    on_dev = model.score(dev, ScoringFrame())
    assert final["dev_loss"] == pytest.approx(-on_dev.log_prob.mean(), abs=1e-12)
    assert final["dev_ppl"] == pytest.approx(math.exp(final["dev_loss"]))
    assert final["dev_sentences_covered"] == pytest.approx(1 - len(on_dev.impossible) / len(dev))
    positions = [np.exp(d.log_prob) for s in dev for d in model.distributions([s])]  # type: ignore[union-attr]
    columns = {w: i for i, w in enumerate(model.vocabulary or ())}
    targets = [i for s in dev for i in [*(columns.get(w, len(columns)) for w in s), len(columns) + 1]]
    possible = [p[0, i] > 0.0 for p, i in zip(positions, targets, strict=True)]
    assert final["dev_tokens_covered"] == pytest.approx(np.mean(possible))
    if smoothing == "kneser_ney":
        assert final["dev_tokens_covered"] == final["dev_sentences_covered"] == 1.0
    elif order >= 3:
        assert 0.0 < final["dev_sentences_covered"] < final["dev_tokens_covered"] < 1.0


def test_nothing_covered_and_nothing_to_cover(tmp_path: Path) -> None:
    class Apart(Source):
        def sentences(self, split: str) -> Sentences:
            return {"train": [["a", "b"]], "dev": [["b"], ["c"]]}[split]

    train(Apart(), UNSMOOTHED, None, tmp_path / "m", seed=0)
    final = json.loads((tmp_path / "m" / "training.json").read_text())["final"]
    assert (final["dev_loss"], final["dev_ppl"], final["dev_sentences_covered"]) == (None, None, 0.0)
    assert final["dev_tokens_covered"] == 0.0  # after <bos> only a is known, after <bos> b nothing
    train([["a", "b"]], TRIGRAMS, None, tmp_path / "n", seed=0)
    assert json.loads((tmp_path / "n" / "training.json").read_text())["final"]["dev_sentences_covered"] is None


@pytest.mark.parametrize("smoothing", ["mle", "kneser_ney"])
def test_what_is_loaded_is_what_was_trained(finished: dict[str, Path], smoothing: Any, tmp_path: Path) -> None:
    config = model_settings(architecture="ngram", smoothing=smoothing)
    again = train(Source(), config, None, tmp_path / "m", seed=4)
    one, two = (folder / "ngram.npz" for folder in (finished[smoothing], tmp_path / "m"))
    assert one.read_bytes() == two.read_bytes()  # nothing is random
    texts = language(30, 2)
    scores = [load_model(folder).score(texts, ScoringFrame()) for folder in (finished[smoothing], tmp_path / "m")]
    assert np.array_equal(scores[0].log_prob, scores[1].log_prob)
    assert again.vocabulary == load_model(finished[smoothing]).vocabulary


def damage(folder: Path, name: str, change: Any) -> None:
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


def reversed_words(content: bytes) -> bytes:
    """A whole archive in which an array does not fit."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    arrays["suffix"] = arrays["suffix"] + np.int32(1_000_000)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def arrays(content: bytes, without: set[str], **more: Any) -> bytes:
    """A whole archive without some arrays, and with others."""
    with np.load(io.BytesIO(content)) as archive:
        kept = {name: archive[name] for name in archive.files if name not in without}
    stream = io.BytesIO()
    np.savez(stream, **kept, **more)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ngram.npz", lambda content: content[: len(content) // 2], "counts of this n-gram model is damaged"),
        ("ngram.npz", lambda content: content[:3000] + b"\xff\xfe" + content[3002:], "is damaged"),
        ("ngram.npz", lambda content: b"", "is damaged"),
        ("ngram.npz", reversed_words, "is damaged"),
        ("ngram.npz", lambda content: arrays(content, {"suffix"}), "has no array suffix"),
        ("ngram.npz", lambda content: arrays(content, set(), extra=np.zeros(3)), "has an unknown array extra"),
        ("config.json", lambda content: content.replace(b'"order": 3', b'"order": 4'), "does not fit ngram.npz"),
        ("config.json", lambda content: content.replace(b"kneser_ney", b"laplace"), "does not fit ngram.npz"),
        ("config.json", lambda content: content[:-3], "cannot be read"),
        ("tokenizer.json", lambda content: content[: len(content) // 2], "tokeniser"),
    ],
)
def test_damaged_folders_are_refused(
    finished: dict[str, Path], name: str, change: Any, message: str, tmp_path: Path
) -> None:
    import shutil

    shutil.copytree(finished["kneser_ney"], tmp_path / "m")
    damage(tmp_path / "m", name, change)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "m")


def test_incomplete_folders_are_refused(finished: dict[str, Path], tmp_path: Path) -> None:
    import shutil

    with pytest.raises(InputError, match="no trained model"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="no n-gram model"):
        load_ngram(tmp_path)
    shutil.copytree(finished["mle"], tmp_path / "m")
    train([["other", "words"]], TRIGRAMS, None, tmp_path / "other", seed=0)
    shutil.copy(tmp_path / "other" / "tokenizer.json", tmp_path / "m")
    with pytest.raises(InputError, match="not the one that training wrote"):
        load_ngram(tmp_path / "m")
    (tmp_path / "m" / "training.json").unlink()
    with pytest.raises(InputError, match="of two models"):
        load_model(tmp_path / "m")
    (tmp_path / "m" / "ngram.npz").unlink()
    with pytest.raises(InputError, match="counts of this n-gram model is missing"):
        load_model(tmp_path / "m")


class NoTrain(Source):
    splits = ("dev",)  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("corpus", "model", "message"),
    [
        (NoTrain(), TRIGRAMS, "no train split; it has dev"),
        ([], TRIGRAMS, "no words"),
        ([[]], TRIGRAMS, "no words"),
        ([["a"]], model_settings(architecture="ngram", min_count=2), "no word occurs 2 times"),
    ],
)
def test_bad_input(corpus: Any, model: ModelConfig, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        train(corpus, model, None, tmp_path / "m", seed=0)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_refused_then_replaced(tmp_path: Path) -> None:
    out = tmp_path / "m"
    out.mkdir()
    (out / "precious").write_text("x")
    with pytest.raises(InputError, match="--force"):
        train([["a"]], TRIGRAMS, None, out, seed=0)
    with pytest.raises(InputError, match="not a model, so it will not be replaced"):
        train([["a"]], TRIGRAMS, None, out, seed=0, force=True)
    (out / "precious").rename(tmp_path / "precious")
    train([["a"]], TRIGRAMS, None, out, seed=0)
    (tmp_path / "precious").rename(out / "precious")
    with pytest.raises(InputError, match="--force"):
        train([["b"]], TRIGRAMS, None, out, seed=0)
    assert (out / "precious").exists()
    train([["b"]], TRIGRAMS, None, out, seed=0, force=True)
    assert not (out / "precious").exists()


@pytest.mark.parametrize("name", ["save_counts", "folder_card"])
def test_ctrl_c_leaves_nothing_half_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"truesource.lmtrain.architectures.ngram.training.{name}", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train([["a"]], TRIGRAMS, None, tmp_path / "m", seed=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": 0}, "order"),
        ({"smoothing": "laplace"}, "smoothing"),
        ({"layers": 4}, "ngram takes no layers"),
        ({"dim": 64}, "ngram takes no dim"),
        ({"tokenizer": "bpe"}, "the bpe tokenizer needs vocab_size"),
        ({"tokenizer": "unigram", "vocab_size": 20, "min_count": 2}, "min_count is a setting of the word tokenizer"),
        ({"architecture": "gpt2", "order": 2}, "gpt2 takes no order"),
        ({"architecture": "gpt2", "smoothing": "mle"}, "gpt2 takes no smoothing"),
    ],
)
def test_bad_settings_name_the_field(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_settings(**{"architecture": "ngram", **settings})


def test_networks_need_training_settings(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gpt2 needs training settings"):
        train([["a"]], model_settings(), None, tmp_path / "m", seed=0)
    with pytest.raises(InputError, match="takes no training settings"):
        train([["a"]], TRIGRAMS, TrainConfig(epochs=1), tmp_path / "m", seed=0)


def test_the_monitor_is_asked_once(tmp_path: Path) -> None:
    train([["a"]], TRIGRAMS, None, tmp_path / "m", seed=0, monitor=lambda model: {"n": float(len(model.vocabulary))})
    assert json.loads((tmp_path / "m" / "metrics.jsonl").read_text())["n"] == 1.0
    with pytest.raises(InputError, match="the oracle monitor measured kl as inf"):
        train([["a"]], UNSMOOTHED, None, tmp_path / "n", seed=0, monitor=lambda model: {"kl": math.inf})
    assert not (tmp_path / "n").exists()
