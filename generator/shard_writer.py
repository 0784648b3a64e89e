"""One shard of a corpus: its sentences are sampled, identified by hashes, and written; and overlap between splits.

A split whose sentences may not be in a set S follows ``P(w) / (1 - P(S))``: every sentence's log probability rises by
``-ln(1 - P(S))``, where P is conditioned on length as the corpus is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truesource.generator._kernels import sentence_hashes, spell_words
from truesource.generator.columns import as_column, offsets, packed, strings
from truesource.generator.corpus_record import ShardEntry, Shares, SymbolKey, UniqueRecord
from truesource.generator.plan import Columns, Shard, Transform, text_order
from truesource.generator.sampler import Derivations, Reading, Sampler, TruthSampler, read_brackets
from truesource.generator.strata import Strata
from truesource.grammar.support.arrays import BoolArray, IntArray, random_state
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.support.parallel import Workers, run_each
from truesource.grammar.support.printable import meter, too_few
from truesource.grammar.support.records import read_record
from truesource.grammar.tree import escaped
from truesource.grammar.truth import Truth

if TYPE_CHECKING:
    import pyarrow

POOL = 0x900D  #: key of the stream from which all splits of unique sentences are dealt
MOST_DRAWS = 1000  #: most draws for each required sentence
AT_ONCE = 2**24  #: draws whose hashes are in memory at once
EXACT_UP_TO = 20_000  #: most distinct sentences whose probabilities are summed by default


@dataclass(frozen=True)
class Spelling:
    """Spelling of words and symbols in files: no white space, no brackets in symbols, all distinct."""

    words: tuple[str, ...]  #: (V,)
    symbols: tuple[str, ...]  #: (S,)
    labels: tuple[str, ...]  #: (S,) treebank labels; in brackets they are escaped

    @classmethod
    def of(cls, truth: Truth) -> Spelling:
        """Return the spelling of words and symbols, nearly all unchanged."""
        words = _all_different([_no_space(word) for word in truth.vocabulary])
        symbols = _all_different([_no_bracket(_no_space(symbol)) for symbol in truth.symbols])
        return cls(words, symbols, truth.labels)

    def key(self, truth: Truth, *, ids: bool) -> SymbolKey:
        """Return the key to read the files: symbols by number with their treebank labels, and respelled words.

        With ``ids`` also the words by number.
        """
        key: SymbolKey = {
            "symbols": list(self.symbols),
            "labels": list(truth.labels),
            "original_symbols": {s: t for s, t in zip(self.symbols, truth.symbols, strict=True) if s != t},
            "original_words": {s: t for s, t in zip(self.words, truth.vocabulary, strict=True) if s != t},
        }
        if ids:
            key["words"] = list(self.words)
        return key


def _no_space(name: str) -> str:
    return "".join("\N{OPEN BOX}" if c.isspace() else c for c in name) or "\N{EMPTY SET}"


def _no_bracket(name: str) -> str:
    return name.replace("(", "-LRB-").replace(")", "-RRB-")


def _all_different(names: list[str]) -> tuple[str, ...]:
    taken = set(names)
    if len(taken) == len(names):
        return tuple(names)
    seen: set[str] = set()
    for i, name in enumerate(names):
        while name in seen:
            name += "\N{PRIME}"
            if name not in taken:
                break
        seen.add(name)
        names[i] = name
    return tuple(names)


def spell(
    sampler: TruthSampler,
    derivations: Derivations,
    spelling: Spelling,
    columns: Columns,
    transform: Transform | None = None,
    split: str = "train",
) -> pyarrow.Table:
    """Return derivations as a table: text, n_tokens, logprob and, by ``columns``, split, tree, string_logprob, ids.

    Documents also have language. A transform changes the order of the words in text and ids, nothing else.
    """
    import pyarrow as pa

    rules, ends = derivations.rules, derivations.ends
    leaves = originals = rules[rules >= sampler.first_lexical]
    if transform is not None:
        leaves = leaves[text_order(transform, derivations.n_tokens)]
    bounds = np.concatenate([[0], np.cumsum(derivations.n_tokens, dtype=np.int64)])

    def written(words: NDArray[np.int32]) -> pyarrow.Array:
        return strings(*spell_words(words, bounds, sampler.left, sampler.first_lexical, *packed(spelling.words)))

    table = {
        "text": written(leaves),
        "n_tokens": as_column(derivations.n_tokens),
        "logprob": as_column(derivations.log_prob),
    }
    if columns.split:
        letters, number = np.frombuffer(split.encode(), np.uint8), len(derivations.n_tokens)
        table["split"] = strings(np.tile(letters, number), np.arange(number + 1) * len(letters))
    if columns.trees != "none":
        assert isinstance(sampler, Sampler)  # a process has no trees
        table["tree"] = pa.ListArray.from_arrays(offsets(ends), as_column(sampler.node_codes(derivations)))
    if columns.trees == "text":
        text = table["text"] if transform is None else written(originals)
        table["tree"] = _brackets(text, table["tree"], spelling)
    if columns.string_logprob:
        result = sampler.truth.exact.string_log_probs(sampler.sentences(derivations))
        table["string_logprob"] = as_column(result)
    if derivations.language is not None:
        table["language"] = as_column(derivations.language.astype(np.int32))
    if columns.ids:
        table["ids"] = pa.ListArray.from_arrays(offsets(bounds), as_column(sampler.left[leaves]))
    return pa.table(table)


def _brackets(text: pyarrow.Array, nodes: pyarrow.Array, spelling: Spelling) -> pyarrow.Array:
    """Return trees as Penn brackets with treebank labels, one a sentence."""
    import pyarrow as pa

    reading = Reading.of(spelling.symbols, spelling.labels, coarse=True, binarised=False)
    names = packed(tuple(map(escaped, reading.names)))
    return read_brackets(pa.table({"text": text, "tree": nodes}), names, reading.dropped)


Hashes = NDArray[np.uint64]


def among(hashes: Hashes, earlier: Hashes) -> BoolArray:
    """Return which of ``hashes`` (n,) are in the sorted ``earlier``."""
    if len(earlier) == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    at = np.minimum(np.searchsorted(earlier, hashes), len(earlier) - 1)
    return np.asarray(earlier[at] == hashes)


@dataclass(frozen=True)
class ShardSampler:
    """Settings and tools for sampling every shard of one corpus, and its partial folder.

    The folder holds the shards in ``data/`` and, in ``.work/``, a note and the sentence hashes of each finished one.
    """

    sampler: TruthSampler
    spelling: Spelling
    columns: Columns
    partial: Path
    seed: int
    block: int  #: sentences of a block of the common stream
    excluded: Hashes | None = None  #: sorted; sentences that may not occur
    transform: Transform | None = None  #: order of the words in the text
    strata: Strata | None = None  #: number of sentences with an event

    # -- sentences ----------------------------------------------------------------------------------------

    def draw(self, shard: Shard) -> tuple[Derivations, int]:
        """Return the derivations of a shard, and the number of draws until none was excluded.

        Raises:
            InputError: nearly all sentences are excluded.
        """
        if shard.picks is not None:
            return Derivations.joined([self.pool(b).take(selected) for b, selected in shard.picks]), shard.sentences
        state = random_state(self.seed, *shard.stream)
        if self.strata is not None:
            return self._stratified(shard, self.strata, state)
        if self.excluded is None:
            return self.sampler.draw(shard.sentences, state), shard.sentences
        parts: list[Derivations] = []
        missing, n_drawn = shard.sentences, 0
        while missing:
            if n_drawn > MOST_DRAWS * shard.sentences:
                raise InputError(
                    f"of {n_drawn:,} sentences drawn for {shard.split}, only {shard.sentences - missing:,} are not in"
                    " earlier splits; make those smaller, or let splits overlap"
                )
            some = self.sampler.draw(max(missing, min(shard.sentences, 1000)), state)
            new = ~among(self.hashes_of(some), self.excluded)
            enough = np.cumsum(new) <= missing
            stop = len(new) if enough.all() else int(np.argmin(enough))
            new[stop:] = False
            parts.append(some.take(new))
            missing -= int(new.sum())
            n_drawn += stop
        return Derivations.joined(parts), n_drawn

    def _stratified(self, shard: Shard, strata: Strata, state: NDArray[np.uint64]) -> tuple[Derivations, int]:
        """Draw until there are enough sentences with the event, and enough without; return them in random order."""
        with_event = strata.counts[shard.stream]
        missing = {True: with_event, False: shard.sentences - with_event}
        parts: dict[bool, list[Derivations]] = {True: [], False: []}
        n_drawn = 0
        while any(missing.values()):
            if n_drawn > MOST_DRAWS * shard.sentences:
                raise InputError(
                    f"of {n_drawn:,} sentences drawn for {shard.split}, too few have the right kind to get"
                    f" {with_event:,} with the event among {shard.sentences:,}; choose a larger split"
                )
            some = self.sampler.draw(max(sum(missing.values()), min(shard.sentences, 1000)), state)
            holds = strata.holds(self.sampler, some)
            n_drawn += len(some)
            for has_event, number in missing.items():
                selected = holds == has_event
                selected &= np.cumsum(selected) <= number
                parts[has_event].append(some.take(selected))
                missing[has_event] -= int(selected.sum())
        return Derivations.joined(parts[True] + parts[False]).ordered(strata.order(shard)), n_drawn

    def pool(self, block: int) -> Derivations:
        """Return one block of the common stream."""
        return self.sampler.draw(self.block, random_state(self.seed, POOL, block))

    def hashes_of(self, derivations: Derivations) -> Hashes:
        """Return 64-bit hashes (n,) of the sentences; two of 10 million collide once in 370,000 corpora."""
        left, first = self.sampler.left, self.sampler.first_lexical
        return np.asarray(sentence_hashes(derivations.rules, derivations.ends, left, first))

    # -- files --------------------------------------------------------------------------------------------

    def write(self, shard: Shard) -> ShardEntry:
        """Sample a shard, write it and record it; return its record.

        The file appears under its name only when complete. Its bytes depend on the plan and the shard, not on the
        worker.
        """
        import pyarrow.parquet as pq

        derivations, n_drawn = self.draw(shard)
        table = spell(self.sampler, derivations, self.spelling, self.columns, self.transform, shard.split)
        target = self.partial / "data" / shard.name
        with _whole(self._work(shard, "hashes")) as temporary:
            temporary.write_bytes(self.hashes_of(derivations).astype("<u8").tobytes())
        plain = [name for name in table.column_names if name != "text"]
        with _whole(target) as temporary:
            pq.write_table(
                table,
                temporary,
                compression="zstd",
                write_page_checksum=True,
                use_dictionary=["split"],  # one word a file
                column_encoding={name: "BYTE_STREAM_SPLIT" for name in plain if name.endswith("logprob")},
            )
        entry: ShardEntry = {
            "file": shard.name,
            "split": shard.split,
            "sentences": shard.sentences,
            "tokens": int(derivations.n_tokens.sum(dtype=np.int64)),
            "drawn": n_drawn,
            "bytes": target.stat().st_size,
            "sha256": digest_file(target),
        }
        write_json(self._work(shard, "json"), entry)
        return entry

    def finished(self, shard: Shard) -> ShardEntry | None:
        """Return the record of a shard, if its file is unchanged since it was written."""
        try:
            entry = read_record(self._work(shard, "json"), ShardEntry, remedy="sample it again")
            same = digest_file(self.partial / "data" / shard.name) == entry["sha256"]
        except (OSError, InputError):
            return None
        identity = entry["file"], entry["split"], entry["sentences"]
        same = same and identity == (shard.name, shard.split, shard.sentences)
        return entry if same and self._work(shard, "hashes").exists() else None

    def hashes(self, shard: Shard) -> Hashes:
        """Return hashes of the sentences of a shard, in order; recomputed if another job has not written them yet."""
        try:
            result = np.fromfile(self._work(shard, "hashes"), dtype="<u8").astype(np.uint64)
        except OSError:
            result = np.empty(0, dtype=np.uint64)
        return result if len(result) == shard.sentences else self.hashes_of(self.draw(shard)[0])

    def _work(self, shard: Shard, ending: str) -> Path:
        return self.partial / ".work" / f"{shard.name}.{ending}"


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """Yield a temporary name that becomes ``target`` if the block succeeds; an `OSError` passes."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def deal(drawing: ShardSampler, shards: list[Shard], workers: Workers) -> tuple[list[Shard], UniqueRecord]:
    """Deal sentences to each shard: the first distinct ones of a stream, in random splits, in the stream's order.

    Returns:
        The shards with ``picks``, and for the record the numbers of drawn and of repeated sentences.

    Raises:
        InputError: the language has too few sentences.
    """
    n_sentences = sum(shard.sentences for shard in shards)
    first = _first_occurrences(drawing, n_sentences, workers)
    splits = list(dict.fromkeys(shard.split for shard in shards))
    sizes = [sum(shard.sentences for shard in shards if shard.split == split) for split in splits]
    of = np.repeat(np.arange(len(splits)), sizes)
    np.random.Generator(np.random.PCG64(np.random.SeedSequence(drawing.seed, spawn_key=(POOL,)))).shuffle(of)
    dealt = []
    for i, split in enumerate(splits):
        places = first[of == i]
        start = 0
        for shard in (shard for shard in shards if shard.split == split):
            dealt.append(replace(shard, picks=_picks(places[start : start + shard.sentences], drawing.block)))
            start += shard.sentences
    n_drawn = int(first[-1]) + 1
    return dealt, {"drawn": n_drawn, "repeated": n_drawn - n_sentences}


