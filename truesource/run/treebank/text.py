"""The sentences of a treebank as text, split by tree into training and held-out text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truesource.evaluation.treebank_baseline.report import TextRecord, TextSplitRecord
from truesource.generator.text_files import line_of, read_sentences
from truesource.grammar.conditioning import LengthRange, length_condition
from truesource.grammar.support.atomic_files import atomic_path, write_json
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import digest_file, digest_json
from truesource.grammar.support.records import read_record
from truesource.grammar.treebank import Treebank, hold_out

RECORD = "text.json"
HELD_OUT = "held_out"
Sentences = list[list[str]]


@dataclass(frozen=True)
class TreebankText:
    """A folder with ``train.txt``, perhaps ``dev.txt``, ``held_out.txt`` and ``text.json``."""

    path: Path
    about: TextRecord

    @classmethod
    def load(cls, path: str | Path) -> TreebankText:
        """Open a folder.

        Raises:
            InputError: its record is missing or damaged.
        """
        remedy = "regenerate it with truesource split"
        record = read_record(Path(path) / RECORD, TextRecord, what="the record of this text", remedy=remedy)
        return cls(Path(path), record)

    @property
    def splits(self) -> dict[str, int]:
        """Number of sentences of each split."""
        return {name: split["sentences"] for name, split in self.about["splits"].items()}

    @property
    def lengths(self) -> LengthRange | None:
        """Range of lengths that the sentences were selected by; None: all lengths."""
        return length_condition(self.about["lengths"])

    @property
    def digest(self) -> str:
        """SHA-256 over the digests of the files, hexadecimal."""
        return digest_json({name: split["sha256"] for name, split in self.about["splits"].items()})

    @property
    def record(self) -> Mapping[str, Any]:
        """Part of a corpus that training records: the length condition."""
        return {"call": {"lengths": self.about["lengths"]}}

    def file(self, split: str) -> Path:
        """Return the file of a split.

        Raises:
            InputError: there is no such split, or the file is missing or has changed.
        """
        if split not in self.about["splits"]:
            raise InputError(f"the text has no split {split!r}; it has {', '.join(self.about['splits'])}", self.path)
        record = self.about["splits"][split]
        path = self.path / record["file"]
        if not path.is_file() or digest_file(path) != record["sha256"]:
            raise InputError("the text is damaged: this file is missing or has changed; regenerate it", path)
        return path

    def sentences(self, split: str) -> Sentences:
        """Return the words of every sentence of a split."""
        return read_sentences(self.file(split))


def text_of_file(path: Path) -> TreebankText | None:
    """Return the folder that a text file is a split of; None for other files."""
    if not path.is_file() or not (path.parent / RECORD).is_file():
        return None
    text = TreebankText.load(path.parent)
    return text if path.name in {split["file"] for split in text.about["splits"].values()} else None


def write_text_folder(
    path: Path,
    bank: Treebank,
    held_out: Treebank,
    *,
    lengths: LengthRange | None,
    dev: float,
    seed: int,
    disjoint: bool = False,
    about: Mapping[str, Any] | None = None,
    trees: bool = False,
) -> TreebankText:
    """Write the sentences of a treebank; a tree and its sentence are in one split only.

    The split is by tree, before sentences of other lengths are excluded, so it equals the split that a grammar was
    induced with. Sentences that occur in several trees can be in several splits; they are counted.

    Args:
        path: folder to write or replace.
        bank: trees to train on.
        held_out: trees to score.
        lengths: sentences of other lengths are excluded; None: all lengths.
        dev: share of the training trees for a split dev, to monitor training.
        seed: seed of the selection.
        disjoint: exclude dev and held-out sentences that are also in the training text.
        about: further entries of the record.
        trees: also write the trees, ``treebank.mrg.gz`` (dev included) and ``held_out.mrg.gz``, to induce grammars.

    Raises:
        NothingToMeasureError: a split has no sentence left.
        InputError: a word contains white space, or the folder cannot be written.
    """
    train, watched = hold_out(bank, dev, seed)
    parts = {"train": train, **({} if watched is None else {"dev": watched}), HELD_OUT: held_out}
    train_sentences: set[tuple[str, ...]] = set()
    splits: dict[str, TextSplitRecord] = {}
    shared = 0
    with atomic_path(path) as folder:
        folder.mkdir()
        for name, part in parts.items():
            sentences = part.sentences()
            fitting = [s for s in sentences if lengths is None or len(s) in lengths]
            repeats = sum(tuple(s) in train_sentences for s in fitting)
            if name == HELD_OUT:
                shared = repeats
            selected = [s for s in fitting if tuple(s) not in train_sentences] if disjoint else fitting
            outside = len(sentences) - len(fitting)
            repeated = len(fitting) - len(selected)
            splits[name] = _write_split(folder / f"{name}.txt", selected, len(part), outside, repeated)
            if name == "train":
                train_sentences = {tuple(sentence) for sentence in fitting}
        record: TextRecord = {
            "format": "truesource treebank text",
            "source": bank.source,
            "lengths": None if lengths is None else str(lengths),
            "seed": seed,
            "dev": dev,
            "splits": splits,
            "shared_trees": _shared(bank, held_out),
            "shared_sentences": shared,
        }
        write_json(folder / RECORD, {**record, **(about or {})})
        if trees:
            bank.write(folder / "treebank.mrg.gz")
            held_out.write(folder / "held_out.mrg.gz")
    return TreebankText.load(path)


def _write_split(
    path: Path, sentences: Sequence[Sequence[str]], trees: int, outside: int, repeated: int
) -> TextSplitRecord:
    name = path.name.removesuffix(".txt")
    if not sentences:
        left_out = f"{outside} have other lengths" + (f", {repeated} are also in the training text" if repeated else "")
        raise NothingToMeasureError(
            f"no sentence is left for {name}: of {trees} trees, {left_out}; allow more lengths, or add trees",
            "too-few-sentences",
        )
    text = "".join(f"{line_of(sentence)}\n" for sentence in sentences)
    path.write_bytes(text.encode())
    return {
        "file": path.name,
        "trees": trees,
        "outside": outside,
        "repeated": repeated,
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "sha256": digest_file(path),
    }


def _shared(bank: Treebank, held_out: Treebank) -> int:
    train_trees = {str(tree) for tree in bank}
    return sum(str(tree) in train_trees for tree in held_out)
