"""The recipes of docs/howto/activations.md, where the tools are installed: the same vectors as truesource reads.

These are TransformerLens, nnsight and SAELens; SAELens needs an older TransformerLens, so no environment has all.
"""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import torch
from saved_models import WORDS
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from truesource.lmtrain.hidden_states import Vectors, hidden_states
from truesource.lmtrain.model_registry import model_settings, network_architecture
from truesource.lmtrain.models import load_model
from truesource.lmtrain.patching import patched_log_probs
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_models import CausalModel
from truesource.lmtrain.word_vocabulary import WordVocabulary

pytestmark = pytest.mark.usefixtures("one_thread")

SENTENCES = [["w0", "w1", "w2"], ["w3"], ["w6", "w5", "w4", "w3", "w3"], ["w2", "w2"]]
CHANGE = np.random.default_rng(1).standard_normal((len(SENTENCES), 8)).astype(np.float32)
#: list of blocks and final norm of each architecture
PLACES = {"gpt2": ("transformer.h", "transformer.ln_f"), "llama": ("model.layers", "model.norm")}


@pytest.fixture(params=PLACES)
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(architecture: str, tmp_path: Path) -> Path:
    tokenizer = build_tokenizer([WORDS], objective="causal")
    torch.manual_seed(1)
    config = model_settings(architecture=architecture, layers=2, heads=2, dim=8, max_positions=10)
    network = network_architecture(architecture).build(config, WordVocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    network.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    return tmp_path / "m"


@pytest.fixture
def model(folder: Path) -> CausalModel:
    loaded = load_model(folder)
    assert isinstance(loaded, CausalModel)
    return loaded


def opened(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    return AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def numbers(tokenizer: PreTrainedTokenizerFast, sentence: list[str]) -> torch.Tensor:
    """The text as it was in training: ``<bos>`` and the words."""
    return torch.tensor([[tokenizer.bos_token_id, *tokenizer.convert_tokens_to_ids(sentence)]])


def same(found: list[torch.Tensor], wanted: Vectors) -> None:
    """Rows of sentences without those of ``<bos>`` are those of truesource."""
    rows = torch.cat([row[0, 1:] for row in found]).detach().numpy()
    np.testing.assert_allclose(rows, wanted, atol=1e-5)


def columns(model: CausalModel, logits: torch.Tensor) -> np.ndarray:
    """Log probabilities after the last position, in the columns of `patched_log_probs`."""
    words = model.encoder
    chosen = torch.log_softmax(logits[0, -1].double(), 0)[[*words.word_ids.tolist(), words.unk, words.eos]]
    return chosen.detach().numpy()


def test_a_tokeniser_puts_the_beginning_before_a_text_itself(folder: Path) -> None:
    _, tokenizer = opened(folder)
    for sentence in SENTENCES:
        assert tokenizer(" ".join(sentence))["input_ids"] == numbers(tokenizer, sentence)[0].tolist()


def test_transformer_lens_reads_and_changes_the_same_vectors(folder: Path, model: CausalModel) -> None:
    bridges = pytest.importorskip("transformer_lens.model_bridge", reason="TransformerLens 4 is not installed")
    network, tokenizer = opened(folder)
    bridge = bridges.TransformerBridge.boot_transformers(
        str(folder), hf_model=network, tokenizer=tokenizer, device="cpu"
    )
    names = ("blocks.0.hook_resid_pre", "blocks.0.hook_resid_post", "ln_final.hook_out")
    caches = [bridge.run_with_cache(numbers(tokenizer, sentence))[1] for sentence in SENTENCES]
    for name, wanted in zip(names, hidden_states(model, SENTENCES).values(), strict=True):
        same([cache[name] for cache in caches], wanted)
    changed = patched_log_probs(model, SENTENCES, 1, CHANGE)
    for sentence, vector, wanted_row in zip(SENTENCES, torch.from_numpy(CHANGE), changed, strict=True):

        def add(value: torch.Tensor, hook: object, vector: torch.Tensor = vector) -> torch.Tensor:
            value[:, -1] += vector
            return value

        with torch.no_grad():
            logits = bridge.run_with_hooks(numbers(tokenizer, sentence), fwd_hooks=[(names[1], add)])
        assert columns(model, logits) == pytest.approx(wanted_row, abs=1e-4)


def test_nnsight_reads_and_changes_the_same_vectors(folder: Path, model: CausalModel, architecture: str) -> None:
    nnsight = pytest.importorskip("nnsight", reason="nnsight is not installed")
    network, tokenizer = opened(folder)
    traced = nnsight.TransformersModel(network, tokenizer=tokenizer, task="text-generation")
    body = traced.transformer if architecture == "gpt2" else traced.model
    blocks, norm = (body.h, body.ln_f) if architecture == "gpt2" else (body.layers, body.norm)
    found: list[list[torch.Tensor]] = [[], [], []]
    for sentence in SENTENCES:
        with traced.trace(numbers(tokenizer, sentence)):
            entered = blocks[0].input.save()
            first = blocks[0].output.save()
            last = norm.output.save()
        for rows, vectors in zip(found, (entered, first, last), strict=True):
            rows.append(vectors)
    for rows, wanted in zip(found, hidden_states(model, SENTENCES).values(), strict=True):
        same(rows, wanted)
    changed = patched_log_probs(model, SENTENCES, 1, CHANGE)
    for sentence, vector, wanted_row in zip(SENTENCES, torch.from_numpy(CHANGE), changed, strict=True):
        with traced.trace(numbers(tokenizer, sentence)):
            blocks[0].output[:, -1] += vector
            logits = traced.lm_head.output.save()
        assert columns(model, logits) == pytest.approx(wanted_row, abs=1e-4)


def test_saelens_reads_the_same_vectors_and_learns_from_them(
    folder: Path, model: CausalModel, architecture: str
) -> None:
    sae_lens = pytest.importorskip("sae_lens", reason="SAELens is not installed")
    loading = pytest.importorskip("sae_lens.load_model")
    trainers = pytest.importorskip("sae_lens.training.sae_trainer")
    configs = pytest.importorskip("sae_lens.config")
    network = loading.load_model("AutoModelForCausalLM", str(folder), device="cpu")
    blocks, norm = PLACES[architecture]
    names = [f"{blocks}.0", norm]
    caches = [
        network.run_with_cache(numbers(network.tokenizer, sentence), names_filter=names)[1] for sentence in SENTENCES
    ]
    wanted = hidden_states(model, SENTENCES)
    for name, layer in zip(names, (1, 2), strict=True):
        same([cache[name] for cache in caches], wanted[layer])
    vectors = torch.from_numpy(wanted[2])
    torch.manual_seed(1)
    sae = sae_lens.StandardTrainingSAE(sae_lens.StandardTrainingSAEConfig(d_in=8, d_sae=32, l1_coefficient=0.01))
    settings = configs.SAETrainerConfig(
        total_training_samples=40_000, train_batch_size_samples=len(vectors), lr=1e-3, lr_end=1e-3
    )
    trained = trainers.SAETrainer(cfg=settings, sae=sae, data_provider=cycle([vectors])).fit()
    with torch.no_grad():
        features = trained.encode(vectors)
        lost = (trained.decode(features) - vectors).square().sum() / (vectors - vectors.mean(0)).square().sum()
    assert features.shape == (len(vectors), 32)
    assert float(lost) < 0.1
