"""Writing a model folder; a disk that cannot be written to is an `OSError`, whichever library writes."""

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
    """Weights, configuration and tokeniser, as ``from_pretrained`` reads them.

    Raises:
        OSError: they cannot be written.
    """
    with no_bars(), disk_errors():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
