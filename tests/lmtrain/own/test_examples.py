"""The networks of the documentation: they learn, score what their logits say, come back, generate, are probed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_code import EXAMPLES, SENTENCES, SOURCE, STEPS, trained

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.hidden_states import hidden_states
from truesource.lmtrain.models import load_model
from truesource.lmtrain.references import load_code
from truesource.lmtrain.word_models import CausalModel

pytestmark = pytest.mark.long

NAMES = ("GRU", "LinearRecurrence")


@pytest.fixture(scope="module", params=NAMES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Any]:
    """Reference of a trained model, its folder, and the model as training returned it."""
    code, out = f"{EXAMPLES}:{request.param}", tmp_path_factory.mktemp("own") / request.param
    steps = STEPS.model_copy(update={"max_steps": 60, "eval_every": 30, "snapshots": "log"})
    model = trained(code, out, steps=steps, hidden=16)
    return f"{code}@{out}", out, model


def test_it_learns(made: tuple[str, Path, Any]) -> None:
    rows = [json.loads(line) for line in (made[1] / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["dev_loss"] < 1.2 < rows[0]["dev_loss"] - 1.0
    dev = made[2].score(SOURCE.sentences("dev"), ScoringFrame()).log_prob
    assert rows[-1]["dev_loss"] == pytest.approx(-dev.mean(), abs=1e-5)


def test_its_scores_are_those_of_its_logits(made: tuple[str, Path, Any]) -> None:
    """The weights put into the module by hand, a sentence at a time, a softmax by hand."""
    from safetensors.torch import load_file

    reference, folder, _ = made
    config = json.loads((folder / "config.json").read_text())
    module = load_code(reference.partition("@")[0]).object(config["vocab_size"], **config["code_settings"])
    stored = {name.removeprefix("module."): tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    lacking, unknown = module.load_state_dict(stored, strict=False)
    assert (lacking, unknown) in ((["words.weight"], []), (["out.weight"], []), ([], []))  # tied: one of the two
    words = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    expected = []
    for sentence in SENTENCES:
        ids = [words["<bos>"], *(words[w] for w in sentence), words["<eos>"]]
        with torch.no_grad():
            logits = module.eval()(torch.tensor([ids[:-1]]), torch.ones(1, len(ids) - 1)).double().numpy()[0]
        expected += [row[t] - np.log(np.exp(row).sum()) for row, t in zip(logits, ids[1:], strict=True)]
    found = load_model(reference, device="cpu").score(SENTENCES, ScoringFrame()).log_prob
    assert found == pytest.approx(np.array(expected), abs=2e-6)


def test_it_comes_back_as_it_was(made: tuple[str, Path, Any]) -> None:
    reference, _, model = made
    again = load_model(reference, device="cpu")
    assert isinstance(again, CausalModel)
    assert again.name == model.name
    assert again.score(SENTENCES, ScoringFrame()).log_prob.tolist() == (
        model.score(SENTENCES, ScoringFrame()).log_prob.tolist()
    )


def test_its_step_gives_what_it_gives_to_whole_texts(made: tuple[str, Path, Any]) -> None:
    model, again = made[2], load_model(made[0], device="cpu")
    assert model.model.can_step
    again.model.module.step = None  # type: ignore[attr-defined]
    one, other = model.stepper(), again.stepper()  # type: ignore[attr-defined]
    assert torch.allclose(one.start(3), other.start(3), atol=1e-5)
    for parents, tokens in (([0, 1, 2], [5, 6, 7]), ([2, 0, 0, 1], [5, 8, 7, 6]), ([3, 3], [6, 5])):
        asked = torch.tensor(parents), torch.tensor(tokens)
        assert torch.allclose(one.extend(*asked), other.extend(*asked), atol=1e-5)
    assert model.sample(8, seed=1).sentences == again.sample(8, seed=1).sentences  # type: ignore[attr-defined]


def test_its_distributions_hold_its_scores(made: tuple[str, Path, Any]) -> None:
    model, sentence = made[2], SENTENCES[1]
    columns = [*(model.vocabulary.index(word) for word in sentence), len(model.vocabulary) + 1]
    found = [table.log_prob[0, column] for table, column in zip(model.distributions([sentence]), columns, strict=True)]
    assert found == pytest.approx(model.score([sentence], ScoringFrame()).log_prob, abs=1e-6)


def test_snapshots_are_models_too(made: tuple[str, Path, Any]) -> None:
    code = made[0].partition("@")[0]
    scores = [
        load_model(f"{code}@{path}", device="cpu").score(SENTENCES, ScoringFrame()).log_prob.mean()
        for path in sorted((made[1] / "snapshots").iterdir())
    ]
    assert len(scores) == 8
    assert scores[-1] > scores[0] + 1.0
    assert scores[-1] == made[2].score(SENTENCES, ScoringFrame()).log_prob.mean()


def test_its_card_says_how_to_load_it(made: tuple[str, Path, Any]) -> None:
    text = (made[1] / "README.md").read_text()
    code = text.split("```python\n")[1].split("```")[0].replace("path/to/this/folder", str(made[1]))
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["model"].name == made[2].name
    assert json.loads((made[1] / "training.json").read_text())["model"]["code_digest"] in text


def test_its_hidden_states_are_read_word_by_word(made: tuple[str, Path, Any]) -> None:
    model = made[2]
    if not hasattr(model.model.module, "hidden_states"):
        with pytest.raises(InputError, match="hidden_states"):
            hidden_states(model, SENTENCES)
        return
    found = hidden_states(model, SENTENCES)
    ids = torch.tensor([[model.encoder.bos, *model.encoder.encode([SENTENCES[1]])[0].tolist()]])
    with torch.no_grad():
        expected = model.model.module.hidden_states(ids, torch.ones_like(ids))
    before = len(SENTENCES[0])
    for layer, states in enumerate(expected):
        assert np.allclose(found[layer][before : before + len(SENTENCES[1])], states[0, 1:].numpy(), atol=1e-6)
