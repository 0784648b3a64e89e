"""A module of one's own as a network of `transformers`: configuration, checked logits, steps, hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from truesource.generator.abilities import code_errors
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.states import RecurrentStates
from truesource.lmtrain.code import Code
from truesource.lmtrain.own.code_copy import code_copy
from truesource.lmtrain.own.hub_network import OwnConfig, random_tokens, tied_weights
from truesource.lmtrain.own.states import GrowingStates, nest_like, tensors_of

HEAD = "head"  #: attribute of `OwnNetwork` that all logits go through
TOLERANCE = 1e-3  #: largest difference of logits of `step` and of `forward`, relative to the largest logit
_TRIED = 5  #: tokens that the two are compared on


class OwnNetwork(PreTrainedModel):  # type: ignore[misc]
    """A module that is called as ``module(input_ids, attention_mask)`` and returns logits (B, L, V).

    Its initial weights stay as its own code made them. Where it has ``step(input_ids (B, 1), state)``, a causal one
    goes on with texts token by token; where it has ``hidden_states(input_ids, attention_mask)``, it can be probed.
    """

    config_class = OwnConfig
    main_input_name = "input_ids"

    def __init__(self, config: OwnConfig, module: nn.Module, made_by: Code) -> None:
        """Join a module, the configuration that it was built by, and its code."""
        super().__init__(config)
        self.module = module
        self.head = nn.Identity()  # a place for hooks: see `truesource.lmtrain.heads`
        self._tied_weights_keys = tied_weights(self)
        self.source = made_by.source
        self.code_copy = code_copy(made_by)  #: of the file, for the folder of the model
        self._fixed: bool | None = None  # whether states have one size however long the text; None: not tried
        self._nest: Any = None  # a state without its numbers
        self.post_init()

    def init_weights(self) -> None:
        """Nothing: the code has set them."""

    def get_input_embeddings(self) -> None:
        """None is known."""

    def get_output_embeddings(self) -> None:
        """None is known."""

    @property
    def code(self) -> str:
        """What the person called the code."""
        return str(self.config.code)

    @property
    def can_step(self) -> bool:
        """Whether it goes on with a text without reading it again."""
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
        """Logits (B, L, V); with ``use_cache`` and one token a text those of ``step``, and the state after it.

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
                " (that of nn.GRU and nn.LSTM has its layers first: transpose it)",
                code="bad-step",
            )
        self._nest = nest_like(after, [tensor.new_empty(0) for tensor in tensors])
        kept = GrowingStates(tensors) if self._fixed is False else RecurrentStates(tensors, 0)
        return CausalLMOutputWithPast(logits=self.head(logits), past_key_values=kept)

    @torch.inference_mode()
    def _try_steps(self) -> None:
        """Compare ``step`` with ``forward`` on random texts, rows of which are exchanged and repeated on the way.

        Raises:
            InputError: they differ (code ``bad-step``).
        """
        ids = random_tokens(self.config.vocab_size, 3, min(_TRIED, self.config.max_positions or _TRIED)).to(self.device)
        self._fixed = True
        sizes: list[list[Any]] = []
        state: Any = None
        found = []
        rows = torch.tensor([2, 0, 0, 1], device=self.device)
        for place in range(ids.shape[1]):
            if place == 2:
                state.batch_select_indices(rows)
                ids = ids[rows]
            output = self._step(ids[:, place : place + 1], state)
            state = output.past_key_values
            sizes.append([tensor.shape[1:] for tensor in state.tensors])
            found.append(output.logits[:, 0])
        expected = self.forward(ids).logits
        limit = TOLERANCE * max(1.0, float(expected.abs().max()))
        for place, logits in enumerate(found):
            wanted = expected[:, place] if place >= 2 else None
            difference = 0.0 if wanted is None else float((logits - wanted).abs().max())
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
