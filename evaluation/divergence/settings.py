"""Properties that divergence can be broken down by."""

from __future__ import annotations

from typing import Literal, get_args

By = Literal["position", "length", "class", "frequency"]
BY: tuple[By, ...] = get_args(By)
