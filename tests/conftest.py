"""What all tests share: a deterministic hypothesis profile, and Ctrl-C that works where a shell had it ignored."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("suite")

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a script start with it ignored
