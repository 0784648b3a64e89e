"""No network is built larger than the weights that are there to fill it.

A configuration can ask for any number of layers and any width. A network is built before its weights are read, so a
wrong number costs memory or time without end. `weight_limits` counts what is built, and stops as soon as it is more
than the files can fill.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.modules import module as registration
from transformers import PreTrainedConfig

from truesource.grammar.support.errors import InputError


@dataclass(frozen=True)
class Stored:
    """What files of weights hold, at most."""

    tensors: int
    numbers: int

    @classmethod
    def of(cls, folder: Path) -> Stored:
        """Read the heads of the files, no weights.

        Raises:
            InputError: there are no weights.
            SafetensorError: a file is damaged.
        """
        safe = sorted(folder.glob("*.safetensors"))
        pickled = [] if safe else sorted(folder.glob("*.bin"))
        if not safe and not pickled:
            raise InputError("there are no weights beside config.json (model.safetensors); finish the training", folder)
        tensors, numbers = 0, 0
        for path in safe:
            with safe_open(path, framework="pt") as file:
                shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
            tensors += len(shapes)
            numbers += sum(map(math.prod, shapes))
        for path in pickled:  # a number takes a byte or more, a tensor a name and where it lies
            size = path.stat().st_size
            tensors, numbers = tensors + size // 32, numbers + size
        return cls(tensors, numbers)


class _Count:
    """Counts what is registered in modules, and raises at the first one too many."""

    def __init__(self, stored: Stored, packed: bool, folder: Path) -> None:
        """``packed``: the weights are quantised, so that one stored number may be several."""
        #: tied weights are made twice, and the library may split or pack what is stored
        self._left = {
            "weights": (16 if packed else 2) * stored.numbers + 2**20,
            "buffers": 4 * stored.numbers + 2**27,
            "tensors": 4 * stored.tensors + 100,
            "modules": 20 * stored.tensors + 2000,
        }
        self._stored, self._folder = stored, folder
        self._seen: set[tuple[int, str]] = set()

    def parameter(self, owner: nn.Module, name: str, value: Tensor | None) -> None:
        if self._is_new(owner, name, value):
            assert value is not None
            self._take(weights=value.numel(), tensors=1)

    def buffer(self, owner: nn.Module, name: str, value: Tensor | None) -> None:
        if self._is_new(owner, name, value):
            assert value is not None
            self._take(buffers=value.numel())

    def module(self, *_: Any) -> None:
        self._take(modules=1)

    def _is_new(self, owner: nn.Module, name: str, value: Tensor | None) -> bool:
        """Whether something is built here; weights that are read take the place of what was built, and are real."""
        if value is None or not value.is_meta or (id(owner), name) in self._seen:
            return False
        self._seen.add((id(owner), name))
        return True

    def _take(self, **amounts: int) -> None:
        for what, amount in amounts.items():
            self._left[what] -= amount
            if self._left[what] < 0:
                raise InputError(
                    "config.json asks for a much larger network than the weights are of, which are"
                    f" {self._stored.numbers:,} numbers in {self._stored.tensors:,} tensors; the two are of different"
                    " models",
                    self._folder,
                )


@contextmanager
def weight_limits(folder: Path, config: PreTrainedConfig) -> Iterator[None]:
    """Inside the block networks are built only as far as the weights in ``folder`` can fill them.

    Built are tensors without memory (on the device ``meta``, as ``from_pretrained`` does it).

    Args:
        folder: with the weights.
        config: says whether they are quantised.

    Raises:
        InputError: there are no weights, or a network became too large.
        SafetensorError: a file of weights is damaged.
    """
    count = _Count(Stored.of(folder), getattr(config, "quantization_config", None) is not None, folder)
    with ExitStack() as stack:
        for register, hook in (
            (registration.register_module_parameter_registration_hook, count.parameter),
            (registration.register_module_buffer_registration_hook, count.buffer),
            (registration.register_module_module_registration_hook, count.module),
        ):
            stack.callback(register(hook).remove)
        yield
