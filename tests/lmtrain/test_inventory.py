"""Pieces, spellings and cuts of tokenisers of the `tokenizers` library agree with what it does itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from enumerated_cuts import cuts, score
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from truesource.generator.piece_model import PieceText, PieceTokenizer
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary
from truesource.lmtrain.subwords import build_subword_tokenizer

LINES = ["the cat sat on the mat", "a theatre of cats and mats", "don't sit there, cat fishing", "naïve cafés"] * 20
WORDS = sorted({word for line in LINES for word in line.split()})
BYTES = pre_tokenizers.ByteLevel.alphabet()
words_of_the_text = st.lists(
    st.one_of(st.sampled_from(WORDS), st.text("acehmst", min_size=1, max_size=6)), min_size=1, max_size=6
)


def trained(model: Any, trainer: Any, splitter: Any = None, normalizer: Any = None) -> Tokenizer:
    backend = Tokenizer(model)
    if splitter is not None:
        backend.pre_tokenizer = splitter
    if normalizer is not None:
        backend.normalizer = normalizer
    backend.train_from_iterator(LINES, trainer)
    return backend


def unigram(**parts: Any) -> Tokenizer:
    trainer = trainers.UnigramTrainer(
        vocab_size=60, show_progress=False, special_tokens=["<s>", "<unk>"], unk_token="<unk>"
    )
    return trained(models.Unigram(), trainer, pre_tokenizers.Metaspace(), **parts)


def byte_level(*, prefix: bool = False, alphabet: list[str] = BYTES, **settings: Any) -> Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + 60,
        initial_alphabet=alphabet,
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    backend = trained(models.BPE(**settings), trainer, pre_tokenizers.ByteLevel(add_prefix_space=prefix))
    backend.decoder = decoders.ByteLevel()
    return backend


def fallback() -> Tokenizer:
    """Like Llama: no pre-tokeniser, bytes for characters that are in no piece."""
    vocab = {"<unk>": 0, "<s>": 1, **{f"<0x{byte:02X}>": byte + 2 for byte in range(256)}}
    for piece in ["▁", *"thecat", "▁t", "▁th", "▁the", "ca"]:
        vocab.setdefault(piece, len(vocab))
    merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e"), ("c", "a")]
    backend = Tokenizer(models.BPE(vocab, merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.add_special_tokens(["<s>"])
    return backend


def suffixed() -> Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=90, show_progress=False, special_tokens=["<unk>"], end_of_word_suffix="</w>"
    )
    model = models.BPE(unk_token="<unk>", end_of_word_suffix="</w>")
    return trained(model, trainer, pre_tokenizers.BertPreTokenizer())


def wordpiece() -> Tokenizer:
    trainer = trainers.WordPieceTrainer(vocab_size=70, show_progress=False, special_tokens=["[UNK]", "[CLS]"])
    return trained(
        models.WordPiece(unk_token="[UNK]"), trainer, pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer()
    )


MAKERS = {
    "unigram": unigram,
    "byte-level": byte_level,
    "byte-level with a space first": lambda: byte_level(prefix=True),
    "byte fallback": fallback,
    "suffix": suffixed,
    "wordpiece": wordpiece,
}
BACKENDS = {name: make() for name, make in MAKERS.items()}
READ: dict[str, PieceTokenizer] = {name: read_pieces(backend) for name, backend in BACKENDS.items()}


def spelt(pieces: PieceTokenizer, text: PieceText) -> list[str]:
    return [pieces.inventory.pieces[i] for i in text.canonical]


@pytest.mark.parametrize(
    ("name", "text", "spelling", "kind", "marker", "ends"),
    [
        ("unigram", "the cat", "▁the▁cat", "unigram", "▁", False),
        ("byte-level", "the cat", "theĠcat", "bpe", "Ġ", False),
        ("byte-level", " the  café", "ĠtheĠĠcafÃ©", "bpe", "Ġ", False),
        ("byte-level with a space first", "the cat", "ĠtheĠcat", "bpe", "Ġ", False),
        ("byte fallback", "the cat", "▁the▁cat", "bpe", "▁", False),
        ("suffix", "the cat", "the▁cat▁", "bpe", "▁", True),
        ("wordpiece", "the cat", "▁the▁cat", "wordpiece", "▁", False),
    ],
)
def test_texts_are_spelt_in_the_alphabet_of_the_pieces(
    name: str, text: str, spelling: str, kind: str, marker: str, ends: bool
) -> None:
    pieces = READ[name]
    found = pieces.read(text)
    assert (found.original, found.spelling, found.altered, found.unreadable) == (text, spelling, False, ())
    assert (pieces.inventory.kind, pieces.inventory.marker, pieces.inventory.marker_ends) == (kind, marker, ends)
    assert found.n_words == 2


@pytest.mark.parametrize("name", READ)
def test_byte_tokens_are_pieces_of_one_byte(name: str) -> None:
    inventory = READ[name].inventory
    assert inventory.part == inventory.digest[:8]
    assert not any(piece.startswith("<0x") for piece in inventory.pieces)
    if name != "byte fallback":
        assert inventory.byte_tokens is None
        assert inventory.names == inventory.pieces
        assert len(set(inventory.pieces)) == len(inventory.pieces)
        assert inventory.readable("▁Ã©") == "▁Ã©"
        return
    assert inventory.byte_tokens is not None
    singles = [piece for piece, is_byte in zip(inventory.pieces, inventory.byte_tokens, strict=True) if is_byte]
    assert singles == ["▁" if byte == 0x20 else chr(byte) for byte in range(256)]
    vocab = BACKENDS[name].get_vocab()
    assert dict(zip(inventory.names, inventory.ids.tolist(), strict=True)) == {
        token: number for token, number in vocab.items() if token not in ("<unk>", "<s>")
    }
    assert READ[name].read("thé Ω").spelling == "▁thÃ©▁Î©"
    assert inventory.readable("▁thÃ©▁Î©") == "▁thé▁Ω"
    assert inventory.readable("▁Î") == "▁\ufffd"


@settings(max_examples=60)
@pytest.mark.parametrize("name", READ)
@given(words_of_the_text)
def test_the_cut_is_the_tokenisers_own_and_spells_the_text(name: str, words: list[str]) -> None:
    pieces, text = READ[name], " ".join(words)
    found = pieces.read(text)
    ids = BACKENDS[name].encode(text, add_special_tokens=False).ids
    if found.unreadable:
        assert name in ("suffix", "wordpiece")
        assert not len(found.canonical)
        return
    assert pieces.inventory.ids[found.canonical].tolist() == ids
    assert "".join(spelt(pieces, found)) == found.spelling
    if name != "wordpiece" and not set(text) & set("',"):
        assert not found.altered
    if name == "unigram":
        plain = dict(zip(pieces.inventory.pieces, pieces.inventory.scores.tolist(), strict=True))  # type: ignore[union-attr]
        for word in words:
            own = score(spelt(pieces, pieces.read(word)), plain)
            assert own == pytest.approx(max(score(cut, plain) for cut in cuts(f"▁{word}", plain)), abs=1e-6)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_our_own_tokenisers(kind: Any, tmp_path: Path) -> None:
    """From the object, its file and its folder; the cut is that of training."""
    tokenizer = build_subword_tokenizer([line.split() for line in LINES], kind, 60)
    tokenizer.save_pretrained(tmp_path)
    vocabulary = SubwordVocabulary(tokenizer)
    sources = [tokenizer, tokenizer.backend_tokenizer, tmp_path, tmp_path / "tokenizer.json", str(tmp_path)]
    read = [read_pieces(source) for source in sources]
    assert len({pieces.inventory.digest for pieces in read}) == 1
    inventory = read[0].inventory
    assert inventory.kind == kind
    assert dict(zip(inventory.ids.tolist(), inventory.pieces, strict=True)) == {
        number: piece for number, piece in vocabulary.tokens.items() if number > 4
    }
    for line in LINES[:4]:
        for pieces in read:
            found = pieces.read(line)
            assert inventory.ids[found.canonical].tolist() == vocabulary.encode([line.split()])[0].tolist()
            assert found.spelling == "".join(f"▁{word}" for word in line.split())
            assert not found.altered
    assert read[0].read("the Ω▁ cat<bos>").unreadable == ("Ω", "<bos>", "▁")


def test_unigram_scores_are_those_of_the_file() -> None:
    inventory = READ["unigram"].inventory
    listed = json.loads(BACKENDS["unigram"].to_str())["model"]["vocab"]
    assert [[p, s] for p, s in listed if p not in ("<s>", "<unk>")] == [
        [p, s]
        for p, s in zip(inventory.pieces, inventory.scores.tolist(), strict=True)  # type: ignore[union-attr]
    ]
    assert all(READ[name].inventory.scores is None for name in READ if name != "unigram")


@pytest.mark.parametrize("name", READ)
def test_special_and_unknown_tokens_are_no_pieces(name: str) -> None:
    inventory, vocab = READ[name].inventory, BACKENDS[name].get_vocab()
    numbers = {number: token for token, number in vocab.items()}
    left_out = {numbers[i] for i in set(numbers) - set(inventory.ids.tolist())}
    expected = {
        "unigram": {"<s>", "<unk>"},
        "byte-level": {"<|endoftext|>"},
        "byte-level with a space first": {"<|endoftext|>"},
        "byte fallback": {"<s>", "<unk>"},
        "suffix": {"<unk>"},
        "wordpiece": {"[UNK]", "[CLS]"},
    }
    assert left_out == expected[name]


@pytest.mark.parametrize(
    ("name", "text", "altered", "unreadable"),
    [
        ("unigram", "the  cat", False, ()),  # Metaspace keeps runs of spaces
        ("unigram", " the cat", True, ()),
        ("unigram", "the cat ", False, ()),
        ("unigram", "the ΩΩ cat Ω", False, ("ΩΩ", "Ω")),
        ("unigram", "the▁cat", True, ("▁",)),
        ("unigram", "the <s> cat", False, ("<s>",)),
        ("byte-level", "  the\tcat\n", False, ()),
        ("byte-level", "Ω Ġ ▁", False, ()),
        ("byte-level", "a<|endoftext|>", False, ("<|endoftext|>",)),
        ("byte-level with a space first", " the cat", True, ()),
        ("byte fallback", "the Ω\ncat", False, ()),
        ("byte fallback", "the <s>cat▁", True, ("<s>", "▁")),
        ("suffix", "the  cat", True, ()),
        ("suffix", "cat, mat", True, ()),
        ("suffix", "cat , mat", False, ()),
        ("suffix", "Ω", False, ("Ω",)),
        ("wordpiece", "The cat", True, ()),
        ("wordpiece", "cafés", True, ()),
        ("wordpiece", "cat , mat", False, ()),
        ("wordpiece", "cat Ωa", True, ("Ωa",)),
        ("wordpiece", f"cat {'a' * 101}", False, ("a" * 101,)),
    ],
)
def test_what_is_altered_and_what_cannot_be_read(
    name: str, text: str, altered: bool, unreadable: tuple[str, ...]
) -> None:
    found = READ[name].read(text)
    assert (found.altered, found.unreadable) == (altered, unreadable)
    assert bool(len(found.canonical)) != bool(unreadable)


def test_a_normaliser_alters_texts() -> None:
    pieces = read_pieces(unigram(normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])))
    assert [pieces.read(text).altered for text in ("sit", "Sit", "ﬁsh", "cat①")] == [False, True, True, True]
    assert pieces.read("ﬁsh").spelling == "▁fish"
    gone = unigram(normalizer=normalizers.Replace("\u200b", ""))
    with pytest.raises(InputError, match=r"keeps nothing of the text '\\u200b'"):
        read_pieces(gone).read("\u200b")


def test_characters_that_a_tokeniser_drops_are_named() -> None:
    """Without an unknown token BPE drops what it does not know, and says nothing."""
    pieces = read_pieces(byte_level(alphabet=[]))
    assert not pieces.read("the café").unreadable
    assert pieces.read("the Ωcaf\n").unreadable == ("Ω", "\n")
    assert BACKENDS["byte-level"].encode("the cat").ids


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
@pytest.mark.parametrize("name", READ)
def test_an_empty_text_is_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match="the text is empty"):
        READ[name].read(text)


def test_added_tokens_are_pieces_unless_they_are_special() -> None:
    backend = unigram()
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    backend.add_tokens(["fish", "the cat"])
    backend.add_special_tokens(["<sep>"])
    pieces = read_pieces(backend)
    inventory = pieces.inventory
    assert inventory.scores is not None
    for token, piece in (("fish", "fish"), ("the cat", "the▁cat")):
        at = inventory.pieces.index(piece)
        assert (inventory.ids[at], inventory.scores[at]) == (backend.token_to_id(token), 0.1 * (len(piece) - 1))
        found = pieces.read(f"a {token}s")
        assert piece in spelt(pieces, found)
        assert inventory.ids[found.canonical].tolist() == backend.encode(f"a {token}s").ids
    assert pieces.read("a <sep>").unreadable == ("<sep>",)
    byte = byte_level()
    byte.add_tokens(["a Ω"])
    found = read_pieces(byte).read("cat a Ω")
    assert spelt(read_pieces(byte), found)[-1] == "aĠÎ©"
    assert not found.altered


def test_an_added_token_that_changes_what_stands_around_it_makes_a_text_unreadable() -> None:
    backend = byte_level()
    backend.add_tokens([AddedToken("zz", lstrip=True)])
    assert read_pieces(backend).read("the zz").unreadable == ("zz",)
    backend = unigram()  # writes the marker at the beginning of all that is left between added tokens
    backend.add_tokens(["fish"])
    assert read_pieces(backend).read("fishing").unreadable == ("fish",)
    assert not read_pieces(backend).read("sit fish").unreadable


def test_texts_that_are_no_joinings_are_refused() -> None:
    backend = unigram()
    backend.add_tokens(["zz"])
    config = json.loads(backend.to_str())
    config["pre_tokenizer"] = {"type": "Whitespace"}
    with pytest.raises(InputError, match="not concatenations of its pieces: it reads 'a b' as 'ab'"):
        read_pieces(Tokenizer.from_str(json.dumps(config)))


def test_a_tokeniser_is_read_without_dropout_truncation_and_padding() -> None:
    backend = byte_level(dropout=0.9)
    plain = byte_level()
    backend.enable_truncation(2)
    backend.enable_padding(length=50)
    pieces = read_pieces(backend)
    assert pieces.inventory.digest == READ["byte-level"].inventory.digest
    for line in LINES[:4]:
        assert pieces.inventory.ids[pieces.read(line).canonical].tolist() == plain.encode(line).ids
    assert backend.truncation is not None  # what was given stays as it was


def test_numbers_that_transformers_calls_special_are_no_pieces() -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level(), eos_token="cat")
    assert "cat" not in read_pieces(tokenizer).inventory.pieces
    assert "cat" in read_pieces(byte_level()).inventory.pieces or "Ġcat" in read_pieces(byte_level()).inventory.pieces


def test_the_digest_is_that_of_the_pieces() -> None:
    a, b = byte_level(), byte_level()
    assert read_pieces(a).inventory.digest == read_pieces(b).inventory.digest
    b.add_tokens(["zz"])
    assert read_pieces(a).inventory.digest != read_pieces(b).inventory.digest
    assert len({pieces.inventory.digest for pieces in READ.values()}) == len(READ)


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot be loaded: .*tokenizer\.json\)"):
        read_pieces(tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        read_pieces(tmp_path / "nothing")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"the folder has no tokenizer\.json, vocab\.json"):
        read_pieces(empty)
    (empty / "spiece.model").write_bytes(b"")
    with pytest.raises(InputError, match=r"name .*spiece\.model for the SentencePiece model"):
        read_pieces(empty)
    with pytest.raises(InputError, match="a WordLevel tokeniser does not cut words"):
        read_pieces(Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>")))
    with pytest.raises(InputError, match="a dict is no fast tokeniser"):
        read_pieces({})
    whole = byte_level()
    whole.normalizer = normalizers.Normalizer.custom(object())
    with pytest.raises(InputError, match="written in Python"):
        read_pieces(whole)
    hollow = Tokenizer(models.BPE({"<unk>": 0}, [], unk_token="<unk>"))
    with pytest.raises(InputError, match="no pieces but special tokens"):
        read_pieces(hollow)
