"""Sampling text into a folder, shard by shard, in one process, several, or several jobs; a killed run resumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from truesource.generator.abilities import require
from truesource.generator.computing import current
from truesource.generator.corpus_builder import make_folder, place_of, settle, write_missing
from truesource.generator.foreign_code import code_errors, file_of, is_foreign
from truesource.generator.model_checks import ROUNDING, require_log_probability
from truesource.generator.plan import Shard, plan_shards, require_room
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.atomic_files import atomic_path, write_json, write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file, digest_json, refuse_occupied
from truesource.grammar.support.hub_card import checked_license
from truesource.grammar.support.parallel import Share, Workers
from truesource.grammar.support.records import read_record
from truesource.lmtrain.card import versions
from truesource.lmtrain.decoding.alphabet import Alphabet, StepwiseModel
from truesource.lmtrain.decoding.decode import check_number, draw, rows_at_once
from truesource.lmtrain.decoding.folder import FORMAT, FORMAT_VERSION, SPLIT, SampleFolder, SampleShardEntry
from truesource.lmtrain.decoding.samples_card import samples_card
from truesource.lmtrain.decoding.sampling import Stepper
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.device import one_thread
from truesource.lmtrain.models import load_model
from truesource.lmtrain.references import ModelReference, load_code, model_reference
from truesource.lmtrain.training_record import FILE, TIMES, read_about, read_training

SHARD_SIZE = 4096  #: sentences
WHAT = "folder of samples"
_RECORDS = {"README.md", "metrics.jsonl", TIMES, FILE}  #: files of a model folder that do not affect its distribution
_Count = Literal["sentences", "tokens", "finished", "finished_tokens", "special", "contexts"]
_COUNTS: tuple[_Count, ...] = get_args(_Count)


def make_samples(
    model: str | Path | ModelReference,
    n: int,
    decoding: Decoding,
    path: str | Path,
    *,
    seed: int,
    device: str | None = None,
    workers: int = 1,
    share: Share | None = None,
    shard_size: int = SHARD_SIZE,
    license: str | None = None,  # noqa: A002
    force: bool = False,
) -> SampleFolder | None:
    """Sample n sentences from a trained model into the folder ``path``.

    On one machine the same arguments give the same bytes, whatever the number of ``workers``. A run that was killed
    continues when called again: its finished shards are in ``.NAME.partial`` next to ``path``.

    Args:
        model: reference to a causal model, see `truesource.lmtrain.models.load_model`; the samples record the digest of
            its folder, of the source file of its code, or of both.
        n: number of sentences.
        decoding: scheme and its settings.
        path: folder to make.
        seed: whole number from 0 on.
        device: such as ``"cpu"``; None: see `truesource.lmtrain.device`.
        workers: processes; 1 on a GPU.
        share: of a job that samples only some of the shards; the last job to end makes the folder. None: all.
        shard_size: sentences per file; another size gives another text.
        license: of the samples, for their card, an SPDX identifier; None: the licence of the model, if any.
        force: replace samples at ``path``.

    Returns:
        The folder; None while shards of other jobs are missing.

    Raises:
        InputError: a bad ``license``, the model is not one to draw text from, ``decoding`` asks for more than it gives,
            ``path`` is occupied, the disk is full, or another run is at work on ``path``.
    """
    path, device = Path(path), device or current().device
    _check_call(n, decoding, path, seed, shard_size)
    spdx = None if license is None else checked_license(license)
    if share is None:
        refuse_occupied(path, force, WHAT, "record.json")
    named = model_reference(model)
    named = replace(named, base=(named.base or Path()).resolve())  # workers may have another working folder
    digest = reference_digest(named)
    source = _loaded(named, digest, device)
    decoding = decoding.within(source.alphabet.longest)
    writer = partial(_ShardSampler, model=named, digest=digest, device=device, decoding=decoding)
    drawing = writer(partial=place_of(path), seed=seed, shard_size=shard_size)
    record = _call_record(drawing, source, n)
    if record["device"] != "cpu" and workers > 1:
        raise InputError(f"several workers cannot share the {record['device']} device; leave --workers out")
    shards, at_work = plan_shards({SPLIT: n}, shard_size), Workers(workers)

    def write(share: Share) -> list[SampleShardEntry] | None:
        entries = write_missing(drawing, shards, at_work, share)
        return entries if len(entries) == len(shards) else None

    finish = partial(_finish, record={**record, **_about(named, spdx)}, path=path)
    done = make_folder(path, record, what=WHAT, share=share, force=force, write=write, finish=finish)
    return SampleFolder.load(path) if done else None


def _about(named: ModelReference, license: str | None) -> dict[str, str]:  # noqa: A002
    """Return the licence and language of the samples, as far as they are known."""
    result = read_about(named.folder) if named.folder is not None else {}
    return result if license is None else {**result, "license": license}


def _check_call(n: int, decoding: Decoding, path: Path, seed: int, shard_size: int) -> None:
    if n < 1:
        raise InputError(f"cannot draw {n} sentences; draw one or more")
    if shard_size < 1:
        raise InputError(f"the shard size is 1 or more, got {shard_size}")
    require_room({SPLIT: n}, shard_size, path)
    if path.name in ("", ".."):
        raise InputError("name the folder to make", path)
    random_state(seed)  # refuses an invalid seed
    check_number(n, decoding)


def _call_record(drawing: _ShardSampler, source: StepwiseModel, n: int) -> dict[str, object]:
    condition = {} if drawing.model.folder is None else corpus_condition(drawing.model.folder)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "call": {
            "sentences": n,
            "seed": drawing.seed,
            "decoding": drawing.decoding.as_record(),
            "shard_size": drawing.shard_size,
            "rows": rows_at_once(source.alphabet),
        },
        "model": {"name": source.name, "digest": drawing.digest, **condition},
        "device": source.stepper().start(1).device.type,
        "versions": versions(),
    }


@dataclass(frozen=True, kw_only=True)
class _ShardSampler:
    """A `truesource.generator.corpus_builder.Writer` that draws every shard with the same arguments."""

    model: ModelReference
    digest: str  #: of the model
    device: str | None
    decoding: Decoding
    partial: Path
    seed: int
    shard_size: int

    def write(self, shard: Shard) -> SampleShardEntry:
        """Draw a shard, write it and record it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        source = _loaded(self.model, self.digest, self.device)
        with one_thread():
            decoded = draw(source, shard.sentences, self.decoding, seed=self.seed, stream=(shard.number,))
        lengths = [len(sentence) for sentence in decoded.sentences]
        columns = {
            "text": pa.array([" ".join(sentence) for sentence in decoded.sentences], pa.string()),
            "n_tokens": pa.array(lengths, pa.int32()),
            "finished": pa.array(decoded.finished, pa.bool_()),
            "logprob": pa.array(decoded.log_prob, pa.float64()),
        }
        if self.decoding.keep == "all":
            columns["group"] = pa.array(decoded.group + shard.number * self.shard_size, pa.int64())
        target = self.partial / "data" / shard.name
        with atomic_path(target) as temporary:
            pq.write_table(pa.table(columns), temporary, compression="zstd", write_page_checksum=True)
        entry: SampleShardEntry = {
            "file": shard.name,
            "sentences": shard.sentences,
            "tokens": sum(lengths),
            "finished": int(decoded.finished.sum()),
            "finished_tokens": sum(k for k, ended in zip(lengths, decoded.finished, strict=True) if ended),
            "special": decoded.special,
            "contexts": decoded.contexts,
            "bytes": target.stat().st_size,
            "sha256": digest_file(target),
        }
        write_json(self._note(shard), entry)
        return entry

    def finished(self, shard: Shard) -> SampleShardEntry | None:
        """Return the record of a shard, if its file is still the one that was written."""
        try:
            entry = read_record(self._note(shard), SampleShardEntry, remedy="draw it again")
            same = digest_file(self.partial / "data" / shard.name) == entry["sha256"]
        except (OSError, InputError):
            return None
        same = same and (entry["file"], entry["sentences"]) == (shard.name, shard.sentences)
        return entry if same else None

    def _note(self, shard: Shard) -> Path:
        return self.partial / ".work" / f"{shard.name}.json"


