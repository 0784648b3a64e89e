"""An experiment from its configuration; its evaluators are the list of `truesource.evaluation.evaluators`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import truesource.evaluation.evaluators
from truesource.run import config
from truesource.run.config import RunConfig

if TYPE_CHECKING:
    from truesource.run.runner import PlannedStage
    from truesource.run.stage import Stage


def load_config(path: str | Path, overrides: list[str] | None = None) -> RunConfig:
    """Read a YAML configuration; see `truesource.run.config.load_config`."""
    return config.load_config(path, overrides, evaluators=truesource.evaluation.evaluators.EVALUATORS)


def plan(config: RunConfig) -> list[Stage]:
    """Return the stages of a configuration, in order."""
    from truesource.run import runner  # here and below: a refused call does not import it

    return runner.plan(config, truesource.evaluation.evaluators.EVALUATORS)


def execute(config: RunConfig, *, base: Path, runs: Path, force: bool = False) -> Path:
    """Run an experiment; see `truesource.run.runner.execute`."""
    from truesource.run import runner

    return runner.execute(config, truesource.evaluation.evaluators.EVALUATORS, base=base, runs=runs, force=force)


def dry_run(config: RunConfig, *, base: Path, runs: Path, force: bool = False) -> list[PlannedStage]:
    """Return which stages would run, and why; see `truesource.run.runner.dry_run`."""
    from truesource.run import runner as planning

    return planning.dry_run(config, truesource.evaluation.evaluators.EVALUATORS, base=base, runs=runs, force=force)


def build_report(run: Path) -> Path:
    """Write ``report.html`` into a run folder; see `truesource.report.page.write_page`."""
    from truesource.report.page import write_page
    from truesource.run.sections import contents

    return write_page(run, partial(contents, evaluators=truesource.evaluation.evaluators.EVALUATORS))


def draw_figure(
    run: Path, name: str, kind: str, size: tuple[float, float] | None = None, font_size: float | None = None
) -> bytes:
    """Draw one figure of a report as SVG, PDF or PNG; see `truesource.report.page.figure_of`."""
    from truesource.report.page import figure_of
    from truesource.run.sections import contents

    build_contents = partial(contents, evaluators=truesource.evaluation.evaluators.EVALUATORS)
    return figure_of(run, name, build_contents, kind=kind, size=size, font_size=font_size)
