"""Checkpoints that others made: which pieces begin a word, word scores against plain loops, and what is refused."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.folders import no_bars
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.models import CausalPieceModel, MaskedPieceModel
from truesource.lmtrain.pieces.words import OffsetAligner

LINES = ["the cat sat on the mat", "theatre cats sat there", "a cat , said the catty mat", "naïve cafés 日本"] * 2
TEXT = [line.split() for line in LINES[:4]] + [["mat"], ["the", "seaside", "cat"]]
END = "<|endoftext|>"


@pytest.fixture(autouse=True)
def _same_weights_every_time() -> None:
    torch.manual_seed(0)


def byte_level(trim: bool = False) -> PreTrainedTokenizerFast:
    """As GPT-2's: ``Ġ`` before words but the first."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=trim)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        LINES,
        trainers.BpeTrainer(vocab_size=290, special_tokens=[END], initial_alphabet=alphabet, show_progress=False),
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=END, eos_token=END, unk_token=END)


def metaspace(prefix: str = "first") -> PreTrainedTokenizerFast:
    """As SentencePiece's unigram models: ``▁`` before words."""
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prefix)
    backend.decoder = decoders.Metaspace(prepend_scheme=prefix)
    specials = ["<unk>", "<s>", "</s>"]
    backend.train_from_iterator(
        LINES,
        trainers.UnigramTrainer(vocab_size=60, special_tokens=specials, unk_token="<unk>", show_progress=False),
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def byte_fallback() -> PreTrainedTokenizerFast:
    """As Llama's: spaces become ``▁`` in the normaliser, unseen characters bytes."""
    backend = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words = sorted({f"▁{word}" for line in LINES[:6] for word in line.split() if word.isascii()})
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=specials, show_progress=False)
    normalizer, backend.normalizer = backend.normalizer, normalizers.Sequence([])
    backend.train_from_iterator(words, trainer)
    backend.normalizer = normalizer
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def wordpiece(*, lowercase: bool = False) -> PreTrainedTokenizerFast:
    """As BERT's: ``##`` before pieces within words; punctuation stands alone."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=lowercase)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    lines = [line for line in LINES if line.isascii()]
    backend.train_from_iterator(
        [*lines, "'"], trainers.WordPieceTrainer(vocab_size=60, special_tokens=specials, show_progress=False)
    )
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def end_of_word() -> PreTrainedTokenizerFast:
    """As the first GPT's: ``</w>`` at the ends of words."""
    backend = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.decoder = decoders.BPEDecoder("</w>")
    backend.train_from_iterator(
        LINES,
        trainers.BpeTrainer(
            vocab_size=80, special_tokens=["<unk>", "<s>"], end_of_word_suffix="</w>", show_progress=False
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="<s>")


def gpt2(tokenizer: PreTrainedTokenizerFast, positions: int = 40) -> PreTrainedModel:
    size = {"n_positions": positions, "n_embd": 16, "n_layer": 1, "n_head": 2, "initializer_range": 0.4}
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0, **size))


SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "initializer_range": 0.4,
    "max_position_embeddings": 40,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


