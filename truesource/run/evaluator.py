"""An evaluator: something that a run can measure, with its settings, its verb and its section of the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.report.finished_run import FinishedRun
    from truesource.run.config import RunConfig
    from truesource.run.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """One evaluator: a package whose ``__init__`` makes this, with these modules, imported when they are needed.

    ========================= =====================================================================================
    ``command.py``            ``command``: the verb `truesource evaluate <name>`
    ``stage.py``              ``stages(config)``: the steps of a run, see `truesource.run.stage.Stage`
    ``section.py``            ``section(run)``: what the template shows; None or empty where nothing was measured
    ``section.html.j2``       the body of the section; it finds ``section(run)`` as ``section``
    ========================= =====================================================================================
    """

    name: str  #: of the verb, the key under ``evaluation``, the first or only kind of stage, and the section
    title: str  #: of the section
    summary: str  #: one line for the help of `truesource evaluate`
    package: str  #: where the modules are: ``__name__``
    settings: type[Settings]  #: keys of the configuration, and options of the verb
    kinds: tuple[str, ...] = ()  #: of its stages, where they are others than the name

    @property
    def command(self) -> Callable[..., None]:
        """The verb."""
        return self._module("command").command  # type: ignore[no-any-return]

    def stages(self, config: RunConfig) -> list[Stage]:
        """The steps of a run that asks for it."""
        return self._module("stage").stages(config)  # type: ignore[no-any-return]

    def check(self, config: RunConfig) -> None:
        """Refuse a configuration that asks for what cannot be measured, by the ``check(config)`` beside the settings.

        Raises:
            InputError: what is missing, and what to do.
        """
        check = getattr(import_module(self.settings.__module__), "check", None)
        if check is not None:
            check(config)

    def section(self, run: FinishedRun) -> Any:
        """The content that the template shows."""
        return self._module("section").section(run)

    @property
    def template(self) -> Path:
        """The template of the section."""
        return Path(str(self._module("section").__file__)).with_name("section.html.j2")

    def _module(self, name: str) -> ModuleType:
        return import_module(f"{self.package}.{name}")
