"""Hidden states of words: those of the networks themselves, layer by layer, whatever the tokeniser."""

from __future__ import annotations

import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from saved_models import WORDS, save_model, save_piece_model
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from truesource.grammar.support.errors import InputError
from truesource.lmtrain import hidden_states as module
from truesource.lmtrain.hidden_states import Pooling, hidden_layers, hidden_states
from truesource.lmtrain.model_registry import model_settings, network_architecture, settings_class
from truesource.lmtrain.models import load_model
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.trained_models import as_language_model
from truesource.lmtrain.training import train
from truesource.lmtrain.word_vocabulary import WordVocabulary

pytestmark = pytest.mark.usefixtures("one_thread")

SENTENCES = [["w0", "w1", "w2"], ["w3"], ["w6", "w5", "w4", "w3", "w3"], ["unheard", "w1"]]
CAUSAL = ("gpt2", "opt", "llama", "adaptive", "lstm", "gated_cnn")
MASKED = ("bert", "roberta", "deberta")


def build(architecture: str, layers: int = 2) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A small network in evaluation mode, with large random weights."""
    tokenizer = build_tokenizer([WORDS], objective=network_architecture(architecture).objective)
    given = {"heads": 2, "max_positions": 10}
    config = model_settings(
        architecture=architecture,
        layers=layers,
        dim=8,
        **{k: v for k, v in given.items() if k in settings_class(architecture).model_fields},
    )
    torch.manual_seed(1)
    network = network_architecture(architecture).build(config, WordVocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return network.eval(), tokenizer


@pytest.mark.parametrize("architecture", [*CAUSAL, *MASKED])
def test_the_vectors_are_the_networks_own_sentence_by_sentence(architecture: str) -> None:
    network, tokenizer = build(architecture)
    found = hidden_states(as_language_model(network, tokenizer, "m"), SENTENCES)
    words = WordVocabulary(tokenizer)
    masked = architecture in MASKED
    assert sorted(found) == [0, 1, 2]
    rows = []
    for ids in words.encode(SENTENCES):
        inputs = torch.tensor([[words.bos, *ids.tolist(), *([words.eos] if masked else [])]])
        with torch.no_grad():
            states = network(input_ids=inputs, output_hidden_states=True).hidden_states
        rows.append([state[0, 1 : 1 + len(ids)].numpy() for state in states])
    for layer in range(3):
        assert found[layer] == pytest.approx(np.concatenate([row[layer] for row in rows]), abs=2e-5)


@pytest.mark.parametrize("architecture", MASKED)
def test_a_word_can_be_read_while_it_is_masked(architecture: str) -> None:
    network, tokenizer = build(architecture)
    words = WordVocabulary(tokenizer)
    rows = []
    for ids in words.encode(SENTENCES):
        for place in range(1, len(ids) + 1):
            tokens = [words.bos, *ids.tolist(), words.eos]
            tokens[place] = words.mask
            with torch.no_grad():
                states = network(input_ids=torch.tensor([tokens]), output_hidden_states=True).hidden_states
            rows.append([state[0, place].numpy() for state in states])
    model = as_language_model(network, tokenizer, "m")
    for layer, found in hidden_layers(model, SENTENCES, hide=True):
        assert found == pytest.approx(np.stack([row[layer] for row in rows]), abs=2e-5)
    some = dict(hidden_layers(model, SENTENCES, hide=True, words=np.array([1, 5, 10])))
    assert some[2] == pytest.approx(np.stack([rows[i][2] for i in (1, 5, 10)]), abs=2e-5)
    causal = as_language_model(*build("gpt2"), "m")
    with pytest.raises(InputError, match="m cannot be read with words masked"):
        list(hidden_layers(causal, SENTENCES, hide=True))


def test_all_pieces_of_a_word_are_masked_together(tmp_path: Path) -> None:
    text = [["abab", "ba"], ["bbab", "a", "abba"]] * 3
    model = load_model(save_piece_model(tmp_path / "m", text, "bpe", 14, architecture="bert"), device="cpu")
    pieces = model.aligner.align(text[1:2])
    before, after, mask, _ = model.aligner.marks
    assert pieces.counts.max() > 1
    found = dict(hidden_layers(model, text[1:2], hide=True))[1]
    ends = np.cumsum(pieces.counts)
    for word, (start, end) in enumerate(zip(ends - pieces.counts, ends, strict=True)):
        row = pieces.rows()[0].copy()
        row[start:end] = mask
        with torch.no_grad():
            inputs = torch.tensor([[*before, *row.tolist(), *after]])
            state = model.model(input_ids=inputs, output_hidden_states=True).hidden_states[1][0]
        assert found[word] == pytest.approx(state[len(before) + end - 1].numpy(), abs=2e-5)


def test_hidden_states_of_transformers_are_as_transformers_gives_them() -> None:
    network, tokenizer = build("gpt2")
    found = hidden_states(as_language_model(network, tokenizer, "m"), [["w0", "w1"]])
    ids = torch.tensor([[2, *WordVocabulary(tokenizer).encode([["w0", "w1"]])[0].tolist()]])
    with torch.no_grad():
        vectors = network.transformer.wte(ids) + network.transformer.wpe(torch.arange(3))[None]
        last = network.transformer(input_ids=ids).last_hidden_state
    assert found[0] == pytest.approx(vectors[0, 1:].numpy(), abs=1e-6)
    assert found[2] == pytest.approx(last[0, 1:].numpy(), abs=1e-5)


def test_lstm_layers_are_those_of_single_lstms_run_one_after_the_other() -> None:
    network, _ = build("lstm", layers=3)
    ids = torch.tensor([[2, 5, 6, 7], [2, 8, 8, 3]])
    with torch.no_grad():
        plain = network(input_ids=ids, use_cache=True)
        found = network(input_ids=ids, use_cache=True, output_hidden_states=True)
        hidden = network.embed_tokens(ids) * 8**0.5
        for layer in range(3):
            assert torch.allclose(found.hidden_states[layer], hidden, atol=1e-6)
            single = nn.LSTM(8, 8, batch_first=True)
            for name, parameter in single.named_parameters():
                parameter.copy_(getattr(network.lstm, name.replace("_l0", f"_l{layer}")))
            hidden = single(hidden)[0]
    assert torch.allclose(found.hidden_states[3], hidden, atol=1e-6)
    assert torch.allclose(found.logits, plain.logits, atol=1e-5)
    assert plain.hidden_states is None
    for one, other in zip(plain.past_key_values.tensors, found.past_key_values.tensors, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    with torch.no_grad():  # and it goes on from where it was
        ahead = torch.tensor([[5], [6]])
        one = network(input_ids=ahead, past_key_values=plain.past_key_values).logits
        other = network(input_ids=ahead, past_key_values=found.past_key_values, output_hidden_states=True).logits
    assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("architecture", ["lstm", "gated_cnn", "adaptive"])
def test_the_head_stands_on_the_last_hidden_states(architecture: str) -> None:
    network, _ = build(architecture)
    ids = torch.tensor([[2, 5, 6]])
    with torch.no_grad():
        found = network(input_ids=ids, output_hidden_states=True)
        head = getattr(network, network_architecture(architecture).head)
        assert torch.allclose(head(found.hidden_states[-1]), found.logits, atol=1e-5)
        assert network(input_ids=ids).hidden_states is None


@pytest.mark.parametrize("architecture", ["gpt2", "bert"])
def test_a_word_of_pieces_is_its_last_piece_or_their_mean(architecture: str, tmp_path: Path) -> None:
    text = [["abab", "ba"], ["bbab", "a", "abba"]] * 3
    folder = save_piece_model(tmp_path / "m", text, "bpe", 14, architecture=architecture)
    model = load_model(folder, device="cpu")
    last, mean = (hidden_states(model, text[:2], pooling=how, layers=[1]) for how in ("last", "mean"))
    pieces = model.aligner.align(text[:2])
    assert pieces.counts.max() > 1
    before, after, *_ = model.aligner.marks
    for number, (start, stop) in enumerate([(0, 2), (2, 5)]):
        row = [*before, *pieces.rows()[number].tolist(), *(after if architecture == "bert" else ())]
        with torch.no_grad():
            state = model.model(input_ids=torch.tensor([row]), output_hidden_states=True).hidden_states[1][0]
        at = len(before)
        for word in range(start, stop):
            own = state[at : at + pieces.counts[word]].numpy()
            at += int(pieces.counts[word])
            assert last[1][word] == pytest.approx(own[-1], abs=2e-5)
            assert mean[1][word] == pytest.approx(own.mean(axis=0), abs=2e-5)


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_layers_that_come_in_groups_are_the_same(tmp_path: Path, pooling: Pooling) -> None:
    text = [["abab", "ba"], ["bbab", "a", "abba"], ["ba"]] * 3
    for model in (
        load_model(save_piece_model(tmp_path / pooling, text, "bpe", 14), device="cpu"),
        as_language_model(*build("bert", layers=3), "m"),
    ):
        whole = hidden_states(model, text, pooling=pooling)
        words, width = np.array([0, 3, 4, 7, 17]), whole[0].shape[1]
        for layers in (None, [1, 0]):
            for budget in (1, 2 * 4 * 5 * width, 2**40):
                found = list(hidden_layers(model, text, layers=layers, pooling=pooling, words=words, budget=budget))
                assert [layer for layer, _ in found] == (sorted(whole) if layers is None else [0, 1])
                assert all(np.array_equal(rows, whole[layer][words]) for layer, rows in found)


@pytest.mark.long
def test_as_many_layers_stand_in_memory_as_fit_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    model = as_language_model(*build("gpt2", layers=4), "m")
    reads: list[list[int]] = []
    plain = module._extracted
    monkeypatch.setattr(module, "_extracted", lambda *given: reads.append([*given[2]]) or plain(*given))
    size = sum(map(len, SENTENCES)) * 8 * 4
    for budget, groups in (
        (size, [[0], [1], [2], [3], [4]]),
        (2 * size, [[0, 1], [2, 3], [4]]),
        (1, [[0], [1], [2], [3], [4]]),
    ):
        reads.clear()
        for _, rows in hidden_layers(model, SENTENCES, budget=budget):
            gone = weakref.ref(rows)
            del rows
            assert gone() is None  # whoever takes a layer is the only one to keep it
        assert reads == groups


@pytest.mark.long
def test_what_cannot_be_probed_is_refused_in_one_sentence(tmp_path: Path) -> None:
    model = load_model(save_model(tmp_path / "m"), device="cpu")
    with pytest.raises(InputError, match=r"m has layers 0 to 1, there is no layer 4"):
        hidden_states(model, SENTENCES, layers=[0, 4])
    with pytest.raises(InputError, match=r"sentence 1 has 12 words, but the model takes at most 9"):
        hidden_states(model, [["w0"] * 12])
    train(Source(), model_settings(architecture="ngram", order=2), None, tmp_path / "counts", seed=1)
    with pytest.raises(InputError) as caught:
        hidden_states(load_model(tmp_path / "counts"), SENTENCES)
    assert caught.value.code == "missing-ability"


class Source:
    """A corpus of two sentences."""

    splits = ("train",)

    def sentences(self, split: str) -> list[list[str]]:
        return [["w0", "w1"], ["w1", "w2", "w0"]] * 4


def test_words_that_share_a_piece_are_refused(tmp_path: Path) -> None:
    """A tokeniser that keeps the space inside a piece joins two words."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import Split
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    vocabulary = {"<s>": 0, "a": 1, "b": 2, " ": 3, "a ": 4, "a b": 5}
    backend = Tokenizer(BPE(vocabulary, [("a", " "), ("a ", "b")]))
    backend.pre_tokenizer = Split(Regex("$^"), "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="<s>", pad_token="<s>")
    network = GPT2LMHeadModel(GPT2Config(vocab_size=6, n_positions=16, n_embd=8, n_layer=1, n_head=2))
    network.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    with pytest.raises(InputError, match=r"joins the word 'a' of sentence 1 with the next"):
        hidden_states(load_model(tmp_path / "m", device="cpu"), [["a", "b"]])
