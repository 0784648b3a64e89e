"""Writing a model folder; a disk that cannot be written to is an `OSError`, whichever library writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError

from truesource.lmtrain.model_code import auto_map, write_code
from truesource.lmtrain.quiet import no_bars

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@contextmanager
def disk_errors() -> Iterator[None]:
    """Inside the block nothing but files is written: what safetensors and torch raise then becomes an `OSError`.

    A `RuntimeError` of a class of its own, such as a GPU without memory, passes through as it is.
    """
    try:
        yield
    except SafetensorError as error:
        raise OSError(str(error)) from error
    except RuntimeError as error:
        if type(error) is not RuntimeError:
            raise
        raise OSError("a checkpoint could not be written whole, the disk may be full") from error


def save_model(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Weights, configuration and tokeniser, as ``from_pretrained`` reads them, and the code of a network of ours.

    All files get the rights of new files.

    Raises:
        OSError: they cannot be written.
    """
    with no_bars(), disk_errors():
        with _auto_map(model):
            model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    write_code(folder, model)
    follow_umask(folder)


def follow_umask(folder: Path) -> None:
    """Give the files directly in a folder the rights of new files; safetensors makes files for their owner alone."""
    if os.name != "posix":
        return
    probe = folder / f".rights-{os.getpid()}-{os.urandom(4).hex()}"
    probe.touch()
    rights = stat.S_IMODE(probe.stat().st_mode)
    probe.unlink()
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            path.chmod(rights)


@contextmanager
def _auto_map(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block the configuration says which code a folder that is written holds."""
    found = auto_map(model)
    if found is None:
        yield
        return
    model.config.auto_map = found
    try:
        yield
    finally:
        del model.config.auto_map  # other folders that the model is saved to have no code
