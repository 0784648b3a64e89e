"""A corpus: sentences and trees drawn from a grammar, in a folder that says exactly how."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generator.card import dataset_card
from generator.sampler import Sampler, random_state
from generator.shards import overlap, plan_shards, read_columns
from generator.spelling import Spelling, parse_derivation
from generator.unfinished import Drawing, prepare, settle, write_missing
from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.files import digest_file, digest_json, refuse_existing, write_json, write_text
from grammar.pcfg import PCFG
from grammar.tree import Tree

FORMAT = "truesource corpus"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Corpus:
    """A folder of Parquet shards with a dataset card, made by `sample` or found by `load`.

    ``lengths`` is the condition it was drawn under: an oracle that scores it must use the same.
    """

    path: Path  #: the folder
    record: Mapping[str, Any]  #: ``record.json``: the call, digests, versions, counts

    # -- making one ---------------------------------------------------------------------------------

    @classmethod
    def sample(
        cls,
        pcfg: PCFG,
        splits: Mapping[str, int],
        *,
        seed: int,
        lengths: LengthRange | None = None,
        path: str | Path,
        trees: bool = True,
        shard_size: int = 50_000,
        workers: int = 1,
        force: bool = False,
    ) -> Corpus:
        """Draw i.i.d. splits of sentences and write them to the folder ``path``.

        The same arguments give the same bytes, whatever the number of ``workers``. A run that was killed
        goes on where it stopped when called again: finished shards wait in ``.NAME.partial`` beside ``path``.

        Args:
            pcfg: the grammar.
            splits: sentences of each split, such as ``{"train": 100_000, "dev": 5_000}``.
            seed: whole number from 0 on.
            lengths: condition on the number of tokens; None for none.
            path: folder to make.
            trees: also write the derivation of each sentence.
            shard_size: sentences per file; part of what fixes the bytes.
            workers: processes at work.
            force: replace a corpus that stands at ``path``.

        Raises:
            InputError: a bad argument, an occupied ``path``, a range without sentences, a full disk.
        """
        path = Path(path)
        _check_call(splits, shard_size, workers)
        random_state(seed)
        if path.name in ("", ".."):
            raise InputError("name the folder to make", path)
        refuse_existing(path, force)
        if path.exists() and not _replaceable(path):
            raise InputError("this is not a corpus and will not be replaced; choose another path", path)
        sampler = Sampler(pcfg, lengths)
        record = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "call": {
                "splits": {name: int(n) for name, n in splits.items()},
                "seed": seed,
                "lengths": None if lengths is None else str(lengths),
                "trees": trees,
                "shard_size": shard_size,
                "start": pcfg.symbols[pcfg.start],
            },
            "grammar": {"digest": pcfg.digest, "sizes": pcfg.sizes()},
            "condition": None if lengths is None else _condition(lengths, sampler.log_mass),
            "versions": _versions(),
        }
        partial = path.with_name(f".{path.name}.partial")
        try:
            prepare(partial, {name: entry for name, entry in record.items() if name != "condition"})
            shards = plan_shards(splits, shard_size)
            entries = write_missing(Drawing(sampler, Spelling.of(pcfg), partial, seed, trees), shards, workers)
            record.update(_summary(entries, list(splits), partial / "data"))
            write_json(partial / "symbols.json", Spelling.of(pcfg).key(pcfg))
            write_json(partial / "record.json", record)
            licence = str(pcfg.meta.get("license", "unknown"))
            write_text(partial / "README.md", dataset_card(path.name, record, licence))
            settle(partial, path, {entry["file"] for entry in entries})
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise InputError(
                f"cannot write the corpus: {reason}; what stood there is untouched,"
                f" and the same call goes on from {partial.name}",
                path,
            ) from error
        return cls.load(path)

    @classmethod
    def replay(
        cls, record: Mapping[str, Any] | str | Path, pcfg: PCFG, path: str | Path, *, workers: int = 1
    ) -> Corpus:
        """Make the corpus that ``record`` (or the ``record.json`` it names) tells of once more.

        Raises:
            InputError: ``pcfg`` is another grammar, or the bytes came out differently (other versions of
                the libraries).
        """
        known = _read_record(Path(record)) if isinstance(record, str | Path) else record
        _check_record(known, None)
        if pcfg.digest != known["grammar"]["digest"]:
            raise InputError("the record was made from another grammar (the digests differ); load that one")
        call = known["call"]
        lengths = None if call["lengths"] is None else LengthRange.parse(call["lengths"])
        fixed = {"seed": call["seed"], "trees": call["trees"], "shard_size": call["shard_size"]}
        made = cls.sample(pcfg, call["splits"], lengths=lengths, path=path, workers=workers, **fixed)
        if made.digest != known["digest"]:
            raise InputError(
                "the corpus came out with other bytes than the record says; it was made with"
                f" {_listed(known['versions'])}, this is {_listed(made.record['versions'])}",
                path,
            )
        return made

    @classmethod
    def load(cls, path: str | Path) -> Corpus:
        """Open a corpus folder; sizes of its files are compared with the record, contents when read.

        Raises:
            InputError: there is none, or it is incomplete or damaged.
        """
        path = Path(path)
        if not path.is_dir():
            raise InputError("there is no such corpus folder", path)
        record = _read_record(path / "record.json")
        for shard in record["shards"]:
            file = path / "data" / shard["file"]
            if not file.is_file():
                raise InputError("the corpus is incomplete, this file is missing; sample it again", file)
            if file.stat().st_size != shard["bytes"]:
                raise InputError(f"the corpus is damaged, this file had {shard['bytes']} bytes; sample it again", file)
        return cls(path, record)

    # -- what it is ---------------------------------------------------------------------------------

    @property
    def lengths(self) -> LengthRange | None:
        """The condition on length it was drawn under, None for none."""
        text = self.record["call"]["lengths"]
        return None if text is None else LengthRange.parse(text)

    @property
    def splits(self) -> dict[str, int]:
        """Number of sentences of each split."""
        return {name: split["sentences"] for name, split in self.record["splits"].items()}

    @property
    def grammar_digest(self) -> str:
        """Digest of the grammar it was drawn from (`PCFG.digest`)."""
        return str(self.record["grammar"]["digest"])

    @property
    def digest(self) -> str:
        """SHA-256 over the digests of all shards, hexadecimal."""
        return str(self.record["digest"])

    def n_sentences(self, split: str) -> int:
        """Number of sentences in a split."""
        return int(self._split(split)["sentences"])

    def n_tokens(self, split: str) -> int:
        """Number of words in a split, ends of sentences not counted."""
        return int(self._split(split)["tokens"])

    def verify(self) -> None:
        """Compare the digest of every shard with the record.

        Raises:
            InputError: a file has changed.
        """
        for shard in self.record["shards"]:
            file = self.path / "data" / shard["file"]
            if digest_file(file) != shard["sha256"]:
                raise InputError("the corpus is damaged, this file has changed; sample it again", file)

    # -- what is in it ------------------------------------------------------------------------------

    def sentences(self, split: str) -> list[list[str]]:
        """The tokens of every sentence of a split."""
        return [tokens for table in self._tables(split, ["text"]) for tokens in self._tokens(table)]

    def log_probs(self, split: str) -> NDArray[np.float64]:
        """Log probability of each sentence with its derivation, not conditioned on length, nats, (n,)."""
        return np.concatenate([table.column("logprob").to_numpy() for table in self._tables(split, ["logprob"])])

    def trees(self, split: str, coarse: bool = True, binarised: bool = False) -> Iterator[Tree]:
        """The derivation of every sentence of a split.

        Args:
            split: name of the split.
            coarse: treebank labels in place of the grammar's own symbols.
            binarised: keep the ``@`` nodes that binarisation made.

        Raises:
            InputError: the corpus was sampled without trees.
        """
        self._split(split)
        if not self.record["call"]["trees"]:
            raise InputError("this corpus was sampled without trees; sample it with them", self.path)
        labels = self._key["labels"]
        names = labels if coarse else {spelled: self._key["symbols"].get(spelled, spelled) for spelled in labels}
        dropped = {s for s, label in labels.items() if label.startswith("@") and not binarised}
        return self._read_trees(split, names, dropped)

    def _read_trees(self, split: str, names: Mapping[str, str], dropped: set[str]) -> Iterator[Tree]:
        for table in self._tables(split, ["text", "tree"]):
            for tokens, text in zip(self._tokens(table), table.column("tree").to_pylist(), strict=True):
                yield parse_derivation(text, tokens, names, dropped)

    @cached_property
    def _key(self) -> dict[str, dict[str, str]]:
        file = self.path / "symbols.json"
        try:
            return {name: dict(entries) for name, entries in json.loads(file.read_text(encoding="utf-8")).items()}
        except (OSError, ValueError) as error:
            raise InputError("the corpus is damaged, this cannot be read; sample it again", file) from error

    def _split(self, split: str) -> Mapping[str, Any]:
        if split not in self.record["splits"]:
            raise InputError(f"the corpus has no split {split!r}; it has {', '.join(self.record['splits'])}", self.path)
        return dict(self.record["splits"][split])

    def _tables(self, split: str, columns: list[str]) -> Iterator[Any]:
        self._split(split)
        for shard in self.record["shards"]:
            if shard["split"] == split:
                yield read_columns(self.path / "data" / shard["file"], columns)

    def _tokens(self, table: Any) -> Iterator[list[str]]:
        respelled = self._key["words"]
        for text in table.column("text").to_pylist():
            tokens = text.split(" ")
            yield [respelled.get(token, token) for token in tokens] if respelled else tokens


# -- writing --------------------------------------------------------------------------------------------


def _check_call(splits: Mapping[str, int], shard_size: int, workers: int) -> None:
    if not splits:
        raise InputError("a corpus needs at least one split, such as train")
    for name, n in splits.items():
        if not re.fullmatch(r"[A-Za-z0-9_]+", name):
            raise InputError(f"a split is named with letters, digits and _, got {name!r}")
        if n < 1:
            raise InputError(f"the split {name!r} asks for {n} sentences; it needs at least one")
    if shard_size < 1 or workers < 1:
        raise InputError(f"shard size and workers are 1 or more, got {shard_size} and {workers}")


def _replaceable(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and ((path / "record.json").is_file() or not any(path.iterdir()))


def _condition(lengths: LengthRange, log_mass: float) -> dict[str, Any]:
    return {
        "low": lengths.low,
        "high": lengths.high,
        "probability": math.exp(log_mass),
        "log_probability": log_mass,
    }


def _versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in ("truesource", "numpy", "pyarrow")}
    return {**packages, "python": platform.python_version()}


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _summary(entries: list[dict[str, Any]], splits: list[str], data: Path) -> dict[str, Any]:
    """Counts, overlap and digests for the record."""
    files = {split: [entry["file"] for entry in entries if entry["split"] == split] for split in splits}
    reference = "train" if "train" in splits else splits[0]
    shares = overlap(data, files, reference)
    counts = {
        split: {
            "sentences": sum(entry["sentences"] for entry in entries if entry["split"] == split),
            "tokens": sum(entry["tokens"] for entry in entries if entry["split"] == split),
            "overlap": shares.get(split),
        }
        for split in splits
    }
    digest = digest_json([[entry["file"], entry["sha256"]] for entry in entries])
    return {"splits": counts, "overlap_with": reference, "shards": entries, "digest": digest}


# -- reading --------------------------------------------------------------------------------------------


def _read_record(file: Path) -> dict[str, Any]:
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("this is not a finished corpus, record.json is missing", file.parent) from None
    except (OSError, ValueError) as error:
        raise InputError("the record of this corpus cannot be read; sample it again", file) from error
    _check_record(record, file)
    return dict(record)


def _check_record(record: Any, file: Path | None) -> None:
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        raise InputError("this is not the record of a corpus", file)
    if record.get("format_version") != FORMAT_VERSION:
        raise InputError(f"expecting format version {FORMAT_VERSION}, got {record.get('format_version')}", file)
    missing = {"call", "grammar", "splits", "shards", "digest", "versions"} - record.keys()
    if missing:
        raise InputError(f"the record lacks {', '.join(sorted(missing))}; sample the corpus again", file)
