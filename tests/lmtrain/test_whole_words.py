"""Networks of the `transformers` library with a tokeniser of whole words, made elsewhere: full models of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    PreTrainedTokenizerFast,
)

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.folders import no_bars
from truesource.lmtrain.hidden_states import hidden_states
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.models import CausalPieceModel
from truesource.lmtrain.word_models import CausalModel, MaskedModel

WORDS = ["the", "cat", "dog", "sees", "."]
END = "<|end|>"
SIZE = {"n_positions": 12, "n_embd": 16, "n_layer": 1, "n_head": 2, "initializer_range": 0.4}


def tokeniser(
    words: list[str], *, unk: str | None = "[UNK]", splitter: Any = None, normalizer: Any = None, **named: str
) -> PreTrainedTokenizerFast:
    """Words first, special tokens after them, as nobody here would number them."""
    special = dict.fromkeys([*([unk] if unk else []), *named.values()])
    ids = {token: number for number, token in enumerate([*words, *special])}
    backend = Tokenizer(models.WordLevel(ids, unk_token=unk) if unk else models.WordLevel(ids))
    backend.pre_tokenizer = splitter or pre_tokenizers.WhitespaceSplit()
    if normalizer is not None:
        backend.normalizer = normalizer
    more = {"unk_token": unk} if unk else {}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **named, **more)


def save(folder: Path, tokenizer: PreTrainedTokenizerFast, network: Any = None, extra: int = 3) -> Path:
    """A GPT-2 with more vectors than the tokeniser has tokens, unless another network is given."""
    torch.manual_seed(0)
    if network is None:
        network = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer) + extra, bos_token_id=0, eos_token_id=0, **SIZE))
    with no_bars():
        network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def by_hand(model: CausalModel, tokens: list[int]) -> np.ndarray:
    with torch.no_grad():
        logits = model.model(input_ids=torch.tensor([tokens])).logits[0].double()
    return torch.log_softmax(logits, dim=-1).numpy()


@pytest.mark.parametrize("named", [{"bos_token": "<s>", "eos_token": "</s>"}, {"bos_token": END, "eos_token": END}])
def test_a_causal_network_is_a_model_of_words(named: dict[str, str], tmp_path: Path) -> None:
    tokenizer = tokeniser(WORDS, pad_token="<pad>", **named)
    model = load_model(save(tmp_path / "m", tokenizer), device="cpu")
    assert isinstance(model, CausalModel)
    assert model.vocabulary == tuple(WORDS)
    assert model.longest == 11
    ids = tokenizer.get_vocab()
    bos, eos, unk = ids[named["bos_token"]], ids[named["eos_token"]], ids["[UNK]"]
    sentence, numbers = ["the", "bird", "sees"], [0, unk, 3]
    expected = by_hand(model, [bos, *numbers])
    targets = [*numbers, eos]
    scores = model.score([sentence], ScoringFrame())
    assert scores.log_prob == pytest.approx(expected[np.arange(4), targets], abs=1e-5)
    assert scores.impossible.tolist() == []
    skipped = model.score([sentence], ScoringFrame(unk="skip"))
    assert skipped.position.tolist() == [0, 2, 3]
    columns = [*range(5), unk, eos]
    for found in model.distributions([sentence]):
        assert found.log_prob[0] == pytest.approx(expected[found.position, columns], abs=1e-5)
    after = model.next_token(["the"])
    assert after.words.sum() + after.unk + after.eos + after.special == pytest.approx(1.0, abs=1e-12)
    assert np.log([*after.words, after.unk, after.eos]) == pytest.approx(expected[1, columns], abs=1e-5)
    drawn = model.sample(200, seed=0, max_tokens=3)
    assert {word for s in drawn.sentences for word in s} <= {*WORDS, "[UNK]"}
    assert drawn.finished.any()
    assert hidden_states(model, [sentence])[0].shape == (3, 16)


def test_a_masked_network_is_a_model_of_words(tmp_path: Path) -> None:
    tokenizer = tokeniser(WORDS, cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", pad_token="[PAD]")
    ids = tokenizer.get_vocab()
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(ids), max_position_embeddings=12, initializer_range=0.4, **size)
    torch.manual_seed(0)
    model = load_model(save(tmp_path / "m", tokenizer, BertForMaskedLM(config)), device="cpu")
    assert isinstance(model, MaskedModel)
    sentences = [["the", "cat"], ["dog"]]
    expected = []
    for sentence in sentences:
        numbers = [ids["[CLS]"], *(ids[word] for word in sentence), ids["[SEP]"]]
        for place in range(1, len(numbers) - 1):
            hidden = [*numbers[:place], ids["[MASK]"], *numbers[place + 1 :]]
            with torch.no_grad():
                row = torch.log_softmax(model.model(input_ids=torch.tensor([hidden])).logits[0, place].double(), -1)
            expected.append(float(row[numbers[place]]))
    assert model.score(sentences, ScoringFrame()).log_prob == pytest.approx(expected, abs=1e-5)
    (first,) = [found.log_prob for found in model.distributions([["dog"]])]
    assert first.shape == (1, 6)
    assert first[0, 2] == pytest.approx(expected[2], abs=1e-5)


def test_without_an_unknown_token_sentences_of_unknown_words_are_impossible(tmp_path: Path) -> None:
    tokenizer = tokeniser(WORDS, unk=None, bos_token="<s>", eos_token="</s>")
    model = load_model(save(tmp_path / "m", tokenizer), device="cpu")
    assert isinstance(model, CausalModel)
    whole = model.score([["the", "cat"], ["dog"]], ScoringFrame())
    for frame in (ScoringFrame(), ScoringFrame(unk="skip")):
        scores = model.score([["a", "bird"], ["the", "cat"], ["the", "bird"], ["dog"]], frame)
        assert scores.impossible.tolist() == [0, 2]
        assert scores.sentence.tolist() == [1, 1, 1, 3, 3]
        assert np.array_equal(scores.log_prob, whole.log_prob)
    first = next(iter(model.distributions([["the"]]))).log_prob
    assert first[0, 5] == -np.inf  # nothing is unknown to it
    assert np.isfinite(np.delete(first, 5)).all()
    assert model.next_token([]).unk == 0.0
    with pytest.raises(InputError, match="no token for the word 'bird' and none for unknown words"):
        next(iter(model.distributions([["bird"]])))
    with pytest.raises(InputError, match="no token for the word 'bird'"):
        hidden_states(model, [["the", "bird"]])


def test_words_that_the_tokeniser_cuts_or_rewrites_are_named(tmp_path: Path) -> None:
    named = {"bos_token": "<s>", "eos_token": "</s>"}
    cuts = load_model(save(tmp_path / "cuts", tokeniser(WORDS, splitter=pre_tokenizers.Whitespace(), **named)))
    assert isinstance(cuts, CausalModel)
    cuts.score([["the", "bird", "."]], ScoringFrame())
    with pytest.raises(InputError, match='reads the word "don\'t" as "don \' t"'):
        cuts.score([["the", "don't"]], ScoringFrame())
    lower = load_model(save(tmp_path / "lower", tokeniser(WORDS, normalizer=normalizers.Lowercase(), **named)))
    with pytest.raises(InputError, match="reads the word 'The' as 'the'"):
        lower.score([["The"]], ScoringFrame())


def test_other_architectures_are_scored(tmp_path: Path) -> None:
    """Where the output layer is unknown here, word scores are all there is; an unknown word is a sentence, too."""
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    network = GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=8, max_position_embeddings=12, **size))
    tokenizer = tokeniser(WORDS, unk=None, bos_token="<s>", eos_token="</s>")
    model = load_model(save(tmp_path / "m", tokenizer, network), device="cpu")
    assert isinstance(model, CausalPieceModel)
    assert len(model.score([["the", "cat"]], ScoringFrame()).log_prob) == 3
    with pytest.raises(InputError, match="m has a tokeniser of whole words, but distributions over them can be read"):
        model.distributions([["the"]])
    with pytest.raises(InputError, match="no token for the word 'bird' of sentence 2 and none for unknown words"):
        model.score([["the"], ["the", "bird"]], ScoringFrame())
