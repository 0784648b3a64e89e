"""The truth in a training loop of one's own: targets against one beginning at a time, KL against a sum over words."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import small_pcfgs
from torch.utils.data import DataLoader

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, process
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.truth import ExactTargets, TruthCallback, endless, kl_to_truth
from truesource.lmtrain.word_vocabulary import WordVocabulary

GRAMMAR = PCFG.from_text(
    "S -> NP VP 1.0\nNP -> T N 1.0\nT -> the 1.0\nVP -> V NP 0.6 | sleeps 0.4\nN -> dog 0.7 | cat 0.3\nV -> sees 1.0"
)
DYCK = process("shuffle-dyck:k=2,depth=3")


@pytest.mark.parametrize("truth", [GRAMMAR, DYCK], ids=["grammar", "process"])
def test_a_batch_depends_on_the_seed_and_its_number_alone(truth: Truth) -> None:
    first = list(itertools.islice(endless(truth, batch=5, seed=3), 6))
    assert first == list(itertools.islice(endless(truth, batch=5, seed=3), 6))
    assert first[4:] == list(itertools.islice(endless(truth, batch=5, seed=3, start=4), 2))
    assert first != list(itertools.islice(endless(truth, batch=5, seed=4), 6))
    assert len({str(batch) for batch in first}) > 1
    assert all(len(batch) == 5 for batch in first)


def test_batches_follow_the_condition_and_numbers_are_checked() -> None:
    batch = next(endless(DYCK, batch=50, seed=0, lengths=LengthRange(4, 6)))
    assert {len(sentence) for sentence in batch} <= {4, 6}
    for wrong in ({"batch": 0, "seed": 0}, {"batch": 1, "seed": -1}, {"batch": 1, "seed": 0, "start": -1}):
        with pytest.raises(InputError):
            endless(DYCK, **wrong)


@pytest.mark.long
@given(small_pcfgs(), st.integers(0, 5))
def test_targets_in_the_order_of_the_truth(truth: PCFG, seed: int) -> None:
    lengths = LengthRange(1, 6)
    assume(truth.exact.length_pmf(6)[1:].sum() > 0.0)
    sentences = next(endless(truth, batch=4, seed=seed, lengths=lengths))
    data = ExactTargets(truth, sentences, dtype=torch.float64)
    end = len(truth.vocabulary)
    (batch,) = DataLoader(data, batch_size=4, collate_fn=data.collate)
    assert batch["target_probs"].shape == (*batch["input_ids"].shape, end + 1)
    for i, sentence in enumerate(sentences):
        alone, n = data[i], len(sentence)
        tokens = [end, *truth.encode(sentence).tolist(), end]
        assert alone["input_ids"].tolist() == tokens == alone["labels"].tolist()
        assert batch["input_ids"][i].tolist() == tokens + [end] * (batch["input_ids"].shape[1] - n - 2)
        assert batch["labels"][i].tolist() == tokens + [-100] * (batch["input_ids"].shape[1] - n - 2)
        assert batch["attention_mask"][i].sum() == n + 2 == alone["attention_mask"].sum()
        assert not batch["target_probs"][i, n + 1 :].any()
        for j in range(len(sentence) + 1):
            one = truth.next_token(sentence[:j])
            for row in (alone["target_probs"][j], batch["target_probs"][i, j]):
                np.testing.assert_allclose(row.numpy(), [*one.probability, one.stop], rtol=0, atol=1e-12)


def test_targets_in_the_order_of_a_tokeniser() -> None:
    text = [["the", "dog", "sees", "the", "dog"], ["the", "dog", "sleeps"]]
    vocabulary = WordVocabulary(build_tokenizer(text))  # no cat
    targets = ExactTargets(GRAMMAR, [*text, ["the", "cat", "sleeps"]], vocabulary, dtype=torch.float64)
    element = targets[2]
    ids = vocabulary.ids
    assert element["input_ids"].tolist() == [vocabulary.bos, ids["the"], vocabulary.unk, ids["sleeps"], vocabulary.eos]
    assert targets.size == len(vocabulary)
    wanted = torch.zeros(5, len(vocabulary), dtype=torch.float64)
    wanted[0, ids["the"]] = 1.0
    wanted[1, ids["dog"]], wanted[1, vocabulary.unk] = 0.7, 0.3
    wanted[2, ids["sees"]], wanted[2, ids["sleeps"]] = 0.6, 0.4
    wanted[3, vocabulary.eos] = 1.0
    torch.testing.assert_close(element["target_probs"], wanted, rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="process"):
        ExactTargets(DYCK, (), vocabulary)
    with pytest.raises(InputError, match="the truth cannot make 'dog the'"):
        ExactTargets(GRAMMAR).batch([["dog", "the"]])


def test_kl_is_the_sum_over_words() -> None:
    random = np.random.default_rng(1)
    expected = random.dirichlet([0.3] * 5, size=(3, 4))
    expected[:, :, 2] = 0.0
    expected /= expected.sum(-1, keepdims=True)
    expected[2, 3] = 0.0
    logits = random.normal(size=(3, 4, 5))
    log_q = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = np.zeros((3, 4))
    for i, j, w in np.ndindex(expected.shape):
        p = expected[i, j, w]
        wanted[i, j] += p * (math.log(p) - log_q[i, j, w]) if p > 0 else 0.0
    given_ = torch.from_numpy(logits), torch.from_numpy(expected)
    np.testing.assert_allclose(kl_to_truth(*given_, "none"), wanted, atol=1e-12)
    assert float(kl_to_truth(*given_)) == pytest.approx(wanted.sum() / 11, abs=1e-12)
    assert float(kl_to_truth(*given_, "sum")) == pytest.approx(wanted.sum(), abs=1e-12)
    wide = torch.cat([given_[0], torch.full((3, 4, 2), -torch.inf)], dim=-1)
    assert float(kl_to_truth(wide, given_[1])) == pytest.approx(wanted.sum() / 11, abs=1e-12)


def test_kl_of_the_truth_itself_is_zero_and_its_gradient_is_finite() -> None:
    batch = ExactTargets(GRAMMAR, dtype=torch.float64).batch([["the", "dog", "sleeps"], ["the", "cat"]])
    assert float(kl_to_truth(batch["target_probs"].log(), batch["target_probs"])) == pytest.approx(0.0, abs=1e-12)
    logits = torch.zeros_like(batch["target_probs"], requires_grad=True)
    kl_to_truth(logits, batch["target_probs"]).backward()
    uniform = torch.full_like(logits, 1 / logits.shape[-1])
    inside = batch["target_probs"].any(-1, keepdim=True)
    torch.testing.assert_close(logits.grad, (uniform - batch["target_probs"]) * inside / inside.sum())


def test_a_model_of_transformers_takes_a_batch_as_it_is() -> None:
    """Its own loss is the mean of -ln of each word and of the end, whatever the padding."""
    sentences = [["the", "dog", "sleeps"], ["the", "cat", "sees", "the", "dog"]]
    targets, model = ExactTargets(GRAMMAR), gpt2(len(GRAMMAR.vocabulary) + 1)
    model.eval()
    batch = targets.batch(sentences)
    probs = batch.pop("target_probs")
    with torch.no_grad():
        output = model(**batch)
        wanted = []
        for sentence in sentences:
            alone = targets.batch([sentence])["input_ids"]
            log_q = torch.log_softmax(model(alone).logits[0], -1)
            wanted += [-float(log_q[t, token]) for t, token in enumerate(alone[0, 1:])]
    assert len(wanted) == 4 + 6
    assert float(output.loss) == pytest.approx(sum(wanted) / 10, abs=1e-5)
    assert kl_to_truth(output.logits, probs, "none").shape == batch["labels"].shape


def test_other_shapes_are_refused() -> None:
    one = torch.ones(2, 3, 4)
    for logits in (torch.ones(2, 2, 4), torch.ones(2, 3, 3)):
        with pytest.raises(InputError, match="the logits have the shape"):
            kl_to_truth(logits, one)
    with pytest.raises(InputError, match="no position"):
        kl_to_truth(one, torch.zeros(2, 3, 4))


def gpt2(size: int, positions: int = 16) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    shape = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": positions}
    return GPT2LMHeadModel(GPT2Config(vocab_size=size, bos_token_id=size - 1, eos_token_id=size - 1, **shape))


@pytest.mark.long
@pytest.mark.usefixtures("one_thread")
def test_a_script_of_transformers_needs_few_more_lines(tmp_path: Any) -> None:
    from transformers import Trainer, TrainingArguments

    data = ExactTargets(GRAMMAR, next(endless(GRAMMAR, batch=64, seed=1)))
    trainer = Trainer(
        gpt2(data.size),
        TrainingArguments(
            str(tmp_path), max_steps=20, logging_steps=10, learning_rate=1e-2, use_cpu=True, report_to=[],
            save_strategy="no", disable_tqdm=True, remove_unused_columns=False,
        ),
        train_dataset=data,
        data_collator=data.collate_soft,
        compute_loss_func=lambda outputs, labels, **_: kl_to_truth(outputs.logits, labels),
    )  # fmt: skip
    callback = TruthCallback(trainer, GRAMMAR, steps=5, sentences=40)
    trainer.add_callback(callback)
    before = callback.measure(trainer.model)
    trainer.train()
    found = [entry["kl_to_truth"] for entry in trainer.state.log_history if "kl_to_truth" in entry]
    assert [entry["step"] for entry in trainer.state.log_history if "kl_to_truth" in entry] == [5, 10, 15, 20]
    assert [entry["step"] for entry in trainer.state.log_history if "loss" in entry] == [10, 20]
    assert before > found[0] > found[-1] > 0.0
    assert found[-1] == callback.measure(trainer.model)


@pytest.mark.long
@pytest.mark.usefixtures("one_thread")
def test_the_trainer_learns_words_and_ends_from_hard_labels(tmp_path: Any) -> None:
    from transformers import Trainer, TrainingArguments

    data = ExactTargets(GRAMMAR, next(endless(GRAMMAR, batch=64, seed=1)))
    settings = {"max_steps": 30, "learning_rate": 3e-2, "use_cpu": True, "report_to": [], "disable_tqdm": True}
    trainer = Trainer(
        gpt2(data.size),
        TrainingArguments(str(tmp_path), save_strategy="no", **settings),
        train_dataset=data,
        data_collator=data.collate,
    )
    callback = TruthCallback(trainer, GRAMMAR, steps=30, sentences=40)
    before = callback.measure(trainer.model)
    trainer.train()
    assert callback.measure(trainer.model) < before / 4


@pytest.mark.long
def test_the_callback_measures_what_enumeration_gives() -> None:
    model = gpt2(len(GRAMMAR.vocabulary) + 1)
    callback = TruthCallback(None, GRAMMAR, steps=1, sentences=40, seed=2)
    model.train()
    found = callback.measure(model)
    assert model.training
    model.eval()
    total, positions = 0.0, 0
    for batch in callback._batches:
        for ids, labels in zip(batch["input_ids"], batch["target_probs"], strict=True):
            n = int((labels > 0).any(-1).sum())
            with torch.no_grad():
                log_q = torch.log_softmax(model(ids[None, :n]).logits[0].double(), -1).numpy()
            for p, q in zip(labels.double().numpy()[:n].ravel(), log_q.ravel(), strict=True):
                total += p * (math.log(p) - q) if p > 0 else 0.0
            positions += n
    assert positions > 40
    assert found == pytest.approx(total / positions, abs=1e-5)


def test_a_short_model_and_no_steps_are_refused() -> None:
    callback = TruthCallback(None, language("dyck", k=1, depth=3), sentences=64)
    with pytest.raises(InputError, match="the model reads 3 at most; give lengths such as"):
        callback.measure(gpt2(3, positions=3))
    with pytest.raises(InputError, match="measurements need 1 step or more"):
        TruthCallback(None, GRAMMAR, steps=0)
