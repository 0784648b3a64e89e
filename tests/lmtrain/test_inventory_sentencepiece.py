"""Pieces, spellings, scores and cuts of SentencePiece models agree with what the package says."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import enumerated_cuts as slow
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import Unigram

from truesource.evaluation.tokenisation.lattice import LatticeBuilder, best_path, count_paths, uniform_scores
from truesource.evaluation.tokenisation.paths import n_best
from truesource.generator.piece_model import PieceTokenizer
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.pieces.marking import Entry, Marking, make_inventory
from truesource.lmtrain.pieces.sentencepiece_pieces import PieceType, SentencePieceModel, _fields

sentencepiece: Any = pytest.importorskip("sentencepiece")
LINES = ["the cat sat on the mat", "a theatre of cats and mats", "don't sit there, cat fishing"] * 30
VARIANTS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram", "user_defined_symbols": ["fish"]},
    "bpe": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 320},
    "suffix": {"model_type": "unigram", "treat_whitespace_as_suffix": True},
    "no prefix": {"model_type": "unigram", "add_dummy_prefix": False, "normalization_rule_name": "identity"},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A ``.model`` file of each variant."""
    folder = tmp_path_factory.mktemp("sentencepiece")
    text = folder / "text.txt"
    text.write_text("\n".join(LINES), encoding="utf-8")
    for name, given_settings in VARIANTS.items():
        settings_ = {"vocab_size": 50, "hard_vocab_limit": False, "minloglevel": 2, **given_settings}
        sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(folder / name), **settings_)
    return {name: folder / f"{name}.model" for name in VARIANTS}


@pytest.fixture(scope="module")
def processors(models: dict[str, Path]) -> dict[str, Any]:
    return {name: sentencepiece.SentencePieceProcessor(model_file=str(path)) for name, path in models.items()}


@pytest.fixture(scope="module")
def read(models: dict[str, Path]) -> dict[str, PieceTokenizer]:
    return {name: read_pieces(path) for name, path in models.items()}


def scores_of(pieces: PieceTokenizer) -> dict[str, float]:
    assert pieces.inventory.scores is not None
    return dict(zip(pieces.inventory.pieces, pieces.inventory.scores.tolist(), strict=True))


@pytest.mark.parametrize("name", VARIANTS)
def test_the_file_is_read_as_the_package_reads_it(
    name: str, models: dict[str, Path], processors: dict[str, Any]
) -> None:
    model, processor = SentencePieceModel.parse(models[name].read_bytes()), processors[name]
    assert model.algorithm.name == ("BPE" if name == "bpe" else "UNIGRAM")
    assert len(model.pieces) == len(processor)
    for number, (spelling, score, kind) in enumerate(model.pieces):
        assert spelling == processor.id_to_piece(number)
        assert score == processor.get_score(number)
        assert (kind == PieceType.UNKNOWN) == processor.is_unknown(number)
        assert (kind == PieceType.CONTROL) == processor.is_control(number)
        assert (kind == PieceType.BYTE) == processor.is_byte(number)
        assert (kind == PieceType.USER_DEFINED) == (spelling == "fish")


@pytest.mark.parametrize("name", VARIANTS)
def test_pieces_are_all_but_special_ones(
    name: str, read: dict[str, PieceTokenizer], processors: dict[str, Any]
) -> None:
    inventory, processor = read[name].inventory, processors[name]
    kinds = (processor.is_unknown, processor.is_control, processor.is_unused)
    kept = [i for i in range(len(processor)) if not any(kind(i) for kind in kinds)]
    assert inventory.ids.tolist() == kept
    assert [*inventory.names] == [processor.id_to_piece(i) for i in kept]
    assert (inventory.kind, inventory.marker) == ("bpe" if name == "bpe" else "unigram", "▁")
    assert inventory.marker_ends == (name == "suffix")
    is_byte = [processor.is_byte(i) for i in kept]
    assert sum(is_byte) == (256 if name == "bpe" else 0)
    assert inventory.byte_tokens is None if name != "bpe" else inventory.byte_tokens.tolist() == is_byte
    if inventory.scores is None:
        assert name == "bpe"
        return
    expected = [pytest.approx(0.3) if processor.id_to_piece(i) == "fish" else processor.get_score(i) for i in kept]
    assert inventory.scores.tolist() == expected


