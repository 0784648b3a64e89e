"""Model folders that are not what they say: refused in one sentence, by name, before memory or time is spent."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from saved_models import save_model, save_piece_model
from torch import nn

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.folders import library_errors, read_config_json
from truesource.lmtrain.loading import weight_limits
from truesource.lmtrain.models import load_model

TEXT = [["w0", "w1"], ["w2"]]
ARCHITECTURES = ("gpt2", "opt", "llama", "adaptive", "bert", "roberta", "deberta")
Spoil = Callable[[Path], None]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for architecture in ARCHITECTURES:
        save_model(folder / architecture, architecture)
    save_piece_model(folder / "pieces", [["w0", "w1", "w2"]] * 3, "bpe", 30)
    return folder


def spoilt(models: Path, name: str, folder: Path, spoil: Spoil) -> Path:
    shutil.copytree(models / name, folder)
    spoil(folder)
    return folder


def setting(file: str, **values: Any) -> Spoil:
    def change(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**content, **values}))

    return change


def content(file: str, data: bytes) -> Spoil:
    return lambda folder: (folder / file).write_bytes(data) and None


def weights(change: Callable[[dict[str, torch.Tensor]], None]) -> Spoil:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return apply


@pytest.mark.long
@pytest.mark.parametrize("name", [*ARCHITECTURES, "pieces"])
def test_every_tensor_of_the_file_is_needed(name: str, models: Path, tmp_path: Path) -> None:
    """Leave out each in turn: the message names it, whether or not another is tied to it."""
    whole = load_file(models / name / "model.safetensors")
    for number, tensor in enumerate(sorted(whole)):
        folder = spoilt(models, name, tmp_path / str(number), weights(lambda tensors, key=tensor: tensors.pop(key)))
        with pytest.raises(InputError, match=rf"the weights lack .*{re.escape(tensor)}"):
            load_model(folder, device="cpu")
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["gpt2", "bert", "pieces"])
def test_tensors_that_the_network_does_not_have_are_named(name: str, models: Path, tmp_path: Path) -> None:
    def add(tensors: dict[str, torch.Tensor]) -> None:
        tensors["transformer.h.7.mlp.c_fc.bias"] = torch.zeros(24)

    folder = spoilt(models, name, tmp_path / "m", weights(add))
    with pytest.raises(InputError, match=r"the weights hold the tensor transformer\.h\.7\.mlp\.c_fc\.bias, which"):
        load_model(folder, device="cpu")


@pytest.mark.parametrize(("name", "tensor"), [("gpt2", "transformer.wpe.weight"), ("bert", "cls.predictions.bias")])
def test_a_tensor_of_another_shape_is_named(name: str, tensor: str, models: Path, tmp_path: Path) -> None:
    def cut(tensors: dict[str, torch.Tensor]) -> None:
        tensors[tensor] = tensors[tensor][:-1].contiguous()

    folder = spoilt(models, name, tmp_path / "m", weights(cut))
    size = load_file(models / name / "model.safetensors")[tensor].shape
    shapes = ["x".join(map(str, [rows, *size[1:]])) for rows in (size[0] - 1, size[0])]
    with pytest.raises(InputError, match=f"{tensor} is {shapes[0]} in the weights and {shapes[1]} by config.json"):
        load_model(folder, device="cpu")


@pytest.mark.parametrize("name", ["gpt2", "opt", "bert", "roberta", "pieces"])
def test_tied_output_weights_need_not_be_in_the_file(name: str, models: Path) -> None:
    """These architectures are saved without their output matrix, which is that of the word vectors."""
    loaded: Any = load_model(models / name, device="cpu")
    head, words = loaded.model.get_output_embeddings(), loaded.model.get_input_embeddings()
    assert head.weight is words.weight
    stored = load_file(models / name / "model.safetensors")
    assert any(torch.equal(words.weight, tensor) for tensor in stored.values())
    assert not any("lm_head.weight" in key or "decoder.weight" in key for key in stored)


@pytest.mark.parametrize(
    "extra", ["bert.pooler.dense.weight", "cls.seq_relationship.bias", "bert.embeddings.position_ids"]
)
def test_parts_of_other_tasks_may_be_there(extra: str, models: Path, tmp_path: Path) -> None:
    """Published BERTs hold them; they take no part in predicting a word."""
    folder = spoilt(models, "bert", tmp_path / "m", weights(lambda tensors: tensors.update({extra: torch.zeros(8)})))
    scores = [load_model(path, device="cpu").score(TEXT, ScoringFrame()).log_prob for path in (folder, models / "bert")]
    assert np.array_equal(*scores)


def test_weights_saved_by_torch_are_read(models: Path, tmp_path: Path) -> None:
    def pickled(folder: Path) -> None:
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()

    folder = spoilt(models, "gpt2", tmp_path / "m", pickled)
    scores = [load_model(path, device="cpu").score(TEXT, ScoringFrame()).log_prob for path in (folder, models / "gpt2")]
    assert np.array_equal(*scores)


class Malice:
    """Runs a command where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def malicious(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Malice(folder / "mark")}))


