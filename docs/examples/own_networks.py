"""Two networks of one's own for `truesource train`: a GRU, and a diagonal linear recurrence with its step."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class GRU(nn.Module):
    """Word vectors, stacked GRU layers (Cho et al. 2014), and a softmax that is tied to the word vectors."""

    def __init__(self, vocabulary_size: int, hidden: int = 64, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary_size, hidden)
        nn.init.normal_(self.words.weight, std=hidden**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(hidden, hidden, layers, batch_first=True)
        self.out = nn.Linear(hidden, vocabulary_size)
        self.out.weight = self.words.weight

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states, _ = self.gru(self.dropout(self.words(input_ids)))
        return self.out(self.dropout(states))

    # optional: generation that does not read the text again at every token
    def step(self, input_ids: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        before = None if state is None else state.transpose(0, 1).contiguous()  # texts first -> layers first
        states, after = self.gru(self.words(input_ids), before)
        return self.out(states), after.transpose(0, 1)

    # optional: what the probing evaluator reads, layer after layer
    def hidden_states(self, input_ids: Tensor, attention_mask: Tensor) -> list[Tensor]:
        words = self.words(input_ids)
        return [words, self.gru(words)[0]]


class LinearRecurrence(nn.Module):
    """A toy state-space model: per channel x[t] = a x[t-1] + b u[t], y[t] = Re(c x[t]) + d u[t], with complex a.

    The decay ``a = exp(-exp(log_decay) + i angle)`` is stable by construction (Orvieto et al. 2023). Training convolves
    the input with the kernel Re(c b a^t) by FFT; `step` applies the recurrence itself.
    """

    def __init__(self, vocabulary_size: int, hidden: int = 64, states: int = 8, layers: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary_size, hidden)
        self.blocks = nn.ModuleList(Block(hidden, states) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, vocabulary_size)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        inputs = self.words(input_ids)
        for block in self.blocks:
            inputs = block(inputs)
        return self.out(self.norm(inputs))

    def step(self, input_ids: Tensor, state: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        inputs, after = self.words(input_ids[:, 0]), []
        for number, block in enumerate(self.blocks):
            inputs, kept = block.step(inputs, None if state is None else state[number])
            after.append(kept)
        return self.out(self.norm(inputs)), after


class Block(nn.Module):
    """One layer: normalised, filtered, gated, added to its input. B texts, L tokens, D channels, N states each."""

    def __init__(self, hidden: int, states: int) -> None:
        super().__init__()
        self.log_decay = nn.Parameter(torch.linspace(-4.0, 0.0, states).repeat(hidden, 1))  # (D, N)
        self.angle = nn.Parameter(torch.rand(hidden, states) * torch.pi)
        self.weight = nn.Parameter(torch.randn(hidden, states, 2) / states)  # real and imaginary parts of c b
        self.skip = nn.Parameter(torch.ones(hidden))
        self.norm, self.gate = nn.LayerNorm(hidden), nn.Linear(hidden, 2 * hidden)

    def forward(self, inputs: Tensor) -> Tensor:
        u, length = self.norm(inputs).transpose(1, 2), inputs.shape[1]  # (B, D, L)
        powers = torch.exp(self.log_a()[..., None] * torch.arange(length, device=u.device))  # (D, N, L)
        kernel = (torch.view_as_complex(self.weight)[..., None] * powers).sum(1).real
        spectra = torch.fft.rfft(u, 2 * length) * torch.fft.rfft(kernel, 2 * length)  # twice as long: not circular
        y = torch.fft.irfft(spectra, 2 * length)[..., :length] + self.skip[:, None] * u
        return inputs + nn.functional.glu(self.gate(y.transpose(1, 2)), dim=-1)

    def step(self, inputs: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        u = self.norm(inputs)  # (B, D)
        x = u[..., None] + (0 if state is None else torch.exp(self.log_a()) * state)  # (B, D, N)
        y = (torch.view_as_complex(self.weight) * x).sum(-1).real + self.skip * u
        return inputs + nn.functional.glu(self.gate(y), dim=-1), x

    def log_a(self) -> Tensor:
        return torch.complex(-self.log_decay.exp(), self.angle)
