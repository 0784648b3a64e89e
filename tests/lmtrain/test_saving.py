"""A disk that cannot be written to is an `OSError`, whichever library writes; other errors stay what they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from truesource.lmtrain.saving import disk_errors

NUMBERS = torch.zeros(2**20)


@pytest.fixture
def small_files() -> Iterator[None]:
    """Files of more than 64 KiB cannot be written, as on a disk that fills up."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def by_torch(path: Path) -> None:
    torch.save(NUMBERS, path)


def by_safetensors(path: Path) -> None:
    save_file({"numbers": NUMBERS}, path)


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is one of Unix")
@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("write", [by_torch, by_safetensors])
def test_a_full_disk(write: Callable[[Path], None], tmp_path: Path) -> None:
    with pytest.raises(OSError), disk_errors():
        write(tmp_path / "file")


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("the GPU is full"), KeyError("weight")])
def test_other_errors_pass_through(error: Exception) -> None:
    with pytest.raises(type(error)), disk_errors():
        raise error
