"""The steppers of models that are not ours: checked at every step, what they raise is one sentence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from truesource.generator.abilities import (
    ROUNDING,
    code_errors,
    file_of,
    is_foreign,
    require,
    require_log_probability,
)
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.decode import Alphabet, StepwiseModel
from truesource.lmtrain.decoding.stepper import Stepper


def stepwise(model: Any, needed_by: str) -> StepwiseModel:
    """A model from which text can be drawn, checked at every step if it is not ours.

    Raises:
        InputError: it lacks ``stepper`` or ``alphabet`` (code ``missing-ability``), or its alphabet is none
            (``not-an-alphabet``).
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
            " truesource.lmtrain.decoding.decode.Alphabet",
            file,
            code="not-an-alphabet",
        )
    return _CheckedModel(source)


class _CheckedModel:
    """A model of others whose steppers are checked."""

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
        """Check what ``stepper`` of ``model`` gives."""
        self._stepper, self._size = stepper, model.alphabet.size
        self._what, self._file = f"{model.name}.stepper", file_of(model)

    def start(self, n: int) -> Tensor:
        """Begin ``n`` empty rows; see `Stepper.start`.

        Raises:
            InputError: the numbers are of another shape (code ``not-distributions``), no log probabilities
                (``not-log-probabilities``) or complex (``complex``), or the stepper raises (``code-failed``).
        """
        with code_errors(f"{self._what}().start", self._file):
            found = torch.as_tensor(self._stepper.start(n))
        return self._checked(found, n)

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Go on with some rows, each one token longer; see `Stepper.extend`.

        Raises:
            InputError: as `start`.
        """
        with code_errors(f"{self._what}().extend", self._file):
            found = torch.as_tensor(self._stepper.extend(parents, tokens))
        return self._checked(found, len(tokens))

    def _checked(self, found: Tensor, n: int) -> Tensor:
        if tuple(found.shape) != (n, self._size):
            shape = "x".join(map(str, found.shape)) or "of a single number"
            raise InputError(
                f"{self._what} gives an array {shape}, expected {n}x{self._size}: the rows by the alphabet",
                self._file,
                code="not-distributions",
            )
        if found.is_complex():
            raise InputError(f"{self._what} is complex; give real numbers", self._file, code="complex")
        found = found.double()
        require_log_probability(found.max().item(), self._what)
        total = found.exp().sum(dim=1).max().item()
        if total > 1.0 + ROUNDING:
            raise InputError(
                f"{self._what}: the probabilities of a row sum to {total:.6g}, more than 1; subtract the logsumexp",
                self._file,
                code="not-log-probabilities",
            )
        return found
