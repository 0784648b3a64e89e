"""References to models, as verbs, configurations and Python take them; nothing else decides what a reference is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import refuse_other_kind
from truesource.lmtrain.code import code_file, is_code
from truesource.lmtrain.training_record import FILE

GROUP = "truesource.models"  #: entry points of installed packages that name models
ARCHITECTURES = "truesource.architectures"  #: the same of architectures that can be trained


@dataclass(frozen=True)
class ModelReference:
    """What a reference names; nothing of it has been read or run."""

    text: str  #: as given
    folder: Path | None = None  #: of a trained model
    code: str | None = None  #: of a ready model, or, beside a folder, of the architecture that was trained there
    base: Path | None = None  #: folder that relative paths start from; None: the working folder

    @property
    def ready(self) -> bool:
        """Whether code alone gives the model."""
        return self.folder is None

    @property
    def title(self) -> str:
        """A short name: of the folder, or of what the code names."""
        return self.text.rpartition(":")[2] if self.folder is None else self.folder.resolve().name

    def at(self, folder: Path) -> ModelReference:
        """The same architecture in another folder, such as a snapshot."""
        return replace(self, text=str(folder) if self.code is None else f"{self.code}@{folder}", folder=folder)


def model_reference(reference: str | Path | ModelReference, base: Path | None = None) -> ModelReference:
    """Decide what a reference to a model names.

    In this order: a folder that exists, code (``file.py:name``, ``package.module:name``), the name of an entry point of
    the group ``truesource.models``, code and a folder (``CODE@FOLDER``).

    Args:
        reference: as given; a `Path` is always a folder; what was decided already is returned.
        base: folder that relative paths start from; None: the working folder.

    Raises:
        InputError: it names none of these, or a folder of a run or of a corpus (code ``no-model``).
    """
    if isinstance(reference, ModelReference):
        return reference
    text = str(reference)
    folder = (base or Path()).joinpath(Path(text).expanduser())
    if isinstance(reference, Path) or folder.is_dir():
        refuse_other_kind(folder, "model", code="no-model")
        return ModelReference(text, folder=folder, base=base)
    if is_code(text):
        return ModelReference(text, code=text, base=base)
    entry = entry_point(GROUP, text)
    if entry is not None:
        return ModelReference(text, code=f"{entry.module}:{entry.attr}", base=base)
    code, trained = _code_and_folder(text)
    if code:
        return ModelReference(text, folder=(base or Path()).joinpath(Path(trained).expanduser()), code=code, base=base)
    raise InputError(
        f"there is no model {text!r}: it is not a folder, not code as file.py:name, and no installed package offers"
        " a model of this name",
        code="no-model",
    )


def require_there(reference: str) -> None:
    """Stop before a reference that names no model, a folder of another kind, or a file of code that is not there.

    Raises:
        InputError: it does; nothing has been read or run.
    """
    named = model_reference(reference)
    if named.code is not None:
        code_file(named.code, named.base)


def is_own(architecture: str) -> bool:
    """Whether the name of an architecture is code of one's own, or an entry point that names it; nothing is run."""
    return is_code(architecture) or entry_point(ARCHITECTURES, architecture) is not None


def code_of_architecture(name: str) -> str:
    """What an architecture of one's own is called, as code: an entry point is replaced by what it names.

    Raises:
        InputError: two packages offer it (code ``ambiguous``).
    """
    entry = None if is_code(name) else entry_point(ARCHITECTURES, name)
    return name if entry is None else f"{entry.module}:{entry.attr}"


def names_model(text: str) -> bool:
    """Whether a text names a model where it could also name a text, a corpus or a grammar."""
    try:
        named = model_reference(text)
    except InputError as error:
        if error.code != "no-model":
            raise
        return False
    return named.folder is None or any((named.folder / name).is_file() for name in ("config.json", FILE))


def entry_point(group: str, name: str) -> EntryPoint | None:
    """The entry point of an installed package that has a name; None: there is none.

    Raises:
        InputError: two packages offer it (code ``ambiguous``).
    """
    found = {entry.value: entry for entry in entry_points(group=group, name=name)}
    if len(found) > 1:
        raise InputError(
            f"installed packages offer {' and '.join(sorted(found))} as {name!r}; name one as code", code="ambiguous"
        )
    return next(iter(found.values()), None)


def _code_and_folder(text: str) -> tuple[str, str]:
    """The two parts of ``CODE@FOLDER``; two empty texts where it is not of this form."""
    at = text.find("@")
    while at >= 0:
        if text[at + 1 :] and is_own(text[:at]):
            return code_of_architecture(text[:at]), text[at + 1 :]
        at = text.find("@", at + 1)
    return "", ""
