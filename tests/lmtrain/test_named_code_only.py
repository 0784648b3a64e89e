"""No code runs because a model folder says so: only what a person names is imported."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.models import load_model
from truesource.lmtrain.references import names_model
from truesource.lmtrain.snapshots import checkpoints_of

WORDS = {"<s>": 0, "</s>": 1, "<unk>": 2, "a": 3, "b": 4}
#: a module in a model folder; whoever imports it leaves a mark
MARKING = """
from pathlib import Path
Path(__file__).with_name("marker").write_text("run")
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
class Config(GPT2Config):
    model_type = "marking"
class Model(GPT2LMHeadModel):
    config_class = Config
class Words(PreTrainedTokenizerFast):
    pass
def model():
    raise AssertionError
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sound model of transformers, beside code that would mark its import; also the working folder."""
    torch.manual_seed(0)
    made = tmp_path / "model"
    config = GPT2Config(vocab_size=5, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=1)
    GPT2LMHeadModel(config).save_pretrained(made)
    backend = Tokenizer(models.WordLevel(WORDS, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    tokenizer.save_pretrained(made)
    for name in ("modeling_marking", "configuration_marking", "tokenization_marking", "sitecustomize", "conftest"):
        (made / f"{name}.py").write_text(MARKING)
    (made / "__init__.py").write_text(MARKING)
    monkeypatch.chdir(made)
    return made


def add(path: Path, **entries: object) -> None:
    known = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**known, **entries}))


AUTO = {
    "AutoConfig": "modeling_marking.Config",
    "AutoModelForCausalLM": "modeling_marking.Model",
    "AutoModel": "modeling_marking.Model",
    "AutoTokenizer": ["modeling_marking.Words", "modeling_marking.Words"],
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "entries"),
    [
        ("config.json", {"auto_map": AUTO}),
        ("config.json", {"auto_map": AUTO, "model_type": "marking", "architectures": ["Model"]}),
        ("config.json", {"auto_map": AUTO, "trust_remote_code": True}),
        ("config.json", {"model_type": "modeling_marking.py:Model"}),
        ("config.json", {"architecture": "modeling_marking.py:Model", "code": "modeling_marking.py:Model"}),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["tokenization_marking.Words", None]}}),
        ("tokenizer_config.json", {"tokenizer_class": "tokenization_marking.Words"}),
        ("training.json", {"name": "m", "architecture": "modeling_marking.py:Model"}),
        (
            "training.json",
            {"name": "modeling_marking.py:model", "model": {"architecture": "modeling_marking.py:Model"}},
        ),
        ("generation_config.json", {"custom_generate": "modeling_marking.py", "trust_remote_code": True}),
    ],
)
def test_a_folder_that_names_code_is_refused_or_the_code_ignored(
    file: str, entries: dict[str, object], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(folder / file, **entries)
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # to a library that asks whether it may
    before = set(sys.modules)
    for reference in (folder, str(folder), "."):
        try:
            model = load_model(reference, device="cpu")
        except InputError:
            continue
        assert len(model.score([["a", "b"]], ScoringFrame()).log_prob) == 3
    names_model(str(folder))
    assert not (folder / "marker").exists()
    assert not [name for name in set(sys.modules) - before if "marking" in name]


def test_the_snapshots_of_a_folder_run_nothing_either(folder: Path) -> None:
    snapshot = folder / "snapshots" / "step-000001"
    snapshot.mkdir(parents=True)
    for file in [path for path in folder.iterdir() if path.is_file()]:
        (snapshot / file.name).write_bytes(file.read_bytes())
    add(snapshot / "config.json", auto_map=AUTO)
    assert [point.load().name for point in checkpoints_of(folder, "a test")] == ["step-000001"]
    assert not (folder / "marker").exists() and not (snapshot / "marker").exists()


def test_the_mark_is_made_where_a_person_names_the_code(folder: Path) -> None:
    with pytest.raises(InputError):
        load_model("modeling_marking.py:model")
    assert (folder / "marker").exists()
