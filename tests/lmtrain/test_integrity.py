"""A changed byte of a trained model is noticed when it is loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.training import train
from truesource.lmtrain.training_record import file_digests

SENTENCES = [["the", "dog", "sees", "a", "cat"], ["a", "cat", "sees", "the", "dog"]] * 4


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("integrity") / "net"
    model = model_settings(architecture="gpt2", layers=1, heads=1, dim=4)
    train(SENTENCES, model=model, training=TrainConfig(max_steps=2, snapshots="log"), path=folder, seed=1)
    return folder


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("integrity") / "ngram"
    train(SENTENCES, model=model_settings(architecture="ngram"), training=None, path=folder, seed=1)
    return folder


def _changed(path: Path, place: int) -> bytes:
    """Flip the lowest bit of a byte; gives the old content."""
    before = path.read_bytes()
    data = bytearray(before)
    data[place] ^= 1
    path.unlink()
    path.write_bytes(data)
    return before


@pytest.mark.long
def test_the_record_has_the_digest_of_every_file(network: Path, counts: Path) -> None:
    for folder in (network, network / "snapshots" / "step-000001", counts):
        files = json.loads((folder / "training.json").read_text())["files"]
        now = file_digests(folder)
        assert {"config.json", "tokenizer.json", "tokenizer_config.json"} < files.keys()
        assert {name: now[name] for name in files} == files
        load_model(folder)


@pytest.mark.parametrize("inner", [".", "snapshots/step-000001"])
def test_one_bit_of_the_weights_is_noticed(network: Path, inner: str) -> None:
    folder = network / inner
    before = _changed(folder / "model.safetensors", -1)
    with pytest.raises(InputError, match=r"not the one that training wrote .* \(.*model.safetensors\)"):
        load_model(folder)
    (folder / "model.safetensors").write_bytes(before)
    load_model(folder)


def _as_bin(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")


def _in_two_files(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    index = {}
    for number, part in enumerate((names[:2], names[2:]), start=1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


@pytest.mark.parametrize("write", [_as_bin, _in_two_files])
def test_weights_of_another_format_in_place_of_those_of_the_record(
    write: Callable[[Path], None], network: Path, tmp_path: Path
) -> None:
    """The record has the digest of a file that is not there; without the record the weights are taken as they are."""
    folder = shutil.copytree(network, tmp_path / "net")
    write(folder)
    load_model(folder)  # those of the record are there, and are read
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"has others in their place; train the model again") as refusal:
        load_model(folder)
    assert refusal.value.code == "missing"
    (folder / "training.json").unlink()
    load_model(folder)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("config.json", '"layer_norm_epsilon": 1e-05', '"layer_norm_epsilon": 2e-05'),
        ("generation_config.json", '"bos_token_id": 2', '"bos_token_id": null'),
    ],
)
def test_another_value_of_a_configuration_is_noticed(file: str, old: str, new: str, network: Path) -> None:
    path = network / file
    before = path.read_text()
    path.write_text(before.replace(old, new))
    assert path.read_text() != before
    with pytest.raises(InputError, match=rf"not the one that training wrote .*/{file}"):
        load_model(network)
    path.write_text(before)


def test_exchanged_words_of_an_ngram_model_are_noticed(counts: Path) -> None:
    path = counts / "tokenizer.json"
    before = path.read_text()
    path.write_text(before.replace('"dog"', '"#"').replace('"cat"', '"dog"').replace('"#"', '"cat"'))
    with pytest.raises(InputError, match=r"not the one that training wrote .*tokenizer.json"):
        load_model(counts)
    path.write_text(before)


def test_a_folder_without_a_record_is_taken_as_it_is(network: Path) -> None:
    record = network / "training.json"
    before = record.read_text()
    weights = _changed(network / "model.safetensors", -1)
    record.unlink()
    load_model(network)
    record.write_text(before)
    (network / "model.safetensors").write_bytes(weights)
