"""A training that starts from the weights of a trained model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from truesource.generator.columns import CodedSentences
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.initial import take_weights
from truesource.lmtrain.model_registry import model_settings, network_names, settings_class
from truesource.lmtrain.saving import save_model
from truesource.lmtrain.tokenizer import SPECIALS, build_tokenizer
from truesource.lmtrain.trainer import LossTrainer
from truesource.lmtrain.training import train
from truesource.lmtrain.training_run import TrainingRun

pytestmark = pytest.mark.usefixtures("one_thread")
MODEL = model_settings(layers=1, heads=2, dim=16, ffn_dim=32, max_positions=12, dropout=0.1)
TRAINING = TrainConfig(max_steps=8, batch_tokens=64, eval_every=4, checkpoint_every=4)
BRACKETS = [["(", ")", "c"], ["(", "(", ")", ")"], ["c"]] * 20
WORDS = [["a", "b", "c"], ["b"], ["c", "a", "d"]] * 20  #: of which only c is a word of the others


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of brackets."""
    folder = tmp_path_factory.mktemp("first") / "model"
    train(BRACKETS, MODEL, TRAINING, folder, seed=5)
    return folder


def network_at_start(settings: ModelConfig, sentences: list[list[str]], weights: Path | None) -> TrainingRun:
    """A training before its first step."""
    coded = CodedSentences.of(sentences)
    return TrainingRun(settings, TRAINING, coded, CodedSentences.of([]), 1, weights=weights)


@pytest.mark.parametrize("architecture", [name for name in network_names() if name != "adaptive"])
def test_all_layers_are_taken_and_words_by_what_they_spell(architecture: str, tmp_path: Path) -> None:
    size = {"layers": 2, "dim": 16, "heads": 2, "max_positions": 12}
    settings = model_settings(
        architecture, **{k: v for k, v in size.items() if k in settings_class(architecture).model_fields}
    )
    theirs = build_tokenizer(BRACKETS, objective=settings.objective)
    source = network_at_start(settings, BRACKETS, None).model
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.add_(torch.randn_like(parameter))
    save_model(tmp_path, source, theirs)
    fresh, begun = (network_at_start(settings, WORDS, weights) for weights in (None, tmp_path))
    mine = begun.tokenizer.get_vocab()
    shared = {*SPECIALS, "c"}
    assert mine.keys() & theirs.get_vocab().keys() == shared
    found, old, random = (each.state_dict() for each in (begun.model, source, fresh.model))
    by_token = {name for name, tensor in found.items() if tensor.shape != old[name].shape}
    assert by_token, "word vectors at least"
    for name, tensor in found.items():
        if name not in by_token:
            torch.testing.assert_close(tensor, old[name], rtol=0, atol=0)
            continue
        for word, number in mine.items():
            wanted = old[name][theirs.get_vocab()[word]] if word in shared else random[name][number]
            torch.testing.assert_close(tensor[number], wanted, rtol=0, atol=0)


@pytest.mark.long
def test_with_the_same_words_a_network_starts_as_the_other_was(first: Path) -> None:
    from safetensors.torch import load_file

    begun = network_at_start(MODEL, BRACKETS, first)
    for name, tensor in load_file(first / "model.safetensors").items():
        torch.testing.assert_close(begun.model.state_dict()[name], tensor, rtol=0, atol=0)


@pytest.mark.long
def test_the_record_and_the_weights_depend_on_the_start(first: Path, tmp_path: Path) -> None:
    plain, begun = (
        train(WORDS, MODEL, TRAINING, tmp_path / name, seed=1, weights=weights)
        for name, weights in (("plain", None), ("begun", first))
    )
    records = [json.loads((tmp_path / name / "training.json").read_text("utf-8")) for name in ("plain", "begun")]
    assert "weights_digest" not in records[0] and len(records[1]["weights_digest"]) == 64
    assert any(
        not torch.equal(one, other)
        for one, other in zip(plain.model.parameters(), begun.model.parameters(), strict=True)
    )
    assert "weights of another model" in (tmp_path / "begun" / "README.md").read_text("utf-8")
    assert "weights of another model" not in (tmp_path / "plain" / "README.md").read_text("utf-8")


