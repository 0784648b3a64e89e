"""Levers: what differs in each training, and which a model lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.levers import LEVERS, KnownTraining, Lever, base_training, levers_of, within
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.own.settings import OwnSettings

TRAINING = TrainConfig(epochs=5.0, max_seconds=9.0, snapshots="log", eval_every=10)
GPT2 = KnownTraining(model_settings("gpt2", dim=16, ffn_dim=20), TRAINING, 100, 5.0, 1000, 30, 500)


def by_name(trained: KnownTraining) -> dict[str, Lever]:
    return {lever.name: lever for lever in levers_of(trained)[0]}


def test_exact_targets_are_of_the_tokens_of_the_model() -> None:
    pieces = KnownTraining(
        model_settings("gpt2", dim=16, tokenizer="bpe", vocab_size=50), TRAINING, 100, 5.0, 1000, 30, 500
    )
    for trained, tokens in ((GPT2, "words"), (pieces, "pieces")):
        lever = by_name(trained)["targets"]
        assert (lever.before, lever.expected) == (f"the {tokens} that occurred", True)


def test_each_lever_changes_one_thing() -> None:
    levers, base = by_name(GPT2), base_training(GPT2)
    assert base is not None and (base.max_steps, base.epochs, base.max_seconds, base.snapshots) == (
        100,
        None,
        None,
        "none",
    )
    assert levers_of(GPT2)[1] == {"context": "whole-sentence"}
    assert list(levers) == [name for name in LEVERS if name != "context"]
    for name in ("data", "targets", "width", "layers", "tokenizer"):
        assert levers[name].training == base
    for name in ("data", "targets", "steps"):
        assert levers[name].model == GPT2.model
    assert levers["steps"].training == base.model_copy(update={"max_steps": 400, "eval_every": 80})
    assert (levers["data"].sentences, levers["targets"].expected) == (5250, True)
    assert [levers["width"].model.model_dump()[key] for key in ("dim", "ffn_dim", "layers")] == [32, 40, 2]
    assert [levers["layers"].model.model_dump()[key] for key in ("dim", "ffn_dim", "layers")] == [16, 20, 4]
    pieces = levers["tokenizer"].model
    assert (pieces.tokenizer, pieces.vocab_size, pieces.longest) == ("bpe", 250, 4 * 128)


def test_a_limited_context_is_widened() -> None:
    cnn = replace(GPT2, model=model_settings("gated_cnn", layers=1, kernel_size=2))
    assert cnn.window == 2
    wider = by_name(cnn)["context"].model
    assert replace(cnn, model=wider).window == 8
    assert levers_of(replace(cnn, longest=2))[1]["context"] == "whole-sentence"
    ngram = replace(GPT2, model=model_settings("ngram", order=3), training=None, steps=0)
    levers, left_out = levers_of(ngram)
    assert [(lever.name, lever.after) for lever in levers] == [
        ("data", "4,000 sentences, none twice"),
        ("context", "8 words seen"),
    ]
    assert set(left_out.values()) == {"counts"} and by_name(ngram)["context"].model.model_dump()["order"] == 9


@pytest.mark.parametrize(
    ("changed", "name", "reason"),
    [
        ({"epochs": 0.7}, "data", "fresh-already"),
        ({"model": model_settings("bert", dim=16)}, "targets", "masked"),
        ({"model": model_settings("bert", dim=16)}, "tokenizer", "masked"),
        ({"model": model_settings("adaptive", dim=16)}, "targets", "single-tokens"),
        ({"ordered": False}, "targets", "no-order"),
        ({"words": 20}, "tokenizer", "few-words"),
        ({"all_known": False}, "tokenizer", "unknown-words"),
    ],
)
def test_levers_that_a_model_lacks(changed: dict[str, object], name: str, reason: str) -> None:
    levers, left_out = levers_of(replace(GPT2, **changed))  # type: ignore[arg-type]
    assert left_out[name] == reason and name not in {lever.name for lever in levers}  # type: ignore[index]


def test_pieces_become_words() -> None:
    pieces = replace(GPT2, model=model_settings("gpt2", dim=16, tokenizer="bpe", vocab_size=50))
    words = by_name(pieces)["tokenizer"].model
    assert (words.tokenizer, words.vocab_size, by_name(pieces)["tokenizer"].before) == ("word", None, "50 pieces (bpe)")


def test_a_budget_takes_the_cheapest_first_and_keeps_the_order() -> None:
    levers = levers_of(GPT2)[0]
    seconds = {"data": 10.0, "targets": 60.0, "steps": 40.0, "width": 20.0, "layers": 15.0, "tokenizer": 15.0}
    chosen = within(levers, seconds, 65.0)  # type: ignore[arg-type]
    assert [lever.name for lever in chosen] == ["data", "width", "layers", "tokenizer"]
    assert within(levers, seconds, 9.0) == []  # type: ignore[arg-type]
    assert within(levers, seconds, 1e9) == levers  # type: ignore[arg-type]


OWN = """
from torch import nn

class Net(nn.Module):
    def __init__(self, vocabulary_size, hidden=16, n_layers=1, dropout=0.1, window=3):
        super().__init__()
        self.words, self.out = nn.Embedding(vocabulary_size, hidden), nn.Linear(hidden, vocabulary_size)
        self.gru = nn.GRU(hidden, hidden, n_layers, batch_first=True)

    def forward(self, input_ids, attention_mask):
        return self.out(self.gru(self.words(input_ids))[0])

class Bare(Net):
    def __init__(self, vocabulary_size, size=16):
        super().__init__(vocabulary_size, size)
"""


def test_a_custom_module_has_the_levers_of_its_own_parameters(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(OWN, encoding="utf-8")
    settings = OwnSettings(architecture=f"{path}:Net", hidden=16, n_layers=3, dropout=0.1, window=3)
    own = replace(GPT2, model=settings)
    levers, left_out = by_name(own), levers_of(own)[1]
    assert not {"width", "layers", "context"} & left_out.keys()
    changed = {name: levers[name].model.model_dump() for name in ("width", "layers", "context", "tokenizer")}
    base = settings.model_dump()
    assert changed["width"] == {**base, "hidden": 32}
    assert changed["layers"] == {**base, "n_layers": 6}
    assert changed["context"] == {**base, "window": 12}
    assert (levers["layers"].before, levers["layers"].after) == ("n_layers 3", "n_layers 6")
    assert changed["tokenizer"] == {**base, "tokenizer": "bpe", "vocab_size": 250}
    bare = replace(GPT2, model=OwnSettings(architecture=f"{path}:Bare", size=16))
    assert {levers_of(bare)[1][name] for name in ("width", "layers", "context")} == {"no-parameter"}
