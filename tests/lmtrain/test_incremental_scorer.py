"""Reading texts piece by piece: every kind of network against itself on whole texts, and what is run and kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    RecurrentGemmaConfig,
    RecurrentGemmaForCausalLM,
)
from transformers.modeling_outputs import CausalLMOutput
from walked_texts import walked

from truesource.generator.piece_model import IncrementalScorer, TokenisedModel
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.model_registry import model_settings, network_architecture, network_names, settings_class
from truesource.lmtrain.pieces import incremental_scorer, models
from truesource.lmtrain.pieces import incremental_scorer as memories
from truesource.lmtrain.pieces.incremental_scorer import (
    FixedStates,
    KeyValues,
    NetworkScorer,
    Store,
    WholeTexts,
    memory_of,
)
from truesource.lmtrain.pieces.models import CausalPieceModel
from truesource.lmtrain.pieces.words import Marks
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary
from truesource.lmtrain.subwords import build_subword_tokenizer
from truesource.lmtrain.trained_models import as_language_model

TEXT = [["the", "cat", "sat", "on", "the", "mat"], ["cats", "sit"], ["a", "seated", "cat"]]
TOKENIZER = build_subword_tokenizer(TEXT, "bpe", 26)
V = SubwordVocabulary(TOKENIZER)
SIZE = len(V)
CAUSAL = [name for name in network_names() if settings_class(name).objective == "causal"]
Row = tuple[int, ...]


def shaken(network: PreTrainedModel) -> PreTrainedModel:
    """Large weights, in float64 so that equal means equal."""
    network = network.double().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return network


def ours(architecture: str) -> PreTrainedModel:
    sizes: dict[str, Any] = {} if architecture in ("lstm", "gated_cnn") else {"heads": 2, "max_positions": 30}
    torch.manual_seed(0)
    return shaken(
        network_architecture(architecture).build(
            model_settings(architecture=architecture, layers=2, dim=16, **sizes), V
        )
    )


def others() -> dict[str, Callable[[], PreTrainedModel]]:
    """Of transformers: a window of four tokens, distances in place of positions, half rotated keys, no keys at all."""
    shape: dict[str, Any] = {"vocab_size": SIZE, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2}
    rotary = {**shape, "intermediate_size": 32, "max_position_embeddings": 30}
    return {
        "mistral": lambda: MistralForCausalLM(MistralConfig(**rotary, num_key_value_heads=1, sliding_window=4)),
        "bloom": lambda: BloomForCausalLM(BloomConfig(**{**shape, "n_head": 2, "n_layer": 2})),
        "gpt_neox": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**rotary)),
        "mamba": lambda: MambaForCausalLM(MambaConfig(vocab_size=SIZE, hidden_size=16, num_hidden_layers=2)),
    }


def made(name: str) -> PreTrainedModel:
    if name in CAUSAL:
        return ours(name)
    torch.manual_seed(0)
    return shaken(others()[name]())


def piece_model(network: PreTrainedModel, longest: int | None = None) -> CausalPieceModel:
    return CausalPieceModel(network, TOKENIZER, V, "m", longest=longest)


def plain(network: PreTrainedModel, text: Row) -> torch.Tensor:
    """(V,) log probabilities of what follows ``<bos>`` and some pieces, read alone."""
    with torch.no_grad():
        return torch.log_softmax(network(input_ids=torch.tensor([[V.bos, *text]])).logits[0, -1].double(), 0)


@pytest.mark.parametrize("name", [*CAUSAL, *others()])
def test_a_scorer_reads_as_the_network_does(name: str) -> None:
    """Rows of different lengths, repeated and dropped in any order, contexts asked late or never."""
    network = made(name)
    kind = memory_of(network)
    assert kind is {"lstm": FixedStates, "gated_cnn": FixedStates, "mamba": WholeTexts}.get(name, KeyValues)
    scorer: IncrementalScorer = NetworkScorer(kind(network), V.marks)
    rng = np.random.default_rng(0)
    texts: dict[int, Row] = {scorer.begin(): ()}
    for turn in range(7):
        parents = rng.choice(list(texts), size=9)
        tokens = rng.integers(5, SIZE, size=9)
        if turn % 2:
            found = scorer.log_prob(parents, tokens)
            expected = [float(plain(network, texts[p])[t]) for p, t in zip(parents.tolist(), tokens, strict=True)]
            assert found.dtype == np.float64
            assert found == pytest.approx(expected, abs=1e-10)
        numbers = scorer.extend(parents, tokens)
        texts |= {n: (*texts[p], t) for n, p, t in zip(*(x.tolist() for x in (numbers, parents, tokens)), strict=True)}
        assert len(set(texts.values())) == len(texts)  # one context a text
        if turn in (3, 5):
            kept = rng.permutation(list(texts))[:6]
            scorer.keep(kept)
            texts = {number: texts[number] for number in kept.tolist()}
    numbers = np.array([*texts])
    assert len({*map(len, texts.values())}) > 2
    expected = [float(plain(network, text)[V.eos]) for text in texts.values()]
    assert scorer.log_end(numbers) == pytest.approx(expected, abs=1e-10)


class NoCache(PreTrainedModel):
    """A network that takes what it could be given back, and returns nothing of the kind."""

    config_class = GPT2Config

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.inner = GPT2LMHeadModel(config)
        self.post_init()

    def get_input_embeddings(self) -> Any:
        return self.inner.get_input_embeddings()

    def forward(self, input_ids: Any, past_key_values: Any = None, use_cache: bool = False) -> CausalLMOutput:
        assert past_key_values is None
        return CausalLMOutput(logits=self.inner(input_ids=input_ids, use_cache=False).logits)


def without_cache() -> dict[str, Callable[[], PreTrainedModel]]:
    gemma = {"vocab_size": SIZE, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "lru_width": 16}
    return {
        "own": lambda: NoCache(GPT2Config(vocab_size=SIZE, n_embd=16, n_layer=1, n_head=2, n_positions=30)),
        "recurrent_gemma": lambda: RecurrentGemmaForCausalLM(
            RecurrentGemmaConfig(**gemma, intermediate_size=32, attention_window_size=30)
        ),
    }


@pytest.mark.parametrize("name", ["own", "recurrent_gemma"])
def test_networks_that_return_no_cache_read_whole_texts(name: str) -> None:
    """RecurrentGemma keeps its states within itself, in 32 bits."""
    torch.manual_seed(0)
    network = shaken(without_cache()[name]())
    assert memory_of(network) is WholeTexts
    model: TokenisedModel = piece_model(network)
    rows = [np.array(row, dtype=np.int64) for row in ([5, 7, 6], [], [9], [8, 5, 5, 10])]
    found, expected = walked(model.incremental_scorer(), rows), model.log_probs(rows)
    assert found == pytest.approx(expected, abs=1e-5)
    text = (5, 7, 6, V.eos)
    assert expected[0] == pytest.approx(sum(float(plain(network, text[:i])[t]) for i, t in enumerate(text)), abs=1e-5)
    stepper = model.stepper()  # type: ignore[attr-defined]
    first = stepper.start(3)
    assert first[2] == pytest.approx(plain(network, ()), abs=1e-5)
    stepper.extend(torch.tensor([0, 1, 2]), torch.tensor([5, 8, 9]))
    after = stepper.extend(torch.tensor([2, 0]), torch.tensor([7, 6]))
    for row, read in zip(after, ((9, 7), (5, 6)), strict=True):
        assert row == pytest.approx(plain(network, read), abs=1e-5)


@pytest.mark.parametrize("name", [*CAUSAL, "mamba"])
def test_whole_texts_are_the_sum_of_their_pieces(name: str) -> None:
    network = made(name)
    model: TokenisedModel = piece_model(network)
    rng = np.random.default_rng(1)
    rows = [rng.integers(5, SIZE, size=n) for n in (3, 0, 7, 1, 3, 12)]
    expected = []
    for row in rows:
        text = (*row.tolist(), V.eos)
        expected.append(sum(float(plain(network, text[:i])[token]) for i, token in enumerate(text)))
    found = model.log_probs(rows)
    assert found.dtype == np.float64
    assert found == pytest.approx(expected, abs=1e-10)
    assert walked(model.incremental_scorer(), rows) == pytest.approx(found, abs=1e-10)
    assert not len(model.log_probs([]))
    assert (model.around, model.longest) == ((1, 1), None)


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    network = made("gpt2")
    rows = [np.arange(5, 5 + n) for n in (4, 9, 0, 2, 6)]
    whole = piece_model(network).log_probs(rows)
    monkeypatch.setattr(models, "batch_budget", lambda size: 8)
    assert piece_model(network).log_probs(rows) == pytest.approx(whole, abs=1e-10)
    monkeypatch.setattr(memories, "NUMBERS", 1)
    for kind in (KeyValues, WholeTexts):
        scorer = NetworkScorer(kind(network), V.marks)
        at = np.full(len(rows), scorer.begin())
        total = np.zeros(len(rows))
        for place in range(9):
            going = np.array([i for i, row in enumerate(rows) if place < len(row)])
            tokens = np.array([rows[i][place] for i in going])
            total[going] += scorer.log_prob(at[going], tokens)
            at[going] = scorer.extend(at[going], tokens)
        assert total + scorer.log_end(at) == pytest.approx(whole, abs=1e-10)


@pytest.mark.parametrize("together", [1, memories.NUMBERS])
def test_tokens_together_have_the_sum_of_their_probabilities(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_scorer, "TOGETHER", together)  # logits at once
    scorer = NetworkScorer(KeyValues(made("gpt2")), V.marks)
    begin = np.full(4, scorer.begin())
    contexts = np.append(scorer.extend(begin, np.array([5, 6, 5, 9])), begin[0])
    some = np.array([7, 20, 5])
    expected = [np.logaddexp.reduce(scorer.log_prob(np.full(3, context), some)) for context in contexts]
    steps = scorer.steps
    assert scorer.log_any(contexts, some) == pytest.approx(expected, abs=1e-12)
    assert scorer.steps == steps
    assert scorer.log_any(contexts, np.arange(SIZE)) == pytest.approx(np.zeros(5), abs=1e-12)
    assert not len(scorer.log_any(contexts[:0], some))


class Sizes:
    """How many tokens a network is run at, padding included."""

    def __init__(self, network: PreTrainedModel) -> None:
        self.total = 0
        network.register_forward_pre_hook(self._add, with_kwargs=True)

    def _add(self, module: Any, args: Any, kwargs: Any) -> None:
        self.total += kwargs["input_ids"].numel()


@pytest.mark.parametrize("budget", [8, 1000])
def test_steps_of_whole_texts_count_padding(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "batch_budget", lambda size: budget)
    network = made("gpt2")
    model: TokenisedModel = piece_model(network)
    rows = [np.arange(5, 5 + n) for n in (4, 9, 0, 2, 6)]
    ran = Sizes(network)
    model.log_probs(rows)
    assert model.token_steps(rows) == ran.total
    assert ran.total > sum(len(row) + 1 for row in rows)
    assert model.token_steps(rows[:1]) == 5
    assert model.token_steps([]) == 0


def test_steps_of_a_network_that_reads_whole_texts_again_count_padding() -> None:
    network = shaken(without_cache()["own"]())
    scorer = NetworkScorer(WholeTexts(network), V.marks)
    ran = Sizes(network)
    begin = np.array([scorer.begin()] * 2)
    one = scorer.extend(begin, np.array([5, 6]))
    two = scorer.extend(one, np.array([7, 8]))
    scorer.log_end(np.append(two[:1], one[1]))
    assert ran.total == scorer.steps == 1 + 2 * 2 + 3  # <bos>, two texts of 2 tokens, one of 3
    three = scorer.extend(two[:1], np.array([9]))
    scorer.log_end(np.append(three, two[1]))
    assert ran.total == scorer.steps == 8 + 2 * 4  # one text of 4 tokens; one of 3, padded


class Counting:
    """A memory that notes how many rows each call has."""

    def __init__(self, memory: KeyValues) -> None:
        self.memory, self.calls = memory, list[int]()

    budget = memories.NUMBERS

    def cost(self, lengths: IntArray) -> IntArray:
        return self.memory.cost(lengths)

    def read(self, held: Any, tokens: IntArray) -> Any:
        self.calls.append(len(tokens))
        return self.memory.read(held, tokens)

    def compact(self, held: Any) -> Any:
        return self.memory.compact(held)


def test_every_token_is_run_once_and_only_when_it_is_asked_for() -> None:
    memory = Counting(KeyValues(made("gpt2")))
    scorer = NetworkScorer(memory, V.marks)
    start = np.full(3, scorer.begin())
    assert (scorer.steps, scorer.begin()) == (0, start[0])
    one = scorer.extend(start, np.array([5, 6, 5]))
    assert (one[0], scorer.steps) == (one[2], 0)
    scorer.log_prob(start, np.array([5, 6, 7]))
    assert (scorer.steps, memory.calls) == (1, [1])  # <bos>, once
    two = scorer.extend(one, np.array([7, 7, 8]))
    scorer.log_prob(one, np.array([7, 7, 8]))
    assert (scorer.steps, memory.calls) == (3, [1, 2])
    scorer.log_end(np.concatenate([start, two[:1]]))
    assert (scorer.steps, memory.calls) == (4, [1, 2, 1])  # the others of ``two`` were not asked for
    three = scorer.extend(two, np.array([9, 9, 9]))
    four = scorer.extend(three[1:], np.array([5, 6]))
    scorer.keep(np.concatenate([four, two[:1]]))
    scorer.log_end(np.concatenate([four, four, two[:1]]))
    assert (scorer.steps, memory.calls) == (10, [1, 2, 1, 2, 2, 2])  # two, three and four of two rows
    scorer.log_end(four)
    assert scorer.steps == 10
    assert not len(scorer.log_prob(four[:0], four[:0])) and not len(scorer.extend(four[:0], four[:0]))


@pytest.mark.parametrize("name", ["gpt2", "lstm"])
def test_what_is_forgotten_is_freed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a particle filter goes: 4 texts, each with 3 ways on, of which 4 are kept."""
    network = made(name)
    stores: list[Store] = []
    begin = Store.__init__

    def note(store: Store) -> None:
        begin(store)
        stores.append(store)

    monkeypatch.setattr(Store, "__init__", note)
    scorer = piece_model(network).incremental_scorer()
    held = stores[-2:]  # of the memory and of the logits
    at = np.full(4, scorer.begin())
    rng = np.random.default_rng(0)
    texts: list[Row] = [()] * 4
    for _ in range(25):
        tokens = rng.integers(5, SIZE, size=12)
        parents = np.repeat(at, 3)
        weights = scorer.log_prob(parents, tokens)
        chosen = np.argsort(-weights)[:4]
        new = scorer.extend(parents, tokens)
        texts = [(*texts[i // 3], int(tokens[i])) for i in chosen]
        at = new[chosen]
        scorer.keep(at)
        assert len(held[1]) <= 4
        assert len(held[0]) <= (4 * len(texts[0]) if name == "gpt2" else 4)
        with pytest.raises(KeyError):
            scorer.log_end(parents[~np.isin(parents, at)])
    assert scorer.log_end(at) == pytest.approx([float(plain(network, text)[V.eos]) for text in texts], abs=1e-10)
    assert scorer.steps <= 1 + 25 * 4


def test_positions_that_padding_would_shift_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transformer that takes no position numbers counts padding as text; it must read whole texts."""
    network = made("gpt2")
    assert memory_of(network) is KeyValues
    forward = type(network).forward

    def without(
        self: Any, input_ids: Any, past_key_values: Any = None, attention_mask: Any = None, use_cache: Any = None
    ) -> Any:
        return forward(
            self, input_ids, past_key_values=past_key_values, attention_mask=attention_mask, use_cache=use_cache
        )

    monkeypatch.setattr(type(network), "forward", without)
    assert memory_of(network) is WholeTexts


def test_texts_beyond_the_positions_are_refused() -> None:
    network = made("gpt2")
    model = as_language_model(network, TOKENIZER, "m")
    assert isinstance(model, CausalPieceModel) and model.longest == 30
    fits = [np.full(29, 7), np.full(3, 7)]
    values = model.log_probs(fits)
    assert np.isfinite(values).all()
    with pytest.raises(InputError, match="text 2 has 30 pieces, but the model takes at most 29; leave it out"):
        model.log_probs([fits[1], np.full(30, 7)])
    scorer = model.incremental_scorer()
    at = np.array([scorer.begin()])
    total = 0.0
    for _ in range(29):
        total += scorer.log_prob(at, np.array([7])).item()
        at = scorer.extend(at, np.array([7]))
    assert total + scorer.log_end(at).item() == pytest.approx(values[0], abs=1e-10)
    with pytest.raises(InputError, match="a text has 30 pieces, but the model takes at most 29"):
        scorer.extend(at, np.array([7]))


def test_tokens_around_a_text() -> None:
    network = made("lstm")
    endless = NetworkScorer(FixedStates(network), Marks((V.bos,), (), None, V.pad))
    at = endless.extend(np.full(2, endless.begin()), np.array([5, 6]))
    assert endless.log_end(at).tolist() == [0.0, 0.0]
    assert endless.steps == 0

    class WordAligner(SubwordVocabulary):
        def __init__(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
            super().__init__(TOKENIZER)
            self.marks = Marks(before, after, None, V.pad)

    model = CausalPieceModel(network, TOKENIZER, WordAligner((V.bos,), ()), "m")
    row = np.array([5, 9, 6])
    expected = sum(float(plain(network, (5, 9, 6)[:i])[token]) for i, token in enumerate(row))
    assert model.log_probs([row, row[:0]]) == pytest.approx([expected, 0.0], abs=1e-10)
    assert model.around == (1, 0)
    bare = CausalPieceModel(network, TOKENIZER, WordAligner((), (V.eos,)), "m")
    for ask in (lambda: bare.log_probs([row]), bare.incremental_scorer):
        with pytest.raises(InputError, match="no token for the beginning of a text, so nothing predicts the first"):
            ask()


def test_damaged_weights_are_noticed() -> None:
    network = made("lstm")
    with torch.no_grad():
        network.lm_head.bias[7] = math.nan
    model = piece_model(network)
    with pytest.raises(InputError, match="logits are not finite"):
        model.log_probs([np.array([5])])
    scorer = model.incremental_scorer()
    with pytest.raises(InputError, match="logits are not finite"):
        scorer.log_end(np.array([scorer.begin()]))


def test_texts_are_cut_by_the_tokeniser_of_the_model() -> None:
    """The cut that the model's tokeniser makes, scored as a row, is the score of the sentence."""
    from truesource.generator.language_model import ScoringFrame

    model = piece_model(made("gpt2"))
    read = model.pieces.read("the cat sat")
    ids = model.pieces.inventory.ids[read.canonical]
    assert ids.tolist() == V.align([["the", "cat", "sat"]]).ids.tolist()
    scores = model.score([["the", "cat", "sat"]], ScoringFrame())
    assert model.log_probs([ids]).item() == pytest.approx(scores.log_prob.sum(), abs=1e-10)