def _picks(places: IntArray, block: int) -> tuple[tuple[int, BoolArray], ...]:
    picks = []
    for b in np.unique(places // block).tolist():
        selected = np.zeros(block, dtype=np.bool_)
        selected[places[places // block == b] - b * block] = True
        picks.append((b, selected))
    return tuple(picks)


def _first_occurrences(drawing: ShardSampler, number: int, workers: Workers) -> IntArray:
    """Return positions in the common stream of its first ``number`` distinct sentences, ascending, (number,).

    The result does not depend on how many blocks are drawn at once. Raises as `deal`.
    """
    earlier: Hashes = np.empty(0, dtype=np.uint64)  # sorted
    places: list[IntArray] = []
    have, most = 0, -(-MOST_DRAWS * number // drawing.block)  # blocks drawn, and at most
    more = -(-number // drawing.block)
    with meter("finding different sentences", total=number) as progress:
        while True:
            more = min(more, most - have, max(1, AT_ONCE // drawing.block))
            blocks = dict(run_each(partial(_hash_block, drawing), range(have, have + more), workers))
            stream = np.concatenate([blocks[b] for b in range(have, have + more)])
            result, at = np.unique(stream, return_index=True)
            fresh = ~among(result, earlier)
            progress.advance(min(len(earlier) + int(fresh.sum()), number) - min(len(earlier), number))
            earlier = np.sort(np.concatenate([earlier, result[fresh]]))
            places.append(np.sort(at[fresh]) + have * drawing.block)
            have += more
            missing, new = number - len(earlier), len(places[-1])
            if missing <= 0:
                return np.concatenate(places)[:number].astype(np.int64)
            # the rate of new sentences only falls; ten standard errors above the last rate
            at_best = (new + 10.0 * math.sqrt(new + 10.0)) / more * (most - have)
            if missing > at_best:
                raise InputError(
                    f"only {len(earlier):,} distinct sentences in {have * drawing.block:,} draws, not {number:,};"
                    " request fewer, or let sentences repeat"
                )
            more = min(2 * have, -(-missing * more // max(1, new)))


def _hash_block(drawing: ShardSampler, block: int) -> tuple[int, Hashes]:
    return block, drawing.hashes_of(drawing.pool(block))


Task = tuple[Shard, BoolArray]  #: a shard, and which of its sentences occur for the first time in it


def shares(hashes: Mapping[str, Hashes], reference: str) -> dict[str, Shares]:
    """Return the share of every other split that is also in ``reference``.

    For each split, ``types`` (share of its distinct sentences) and ``tokens`` (share of all its sentences), both 0 to
    1.
    """
    in_reference = np.unique(hashes[reference])
    result: dict[str, Shares] = {}
    for split, in_split in hashes.items():
        if split != reference:
            types = among(np.unique(in_split), in_reference)
            result[split] = {"types": float(types.mean()), "tokens": float(among(in_split, in_reference).mean())}
    return result


def estimated(drawn: int, kept: int) -> tuple[float, tuple[float, float] | None]:
    """Return P(S) from ``drawn`` sentences, ``kept`` of them not in S, with any 95% interval of Wilson (1927)."""
    from scipy.stats import binomtest  # importing it takes half a second

    test = binomtest(drawn - kept, drawn)
    result = test.proportion_ci(0.95, method="wilson")
    return float(test.statistic), None if too_few(drawn) else (float(result.low), float(result.high))


def new_sentences(drawing: ShardSampler, shards: Sequence[Shard], earlier: Hashes) -> tuple[list[Task], Hashes]:
    """Return the first occurrences of sentences that are not in ``earlier``, and all sentences so far, sorted."""
    hashes = [drawing.hashes(shard) for shard in shards]
    joined = np.concatenate(hashes)
    first = np.zeros(len(joined), dtype=np.bool_)
    first[np.unique(joined, return_index=True)[1]] = True
    first &= ~among(joined, earlier)
    cuts = np.cumsum([len(part) for part in hashes])[:-1]
    tasks = list(zip(shards, np.split(first, cuts), strict=True))
    return tasks, np.union1d(earlier, joined)


def exact_mass(drawing: ShardSampler, tasks: Sequence[Task], workers: Workers) -> float:
    """Return P(S), given the length range, of the sentences of some tasks, each summed over all its derivations.

    The result of a shard is saved in its folder, so an interrupted run resumes.
    """
    total = sum(int(new.sum()) for _, new in tasks)
    masses: dict[str, float] = {}
    with meter("exact probability of the sentences of earlier splits", total=total) as progress:
        for name, mass, n in run_each(partial(_shard_mass, drawing), tasks, workers):
            masses[name] = mass
            progress.advance(n)
    return float(np.sum([masses[shard.name] for shard, _ in tasks]))


def _shard_mass(drawing: ShardSampler, task: Task) -> tuple[str, float, int]:
    shard, new = task
    file = drawing.partial / ".work" / f"{shard.name}.mass.json"
    try:
        mass = read_record(file, float, remedy="recompute it")
    except InputError:
        sampler = drawing.sampler
        derivations = drawing.draw(shard)[0].take(new)
        mass = 0.0
        if len(derivations):
            result = sampler.truth.exact.string_log_probs(sampler.sentences(derivations), sampler.lengths)
            mass = float(np.exp(result).sum())
        write_json(file, mass)
    return shard.name, mass, int(new.sum())
