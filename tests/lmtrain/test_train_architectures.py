"""Every architecture learns a toy language by the usual training, and comes back from its folder as it was."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from half_certain import Source, language
from hub_reader import read_elsewhere

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import model_settings, network_architecture, network_names, settings_class
from truesource.lmtrain.models import load_model
from truesource.lmtrain.training import train

#: networks that transformers does not have
OURS = ("adaptive", "lstm", "gated_cnn")
STEPS = TrainConfig(max_steps=80, batch_tokens=96, eval_every=40, learning_rate=1e-2, warmup_steps=5)


def small(name: str) -> ModelConfig:
    more: dict[str, Any] = {"heads": 2} if "heads" in settings_class(name).model_fields else {}
    if network_architecture(name).objective == "masked":
        more["local_start"] = True
    init = 0.25 if network_architecture(name).objective == "causal" else 0.1
    return model_settings(architecture=name, dim=16, dropout=0.05, init_std=init, **more)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Any]]:
    """Folder and scores on some text of an architecture, trained when it is first asked for."""
    root = tmp_path_factory.mktemp("trained")
    made: dict[str, tuple[Path, Any]] = {}

    def get(name: str) -> tuple[Path, Any]:
        if name not in made:
            model = train(Source(), small(name), STEPS, root / name, seed=2)
            assert model.name == f"{name}-2x16"
            made[name] = root / name, model.score(language(20, 5), ScoringFrame())
        return made[name]

    return get


@pytest.mark.long
@pytest.mark.parametrize("name", network_names())
def test_it_learns(name: str, trained: Callable[[str], tuple[Path, Any]]) -> None:
    """The loss falls well below that of word frequencies alone, which is about 2 nats."""
    folder, _ = trained(name)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = [row["dev_loss"] for row in rows]
    assert all(later < earlier + 0.01 for earlier, later in pairwise(losses))  # flat at the end
    assert losses[-1] < 1.3
    assert rows[-1]["loss"] < 1.4
    dev = load_model(folder, device="cpu").score(Source().sentences("dev"), ScoringFrame()).log_prob
    chance = 0.05 if settings_class(name).objective == "any-order" else 1e-5  # in other random orders
    assert losses[-1] == pytest.approx(-dev.mean(), abs=chance)


@pytest.mark.long
@pytest.mark.parametrize("name", network_names())
def test_it_comes_back_as_it_was(name: str, trained: Callable[[str], tuple[Path, Any]]) -> None:
    folder, before = trained(name)
    again = load_model(folder, device="cpu")
    assert again.name == f"{name}-2x16"
    assert again.score(language(20, 5), ScoringFrame()).log_prob == pytest.approx(before.log_prob, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", network_names())
def test_its_card_says_how_to_load_it(name: str, trained: Callable[[str], tuple[Path, Any]]) -> None:
    code = (trained(name)[0] / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert code.startswith("from transformers import Auto")
    assert ("trust_remote_code=True" in code) == (name in OURS)
    found: dict[str, Any] = {}
    exec(code.replace("path/to/this/folder", str(trained(name)[0])), found)
    assert found["model"].config.model_type == (settings_class(name).model_type or name)


@pytest.mark.long
@pytest.mark.parametrize("name", network_names())
def test_it_trains_in_half_precision(name: str, tmp_path: Path) -> None:
    some = STEPS.model_copy(update={"max_steps": 24, "eval_every": 12, "precision": "bf16"})
    try:
        train(Source(), small(name), some, tmp_path / "model", seed=2)
    except InputError as error:
        assert (name, error.code) == ("lstm", "no-bf16")
        pytest.skip("this CPU has no bf16 arithmetic for LSTMs")
    rows = [json.loads(line) for line in (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["dev_loss"] < rows[0]["dev_loss"] - 0.05


def test_a_cpu_without_half_precision_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(*_: Any, **__: Any) -> None:
        raise RuntimeError("could not create a primitive descriptor. Run with more")

    monkeypatch.setattr("truesource.lmtrain.architectures.lstm.LSTMForCausalLM.forward", forward)
    half = STEPS.model_copy(update={"precision": "bf16"})
    with pytest.raises(InputError, match=r"primitive descriptor\); set training.precision") as refused:
        train(Source(), small("lstm"), half, tmp_path / "model", seed=2)
    assert refused.value.code == "no-bf16"
    assert not (tmp_path / "model").exists()


LOADER = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer
found = {}
for folder, causal, text in json.loads(sys.argv[1]):
    auto = AutoModelForCausalLM if causal else AutoModelForMaskedLM
    network, report = auto.from_pretrained(folder, output_loading_info=True, trust_remote_code=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), (folder, report)
    inputs = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)(text, return_tensors="pt")
    with torch.no_grad():
        table = network(**inputs).logits[0].double().log_softmax(-1).tolist()
    found[folder] = [inputs["input_ids"][0].tolist(), table]
assert not [name for name in sys.modules if name.split(".")[0] == "truesource"]
print(json.dumps(found))
"""