@settings(max_examples=50)
@pytest.mark.parametrize("name", VARIANTS)
@given(words=st.lists(st.text("acehimstf", min_size=1, max_size=6), min_size=1, max_size=5))
def test_the_cut_is_the_packages_own(
    name: str, words: list[str], read: dict[str, PieceTokenizer], processors: dict[str, Any]
) -> None:
    text = " ".join(words)
    found, inventory = read[name].read(text), read[name].inventory
    assert found.spelling == processors[name].normalize(text)
    assert (found.altered, found.unreadable) == (False, ())
    assert inventory.ids[found.canonical].tolist() == processors[name].encode(text)
    assert "".join(inventory.pieces[i] for i in found.canonical) == found.spelling
    if inventory.scores is not None:
        for word in words:
            own = [inventory.pieces[i] for i in read[name].read(word).canonical]
            best = max(
                slow.score(cut, scores_of(read[name]))
                for cut in slow.cuts(read[name].read(word).spelling, inventory.pieces)
            )
            assert slow.score(own, scores_of(read[name])) == pytest.approx(best, abs=1e-6)


@pytest.mark.skipif(not hasattr(sentencepiece.SentencePieceProcessor, "calculate_entropy"), reason="removed in 0.2.3")
@pytest.mark.parametrize("name", ["unigram", "suffix", "no prefix"])
@pytest.mark.parametrize("word", ["theatre", "mats", "sitting", "cats", "fish", "tasteth"])
def test_the_lattice_is_the_packages_own(
    name: str, word: str, read: dict[str, PieceTokenizer], processors: dict[str, Any]
) -> None:
    """Entropy, and the best ways to cut a word as a set; with ``fish`` this shows the score of user-defined pieces."""
    if not set(word) <= set("".join(read[name].inventory.pieces)):
        pytest.skip("a character that this model has no piece for")
    spelling, scores = read[name].read(word).spelling, scores_of(read[name])
    if "fish" in scores and sentencepiece.__version__ in ("0.2.0", "0.2.1"):
        scores["fish"] = -0.1
    for b in (1.0, 0.3):
        assert processors[name].calculate_entropy(word, b) == pytest.approx(slow.entropy(spelling, scores, b), abs=1e-4)
    ranked = sorted(slow.cuts(spelling, scores), key=lambda cut: -slow.score(cut, scores))
    values = np.array([slow.score(cut, scores) for cut in ranked])
    k = next((k for k in range(min(12, len(ranked)), 0, -1) if k == len(ranked) or values[k - 1] - values[k] > 1e-4), 0)
    assert k
    assert {tuple(row) for row in processors[name].nbest_encode(word, nbest_size=k, out_type=str)} == set(ranked[:k])


@pytest.mark.parametrize(
    ("name", "text", "altered", "unreadable"),
    [
        ("unigram", "the  cat", True, ()),
        ("unigram", " the cat", True, ()),
        ("unigram", "the cat\n", True, ()),
        ("unigram", "the\tcat", True, ()),
        ("unigram", "ﬁne", True, ()),
        ("unigram", "cat ΩΩ Ω", False, ("ΩΩ", "Ω")),
        ("unigram", "cat▁the", True, ("▁",)),
        ("unigram", "<s> cat", False, ("<s>",)),
        ("bpe", "cat Ω😀a", False, ()),
        ("bpe", "cat Ω▁a", True, ("▁",)),
        ("suffix", "the cat ", True, ()),
        ("suffix", "cat Ω", False, ("Ω",)),
        ("no prefix", "the cat", False, ()),
    ],
)
def test_what_is_altered_and_what_cannot_be_read(
    name: str, text: str, altered: bool, unreadable: tuple[str, ...], read: dict[str, PieceTokenizer]
) -> None:
    found = read[name].read(text)
    assert found.altered == altered
    assert set(unreadable) <= {*found.unreadable, *"".join(found.unreadable), "<s>"}
    assert bool(found.unreadable) == bool(unreadable)
    assert bool(len(found.canonical)) != bool(unreadable)
    assert found.original == text
    if not unreadable:
        inventory = read[name].inventory
        assert "".join(inventory.pieces[i] for i in found.canonical) == found.spelling


@pytest.mark.parametrize("text", ["cat", "é", "a Ω", "😀"])
def test_every_path_in_bytes_decodes_to_the_text(
    text: str, read: dict[str, PieceTokenizer], processors: dict[str, Any]
) -> None:
    """The package keeps a first space only if a byte token writes it."""
    inventory, found = read["bpe"].inventory, read["bpe"].read(text)
    lattice = LatticeBuilder(inventory, uniform_scores(inventory)).build(found.spelling)
    rows = [inventory.ids[lattice.piece[arcs]].tolist() for arcs in n_best(lattice, 10_000).each()]
    assert processors["bpe"].encode(text) in rows
    for row in rows:
        space = " " if inventory.names[int(np.flatnonzero(inventory.ids == row[0])[0])] == "<0x20>" else ""
        assert processors["bpe"].decode(row) == space + text
    assert len(rows) == len({tuple(row) for row in rows}) == count_paths(lattice)