def save(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Path:
    with no_bars():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


SPACES = (9, 10, 11, 12, 13, 28, 29, 30, 31, 32)  #: bytes that are white space, which no word contains

#: how the pieces of each tokeniser look that begin a word, written down by hand
LOOKS: dict[str, tuple[Callable[[], PreTrainedTokenizerFast], Callable[[str], bool]]] = {
    "byte level": (byte_level, lambda piece: piece[0] in "ĠĉĊċČčĜĝĞğ" or piece == END),
    "metaspace": (metaspace, lambda piece: piece[0] == "▁" or piece == "</s>"),
    "byte fallback": (
        byte_fallback,
        lambda piece: piece[0] == "▁" or piece == "</s>" or piece in {f"<0x{b:02X}>" for b in SPACES},
    ),
    "wordpiece": (
        wordpiece,
        lambda piece: not piece.startswith("##") and piece not in {"[PAD]", "[CLS]", "[MASK]"},
    ),
}


@pytest.mark.parametrize("kind", LOOKS)
def test_pieces_that_begin_a_word_are_found(kind: str) -> None:
    make, begins = LOOKS[kind]
    tokenizer = make()
    found = OffsetAligner(tokenizer, "causal").begins
    assert found is not None
    for piece, number in tokenizer.get_vocab().items():
        assert found[number] == begins(piece), piece


def test_marks_at_the_ends_of_words_need_no_correction(tmp_path: Path) -> None:
    tokenizer = end_of_word()
    model = load_model(save(tmp_path / "m", gpt2(tokenizer), tokenizer), device="cpu")
    assert isinstance(model, CausalPieceModel)
    assert model.aligner.begins is None
    assert model.reading == "pieces/bos=1/eos=1"
    check(model, TEXT, None)


def check(model: CausalPieceModel, sentences: list[list[str]], begins: list[int] | None) -> None:
    """Scores from the definition: whole texts cut by the tokeniser, words found by what they decode to."""
    (bos,), (eos,), _, _ = model.aligner.marks
    expected = []
    for sentence in sentences:
        text = " ".join(sentence)
        ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
        spelt = [model.tokenizer.decode(ids[:n]).replace(" ", "") for n in range(len(ids) + 1)]
        cuts = [spelt.index("".join(sentence[:i])) for i in range(len(sentence) + 1)]  # pieces of the first i words
        with torch.no_grad():
            log_probs = torch.log_softmax(model.model(torch.tensor([[bos, *ids]])).logits[0].double(), -1)
        values = [float(log_probs[k, target]) for k, target in enumerate([*ids, eos])]
        edge = [0.0 if begins is None else float(torch.logsumexp(row[begins], 0)) for row in log_probs]
        edge[0] = 0.0
        for a, b in itertools.pairwise(cuts):
            expected.append(sum(values[a:b]) + edge[b] - edge[a])
        expected.append(values[-1] - edge[-1])
    assert model.score(sentences, ScoringFrame()).log_prob == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("trim", [False, True])
def test_byte_level_pieces(trim: bool, tmp_path: Path) -> None:
    tokenizer = byte_level(trim)
    model = load_model(save(tmp_path / "gpt2", gpt2(tokenizer), tokenizer), device="cpu")
    assert isinstance(model, CausalPieceModel)
    assert (model.name, model.objective, model.vocabulary, model.reading) == (
        "gpt2",
        "causal",
        None,
        "pieces/bow/bos=0/eos=0",
    )
    begins = [i for piece, i in tokenizer.get_vocab().items() if LOOKS["byte level"][1](piece)]
    check(model, TEXT, begins)


def test_metaspace_pieces_with_another_architecture(tmp_path: Path) -> None:
    tokenizer = metaspace()
    network = GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=len(tokenizer) + 4, **SMALL))  # more vectors than tokens
    model = load_model(save(tmp_path / "neox", network, tokenizer), device="cpu")
    assert isinstance(model, CausalPieceModel)
    check(model, TEXT[:3], [i for p, i in tokenizer.get_vocab().items() if LOOKS["metaspace"][1](p)])


def test_byte_fallback_pieces(tmp_path: Path) -> None:
    tokenizer = byte_fallback()
    network = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SMALL))
    model = load_model(save(tmp_path / "llama", network, tokenizer), device="cpu")
    assert isinstance(model, CausalPieceModel)
    found = model.aligner.begins
    assert found is not None
    sentences = [s for s in TEXT if " ".join(s).isascii()]
    check(model, sentences, np.flatnonzero(found).tolist())
    assert model.score([["日本"]], ScoringFrame()).impossible.tolist() == []  # spelt by bytes


