"""Writing a model folder, and telling a full disk from other errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError

from truesource.lmtrain.quiet import no_bars

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn what safetensors and torch raise where they cannot write, a full disk above all, into `OSError`."""
    try:
        yield
    except SafetensorError as error:
        raise OSError(str(error)) from error
    except RuntimeError as error:
        if "inline_container" not in str(error) and "PytorchStreamWriter" not in str(error):
            raise
        raise OSError("a checkpoint could not be written whole, the disk may be full") from error


def save_model(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Weights, configuration and tokeniser, as ``from_pretrained`` reads them.

    Raises:
        OSError: they cannot be written.
    """
    with no_bars(), disk_errors():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