def test_the_best_path_of_a_unigram_model_with_byte_tokens_is_its_own(models: dict[str, Path]) -> None:
    """Letters without a piece, and letters that only longer pieces have, are spelt in bytes as the package does."""
    folder = models["unigram"].parent
    text = folder / "bytes.txt"
    text.write_text("\n".join(LINES), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "bytes"), model_type="unigram", byte_fallback=True, vocab_size=330,
        character_coverage=0.98, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "bytes.model"))
    pieces = read_pieces(folder / "bytes.model")
    inventory, builder = pieces.inventory, LatticeBuilder(pieces.inventory)
    for line in ("the Ω cat", "naïve 日本 mats", "don't sit, zz", "😀", "theatré"):
        found = pieces.read(line)
        lattice = builder.build(found.spelling)
        assert found.unreadable == ()
        assert inventory.ids[lattice.piece[best_path(lattice)]].tolist() == processor.encode(line)
        assert inventory.ids[found.canonical].tolist() == processor.encode(line)
        assert inventory.byte_tokens is not None and inventory.byte_tokens[found.canonical].any()


def test_a_tokeniser_made_from_the_model_reads_alike(models: dict[str, Path], read: dict[str, PieceTokenizer]) -> None:
    """As transformers makes those of T5 and XLM-R: the model's own table of characters, then the marker."""
    raw = models["suffix"].with_name("plain.model")
    text = raw.with_suffix(".txt")
    text.write_text("\n".join(LINES), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(raw.with_suffix("")), model_type="unigram", vocab_size=50, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    own, model = read_pieces(raw), SentencePieceModel.parse(raw.read_bytes())
    normalizer = next(value for field, value in _fields(raw.read_bytes()) if field == 3)
    assert isinstance(normalizer, bytes)
    table = next(value for field, value in _fields(normalizer) if field == 2)
    backend = Tokenizer(Unigram([(spelling, score) for spelling, score, _ in model.pieces], 0))
    backend.normalizer = normalizers.Precompiled(table)
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    backend.add_special_tokens(["<unk>", "<s>", "</s>"])
    other = read_pieces(backend)
    assert other.inventory.pieces == own.inventory.pieces
    assert other.inventory.digest == own.inventory.digest
    for line in [*LINES[:3], "\ufb01sh  \uff43at", " the cat ", "the Ω mat"]:
        one, two = own.read(line), other.read(line)
        assert (one.spelling, one.altered, one.unreadable) == (two.spelling, two.altered, two.unreadable)
        assert one.canonical.tolist() == two.canonical.tolist()


@pytest.mark.parametrize("name", VARIANTS)
def test_an_empty_text_is_refused(name: str, read: dict[str, PieceTokenizer]) -> None:
    for text in ("", " \n"):
        with pytest.raises(InputError, match="the text is empty"):
            read[name].read(text)


def test_a_text_of_which_nothing_is_kept_is_refused(read: dict[str, PieceTokenizer]) -> None:
    with pytest.raises(InputError, match="keeps nothing of the text"):
        read["unigram"].read("\u200b\u200b")


def test_bad_input_is_one_sentence(
    tmp_path: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.model"
    whole = models["unigram"].read_bytes()
    for raw in (b"", b"nonsense", whole[: len(whole) // 2], b"\x0b\x0c", b"\xff" * 40, b"{}"):
        wrong.write_bytes(raw)
        with pytest.raises(InputError, match=r"this is no SentencePiece model.*\(.*wrong\.model\)"):
            read_pieces(wrong)
    assert capfd.readouterr().err == ""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(LINES), encoding="utf-8")
    for kind in ("word", "char"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(tmp_path / kind), model_type=kind, vocab_size=18, minloglevel=2,
            hard_vocab_limit=False,
        )  # fmt: skip
        with pytest.raises(InputError, match=rf"of type {kind} has one way to cut a text.*{kind}\.model"):
            read_pieces(tmp_path / f"{kind}.model")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(InputError, match=r"needs sentencepiece: pip install 'truesource\[sentencepiece\]'"):
        read_pieces(models["unigram"])


def test_scores_must_be_finite() -> None:
    with pytest.raises(InputError, match="the score of the piece 'a' is not a finite number"):
        make_inventory("unigram", [Entry("b", 0, -1.0), Entry("a", 1, math.nan)], Marking("▁"))