def test_wordpiece_continuations_in_a_causal_model(tmp_path: Path) -> None:
    """A word is over where the next piece has no ``##``, so the same correction applies."""
    tokenizer = wordpiece()
    network = BertLMHeadModel(BertConfig(vocab_size=len(tokenizer), is_decoder=True, **SMALL))
    model = load_model(save(tmp_path / "m", network, tokenizer), device="cpu")
    assert isinstance(model, CausalPieceModel)
    assert model.reading == "pieces/bow/bos=2/eos=3"
    check(model, TEXT[:3], [i for p, i in tokenizer.get_vocab().items() if LOOKS["wordpiece"][1](p)])
    with pytest.raises(InputError, match='cuts the word "cat\'t" of sentence 2 into pieces that do not show its'):
        model.score([["cat"], ["the", "cat't"]], ScoringFrame())


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_masked_checkpoints(kind: str, tmp_path: Path) -> None:
    tokenizer = wordpiece()
    config = {"vocab_size": len(tokenizer), **SMALL, "pad_token_id": 0}
    network = BertForMaskedLM(BertConfig(**config)) if kind == "bert" else RobertaForMaskedLM(RobertaConfig(**config))
    model = load_model(save(tmp_path / "m", network, tokenizer), device="cpu")
    assert isinstance(model, MaskedPieceModel)
    assert (model.objective, model.reading) == ("masked", "pieces/pll-word-l2r/before=2/after=3")
    assert model.longest == (40 if kind == "bert" else 39)  # positions of a RoBERTa start after the number of <pad>
    sentences, expected = [*TEXT[:3], ["cat't", "the", "seat"]], []
    for sentence in sentences:
        cuts = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in sentence]
        for i, cut in enumerate(cuts):
            value = 0.0
            for k, piece in enumerate(cut):
                left = [2, *itertools.chain(*cuts[:i]), *cut[:k]]
                ids = [*left, *[4] * (len(cut) - k), *itertools.chain(*cuts[i + 1 :]), 3]
                with torch.no_grad():
                    value += float(
                        torch.log_softmax(model.model(torch.tensor([ids])).logits[0, len(left)].double(), -1)[piece]
                    )
            expected.append(value)
    assert model.score(sentences, ScoringFrame()).log_prob == pytest.approx(expected, abs=1e-5)
    model.score([["cat"] * (model.longest - 2)], ScoringFrame())
    with pytest.raises(InputError, match=f"sentence 2 has {model.longest - 1} pieces, but the model takes at most"):
        model.score([["cat"], ["cat"] * (model.longest - 1)], ScoringFrame())


def test_a_masked_checkpoint_without_a_mask_is_refused(tmp_path: Path) -> None:
    tokenizer = wordpiece()
    folder = save(tmp_path / "m", BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **SMALL)), tokenizer)
    named = json.loads((folder / "tokenizer_config.json").read_text())
    del named["mask_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    with pytest.raises(InputError, match="the tokeniser has no mask token"):
        load_model(folder, device="cpu").score([["cat"]], ScoringFrame())


def test_unreadable_words_are_impossible_or_skipped(tmp_path: Path) -> None:
    tokenizer = wordpiece()
    network = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **SMALL))
    model = load_model(save(tmp_path / "m", network, tokenizer), device="cpu")
    sentences = [["the", "Ω", "cat"], ["the", "[MASK]"], ["cat"]]
    assert model.score(sentences, ScoringFrame()).impossible.tolist() == [0, 1]
    skipped = model.score(sentences, ScoringFrame(unk="skip"))
    assert skipped.impossible.tolist() == []
    assert list(zip(skipped.sentence, skipped.position, strict=True)) == [(0, 0), (0, 2), (1, 0), (2, 0)]


