"""Code that cannot be trained, or whose numbers would be worthless: one sentence each, with a code."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from own_code import EXAMPLES, SENTENCES, STEPS, trained

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.hidden_states import hidden_states
from truesource.lmtrain.model_registry import completed, model_settings
from truesource.lmtrain.models import load_folder, load_model
from truesource.lmtrain.own.architecture import try_out

BAD = """
import torch
from torch import nn

class Good(nn.Module):
    def __init__(self, size, hidden=8):
        super().__init__()
        self.size, self.words, self.out = size, nn.Embedding(size, hidden), nn.Linear(hidden, size)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
    def read(self, ids):
        return self.gru(self.words(ids))[0]
    def forward(self, ids, mask):
        return self.out(self.read(ids))

def raises(size): raise RuntimeError("the factory is broken")
def no_module(size): return "a text"
def no_argument(): return Good(5)
not_callable = 3

class NoParameters(nn.Module):
    def __init__(self, size): super().__init__(); self.size = size
    def forward(self, ids, mask): return torch.zeros(*ids.shape, self.size)

class Raises(Good):
    def forward(self, ids, mask): raise ValueError("the module is broken")

class NoMask(Good):
    def forward(self, ids): return self.out(self.read(ids))

class NoTensor(Good):
    def forward(self, ids, mask): return self.read(ids), 1

class WrongShape(Good):
    def forward(self, ids, mask): return self.read(ids)

class Integers(Good):
    def forward(self, ids, mask): return super().forward(ids, mask).long()

class OtherDevice(Good):
    def forward(self, ids, mask): return super().forward(ids, mask).to("meta")

class NotFinite(Good):
    def forward(self, ids, mask): return super().forward(ids, mask) * float("nan")

class Random(Good):
    def forward(self, ids, mask): return nn.functional.dropout(super().forward(ids, mask), 0.5)

class Bidirectional(Good):
    def __init__(self, size):
        super().__init__(size)
        self.gru = nn.GRU(8, 4, batch_first=True, bidirectional=True)

class HiddenByZeros(Bidirectional):
    def __init__(self, size):
        super().__init__(size)
        nn.init.zeros_(self.out.weight)

class Centred(Good):
    def forward(self, ids, mask): return self.out(self.read(ids) - self.read(ids).mean(1, keepdim=True))

class BatchSecond(Good):
    def __init__(self, size):
        super().__init__(size)
        self.gru = nn.GRU(8, 8)

class Lost(Good):
    def __init__(self, size):
        super().__init__(size)
        self.scale = torch.rand(size)
    def forward(self, ids, mask): return super().forward(ids, mask) * self.scale

class Overlapping(Good):
    def __init__(self, size):
        super().__init__(size)
        both = torch.zeros(3, 4)
        self.register_buffer("one", both)
        self.register_buffer("part", both[:2])

class Detached(Good):
    def forward(self, ids, mask): return super().forward(ids, mask).detach()

class InPlace(Good):
    def forward(self, ids, mask):
        states = self.read(ids).exp()
        out = self.out(states)
        states += 1
        return out

class Short(Good):
    max_positions = 40
    def __init__(self, size):
        super().__init__(size)
        self.places = nn.Embedding(20, 8)
    def forward(self, ids, mask): return self.out(self.read(ids) + self.places(torch.arange(ids.shape[1])))

class Masked(Bidirectional):
    objective = "masked"

def masked_but_says_nothing(size): return Masked(size)

class BadStep(Good):
    def step(self, ids, state): return self.out(self.words(ids)), ids

class LayersFirst(Good):
    def step(self, ids, state):
        states, state = self.gru(self.words(ids), state)
        return self.out(states), (state, 3)

class Needs(Good):
    def __init__(self, size, hidden, layers=1, *, rate: float = 0.5, deep: bool = False): super().__init__(size, hidden)