def dangling(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(folder / "nowhere")


#: name of the model, what is wrong with it, the message
FOLDERS: dict[str, tuple[str, Spoil, str]] = {
    "no heads": ("gpt2", setting("config.json", n_head=0), "the model cannot be loaded"),
    "heads below 0": ("gpt2", setting("config.json", n_head=-1), "makes a network that cannot be run"),
    "a list for a size": ("gpt2", setting("config.json", n_inner=[3]), "the configuration of the model cannot be used"),
    "text for a size": ("gpt2", setting("config.json", n_layer="3"), "expected int, got str"),
    "layers without end": ("gpt2", setting("config.json", n_layer=10_000_000), "asks for a much larger network"),
    "layers of a llama": ("llama", setting("config.json", num_hidden_layers=10**7), "asks for a much larger network"),
    "layers of a bert": ("bert", setting("config.json", num_hidden_layers=10**7), "asks for a much larger network"),
    "width without end": ("gpt2", setting("config.json", n_embd=10**9), "asks for a much larger network"),
    "no width": ("gpt2", setting("config.json", n_embd=0), "the model cannot be loaded"),
    "words without end": ("gpt2", setting("config.json", vocab_size=10**12), "asks for a much larger network"),
    "a number of 30 digits": ("gpt2", setting("config.json", vocab_size=10**30), "vocab_size is 10+, which is imposs"),
    "labels without end": ("gpt2", setting("config.json", num_labels=10**10), "num_labels is 10+, which is impossible"),
    "positions without end": ("gpt2", setting("config.json", n_positions=10**11), "asks for a much larger network"),
    "positions below 0": ("llama", setting("config.json", max_position_embeddings=-3), "gives the model -3 positions"),
    "a list for a type": ("gpt2", setting("config.json", model_type=["gpt2"]), r"model_type must be a string, not \["),
    "an unknown type": ("gpt2", setting("config.json", model_type="nope"), "the configuration of the model cannot be"),
    "no list of classes": (
        "gpt2",
        setting("config.json", architectures=[3]),
        "architectures must be a list of strings",
    ),
    "an unknown activation": (
        "gpt2",
        setting("config.json", activation_function="x"),
        "cannot be loaded: KeyError 'x'",
    ),
    "untied without a head": ("gpt2", setting("config.json", tie_word_embeddings=False), "lack the tensor lm_head.wei"),
    "broken config": ("gpt2", content("config.json", b"{"), "the configuration of the model cannot be read"),
    "config in latin 1": ("gpt2", content("config.json", b'{"a": "\xe9"}'), "the configuration of the model cannot be"),
    "deep config": ("gpt2", content("config.json", b"[" * 100_000), "recursion depth exceeded"),
    "half a record": ("gpt2", content("training.json", b'{"name": "a'), "the record of the training is not JSON"),
    "record with a mark": ("gpt2", content("training.json", b"\xef\xbb\xbf{"), "the record of the training is not"),
    "record in latin 1": ("gpt2", content("training.json", b'{"name": "\xe9"}'), "the record of the training is not"),
    "record without text": ("gpt2", content("training.json", b'{"name": 3}'), "the record of the training is damaged"),
    "broken tokeniser settings": ("gpt2", content("tokenizer_config.json", b"["), "the tokeniser cannot be loaded"),
    "deep tokeniser settings": ("pieces", content("tokenizer_config.json", b"[" * 10**5), "the tokeniser cannot be"),
    "unknown special token": (
        "gpt2",
        setting("tokenizer_config.json", bos_token="<nope>"),
        r"does not belong to this model: it has token numbers up to 12 \('<nope>'\), the model 12 word vectors",
    ),
    "unknown special piece": (
        "pieces",
        setting("tokenizer_config.json", eos_token="<nope>"),
        "does not belong to this",
    ),
    "a number for a token": ("gpt2", setting("tokenizer_config.json", bos_token=7), "the tokeniser cannot be loaded"),
    "a network for a tokeniser": (
        "gpt2",
        setting("tokenizer_config.json", tokenizer_class="BertModel"),
        "the tokeniser is a BertModel, not a fast one",
    ),
    "no weights": ("gpt2", lambda folder: (folder / "model.safetensors").unlink(), "there are no weights next to"),
    "dangling weights": ("gpt2", dangling, "the model cannot be loaded"),
    "empty weights": ("gpt2", content("model.safetensors", b""), "the model cannot be loaded"),
    "huge head of weights": ("gpt2", content("model.safetensors", (2**60).to_bytes(8, "little")), "cannot be loaded"),
    "malicious weights": ("gpt2", malicious, "the model cannot be loaded"),
}


@pytest.mark.parametrize("name", ["gpt2", "pieces"])
@pytest.mark.parametrize(
    "other", ["LlamaTokenizer", "GemmaTokenizer", "BertTokenizer", "GPT2Tokenizer", "RagTokenizer"]
)
def test_the_class_of_another_tokeniser(name: str, other: str, models: Path, tmp_path: Path) -> None:
    """Whatever the library makes of the file by such a class: it is refused, or its model gives scores."""
    folder = spoilt(models, name, tmp_path / "m", setting("tokenizer_config.json", tokenizer_class=other))
    (folder / "training.json").unlink(missing_ok=True)
    try:
        scores = load_model(folder, device="cpu").score(TEXT, ScoringFrame())
    except InputError as refusal:
        assert "\n" not in str(refusal)
    else:
        assert scores.n_sentences == len(TEXT)


@pytest.mark.long
@pytest.mark.parametrize("case", FOLDERS)
def test_folders_that_lie_are_refused_in_one_sentence(case: str, models: Path, tmp_path: Path) -> None:
    name, spoil, message = FOLDERS[case]
    folder = spoilt(models, name, tmp_path / "m", spoil)
    with pytest.raises(InputError, match=message) as refusal:
        load_model(folder, device="cpu")
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500
    assert not (folder / "mark").exists()


def test_limits_stop_a_network_while_it_is_built(models: Path) -> None:
    """Layer after layer, without memory for weights; afterwards nothing is counted any more."""
    began = []
    with (
        pytest.raises(InputError, match="asks for a much larger network than the weights are of"),
        weight_limits(models / "gpt2", read_config(models / "gpt2")),
        torch.device("meta"),
    ):
        for _ in range(10**9):
            began.append(nn.Linear(2**10, 2**10))
    assert len(began) == 1
    nn.Linear(2**11, 2**11)


def read_config(folder: Path) -> Any:
    assert read_config_json(folder / "config.json")["model_type"] == "gpt2"
    return None


@pytest.mark.parametrize("error", [MemoryError(), OSError(24, "Too many open files")])
def test_a_machine_that_is_exhausted_is_no_bad_folder(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(type(error)), library_errors("the model cannot be loaded", tmp_path):
        raise error


def test_errors_of_libraries_become_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal, library_errors("the model cannot be loaded", tmp_path):
        raise RuntimeError("one\n  two " + "x" * 1000)
    assert str(refusal.value) == f"the model cannot be loaded: one two {'x' * 191}… ({tmp_path})"