@pytest.mark.long
def test_transformers_loads_them_without_us(trained: Callable[[str], tuple[Path, Any]], tmp_path: Path) -> None:
    """Scores of ours are what a reader of the folder computes: of "a b c" word by word, of one masked word."""
    causal = {name: network_architecture(name).objective == "causal" for name in network_names()}
    wanted = [[str(trained(n)[0]), causal[n], "a b c" if causal[n] else "a b <mask> d ."] for n in causal]
    found = read_elsewhere(LOADER, wanted, tmp_path)
    for name in causal:
        folder = trained(name)[0]
        model = load_model(folder, device="cpu")
        ids, table = found[str(folder)]
        if causal[name]:
            expected = [table[i][ids[i + 1]] for i in range(3)] + [table[3][model.tokenizer.eos_token_id]]
            assert model.score([["a", "b", "c"]], ScoringFrame()).log_prob == pytest.approx(expected, abs=1e-5)
        else:
            assert ids[3] == model.tokenizer.mask_token_id
            word = model.tokenizer.convert_tokens_to_ids("c")
            score = model.score([["a", "b", "c", "d", "."]], ScoringFrame()).log_prob[2]
            assert score == pytest.approx(table[3][word], abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in network_names() if network_architecture(name).objective == "causal"])
def test_generate_goes_on_as_if_it_read_all_again(name: str, trained: Callable[[str], tuple[Path, Any]]) -> None:
    """Greedy, sampled and by beams, for prompts of different lengths, padded on the left."""
    model = load_model(trained(name)[0], device="cpu")
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.padding_side = "left"
    batch = tokenizer(["a b", "c d c d a", ""], padding=True, return_tensors="pt")
    for options in ({"do_sample": False}, {"do_sample": True}, {"do_sample": False, "num_beams": 3}):
        found = []
        for cached in (True, False):
            torch.manual_seed(3)
            found.append(model.model.generate(**batch, **options, use_cache=cached, max_new_tokens=9).tolist())
        assert found[0] == found[1]
    alone = model.model.generate(**tokenizer("a b", return_tensors="pt"), do_sample=False, max_new_tokens=9)[0].tolist()
    together = model.model.generate(**batch, do_sample=False, max_new_tokens=9)[0].tolist()
    assert [i for i in together if i != tokenizer.pad_token_id] == [i for i in alone if i != tokenizer.pad_token_id]


@pytest.mark.long
@pytest.mark.parametrize("name", OURS)
def test_padding_on_the_left_changes_nothing(name: str, trained: Callable[[str], tuple[Path, Any]]) -> None:
    network = load_model(trained(name)[0], device="cpu").model
    ids = torch.tensor([[2, 5, 6, 7], [0, 0, 2, 7], [2, 6, 6, 8]])
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]])
    more = {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)} if name == "adaptive" else {}
    with torch.no_grad():
        found = network(input_ids=ids, attention_mask=mask, output_hidden_states=True, **more)
        alone = network(input_ids=ids[1:2, 2:], output_hidden_states=True)
    assert found.logits[1, 2:].numpy() == pytest.approx(alone.logits[0].numpy(), abs=1e-5)
    assert len(found.hidden_states) == len(alone.hidden_states)
    for together, single in zip(found.hidden_states, alone.hidden_states, strict=True):
        assert together[1, 2:].numpy() == pytest.approx(single[0].numpy(), abs=1e-5)


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="rights are those of POSIX")
def test_colleagues_can_read_the_weights(trained: Callable[[str], tuple[Path, Any]]) -> None:
    folder = trained("lstm")[0]
    assert {path.stat().st_mode for path in folder.glob("*.*")} == {(folder / "config.json").stat().st_mode}