"""


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("code") / "bad.py"
    path.write_text(BAD)
    return path


def refusal(code: str, **settings: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        try_out(completed(model_settings(code, **settings)))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("raises", "code-failed"),
        ("no_module", "not-module"),
        ("no_argument", "input"),
        ("not_callable", "not-callable"),
        ("NoParameters", "no-parameters"),
        ("Raises", "code-failed"),
        ("NoMask", "code-failed"),
        ("NoTensor", "bad-logits"),
        ("WrongShape", "bad-logits"),
        ("Integers", "bad-logits"),
        ("OtherDevice", "wrong-device"),
        ("NotFinite", "bad-logits"),
        ("Random", "random-logits"),
        ("Bidirectional", "looks-ahead"),
        ("HiddenByZeros", "looks-ahead"),
        ("Centred", "looks-ahead"),
        ("BatchSecond", "mixes-rows"),
        ("Lost", "not-saved"),
        ("Overlapping", "shared-memory"),
        ("Detached", "no-parameters"),
        ("InPlace", "code-failed"),
        ("Short", "code-failed"),
        ("Masked", "other-objective"),
        ("masked_but_says_nothing", "looks-ahead"),
        ("Missing", "no-name"),
    ],
)
def test_what_cannot_be_trained_is_refused(bad: Path, name: str, code: str) -> None:
    error = refusal(f"{bad}:{name}")
    assert error.code == code
    assert name in str(error)


def test_the_line_that_raises_is_named(bad: Path) -> None:
    error = refusal(f"{bad}:Raises")
    assert error.path == bad
    assert BAD.splitlines()[(error.line or 0) - 1].endswith('raise ValueError("the module is broken")')


def test_the_arguments_of_forward_are_said(bad: Path) -> None:
    said = str(refusal(f"{bad}:NoMask"))
    assert "takes (ids)" in said
    assert "forward(input_ids, attention_mask)" in said


def test_the_wrong_shape_and_the_right_one_are_said(bad: Path) -> None:
    assert "3 x 12 x 8" in str(refusal(f"{bad}:WrongShape"))
    assert "3 x 12 x 11" in str(refusal(f"{bad}:WrongShape"))


def test_a_masked_module_that_reads_padding_is_refused(bad: Path) -> None:
    assert refusal(f"{bad}:Masked", objective="masked").code == "reads-padding"


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ({}, "missing-setting", "hidden"),
        ({"hiden": 3, "hidden": 3}, "unknown-setting", "hidden, layers, rate, deep"),
        ({"hidden": 3, "rate": "high"}, "wrong-setting", "a number"),
        ({"hidden": 3, "deep": 1}, "wrong-setting", "true or false"),
        ({"hidden": 3, "dim": 128}, "unknown-setting", "dim"),
    ],
)
def test_settings_are_those_of_the_signature(bad: Path, settings: dict[str, Any], code: str, said: str) -> None:
    error = refusal(f"{bad}:Needs", **settings)
    assert error.code == code
    assert said in str(error)


def test_equal_models_have_equal_settings(bad: Path) -> None:
    short, long = (
        completed(model_settings(f"{bad}:Needs", **settings)).model_dump()
        for settings in ({"hidden": 3}, {"hidden": 3, "layers": 1, "rate": 0.5, "deep": False})
    )
    assert short == long
    assert short["code_digest"]


def test_a_value_that_json_does_not_know_is_refused(bad: Path) -> None:
    with pytest.raises(ValueError, match="rate"):
        model_settings(f"{bad}:Needs", hidden=3, rate=float("inf"))


@pytest.fixture(scope="module")
def steps(bad: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with trained models whose ``step`` is wrong, and one without."""
    root = tmp_path_factory.mktemp("steps")
    for name in ("BadStep", "LayersFirst", "Good"):
        trained(f"{bad}:{name}", root / name, steps=STEPS.model_copy(update={"max_steps": 2}))
    return root


@pytest.mark.long
def test_a_step_that_does_not_agree_with_forward_is_refused(bad: Path, steps: Path) -> None:
    for name in ("BadStep", "LayersFirst"):
        model: Any = load_model(f"{bad}:{name}@{steps / name}", device="cpu")
        model.score(SENTENCES, ScoringFrame())
        with pytest.raises(InputError) as caught:
            model.sample(2, seed=1)
        assert caught.value.code == "bad-step"