def _finish(entries: list[SampleShardEntry], record: Mapping[str, object], path: Path) -> None:
    """Write the record and the card, and move the folder to its place."""
    digest = digest_json([[entry["file"], entry["sha256"]] for entry in entries])
    counts = {name: sum(entry[name] for entry in entries) for name in _COUNTS}
    growing, full = place_of(path), {**record, "counts": counts, "shards": entries, "digest": digest}
    write_json(growing / "record.json", full)
    write_text(growing / "README.md", samples_card(path.name, growing, SPLIT))
    settle(growing, path, {entry["file"] for entry in entries})


@lru_cache(maxsize=1)
def _loaded(named: ModelReference, digest: str, device: str | None) -> StepwiseModel:
    """Load the referenced model, whose digest is ``digest``, and cache it for the next shard."""
    model = load_model(named, device=device)
    if model.objective != "causal":
        raise InputError("a masked model cannot generate text word by word; give a causal model", named.text)
    return stepwise(model, "sampling text")


def stepwise(model: Any, needed_by: str) -> StepwiseModel:
    """Return a model from which text can be drawn, checked at every step if it is not ours.

    Raises:
        InputError: it lacks ``stepper`` or ``alphabet`` (code ``missing-ability``), or its alphabet is not an
            `Alphabet` (``not-an-alphabet``).
    """
    source: StepwiseModel = require(model, "stepping", needed_by)
    if not is_foreign(source):
        return source
    file = file_of(source)
    with code_errors(f"{source.name}.alphabet", file):
        alphabet = source.alphabet
    if not isinstance(alphabet, Alphabet):
        raise InputError(
            f"{source.name}.alphabet is {type(alphabet).__name__}; it has to be a"
            " truesource.lmtrain.decoding.alphabet.Alphabet",
            file,
            code="not-an-alphabet",
        )
    return _CheckedModel(source)


