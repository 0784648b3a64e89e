"""An output layer that scores given tokens alone; travels with networks that have one."""

from __future__ import annotations

from torch import nn


class TargetHead(nn.Module):
    """An output layer that can score given tokens without making the logits of all.

    ``forward(hidden, targets=None)``: from hidden states (..., D) logits (..., V); with ``targets`` (T,), from
    hidden states (T, D), their log probabilities (T,) in nats. In a distributed run every weight takes part in those
    of every batch, with gradient zero where it changes nothing, or the processes could not add their gradients.
    """