def killed_at(step: int, patch: pytest.MonkeyPatch, *args: Any, **options: Any) -> None:
    whole = LossTrainer.compute_loss

    def dies(self: LossTrainer, *given: Any, **more: Any) -> torch.Tensor:
        if self.state.global_step == step:
            raise SystemExit("killed")
        return whole(self, *given, **more)

    with patch.context() as changed, pytest.raises(SystemExit):
        changed.setattr(LossTrainer, "compute_loss", dies)
        train(*args, **options)


@pytest.mark.long
def test_a_killed_training_goes_on_to_the_same_bytes(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(WORDS, MODEL, TRAINING, tmp_path / "whole", seed=1, weights=first)
    where = tmp_path / "other"
    killed_at(5, monkeypatch, WORDS, MODEL, TRAINING, where / "whole", seed=1, weights=first)
    train(WORDS, MODEL, TRAINING, where / "whole", seed=1, weights=first)
    for name in ("model.safetensors", "training.json", "metrics.jsonl"):
        assert (where / "whole" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.long
def test_a_partial_training_does_not_go_on_from_another_start(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_at(5, monkeypatch, WORDS, MODEL, TRAINING, tmp_path / "model", seed=1, weights=first)
    with pytest.raises(InputError, match="unfinished run of other settings"):
        train(WORDS, MODEL, TRAINING, tmp_path / "model", seed=1)


OTHERS = {
    "another architecture": model_settings("llama", layers=1, heads=2, dim=16, max_positions=12),
    "of another size: transformer.h.1": model_settings(layers=2, heads=2, dim=16, ffn_dim=32, max_positions=12),
    "of another size: transformer.h.0": model_settings(layers=1, heads=2, dim=16, ffn_dim=64, max_positions=12),
    "num_attention_heads is 2 there and 4": model_settings(layers=1, heads=4, dim=16, ffn_dim=32, max_positions=12),
    "wpe.weight is 12x16 there and 14x16": model_settings(layers=1, heads=2, dim=16, ffn_dim=32, max_positions=14),
}


@pytest.mark.parametrize("message", OTHERS)
def test_weights_of_another_network_are_refused(message: str, first: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as refused:
        train(WORDS, OTHERS[message], TRAINING, tmp_path / "model", seed=1, weights=first)
    assert refused.value.code == "other-network"
    assert list(tmp_path.iterdir()) == []


def test_counted_models_and_missing_folders_are_refused(first: Path, tmp_path: Path) -> None:
    counts = model_settings("ngram")
    train(WORDS, counts, None, tmp_path / "counted", seed=1)
    with pytest.raises(InputError, match="it starts from no weights") as refused:
        train(WORDS, counts, None, tmp_path / "model", seed=1, weights=first)
    assert refused.value.code == "other-network"
    with pytest.raises(InputError, match="of another architecture") as refused:
        train(WORDS, MODEL, TRAINING, tmp_path / "model", seed=1, weights=tmp_path / "counted")
    assert refused.value.code == "other-network"
    with pytest.raises(InputError, match="there is no such model folder") as refused:
        train(WORDS, MODEL, TRAINING, tmp_path / "model", seed=1, weights=tmp_path / "nothing")
    assert refused.value.code == "missing"


@pytest.mark.long
def test_clusters_of_words_are_taken_for_the_same_words_only(tmp_path: Path) -> None:
    settings = model_settings("adaptive", layers=1, heads=2, dim=16, max_positions=12, cutoffs=[6])
    train(BRACKETS, settings, TRAINING, tmp_path / "first", seed=1)
    again = network_at_start(settings, BRACKETS, tmp_path / "first")
    assert isinstance(again, TrainingRun)
    with pytest.raises(InputError, match="no vectors of single words") as refused:
        network_at_start(settings, WORDS, tmp_path / "first")
    assert refused.value.code == "other-network"


def test_random_states_are_left_alone(first: Path) -> None:
    """Dropout of a training is the same whatever it starts from."""
    run = network_at_start(MODEL, WORDS, None)
    torch.manual_seed(3)
    take_weights(run.model, run.tokenizer, MODEL, first)
    found = torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(found, torch.rand(2))


@pytest.mark.long
def test_a_copied_folder_is_the_same_start(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(first, tmp_path / "copy")
    killed_at(5, monkeypatch, WORDS, MODEL, TRAINING, tmp_path / "model", seed=1, weights=first)
    train(WORDS, MODEL, TRAINING, tmp_path / "model", seed=1, weights=tmp_path / "copy")
