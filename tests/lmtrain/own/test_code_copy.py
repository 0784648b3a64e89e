"""Which files of code go into the folder of a model, and that `transformers` opens such folders without truesource."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hub_reader import read_elsewhere
from own_code import EXAMPLES, SENTENCES, trained

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.models import load_model
from truesource.lmtrain.own.network import code_copy
from truesource.lmtrain.references import Code, load_code

#: what `transformers` could get wrong: tied weights, a lazy layer, an unsaved buffer, a default that is no JSON
MASKED = """
import torch
from torch import nn

class Both(nn.Module):
    objective = "masked"

    def __init__(self, size, width: int = 8, widths=(1, 2)):
        super().__init__()
        assert widths == (1, 2)
        self.words = nn.Embedding(size, width)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.lazy = nn.LazyLinear(width)
        self.out = nn.Linear(width, size)
        self.out.weight = self.words.weight
        self.register_buffer("unsaved", torch.linspace(0.5, 1.5, width), persistent=False)

    def forward(self, ids, mask):
        kept = mask.sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(self.words(ids), kept, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=ids.shape[1])
        return self.out(self.lazy(states) * self.unsaved)
"""

READER = """
import json, sys
sys.modules["truesource"] = None  # it cannot be imported
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

def causal(folder, sentences):
    network, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, trust_remote_code=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True, padding_side="left")
    assert network.generation_config.do_sample and network.generation_config.eos_token_id == tokenizer.eos_token_id
    found = []
    for sentence in sentences:
        ids = tokenizer(" ".join(sentence), return_tensors="pt").input_ids
        table = network(input_ids=ids).logits[0].double().log_softmax(-1)
        found += [table[i, t].item() for i, t in enumerate([*ids[0, 1:].tolist(), tokenizer.eos_token_id])]
    prompts = ["a b", "c", "a b c d"]
    texts = network.generate(**tokenizer(prompts, return_tensors="pt", padding=True), max_new_tokens=8, do_sample=False)
    for prompt, text in zip(prompts, texts.tolist()):
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        for _ in range(8):
            ids = torch.cat([ids, network(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
            if ids[0, -1] == tokenizer.eos_token_id:
                break
        assert [t for t in text if t != tokenizer.pad_token_id] == ids[0].tolist(), (prompt, text)
    return found

def masked(folder, sentences):
    network = AutoModelForMaskedLM.from_pretrained(folder, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    assert not hasattr(network, "generate")
    found = []
    for sentence in sentences:
        for place, word in enumerate(sentence):
            text = " ".join([*sentence[:place], tokenizer.mask_token, *sentence[place + 1 :]])
            inputs = tokenizer([text, "a b c d a b c d a b"], return_tensors="pt", padding=True)
            table = network(**{k: inputs[k] for k in ("input_ids", "attention_mask")}).logits[0, place + 1]
            found.append(table.double().log_softmax(-1)[tokenizer.convert_tokens_to_ids(word)].item())
    return found

with torch.no_grad():
    print(json.dumps([{"causal": causal, "masked": masked}[o](f, s) for o, f, s in json.loads(sys.argv[1])]))
"""


@pytest.mark.long
def test_transformers_opens_the_folders_without_us(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MASKED)
    gru = trained(f"{EXAMPLES}:GRU", tmp_path / "gru", hidden=8)
    both = trained(f"{tmp_path / 'mine.py'}:Both", tmp_path / "both", objective="masked")
    folders = [["causal", str(tmp_path / "gru"), SENTENCES], ["masked", str(tmp_path / "both"), SENTENCES]]
    for model, found in zip((gru, both), read_elsewhere(READER, folders, tmp_path), strict=True):
        assert model.score(SENTENCES, ScoringFrame()).log_prob == pytest.approx(found, abs=1e-5)
    for name, task in (("gru", "text-generation"), ("both", "fill-mask")):
        card = (tmp_path / name / "README.md").read_text()
        assert "library_name: transformers" in card and f"pipeline_tag: {task}" in card and "custom_code" in card
        assert "trust_remote_code=True" in card and "code is not in this folder" not in card


@pytest.mark.long
def test_truesource_runs_the_named_file_and_never_the_copy(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MASKED)
    reference = f"{tmp_path / 'mine.py'}:Both"
    model = trained(reference, tmp_path / "m", objective="masked")
    assert (tmp_path / "m" / "own_code.py").read_text() == MASKED
    for path in (tmp_path / "m").glob("*.py"):
        path.write_text("raise SystemExit('run')\n")
    again = load_model(f"{reference}@{tmp_path / 'm'}", device="cpu")
    assert again.score(SENTENCES, ScoringFrame()).log_prob.tolist() == (
        model.score(SENTENCES, ScoringFrame()).log_prob.tolist()
    )
    with pytest.raises(InputError) as refused:
        load_model(tmp_path / "m")
    assert refused.value.code == "needs-code"


@pytest.mark.long
def test_a_file_that_imports_its_neighbour_stays_and_the_card_says_so(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("from torch.nn import GRU\n")
    source = EXAMPLES.read_text().replace("from torch import Tensor, nn", "from torch import Tensor, nn\nimport layers")
    (tmp_path / "mine.py").write_text(source)
    reference = f"{tmp_path / 'mine.py'}:GRU"
    trained(reference, tmp_path / "m", hidden=8)
    assert not [*(tmp_path / "m").glob("*.py")]
    assert "auto_map" not in json.loads((tmp_path / "m" / "config.json").read_text())
    card = (tmp_path / "m" / "README.md").read_text()
    assert "library_name: truesource" in card and "pipeline_tag" not in card and "trust_remote_code" not in card
    assert "the code is not in this folder: its file imports layers, which lies next to it" in card
    found: dict[str, Any] = {}
    exec(card.split("```python\n")[1].split("```")[0].replace("path/to/this/folder", str(tmp_path / "m")), found)
    assert found["model"].objective == "causal"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("import math, torch.nn, numpy as np", None),
        ("try:\n    import a_package_that_is_not_installed\nexcept ImportError:\n    pass", None),
        ("import beside", "imports beside, which lies next to it"),
        ("def late():\n    from package.inner import x", "imports package, which lies next to it"),
        ("import elsewhere", "imports elsewhere, which is not an installed package"),
        ("def late():\n    from . import beside", "imports its neighbour .beside"),
        ("def late():\n    from truesource.lmtrain import models", "imports truesource"),
        ("here = __file__", "looks for files next to it (__file__)"),
        ("import importlib", "imports modules by names made at run time"),
        ("# -*- coding: latin-1 -*-", "is not written in UTF-8"),
    ],
)
def test_only_a_file_that_needs_no_other_goes(
    line: str, reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mine/beside.py", "mine/package/__init__.py", "mine/package/inner.py", "other/elsewhere.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path / "other")
    path = tmp_path / "mine" / "mine.py"
    path.write_text(f"{line}\nclass A:\n    pass\n")
    copy = code_copy(Code(None, f"{path}:A", path, hashlib.sha256(path.read_bytes()).hexdigest()))
    assert (copy.name, copy.reason) == ("A", reason)
    assert copy.content == (path.read_bytes() if reason is None else None)


def test_a_file_that_changed_since_it_was_imported_stays(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("class A:\n    pass\n")
    code = load_code(f"{path}:A")
    path.write_text("class A:\n    x = 1\n")
    assert code_copy(code).reason == "has changed since it was imported"
