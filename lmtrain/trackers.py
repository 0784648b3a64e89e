"""Trackers that are shown the metrics of a training: those that `transformers` knows, such as TensorBoard."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK, get_available_reporting_integrations

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import did_you_mean

log = logging.getLogger("truesource")
TENSORBOARD = "tensorboard"
FOLDER = "TENSORBOARD_LOGGING_DIR"  #: where `transformers` looks for the folder of its events


def require_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that cannot be used, before anything is trained.

    Raises:
        InputError: `transformers` knows no such tracker (code ``no-tracker``), or it is not installed
            (``missing-library``).
    """
    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            similar = did_you_mean(name, INTEGRATION_TO_CALLBACK)
            raise InputError(
                f"training.report_to: there is no tracker {name!r}{similar or ';'} there are"
                f" {', '.join(INTEGRATION_TO_CALLBACK)}",
                code="no-tracker",
            )
        if name not in get_available_reporting_integrations():
            raise InputError(
                f"training.report_to: the tracker {name} is not installed; install its package, or leave it out",
                code="missing-library",
            )


@contextmanager
def events_beside(model: Path, names: Sequence[str]) -> Iterator[None]:
    """Let TensorBoard write to ``<model>.tensorboard``, where the environment names no folder; inside the block.

    Args:
        model: folder that is made; it is renamed when it is finished, so events are beside it.
        names: trackers in use.
    """
    if TENSORBOARD not in names:
        yield
        return
    named = os.environ.get(FOLDER)
    folder = named or str(model.with_name(f"{model.name}.tensorboard"))
    log.info("events for TensorBoard: %s; tensorboard --logdir %s shows them", folder, folder)
    os.environ[FOLDER] = folder
    try:
        yield
    finally:
        if named is None:
            del os.environ[FOLDER]
