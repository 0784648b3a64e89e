"""Tuning a trained model by a reward with a price on KL: REINFORCE (Williams 1992) in the form of RLHF.

The goal is E[r] - beta KL(model || reference), which the reference tilted by r / beta maximises (Korbak et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.grammar.support.room import require_items
from truesource.lmtrain.data import causal_batch, to_device
from truesource.lmtrain.word_models import CausalModel

Rewards = Callable[[Sequence[Sequence[str]]], FloatArray]
DECAY = 0.9  #: of the moving average that a reward is compared with


class TunedModel(NamedTuple):
    """A tuned copy of a model, with the course of tuning."""

    model: CausalModel
    rewards: FloatArray  #: (steps,) mean reward of the sentences of each step
    kl: FloatArray  #: (steps,) mean of ln model - ln reference of these sentences, nats a sentence


def tune(
    model: CausalModel,
    reward: Rewards,
    *,
    beta: float,
    seed: int,
    steps: int = 200,
    batch: int = 64,
    learning_rate: float = 3e-4,
) -> TunedModel:
    """Tune a copy of a causal model of words; the model itself is the reference, and stays as it is.

    Each step draws sentences from the copy and moves it along the gradient of the mean of ``r - beta (ln model - ln
    reference)``, less a moving average of it (Williams 1992), with Adam. A sentence that the copy does not end within
    its positions counts as it is.

    Args:
        model: to tune a copy of.
        reward: of sentences, (n,).
        beta: price of a nat of KL, above 0.
        seed: of the sentences.
        steps: of the optimiser.
        batch: sentences in each.
        learning_rate: of Adam, which falls linearly to 0.

    Raises:
        InputError: a number is out of range, or the rewards or the loss are not finite.
    """
    if not (math.isfinite(beta) and beta > 0.0 and steps >= 1 and batch >= 2 and learning_rate > 0.0):
        raise InputError("tuning needs a beta and a learning rate above 0, 1 step or more, and 2 sentences or more")
    network, reference = deepcopy(model.model), model.model
    tuned = CausalModel(network, model.tokenizer, f"{model.name} tuned at beta {beta:g}", encoder=model.encoder)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1.0 / steps, steps)
    require_items(steps, "steps of tuning", 16)
    average, rewards, divergences = None, np.zeros(steps), np.zeros(steps)
    with meter(f"tuning steps of {model.name}", steps) as bar:
        for step in range(steps):
            sentences = tuned.sample(batch, seed=seed + step).sentences
            earned = np.asarray(reward(sentences), dtype=np.float64)
            tuned_log_p = log_probs(tuned, network, sentences)
            with torch.no_grad():
                apart = tuned_log_p - log_probs(tuned, reference, sentences)
            goal = torch.from_numpy(earned).to(tuned_log_p) - beta * apart
            average = goal.mean() if average is None else DECAY * average + (1.0 - DECAY) * goal.mean()
            loss = -((goal - average).detach() * tuned_log_p).mean()
            if not torch.isfinite(loss):
                raise InputError("the loss of tuning is not finite; give finite rewards, or a lower learning rate")
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            rewards[step], divergences[step] = earned.mean(), apart.mean().item()
            bar.advance(1)
    return TunedModel(tuned, rewards, divergences)


def log_probs(model: CausalModel, network: torch.nn.Module, sentences: Sequence[Sequence[str]]) -> Tensor:
    """Return ln P(sentence and its end) under a network that samples the tokens of ``model``, (n,), with gradients."""
    batch = to_device(causal_batch(model.encoder.encode(sentences), model.encoder), model.model.device)
    logits = network(input_ids=batch["input_ids"]).logits.flatten(0, 1)[batch["positions"]]
    logits[:, list(model.alphabet.never)] = -torch.inf
    each = log_softmax(logits, dim=-1).gather(1, batch["targets"][:, None]).squeeze(1)
    rows = batch["positions"].div(batch["input_ids"].shape[1], rounding_mode="floor")
    return torch.zeros(len(sentences), dtype=each.dtype, device=each.device).index_add(0, rows, each)