@pytest.mark.long
def test_without_step_texts_are_read_again(bad: Path, steps: Path) -> None:
    model: Any = load_model(f"{bad}:Good@{steps / 'Good'}", device="cpu")
    assert not model.model.can_step
    assert len(model.sample(3, seed=1, max_tokens=5).sentences) == 3


def test_without_hidden_states_the_method_is_named(bad: Path, steps: Path) -> None:
    with pytest.raises(InputError, match="hidden_states") as caught:
        hidden_states(load_model(f"{bad}:Good@{steps / 'Good'}", device="cpu"), SENTENCES)  # type: ignore[arg-type]
    assert caught.value.code == "missing-ability"


def test_the_folder_alone_is_refused(steps: Path, bad: Path) -> None:
    for folder in (steps / "Good", str(steps / "Good")):
        with pytest.raises(InputError, match=f"{bad}:Good@") as caught:
            load_model(folder)
        assert caught.value.code == "needs-code"


def test_code_for_a_folder_of_a_built_in_model_is_refused(tmp_path: Path) -> None:
    trained("lstm", tmp_path / "m", dim=8, layers=1, steps=STEPS.model_copy(update={"max_steps": 1}))
    with pytest.raises(InputError) as caught:
        load_model(f"{EXAMPLES}:GRU@{tmp_path / 'm'}")
    assert caught.value.code == "other-model"


def test_other_code_than_that_of_the_folder_is_told_and_fails_only_by_shape(
    bad: Path, steps: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    edited = tmp_path / "bad.py"
    edited.write_text(BAD.replace("hidden=8", "hidden=8, unused=1"))
    with caplog.at_level(logging.WARNING, logger="truesource"):
        load_model(f"{bad}:Good@{steps / 'Good'}", device="cpu")
        assert not caplog.records
        load_model(f"{edited}:Good@{steps / 'Good'}", device="cpu")
        assert len(caplog.records) == 1
    edited.write_text(BAD.replace("nn.GRU(hidden, hidden, batch", "nn.GRU(hidden, hidden, 2, batch"))
    (tmp_path / "other").mkdir()
    shutil.copy(edited, tmp_path / "other" / "bad.py")
    with pytest.raises(InputError, match="lack"):
        load_model(f"{tmp_path / 'other' / 'bad.py'}:Good@{steps / 'Good'}", device="cpu")


def test_missing_code_is_one_sentence(steps: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_model(f"{tmp_path / 'gone.py'}:Good@{steps / 'Good'}")
    assert caught.value.code == "missing"


def test_damaged_weights_are_told(bad: Path, steps: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(steps / "Good", folder)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    with pytest.raises(InputError, match="damaged or edited"):
        load_model(f"{bad}:Good@{folder}")
    weights.unlink()
    with pytest.raises(InputError, match="no weights"):
        load_model(f"{bad}:Good@{folder}")


def test_nothing_runs_that_was_not_named(bad: Path, steps: Path, tmp_path: Path) -> None:
    """A folder whose record names code that would leave a mark; neither it nor settings import that."""
    marking = tmp_path / "marking.py"
    marking.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'mark')!r}).touch()\n" + BAD)
    folder = tmp_path / "m"
    shutil.copytree(steps / "Good", folder)
    for name in ("config.json", "training.json"):
        text = (folder / name).read_text().replace(str(bad), str(marking))
        (folder / name).write_text(text)
    (folder / "training.json").unlink()
    for load in (load_folder, load_model):
        with pytest.raises(InputError, match="marking"):
            load(folder)
    load_model(f"{bad}:Good@{folder}", device="cpu")
    settings = model_settings(f"{marking}:Good", hidden=8)
    assert settings.label == "Good-hidden8"
    assert not (tmp_path / "mark").exists()
    completed(settings)
    assert (tmp_path / "mark").exists()
