"""Modules of one's own in training: killed and resumed, tied weights, buffers, masked, pieces, bf16, two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_code import EXAMPLES, SENTENCES, SOURCE, STEPS, trained
from safetensors.torch import load_file
from walked_texts import walked

from truesource.generator.columns import CodedSentences
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.flops import training_cost
from truesource.lmtrain.hidden_states import hidden_states
from truesource.lmtrain.model_registry import completed, model_settings, preset
from truesource.lmtrain.models import load_model
from truesource.lmtrain.own.network import OwnNetwork
from truesource.lmtrain.pieces.incremental_scorer import FixedStates, WholeTexts, memory_of
from truesource.lmtrain.pieces.models import CausalPieceModel
from truesource.lmtrain.training_run import TrainingRun
from truesource.lmtrain.word_models import MaskedModel

CODE = '''
import torch
from torch import nn

class Everything(nn.Module):
    """Tied weights, saved and unsaved buffers, dropout, a setting with a default, a lazy layer, a complex weight."""

    max_positions = 30

    def __init__(self, size, width: int = 8, dropout: float = 0.2):
        super().__init__()
        self.words = nn.Embedding(size, width)
        nn.init.normal_(self.words.weight, std=0.1)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.lazy = nn.LazyLinear(width)
        self.out = nn.Linear(width, size)
        self.out.weight = self.words.weight
        self.turn = nn.Parameter(torch.ones(width, dtype=torch.complex64))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("unsaved", torch.full((width,), 0.5), persistent=False)

    def forward(self, ids, mask):
        if self.training:
            self.calls += 1
        states, _ = self.gru(self.dropout(self.words(ids)))
        return self.out(self.lazy(states) * self.unsaved * self.turn.real)

class Masked(nn.Module):
    objective = "masked"

    def __init__(self, size, width=16):
        super().__init__()
        self.words, self.places = nn.Embedding(size, width), nn.Embedding(40, width)
        self.layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
        self.out = nn.Linear(width, size)

    def read(self, ids, mask):
        inputs = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.layer(inputs, src_key_padding_mask=mask == 0)

    def forward(self, ids, mask):
        return self.out(self.read(ids, mask))

    def hidden_states(self, ids, mask):
        return [self.words(ids), self.read(ids, mask)]

class Causal(nn.Module):
    """Keys and values grow with the text."""

    def __init__(self, size, width=16):
        super().__init__()
        self.words, self.q, self.kv = nn.Embedding(size, width), nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, size)

    def forward(self, ids, mask):
        inputs = self.words(ids)
        keys, values = self.kv(inputs).chunk(2, -1)
        own = nn.functional.scaled_dot_product_attention(self.q(inputs), keys, values, is_causal=True)
        return self.out(inputs + own)

    def step(self, ids, state):
        inputs = self.words(ids)
        new = self.kv(inputs).chunk(2, -1)
        keys, values = new if state is None else [torch.cat(both, 1) for both in zip(state["kv"], new)]
        own = nn.functional.scaled_dot_product_attention(self.q(inputs), keys, values)
        return self.out(inputs + own)[:, 0], {"kv": (keys, values)}
'''

#: trains as `trained` does; killed before a step if there is a second argument
SCRIPT = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {oracles!r})
from own_code import STEPS, trained
from truesource.lmtrain.trainer import LossTrainer
whole = LossTrainer.compute_loss
def dies(self, *args, **kwargs):
    if len(sys.argv) > 2 and self.state.global_step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(self, *args, **kwargs)
LossTrainer.compute_loss = dies
steps = STEPS.model_copy(update=dict(checkpoint_every=5, eval_every=5, snapshots="log"))
trained({code!r}, Path(sys.argv[1]), steps=steps)
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("code") / "mine.py"
    path.write_text(CODE)
    return path


def files(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "times.jsonl")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def run_script(code: str, *arguments: str) -> int:
    oracles = Path(__file__).parents[2] / "oracles"
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    script = SCRIPT.format(oracles=str(oracles), code=code)
    return subprocess.run([sys.executable, "-c", script, *arguments], env=environment, check=False).returncode


@pytest.mark.slow  # three processes that import torch
@pytest.mark.parametrize("reference", [f"{EXAMPLES}:LinearRecurrence", "{}:Everything"])
def test_a_killed_training_goes_on_to_the_same_bytes(code: Path, tmp_path: Path, reference: str) -> None:
    named = reference.format(code)
    assert run_script(named, str(tmp_path / "whole")) == 0
    assert run_script(named, str(tmp_path / "killed"), "12") == -9
    assert (tmp_path / "killed.partial" / "checkpoints" / "checkpoint-10").is_dir()
    assert run_script(named, str(tmp_path / "killed")) == 0
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


@pytest.mark.long
def test_a_stopped_training_goes_on_to_the_same_bytes(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truesource.lmtrain.trainer import LossTrainer

    steps = STEPS.model_copy(update={"checkpoint_every": 5, "eval_every": 5})
    trained(f"{code}:Everything", tmp_path / "whole", steps=steps)
    whole = LossTrainer.compute_loss

    def stops(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 12:
            raise SystemExit("stopped")
        return whole(self, *args, **kwargs)

    with monkeypatch.context() as context:
        context.setattr(LossTrainer, "compute_loss", stops)
        with pytest.raises(SystemExit):
            trained(f"{code}:Everything", tmp_path / "stopped", steps=steps)
    trained(f"{code}:Everything", tmp_path / "stopped", steps=steps)
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


@pytest.mark.long
def test_an_edited_file_does_not_go_on_with_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from truesource.lmtrain.trainer import LossTrainer

    def stops(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise SystemExit("stopped")

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(CODE + f"# {name}\n")
    with monkeypatch.context() as context:
        context.setattr(LossTrainer, "compute_loss", stops)
        with pytest.raises(SystemExit):
            monkeypatch.chdir(tmp_path / "one")
            trained("mine.py:Causal", tmp_path / "m")
    monkeypatch.chdir(tmp_path / "two")
    with pytest.raises(InputError, match="unfinished run of other settings"):
        trained("mine.py:Causal", tmp_path / "m")


@pytest.mark.long
def test_tied_weights_and_buffers_come_back(code: Path, tmp_path: Path) -> None:
    model = trained(f"{code}:Everything", tmp_path / "m")
    stored = load_file(tmp_path / "m" / "model.safetensors")
    assert ("module.out.weight" in stored) != ("module.words.weight" in stored)
    assert "module.unsaved" not in stored
    assert int(stored["module.calls"]) == STEPS.max_steps
    assert stored["module.turn"].dtype == torch.complex64
    again: Any = load_model(f"{code}:Everything@{tmp_path / 'm'}", device="cpu")
    module = again.model.module
    assert module.out.weight is module.words.weight
    assert module.unsaved.tolist() == [0.5] * 8
    assert int(module.calls) == STEPS.max_steps
    assert again.longest == 29
    assert again.score(SENTENCES, ScoringFrame()).log_prob.tolist() == (
        model.score(SENTENCES, ScoringFrame()).log_prob.tolist()
    )


@pytest.mark.long
def test_initial_weights_are_those_of_the_code(code: Path, tmp_path: Path) -> None:
    steps = STEPS.model_copy(update={"snapshots": "log", "max_steps": 1})
    trained(f"{code}:Everything", tmp_path / "m", steps=steps, width=64)
    (first,) = (
        tensor
        for name, tensor in load_file(tmp_path / "m" / "snapshots" / "step-000000" / "model.safetensors").items()
        if name in ("module.words.weight", "module.out.weight")
    )
    assert float(first.std()) == pytest.approx(0.1, rel=0.1)


@pytest.mark.long
def test_a_masked_module_scores_each_word_given_the_others(code: Path, tmp_path: Path) -> None:
    model = trained(f"{code}:Masked", tmp_path / "m", objective="masked")
    assert isinstance(model, MaskedModel)
    found = load_model(f"{code}:Masked@{tmp_path / 'm'}", device="cpu").score(SENTENCES, ScoringFrame()).log_prob
    encoder, expected = model.encoder, []
    for row in encoder.encode(SENTENCES):
        for place, target in enumerate(row):
            ids = torch.tensor([[encoder.bos, *row.tolist(), encoder.eos]])
            ids[0, place + 1] = encoder.mask
            with torch.no_grad():
                logits = model.model.module(ids, torch.ones_like(ids))[0, place + 1].double()
            expected.append(float(logits[target] - logits.exp().sum().log()))
    assert found == pytest.approx(np.array(expected), abs=2e-6)
    states = hidden_states(model, SENTENCES)
    assert [states[layer].shape for layer in (0, 1)] == [(sum(map(len, SENTENCES)), 16)] * 2


@pytest.mark.long
def test_a_state_may_grow(code: Path, tmp_path: Path) -> None:
    model = trained(f"{code}:Causal", tmp_path / "m")
    again: Any = load_model(f"{code}:Causal@{tmp_path / 'm'}", device="cpu")
    again.model.module.step = None
    assert model.model.can_step
    assert model.sample(6, seed=1, max_tokens=20).sentences == again.sample(6, seed=1, max_tokens=20).sentences


@pytest.mark.long
def test_states_of_both_kinds_serve_models_of_pieces(code: Path, tmp_path: Path) -> None:
    for name, reference, kind in (("fixed", f"{EXAMPLES}:GRU", FixedStates), ("grown", f"{code}:Causal", WholeTexts)):
        model: Any = trained(reference, tmp_path / name, tokenizer="bpe", vocab_size=20)
        assert isinstance(model, CausalPieceModel)
        assert memory_of(model.model) is kind
        rows = model.aligner.align(SENTENCES).rows()
        assert walked(model.incremental_scorer(), rows) == pytest.approx(model.log_probs(rows), abs=1e-5)


@pytest.mark.long
def test_it_trains_in_half_precision(code: Path, tmp_path: Path) -> None:
    steps = STEPS.model_copy(update={"precision": "bf16"})
    trained(f"{code}:Causal", tmp_path / "m", steps=steps)
    rows = [json.loads(line) for line in (tmp_path / "m" / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["dev_loss"] < rows[0]["dev_loss"] - 0.05


@pytest.mark.long
def test_weights_of_half_precision_are_equal_up_to_their_rounding(tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text(CODE + "def half(size): return Causal(size, 64).to(torch.bfloat16)\n")
    model = trained(f"{path}:half", tmp_path / "m")
    assert next(model.model.parameters()).dtype == torch.bfloat16
    assert np.isfinite(model.score(SENTENCES, ScoringFrame()).log_prob).all()


def test_its_cost_is_counted(tmp_path: Path) -> None:
    from truesource.generator.columns import CodedSentences
    from truesource.lmtrain.subwords import make_tokenizer

    settings = completed(model_settings(f"{EXAMPLES}:GRU", hidden=16))
    text = CodedSentences.of(SOURCE.sentences("train"))
    cost = training_cost(settings, STEPS, text, make_tokenizer(settings, text, "causal"), seed=1)
    vocabulary = 12
    gru = 3 * (16 * 16 * 2 + 2 * 16)
    assert cost.parameters.total == vocabulary * 16 + gru + vocabulary
    assert cost.flops > 6 * (16 * vocabulary) * cost.tokens


def test_presets_give_the_training_and_no_shape() -> None:
    found = preset("tiny", f"{EXAMPLES}:GRU")
    assert found.training == preset("tiny", "lstm").training
    assert found.model.model_dump(exclude_none=True) == {
        "architecture": f"{EXAMPLES}:GRU",
        "tokenizer": "word",
        "min_count": 1,
        "objective": "causal",
    }
    assert preset("tiny", "x.py:y", objective="masked").training == preset("tiny", "bert").training


@pytest.mark.long
def test_the_random_states_of_the_caller_are_kept(code: Path, tmp_path: Path) -> None:
    trained(f"{code}:Causal", tmp_path / "m")
    torch.manual_seed(3)
    before = torch.get_rng_state()
    model: Any = load_model(f"{code}:Causal@{tmp_path / 'm'}", device="cpu")
    assert isinstance(model.model, OwnNetwork)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow  # two processes that import torch
def test_two_processes_train_it(code: Path, tmp_path: Path) -> None:
    text = "".join(" ".join(sentence) + "\n" for sentence in SOURCE.sentences("train"))
    (tmp_path / "text.txt").write_text(text)
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    command = ["train", "text.txt", "--model", f"{code}:Causal", "--set", "training.batch_tokens=64"]
    command += ["--set", "training.max_steps=6"]
    both = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "truesource", *command]
    alone = ["-m", "truesource", *command, "--set", "training.accumulation=2"]
    for name, arguments in (("two", both), ("one", alone)):
        subprocess.run(
            [sys.executable, *arguments, "-o", name], cwd=tmp_path, env=environment, check=True, capture_output=True
        )
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=1e-5), name


@pytest.mark.long
def test_training_starts_from_weights_of_the_same_code_and_words(code: Path, tmp_path: Path) -> None:
    """All of them, complex ones and buffers too; no layer is known to hold the vectors of words."""
    reference, settings = f"{code}:Everything", {"width": 16}
    trained(reference, tmp_path / "first", **settings)
    shape = completed(model_settings(reference, **settings))
    coded, none = CodedSentences.of(SOURCE.sentences("train")), CodedSentences.of([])
    begun = TrainingRun(shape, STEPS, coded, none, 7, weights=tmp_path / "first")
    state = begun.model.state_dict()
    for name, tensor in load_file(tmp_path / "first" / "model.safetensors").items():
        assert torch.equal(state[name], tensor), name
    with pytest.raises(InputError, match="no vectors of single words") as refused:
        TrainingRun(shape, STEPS, CodedSentences.of([["a", "z"]] * 9), none, 7, weights=tmp_path / "first")
    assert refused.value.code == "other-network"
    wider = completed(model_settings(reference, width=24))
    with pytest.raises(InputError, match="of another size"):
        TrainingRun(wider, STEPS, coded, none, 7, weights=tmp_path / "first")
    with pytest.raises(InputError, match="of another architecture"):
        TrainingRun(model_settings("lstm", layers=1, dim=8), STEPS, coded, none, 7, weights=tmp_path / "first")
