"""Files of model folders that are read without torch, and the errors of the libraries that read them."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.utils import logging as bars

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_bytes
from truesource.lmtrain.training_record import require_unchanged

LARGEST = 2**40  #: no size of a network is larger
LIMIT = 2**26  #: bytes of the file
LABELS = 100_000  #: the library makes a dictionary of so many entries
_EXHAUSTED = {errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOSPC}


def model_type_of(folder: Path) -> object:
    """Return the ``model_type`` of ``config.json``; None if it cannot be read."""
    try:
        return read_config_json(folder / "config.json").get("model_type")
    except InputError:
        return None


def read_tokenizer(folder: Path, kind: Any) -> PreTrainedTokenizerFast:
    """Return the tokeniser saved in a folder.

    Args:
        folder: with ``tokenizer.json``.
        kind: class of transformers that reads it.

    Raises:
        InputError: there is no ``tokenizer.json``, or it is damaged.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        slow = next((name for name in ("tokenizer.model", "spiece.model") if (folder / name).is_file()), None)
        how = "save one there with save_pretrained"
        if slow is not None:
            how = f"make it from {slow}: AutoTokenizer.from_pretrained(folder).save_pretrained(folder), with protobuf"
        raise InputError(f"there is no fast tokeniser (tokenizer.json) next to the model; {how}", folder)
    with library_errors("the tokeniser cannot be loaded", path), quiet():
        Tokenizer.from_file(str(path))
        tokenizer = kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if not getattr(tokenizer, "is_fast", False):  # a class of the library that is no tokeniser has none
        raise InputError(
            f"the tokeniser is a {type(tokenizer).__name__}, not a fast one; words need its offsets", folder
        )
    require_unchanged(folder, ["tokenizer.json", "tokenizer_config.json"])
    return tokenizer


def read_config_json(path: Path) -> dict[str, Any]:
    """Return the content of ``config.json``.

    Raises:
        InputError: it is no JSON object, ``model_type`` or ``architectures`` are not what the library expects, or a
            number in it is impossible.
    """
    try:
        config = json.loads(read_bytes(path, limit=LIMIT, line_limit=None).decode("utf-8"))  # may hold Infinity
    except (ValueError, RecursionError) as error:
        reason = error.reason if isinstance(error, InputError) else str(error)
        raise InputError(f"the configuration of the model cannot be read: {reason}", path) from error
    if not isinstance(config, dict):
        raise InputError("the configuration of the model is not a JSON object", path)
    kind, classes = config.get("model_type"), config.get("architectures")
    if kind is not None and not isinstance(kind, str):
        raise InputError(f"model_type must be a string, not {_short(kind)}", path)
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise InputError(f"architectures must be a list of strings, not {_short(classes)}", path)
    for key, value in _integers(config):
        if abs(value) > LARGEST or (key == "num_labels" and value > LABELS):
            raise InputError(f"{key} is {_short(value)}, which is impossible", path)
    return config


def _integers(value: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """Yield all integers within a JSON value, each with its key."""
    stack = [(key, value)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, dict):
            stack += value.items()
        elif isinstance(value, list):
            stack += [(key, inner) for inner in value]
        elif isinstance(value, int):
            yield key, value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


@contextmanager
def library_errors(problem: str, path: Path) -> Iterator[None]:
    """Turn exceptions of the libraries inside the block into one sentence.

    Files of others can make them raise any exception, so any is caught, but for what says that the machine has no more
    memory or files to give.

    Args:
        problem: the failed action, such as ``the model cannot be loaded``.
        path: of the file or folder.

    Raises:
        InputError: something was raised; an `InputError` passes through as it is.
    """
    try:
        yield
    except (InputError, MemoryError, FloatingPointError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            raise
        raise InputError(f"{problem}: {_short_message(error)}", path) from error


def _short_message(error: Exception) -> str:
    """Return the message of an exception, on one line of at most 200 characters."""
    text = " ".join(str(error).split())
    text = text if text and not isinstance(error, KeyError) else f"{type(error).__name__} {text}".rstrip()
    return text if len(text) <= 200 else f"{text[:199]}…"


@contextmanager
def no_bars() -> Iterator[None]:
    """Hide the progress bars of transformers inside the block."""
    enabled = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            bars.enable_progress_bar()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the bars and the report of the library: what is wrong is said in one sentence here."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with no_bars():
            yield
    finally:
        logger.setLevel(level)