class _CheckedModel:
    """A foreign model whose steppers are checked."""

    def __init__(self, model: StepwiseModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def alphabet(self) -> Alphabet:
        return self._model.alphabet

    def stepper(self) -> Stepper:
        with code_errors(f"{self.name}.stepper", file_of(self._model)):
            return CheckedStepper(self._model.stepper(), self._model)


class CheckedStepper:
    """A `Stepper` around another one; arrays of numpy become tensors."""

    def __init__(self, stepper: Any, model: StepwiseModel) -> None:
        """Check the output of ``stepper``, which belongs to ``model``."""
        self._stepper, self._size = stepper, model.alphabet.size
        self._what, self._file = f"{model.name}.stepper", file_of(model)

    def start(self, n: int) -> Tensor:
        """Begin ``n`` empty rows; see `Stepper.start`.

        Raises:
            InputError: the numbers are of another shape (code ``not-distributions``), no log probabilities
                (``not-log-probabilities``) or complex (``complex``), or the stepper raises (``code-failed``).
        """
        with code_errors(f"{self._what}().start", self._file):
            result = torch.as_tensor(self._stepper.start(n))
        return self._checked(result, n)

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Extend some rows by one token each; see `Stepper.extend`.

        Raises:
            InputError: as `start`.
        """
        with code_errors(f"{self._what}().extend", self._file):
            result = torch.as_tensor(self._stepper.extend(parents, tokens))
        return self._checked(result, len(tokens))

    def _checked(self, log_prob: Tensor, n: int) -> Tensor:
        if tuple(log_prob.shape) != (n, self._size):
            shape = "x".join(map(str, log_prob.shape)) or "of a single number"
            raise InputError(
                f"{self._what} gives an array {shape}, expected {n}x{self._size}: the rows by the alphabet",
                self._file,
                code="not-distributions",
            )
        if log_prob.is_complex():
            raise InputError(f"{self._what} is complex; give real numbers", self._file, code="complex")
        log_prob = log_prob.double()
        require_log_probability(log_prob.max().item(), self._what)
        total = log_prob.exp().sum(dim=1).max().item()
        if total > 1.0 + ROUNDING:
            raise InputError(
                f"{self._what}: the probabilities of a row sum to {total:.6g}, more than 1; subtract the logsumexp",
                self._file,
                code="not-log-probabilities",
            )
        return log_prob


def corpus_condition(model: Path) -> dict[str, str]:
    """Return ``corpus_lengths``, the length condition of a model's corpus; empty if not recorded."""
    lengths = read_training(model).corpus_lengths if (model / FILE).is_file() else None
    return {} if lengths is None else {"corpus_lengths": lengths}


def reference_digest(named: ModelReference) -> str:
    """Return the SHA-256 over a model's folder or file, the source file of its code, or both.

    Other files that the code reads are not included.

    Raises:
        InputError: there is no such folder, or the code cannot be imported.
    """
    if named.file is not None:
        return digest_file(named.file)
    code = None if named.code is None else load_code(named.code, named.base)
    of_code = None if code is None else code.digest or digest_json([named.code])
    if named.folder is None:
        assert of_code is not None
        return of_code
    if not named.folder.is_dir():
        raise InputError("there is no such model folder", named.folder, code="missing")
    of_folder = model_digest(named.folder)
    return of_folder if of_code is None else digest_json([of_code, of_folder])


def model_digest(folder: Path) -> str:
    """Return the SHA-256 over the files that determine the model in a folder, hexadecimal."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name not in _RECORDS)
    return digest_json([[file.name, digest_file(file)] for file in files])
