"""A custom module as a network of `transformers`: configuration, checked logits, steps, hidden states.

The state that it keeps of a text is any nest of tensors, flattened to a list and rebuilt. Its file may go into the
folder of the model if it runs there by itself; `code_copy` checks this without running it.
"""

from __future__ import annotations

import ast
import hashlib
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from truesource.generator.foreign_code import code_errors
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.states import RecurrentStates
from truesource.lmtrain.own.hub_network import OwnConfig, random_tokens, tied_weights
from truesource.lmtrain.references import Code

HEAD = "head"  #: attribute of `OwnNetwork` that all logits go through
TOLERANCE = 1e-3  #: largest difference of logits of `step` and of `forward`, relative to the largest logit
_TRIED = 5  #: tokens that the two are compared on
_INSTALLED = {"site-packages", "dist-packages"}
#: names by which a file finds others without an import statement, and the reason for messages
_HIDDEN = {
    "__file__": "looks for files next to it (__file__)",
    "__import__": "imports modules by names made at run time",
}


class OwnNetwork(PreTrainedModel):  # type: ignore[misc]
    """A module that is called as ``module(input_ids, attention_mask)`` and returns logits (B, L, V).

    Its own code sets its initial weights. With ``step(input_ids (B, 1), state)``, a causal module continues texts token
    by token; with ``hidden_states(input_ids, attention_mask)``, it can be probed.
    """

    config_class = OwnConfig
    main_input_name = "input_ids"

    def __init__(self, config: OwnConfig, module: nn.Module, made_by: Code) -> None:
        """Join a module, the configuration that it was built by, and its code."""
        super().__init__(config)
        self.module = module
        self.head = nn.Identity()  # a place for hooks: see `truesource.lmtrain.scoring`
        self._tied_weights_keys = tied_weights(self)
        self.source = made_by.source
        self.code_copy = code_copy(made_by)  #: of the file, for the folder of the model
        self._fixed: bool | None = None  # whether states have one size however long the text; None: not tried
        self._nest: Any = None  # a state without its numbers
        self.post_init()

    def init_weights(self) -> None:
        """Do nothing: the code has set them."""

    def get_input_embeddings(self) -> None:
        """Return None: they are not known."""

    def get_output_embeddings(self) -> None:
        """Return None: they are not known."""

    @property
    def code(self) -> str:
        """The name of the code, as the user wrote it."""
        return str(self.config.code)

    @property
    def can_step(self) -> bool:
        """True if it continues a text without reading it again."""
        return self.config.objective == "causal" and callable(getattr(self.module, "step", None))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: RecurrentStates | GrowingStates | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Return logits (B, L, V); with ``use_cache`` and one token a text, the logits and state of ``step``.

        Raises:
            InputError: the module raises (code ``code-failed``), or what it returns is no logits of these tokens
                (``bad-logits``); it shows no hidden states (``missing-ability``), or its ``step`` returns other logits
                than its ``forward`` (``bad-step``).
        """
        if use_cache and self.can_step:
            if self._fixed is None:
                self._try_steps()
            return self._step(input_ids, past_key_values)
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        with code_errors(self.code, self.source):
            logits = self.module(input_ids, mask)
        self._require_logits(logits, input_ids, "forward")
        states = self._hidden_states(input_ids, mask) if output_hidden_states else None
        return CausalLMOutputWithPast(logits=self.head(logits), hidden_states=states)

    def _hidden_states(self, input_ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        method = getattr(self.module, "hidden_states", None)
        if not callable(method):
            raise InputError(
                f"{self.code} shows no hidden states; give the module a method"
                " hidden_states(input_ids, attention_mask) that returns one tensor (B, L, D) a layer",
                code="missing-ability",
            )
        with code_errors(f"{self.code}, in hidden_states,", self.source):
            states = method(input_ids, mask)
        if not (isinstance(states, Sequence) and states and all(isinstance(state, Tensor) for state in states)):
            raise InputError(
                f"hidden_states of {self.code} must return a list of tensors (B, L, D)", code="bad-hidden-states"
            )
        for state in states:
            if state.dim() != 3 or state.shape[:2] != input_ids.shape:
                raise InputError(
                    f"hidden_states of {self.code} returns the shape {_shape(state)} for {_shape(input_ids)} tokens;"
                    " it must be (B, L, D)",
                    code="bad-hidden-states",
                )
        return tuple(states)

    def _step(self, input_ids: Tensor, before: RecurrentStates | GrowingStates | None) -> CausalLMOutputWithPast:
        state = None if before is None else nest_like(self._nest, before.tensors)
        with code_errors(f"{self.code}, in step,", self.source):
            step: Any = self.module.step
            returned = step(input_ids, state)
        if not (isinstance(returned, tuple) and len(returned) == 2):
            raise InputError(f"step of {self.code} must return (logits, state)", code="bad-step")
        logits, after = returned
        if isinstance(logits, Tensor) and logits.dim() == 2:
            logits = logits[:, None]
        self._require_logits(logits, input_ids, "step")
        tensors = tensors_of(after)
        if not tensors or any(tensor.dim() == 0 or len(tensor) != len(input_ids) for tensor in tensors):
            raise InputError(
                f"step of {self.code} must return a state of tensors (B, ...), a row for each text first"
                " (nn.GRU and nn.LSTM put layers first: transpose their states)",
                code="bad-step",
            )
        self._nest = nest_like(after, [tensor.new_empty(0) for tensor in tensors])
        past = GrowingStates(tensors) if self._fixed is False else RecurrentStates(tensors, 0)
        return CausalLMOutputWithPast(logits=self.head(logits), past_key_values=past)

    @torch.inference_mode()
    def _try_steps(self) -> None:
        """Compare ``step`` with ``forward`` on random texts whose rows are exchanged and repeated on the way.

        Raises:
            InputError: they differ (code ``bad-step``).
        """
        ids = random_tokens(self.config.vocab_size, 3, min(_TRIED, self.config.max_positions or _TRIED)).to(self.device)
        self._fixed = True
        sizes: list[list[Any]] = []
        state: Any = None
        stepped = []
        rows = torch.tensor([2, 0, 0, 1], device=self.device)
        for place in range(ids.shape[1]):
            if place == 2:
                state.batch_select_indices(rows)
                ids = ids[rows]
            output = self._step(ids[:, place : place + 1], state)
            state = output.past_key_values
            sizes.append([tensor.shape[1:] for tensor in state.tensors])
            stepped.append(output.logits[:, 0])
        expected = self.forward(ids).logits
        limit = TOLERANCE * max(1.0, float(expected.abs().max()))
        for place, logits in enumerate(stepped):
            reference = expected[:, place] if place >= 2 else None
            difference = 0.0 if reference is None else float((logits - reference).abs().max())
            if not difference <= limit:
                self._fixed = None
                raise InputError(
                    f"step of {self.code} gives other logits than forward (by up to {difference:.2g} at token"
                    f" {place + 1}); correct it, or leave it out and texts are read again at every token",
                    code="bad-step",
                )
        self._fixed = all(some == sizes[0] for some in sizes)

    def _require_logits(self, logits: Any, input_ids: Tensor, method: str) -> None:
        if not isinstance(logits, Tensor):
            remedy = "; return its .logits" if isinstance(getattr(logits, "logits", None), Tensor) else ""
            raise InputError(
                f"{method} of {self.code} returns a {type(logits).__name__} in place of the logits, a tensor (B, L, V)"
                f"{remedy}",
                code="bad-logits",
            )
        expected = (*input_ids.shape, self.config.vocab_size)
        if tuple(logits.shape) != expected:
            raise InputError(
                f"{method} of {self.code} returns logits of the shape {_shape(logits)}, but for"
                f" {_shape(input_ids)} tokens out of {self.config.vocab_size} they must be"
                f" {' x '.join(map(str, expected))}",
                code="bad-logits",
            )
        if not logits.is_floating_point():
            raise InputError(f"{method} of {self.code} returns logits of {logits.dtype}, not floats", code="bad-logits")
        if logits.device != input_ids.device:
            raise InputError(
                f"{method} of {self.code} returns logits on {logits.device}, but its input is on {input_ids.device};"
                " make tensors on the device of input_ids",
                code="wrong-device",
            )


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "a single number"


@dataclass(frozen=True)
class CodeCopy:
    """A file that goes into the folder, or why none does."""

    name: str  #: of the class or function in the file; it may have dots
    content: bytes | None  #: None: the file cannot go
    reason: str | None  #: then: what the file does, to be read after "it"


def code_copy(code: Code) -> CodeCopy:
    """Return the file of code as it was imported, if it needs no other file outside installed packages."""
    name = code.name.rpartition(":")[2]
    if code.source is None or code.source.suffix != ".py" or not code.source.is_file():
        return CodeCopy(name, None, "is no file of Python")
    content = code.source.read_bytes()
    if hashlib.sha256(content).hexdigest() != code.digest:
        return CodeCopy(name, None, "has changed since it was imported")
    if tokenize.detect_encoding(io.BytesIO(content).readline)[0] not in ("utf-8", "utf-8-sig"):
        return CodeCopy(name, None, "is not written in UTF-8")
    reason = next(_reasons(ast.parse(content), code.source.resolve().parent), None)
    return CodeCopy(name, None if reason else content, reason)


def _reasons(tree: ast.Module, folder: Path) -> Iterator[str]:
    """Yield the reasons why a file of a folder cannot run elsewhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _HIDDEN:
            yield _HIDDEN[node.id]
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield f"imports its neighbour {'.' * node.level}{node.module or node.names[0].name}"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from filter(None, (_why_not(name.partition(".")[0], folder) for name in named))


