"""A corpus: sentences and trees sampled from a grammar, in a folder that records exactly how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from truesource.generator.arguments import as_lengths, as_truth
from truesource.generator.columns import CodedSentences, as_numbers, check_trees, packed, read_columns, verify_shards
from truesource.generator.corpus_builder import make_corpus
from truesource.generator.corpus_record import (
    GRAMMAR,
    CorpusRecord,
    ExclusionRecord,
    SymbolKey,
    check_corpus_record,
    plan_of,
    read_corpus_record,
    read_symbol_key,
)
from truesource.generator.plan import SHARD_SIZE, Columns, Overlap, Plan, Transform, Trees, parse_transform
from truesource.generator.process_sampler import ProcessSampler
from truesource.generator.sampler import Reading, Sampler, read_brackets, read_tree
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.call_arguments import as_path, seed_number, whole_number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.folders import refuse_other_kind
from truesource.grammar.support.parallel import Workers
from truesource.grammar.support.printable import one_line
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.tree import Tree, escaped, map_words
from truesource.grammar.treebank.brackets import read_lines
from truesource.grammar.truth import Truth, load_truth

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Corpus:
    """A folder of Parquet shards with a dataset card, created by `sample` or opened by `load`.

    ``lengths`` is the length condition of sampling: an oracle that scores it must use the same.
    """

    path: Path  #: the folder
    record: CorpusRecord  #: ``record.json``: the call, digests, versions, counts

    # -- construction ---------------------------------------------------------------------------------

    @classmethod
    def sample(
        cls,
        truth: Truth | str | Path,
        splits: Mapping[str, int],
        *,
        seed: int = DEFAULT_SEED,
        path: str | Path,
        lengths: LengthRange | tuple[int, int] | str | None = None,
        overlap: Overlap = "iid",
        max_height: int | None = None,
        columns: Columns = Columns(),  # noqa: B008 (frozen)
        shard_size: int = SHARD_SIZE,
        transform: Transform | None = None,
        stratified: bool = False,
        workers: int | Workers = 1,
        force: bool = False,
        exact_correction: bool = False,
        license: str | None = None,  # noqa: A002
    ) -> Corpus:
        """Sample splits of sentences and write them to the folder ``path``.

        The same arguments give the same bytes for any number of ``workers``. A killed run resumes when called again:
        finished shards are in ``.NAME.partial`` next to ``path``.

        Args:
            truth: the grammar, or a process.
            splits: number of sentences of each split, such as ``{"train": 100_000, "dev": 5_000}``.
            seed: integer >= 0.
            path: folder to create.
            lengths: condition on the number of tokens; None for none.
            overlap: see `truesource.generator.plan.Plan`: ``iid``, ``disjoint`` or ``unique``.
            max_height: reject higher trees, see `truesource.generator.sampler.Sampler`; None for no cap.
            columns: columns to write.
            shard_size: sentences per file; affects the bytes.
            transform: order of the words in the text; corpora that differ only in it have the same sentences at the
                same positions, and the same trees.
            stratified: stratified sampling by the event of a tilted grammar, see `truesource.generator.strata`.
            workers: number of processes, or a Dask cluster.
            force: replace an existing corpus at ``path``.
            exact_correction: for disjoint splits, sum the probabilities of all excluded sentences, however many.
            license: licence of the corpus, for its card, an SPDX identifier; None: the licence of the grammar, if any.

        Raises:
            InputError: an invalid argument, an occupied ``path``, a range without sentences, a full disk.
        """
        truth, lengths = as_truth(truth), as_lengths(lengths)
        seed = seed_number(seed)
        splits = {name: whole_number(n, f"the size of the split {name!r}") for name, n in splits.items()}
        plan = Plan(splits, seed, lengths, overlap, max_height, columns, shard_size, transform, stratified)
        at_work = Workers(workers) if isinstance(workers, int) else workers
        make_corpus(
            truth, plan, Path(path), workers=at_work, force=force, exact_correction=exact_correction, license=license
        )
        return cls.load(path)

    @classmethod
    def replay(
        cls, record: Mapping[str, object] | str | Path, truth: Truth, path: str | Path, *, workers: int | Workers = 1
    ) -> Corpus:
        """Regenerate the corpus of ``record``, a record or the path of a ``record.json``.

        Raises:
            InputError: ``truth`` is another grammar, or the bytes differ (other versions of the libraries).
        """
        content = read_corpus_record(Path(record)) if isinstance(record, str | Path) else check_corpus_record(record)
        if truth.digest != content["grammar"]["digest"]:
            raise InputError("the record is from another grammar (the digests differ); load that grammar")
        if content["drawn_by"] not in (Sampler.__name__, ProcessSampler.__name__):
            raise InputError("this corpus reorders another one for a variant; regenerate both as parallel corpora")
        at_work = Workers(workers) if isinstance(workers, int) else workers
        plan = plan_of(content["call"])
        make_corpus(truth, plan, Path(path), workers=at_work, license=content.get("license"))
        corpus = cls.load(path)
        if corpus.digest != content["digest"]:
            raise InputError(
                "the bytes of the corpus differ from the record, which was written with"
                f" {_listed(content['versions'])}; this machine has {_listed(corpus.record['versions'])}",
                path,
            )
        return corpus

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a corpus folder; sizes of its files are compared with the record, contents when read.

        Raises:
            InputError: it does not exist, or is incomplete or damaged.
        """
        path = as_path(path, "a corpus folder")
        if not path.is_dir():
            raise InputError("there is no such corpus folder; check the path", path)
        refuse_other_kind(path, "corpus")
        record = read_corpus_record(path / "record.json")
        for shard in record["shards"]:
            file = path / "data" / shard["file"]
            if not file.is_file():
                raise InputError("the corpus is incomplete: this file is missing; sample it again", file)
            if file.stat().st_size != shard["bytes"]:
                raise InputError(f"the corpus is damaged: this file had {shard['bytes']} bytes; sample it again", file)
        return cls(path, record)

    # -- properties ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        splits = ", ".join(f"{name} {number:,}" for name, number in self.splits.items())
        lengths = "" if self.lengths is None else f" of {self.lengths} tokens"
        return f"Corpus({one_line(str(self.path))}: {splits} sentences{lengths})"

    def __len__(self) -> int:
        """Return the number of sentences of all splits."""
        return sum(self.splits.values())

    def __getitem__(self, split: str) -> list[list[str]]:
        """Return the sentences of a split, as `sentences`."""
        return self.sentences(split)

    def __contains__(self, split: object) -> bool:
        return split in self.splits

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the splits."""
        return iter(self.splits)

    @property
    def lengths(self) -> LengthRange | None:
        """Length condition of sampling, None for none."""
        text = self.record["call"]["lengths"]
        return None if text is None else LengthRange.parse(text)

    @property
    def transform(self) -> Transform | None:
        """Order of the words of its text, None for the order of the grammar."""
        text = self.record["call"].get("transform")
        return None if text is None else parse_transform(text)

    @property
    def license(self) -> str | None:
        """Licence of the corpus, None if unknown."""
        return self.record.get("license")

    @property
    def language(self) -> str | None:
        """Code of its language, for cards; None if unknown."""
        return self.record.get("language")

    @property
    def trees_as(self) -> Trees:
        """Form of its derivations, see `truesource.generator.plan.Trees`."""
        written: Trees = self.record["call"]["trees"]
        return written

    @property
    def splits(self) -> dict[str, int]:
        """Number of sentences of each split."""
        return {name: split["sentences"] for name, split in self.record["splits"].items()}

    @property
    def grammar_file(self) -> Path | None:
        """File of its grammar or process, in its folder; None if it was removed."""
        file = self.path / GRAMMAR
        return file if file.is_file() else None

    @cached_property
    def truth(self) -> Truth:
        """The grammar or process that it was sampled from.

        Raises:
            InputError: the folder has no grammar (code ``no-grammar``), or another one (``other-grammar``).
        """
        if self.grammar_file is None:
            raise InputError("this corpus folder has no grammar; specify the grammar", self.path, code="no-grammar")
        truth = load_truth(self.grammar_file)
        if truth.digest != self.grammar_digest:
            raise InputError(
                "the corpus was not sampled from this grammar; sample it again, or specify its grammar",
                self.grammar_file,
                code="other-grammar",
            )
        return truth

    @property
    def grammar_digest(self) -> str:
        """Digest of the grammar that it was sampled from (`PCFG.digest`)."""
        return str(self.record["grammar"]["digest"])

    @property
    def digest(self) -> str:
        """SHA-256 over the digests of all shards, hexadecimal."""
        return str(self.record["digest"])

    def n_sentences(self, split: str) -> int:
        """Return the number of sentences in a split."""
        return int(self._split(split)["sentences"])

    def n_tokens(self, split: str) -> int:
        """Return the number of words in a split, ends of sentences not counted."""
        return int(self._split(split)["tokens"])

    def excluded(self, split: str) -> ExclusionRecord | None:
        """Return the sentences that a split excludes, in numbers; None: it excludes none, or there is no such split."""
        counts = self.record["splits"].get(split)
        return None if counts is None else counts.get("excluded")

    def verify(self) -> None:
        """Compare the digest of every shard with the record.

        Raises:
            InputError: a file has changed.
        """
        verify_shards(self.path, self.record["shards"], "the corpus is damaged: this file has changed; sample it again")

    # -- content ------------------------------------------------------------------------------

    def sentences(self, split: str) -> list[list[str]]:
        """Return the tokens of every sentence of a split."""
        return list(self.stream(split))

    def stream(self, split: str) -> Iterator[list[str]]:
        """Yield the tokens of the sentences; one shard of the corpus is in memory at a time."""
        return (tokens for table in self._tables(split, ["text"]) for tokens in self._tokens(table))

    def to_pandas(self, split: str) -> pd.DataFrame:
        """Return a split as a data frame, a row a sentence: ``text``, ``n_tokens`` and ``logprob`` as in the files.

        Raises:
            InputError: there is no such split.
        """
        import pandas as pd

        tables = self._tables(split, ["text", "n_tokens", "logprob"])
        frame: pd.DataFrame = pd.concat([table.to_pandas() for table in tables], ignore_index=True)
        return frame

    def originals(self, split: str) -> Iterator[list[str]]:
        """Yield the tokens of the sentences in the order of the grammar, without any transform of the text."""
        return (tokens for table in self._tables(split, ["text"]) for tokens in self._originals(table))

    def coded(self, split: str) -> CodedSentences:
        """Return the tokens with each type stored once: four bytes each, for splits of millions of sentences."""
        texts = (table.column("text") for table in self._tables(split, ["text"]))
        return CodedSentences.split(texts, self._key["original_words"])

    def token_counts(self, split: str) -> IntArray:
        """Return tokens of each sentence, its end not counted, (n,)."""
        counts = [as_numbers(table.column("n_tokens")) for table in self._tables(split, ["n_tokens"])]
        return np.concatenate(counts).astype(np.int64)

    def log_probs(self, split: str) -> FloatArray:
        """Return the log probability of each sentence with its derivation, not conditioned on length, nats, (n,)."""
        return np.concatenate([as_numbers(table.column("logprob")) for table in self._tables(split, ["logprob"])])

    def languages(self, split: str) -> IntArray:
        """Return the number of the language of each document, in the order of `sentences`, as in the truth.

        Raises:
            InputError: the sentences are no documents of finitely many languages.
        """
        if "languages" not in self.record["grammar"].get("sizes", {}):
            raise InputError("the sentences of this corpus are no documents of a pool of languages", self.path)
        return np.concatenate([as_numbers(table.column("language")) for table in self._tables(split, ["language"])])

    def trees(self, split: str, coarse: bool = True, binarised: bool = False) -> Iterator[Tree]:
        """Yield the derivation of every sentence of a split, its words in the order of the grammar (as `originals`).

        Args:
            split: name of the split.
            coarse: treebank labels in place of the grammar's symbols.
            binarised: keep the ``@`` nodes of binarisation.

        Raises:
            InputError: the corpus was sampled without trees, or its trees are text and so have only treebank labels and
                no ``@`` nodes.
        """
        self._require_trees(split, coarse, binarised)
        if self.trees_as == "text":
            return self._parse_trees(split)
        reading = self._reading(coarse, binarised)
        return (
            read_tree(codes, tokens, reading)
            for table in self._tables(split, ["text", "tree"])
            for tokens, codes in zip(self._originals(table), table.column("tree").to_pylist(), strict=True)
        )

    def _parse_trees(self, split: str) -> Iterator[Tree]:
        respelled = self._key["original_words"]
        done = 0
        for row, tree in read_lines(self._written_brackets(split), self.path):
            if row != done + 1:
                break
            yield map_words(tree, lambda word: respelled.get(word, word)) if respelled else tree
            done = row
        if done != self.n_sentences(split):
            raise InputError(f"a tree of {split} is damaged, after row {done}; sample the corpus again", self.path)

    def _written_brackets(self, split: str) -> Iterator[str]:
        for table in self._tables(split, ["tree"]):
            yield from table.column("tree").to_pylist()

    def brackets(self, split: str, coarse: bool = True, binarised: bool = False) -> Iterator[str]:
        """Yield the trees as Penn brackets, each on one line like ``str(tree)``, much faster than `trees`."""
        self._require_trees(split, coarse, binarised)
        # the text has another spelling of words with white space
        if self._key["original_words"] or (self.transform is not None and self.trees_as == "ids"):
            return map(str, self.trees(split, coarse, binarised))
        if self.trees_as == "text":
            return self._written_brackets(split)
        reading = self._reading(coarse, binarised)
        names = packed(tuple(map(escaped, reading.names)))
        tables = self._tables(split, ["text", "tree"])
        return (text for table in tables for text in read_brackets(table, names, reading.dropped).to_pylist())

    def _reading(self, coarse: bool, binarised: bool) -> Reading:
        renamed = self._key["original_symbols"]
        symbols = [renamed.get(symbol, symbol) for symbol in self._key["symbols"]]
        return Reading.of(symbols, self._key["labels"], coarse=coarse, binarised=binarised)

    def _require_trees(self, split: str, coarse: bool, binarised: bool) -> None:
        self._split(split)
        if self.trees_as == "none":
            raise InputError("this corpus was sampled without trees; sample it with them", self.path)
        if self.trees_as == "text" and (binarised or not coarse):
            raise InputError(
                "the trees of this corpus are text with treebank labels, without symbols of the grammar or binarised"
                " nodes; sample it with --trees ids",
                self.path,
                code="trees-as-text",
            )

    @cached_property
    def _key(self) -> SymbolKey:
        return read_symbol_key(self.path / "symbols.json", self.record["symbols_digest"])

    def _split(self, split: str) -> Mapping[str, Any]:
        if not isinstance(split, str) or split not in self.record["splits"]:
            raise InputError(f"the corpus has no split {split!r}; it has {', '.join(self.record['splits'])}", self.path)
        return dict(self.record["splits"][split])

    def _tables(self, split: str, columns: list[str]) -> Iterator[Any]:
        self._split(split)
        for shard in self.record["shards"]:
            if shard["split"] == split:
                file = self.path / "data" / shard["file"]
                as_text = self.trees_as == "text"
                table = read_columns(file, columns, rows=shard["sentences"], tree="text" if as_text else "ints")
                if "tree" in columns and not as_text:
                    check_trees(table, len(self._key["symbols"]), file)
                yield table

    def _tokens(self, table: Any) -> Iterator[list[str]]:
        respelled = self._key["original_words"]
        for text in table.column("text").to_pylist():
            tokens = text.split(" ")
            yield [respelled.get(token, token) for token in tokens] if respelled else tokens

    def _originals(self, table: Any) -> Iterator[list[str]]:
        transform = self.transform
        return self._tokens(table) if transform is None else map(transform.undo, self._tokens(table))


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