@pytest.mark.long
def test_without_a_token_for_the_start_the_first_word_has_to_be_left_out(tmp_path: Path) -> None:
    tokenizer = byte_level()
    network = gpt2(tokenizer)
    folder = save(tmp_path / "m", network, tokenizer)
    whole = load_model(folder, device="cpu")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    del settings["bos_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model = load_model(folder, device="cpu")
    with pytest.raises(InputError, match="no token for the beginning of a text, so nothing predicts the first word"):
        model.score(TEXT, ScoringFrame())
    frame = ScoringFrame(first=False)
    scores = model.score([*TEXT, []], frame)
    assert scores.position.tolist() == [i for s in TEXT for i in range(1, len(s) + 1)]
    begins = model.aligner.begins  # type: ignore[union-attr]
    with torch.no_grad():
        ids = tokenizer("the cat")["input_ids"]
        log_probs = torch.log_softmax(network.eval()(torch.tensor([ids])).logits[0].double(), -1)
    first = len(tokenizer("the")["input_ids"])
    edge = [float(torch.logsumexp(row[torch.from_numpy(begins)], 0)) for row in log_probs]
    value = sum(float(log_probs[k - 1, ids[k]]) for k in range(first, len(ids))) + edge[-1] - edge[first - 1]
    assert model.score([["the", "cat"]], ScoringFrame(first=False, eos=False)).log_prob == pytest.approx(
        [value], abs=1e-5
    )
    assert whole.score(TEXT, frame).log_prob.shape == scores.log_prob.shape
    del settings["eos_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    bare = load_model(folder, device="cpu")
    with pytest.raises(InputError, match="no token for the end of a text"):
        bare.score(TEXT, frame)
    assert bare.score(TEXT, ScoringFrame(first=False, eos=False)).position.min() == 1


def test_a_tokeniser_that_rewrites_words_is_refused(tmp_path: Path) -> None:
    tokenizer = wordpiece(lowercase=True)
    network = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **SMALL))
    model = load_model(save(tmp_path / "m", network, tokenizer), device="cpu")
    model.score([["the", "cat"]], ScoringFrame())
    with pytest.raises(InputError, match="reads the word 'The' of sentence 2 as 'the'"):
        model.score([["cat"], ["The", "cat"]], ScoringFrame())
    with pytest.raises(InputError, match="sentence 1 has an empty word"):
        model.score([["cat", ""]], ScoringFrame())


def test_a_tokeniser_that_joins_words_is_refused(tmp_path: Path) -> None:
    backend = Tokenizer(models.BPE())
    backend.decoder = decoders.Fuse()
    backend.train_from_iterator(
        ["a b"] * 3, trainers.BpeTrainer(vocab_size=20, special_tokens=[END], show_progress=False)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=END, eos_token=END)
    model = load_model(save(tmp_path / "m", gpt2(tokenizer), tokenizer), device="cpu")
    with pytest.raises(InputError, match="joins the word 'a' of sentence 1 with the next in one piece"):
        model.score([["a", "b"]], ScoringFrame())


def spoil_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


def drop_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def spoil_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"rubbish")


def spoil_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def headless(folder: Path) -> None:
    with no_bars():
        BertModel(BertConfig(vocab_size=100, **SMALL)).save_pretrained(folder)


def half(folder: Path) -> None:
    headless(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))


def two_sided(folder: Path) -> None:
    with no_bars():
        BertLMHeadModel(BertConfig(vocab_size=300, is_decoder=False, **SMALL)).save_pretrained(folder)


def small(folder: Path) -> None:
    with no_bars():
        GPT2LMHeadModel(
            GPT2Config(vocab_size=99, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
        ).save_pretrained(folder)


def test_padding_that_was_added_later_needs_no_vector(tmp_path: Path) -> None:
    tokenizer = byte_level()
    network = gpt2(tokenizer)
    plain = load_model(save(tmp_path / "plain", network, tokenizer), device="cpu")
    tokenizer.add_special_tokens({"pad_token": "<|added_pad|>"})
    assert tokenizer.pad_token_id >= network.config.vocab_size
    padded = load_model(save(tmp_path / "padded", network, tokenizer), device="cpu")
    texts = [["the", "dog"], ["a"], ["one", "two", "three", "dogs"]]
    assert padded.score(texts, ScoringFrame()).log_prob.tolist() == plain.score(texts, ScoringFrame()).log_prob.tolist()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (drop_tokenizer, "no fast tokeniser"),
        (spoil_tokenizer, "the tokeniser cannot be loaded"),
        (spoil_weights, "the model cannot be loaded"),
        (spoil_config, "the configuration of the model cannot be read"),
        (headless, "holds a BertModel, which is neither a causal nor a masked language model"),
        (half, r"the weights lack the tensors cls\."),
        (two_sided, "reads words after the one it predicts"),
        (
            small,
            r"the tokeniser does not belong to this model: it has token numbers up to 2\d\d \(.*\), the model 99 word",
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_folders_that_cannot_be_used_are_refused(spoil: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    tokenizer = byte_level()
    folder = save(tmp_path / "m", gpt2(tokenizer), tokenizer)
    load_model(folder, device="cpu")
    shutil.copytree(folder, tmp_path / "spoilt")
    spoil(tmp_path / "spoilt")
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "spoilt", device="cpu")