def _why_not(root: str, folder: Path) -> str | None:
    """Return why another machine may lack a top-level module; None if it is installed as a package, or in Python."""
    if root == "truesource":
        return "imports truesource"
    if root in ("importlib", "runpy"):
        return _HIDDEN["__import__"]
    if root in sys.builtin_module_names:
        return None
    spec = PathFinder.find_spec(root, [str(folder), *sys.path])
    if spec is None:  # not here either, so the code does without it
        return None
    places = [spec.origin] if spec.origin else [*(spec.submodule_search_locations or ())]
    if any(_INSTALLED.intersection(Path(place).parts) for place in places):
        return None
    near = any(folder in [*Path(place).resolve().parents][:2] for place in places)  # root.py, root/__init__.py
    if root in sys.stdlib_module_names and not near:
        return None
    return f"imports {root}, which lies next to it" if near else f"imports {root}, which is not an installed package"


def tensors_of(state: Any) -> list[Tensor]:
    """Return the tensors in a nest of tuples, lists and dicts, in order.

    Raises:
        InputError: it holds something else, such as a number (code ``bad-step``).
    """
    if isinstance(state, Tensor):
        return [state]
    if state is None:
        return []
    if isinstance(state, Mapping):
        return [tensor for value in state.values() for tensor in tensors_of(value)]
    if isinstance(state, Sequence) and not isinstance(state, str):
        return [tensor for value in state for tensor in tensors_of(value)]
    raise InputError(
        f"step returns a state with a {type(state).__name__} in it; it must be made of tensors (B, ...) alone,"
        " in tuples, lists or dicts",
        code="bad-step",
    )


def nest_like(state: Any, tensors: Sequence[Tensor]) -> Any:
    """Build a nest like ``state`` with other tensors in it."""
    remaining = iter(tensors)

    def filled(part: Any) -> Any:
        if part is None:
            return None
        if isinstance(part, Tensor):
            return next(remaining)
        if isinstance(part, Mapping):
            return {key: filled(value) for key, value in part.items()}
        values = [filled(value) for value in part]
        if hasattr(part, "_fields"):
            return type(part)(*values)
        return tuple(values) if isinstance(part, tuple) else values

    return filled(state)


class GrowingStates:
    """Tensors with a row for each text whose other sizes grow with it, such as keys and values."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows ``indices`` (int64 or bool mask), in that order; a number may be repeated."""
        rows = indices.nonzero()[:, 0] if indices.dtype == torch.bool else indices
        self.tensors = [tensor.index_select(0, rows) for tensor in self.tensors]
