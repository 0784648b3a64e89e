"""References to models, as verbs, configurations and Python take them, and the code that they name.

Nothing else decides what a reference is. Code is named as ``file.py:name`` or ``package.module:name`` and imported
once, with its digest. It runs here only because somebody wrote its name on the command line, in a configuration or in a
call. Nothing that is read from a model folder may come here.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from truesource.generator.foreign_code import code_errors, contained, said
from truesource.grammar.support.call_arguments import as_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import expand_user
from truesource.grammar.support.folders import refuse_other_kind
from truesource.lmtrain.training_record import FILE

GROUP = "truesource.models"  #: entry points of installed packages that name models
ARCHITECTURES = "truesource.architectures"  #: entry points that name architectures
_NAMES = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_CODE = re.compile(rf".+:{_NAMES}")
_MODULE = re.compile(_NAMES)
ARPA = ".arpa"  #: ending of files of n-grams, also with ``.gz``
_SHOWN = 5  #: names of a module that a message lists
_files: dict[Path, tuple[ModuleType, str]] = {}  #: modules of files that this process has imported, and their digests
_neighbours: dict[str, Path] = {}  #: top-level modules that such files imported from their own folder
_lock = threading.RLock()  # code may name other code while it is imported


@dataclass(frozen=True)
class Code:
    """An object that the user named."""

    object: Any
    name: str  #: the text as given
    source: Path | None  #: file of the code; None: no readable file
    digest: str | None  #: SHA-256 of that file, as it was when it was imported

    def call(self, *args: Any, **settings: Any) -> Any:
        """Call the object, with its folder first on the search path of modules.

        Raises:
            InputError: it cannot be called (code ``not-callable``), or it raises (``code-failed``).
        """
        if not callable(self.object):
            kind = type(self.object).__name__
            raise InputError(f"{self.name} is {_article(kind)}, which cannot be called", code="not-callable")
        with code_errors(f"{self.name}", self.source), _first_on_path(self.source and self.source.parent):
            return self.object(*args, **settings)


def is_code(text: str) -> bool:
    """Return True if a text has the form of code, ``file.py:name`` or ``package.module:name``; nothing is looked up."""
    return _CODE.fullmatch(text) is not None


def load_code(text: str, base: Path | None = None) -> Code:
    """Import the code that a text names.

    A file is imported once per process, as a module of its own, with its folder first on the search path so that it can
    import the files next to it. A module of a package is found as by ``import``, and after that in ``base``.

    Args:
        text: ``file.py:name`` or ``package.module:name``; the name may have dots, as ``Class.method``.
        base: folder that a relative path of a file starts from; None: the working folder.

    Raises:
        InputError: the text has another form (code ``not-code``), there is no such file (``missing``), it is not a file
            of Python (``not-python``), there is no such module (``no-module``) or name (``no-name``), or the module
            raises while it is imported (``import-failed``).
    """
    where, _, name = text.rpartition(":")
    source = code_file(text, base)
    with _lock:
        if source is not None:
            module, digest = _import_file(source)
            return Code(_named(module, name, source), text, source, digest)
        module = _import_module(where, text, base)
    file = _source_of(module)
    target = _named(module, name, file or where)
    return Code(target, text, file, None if file is None else hashlib.sha256(file.read_bytes()).hexdigest())


def code_file(text: str, base: Path | None = None) -> Path | None:
    """Return the file that code names, which is there; None: it names a module.

    Raises:
        InputError: the text has another form (code ``not-code``), there is no such file (``missing``), or it is not one
            of Python by its name (``not-python``).
    """
    if not is_code(text):
        raise InputError(f"{text!r} does not name code; write file.py:name or package.module:name", code="not-code")
    where = text.rpartition(":")[0]
    source = (base or Path()).joinpath(expand_user(where))
    if not where.endswith(".py") and _MODULE.fullmatch(where) and not source.is_file():
        return None
    if source.suffix != ".py":
        raise InputError(f"{text!r} names code, but the file before the colon is not a .py file", code="not-python")
    if not source.is_file():
        raise InputError("there is no such file of code", source, code="missing")
    return source


def _import_file(source: Path) -> tuple[ModuleType, str]:
    place = source.resolve()
    if place in _files:
        return _files[place]
    content = source.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    unique = f"truesource_code_{source.stem}_{hashlib.sha256(str(place).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(unique, source)
    if spec is None:
        raise InputError("this is not a file of Python", source, code="not-python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module  # classes of the file find their module there
    try:
        with _import_errors(source), _own_neighbours(place.parent), _first_on_path(source.parent):
            # not through the cache of bytecode, which does not see two changes within a second
            exec(compile(content, str(place), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[unique]
        raise
    _files[place] = module, digest
    return module, digest


def _import_module(where: str, text: str, base: Path | None) -> ModuleType:
    folder = str((base or Path()).resolve())
    sys.path.append(folder)
    importlib.invalidate_caches()
    try:
        with contained():
            return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{where}.".startswith(f"{error.name}."):
            raise InputError(
                f"there is no module {error.name!r} here or among the installed packages, which {text!r} names",
                code="no-module",
            ) from error
        raise InputError(f"{where} cannot be imported: it raises {said(error)}", code="import-failed") from error
    except (InputError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise InputError(f"{where} cannot be imported: it raises {said(error)}", code="import-failed") from error
    finally:
        sys.path.remove(folder)


@contextmanager
def _import_errors(source: Path) -> Iterator[None]:
    with code_errors("this file cannot be imported: it", source, "import-failed"):
        yield


def _named(module: ModuleType, name: str, where: Path | str) -> Any:
    result: Any = module
    for part in name.split("."):
        try:
            result = getattr(result, part)
        except AttributeError:
            raise InputError(f"there is no {name!r} here; {_names_of(module)}", where, code="no-name") from None
    return result


def _names_of(module: ModuleType) -> str:
    """Return the first names that a module itself defines, for a message."""
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and getattr(value, "__module__", module.__name__) == module.__name__
    ]
    if not names:
        return "the module defines no names"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"the module defines {', '.join(names[:_SHOWN])}{more}"


def _source_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) and Path(file).is_file() else None


@contextmanager
def _first_on_path(folder: Path | None) -> Iterator[None]:
    if folder is None:
        yield
        return
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        if entry in sys.path:  # the code may have changed the path itself
            sys.path.remove(entry)


@contextmanager
def _own_neighbours(folder: Path) -> Iterator[None]:
    """Keep modules that code imported from its own folder from replacing modules of another ``folder`` in the block."""
    for name in [name for name, home in _neighbours.items() if home != folder]:
        if (folder / f"{name}.py").is_file() or (folder / name).is_dir():
            for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
                del sys.modules[loaded]
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if isinstance(file, str) and folder in Path(file).resolve().parents and "site-packages" not in file:
            _neighbours[name.partition(".")[0]] = folder


def _article(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


@dataclass(frozen=True)
class ModelReference:
    """The model that a reference names; nothing of it has been read or run."""

    text: str  #: the reference
    folder: Path | None = None  #: of a trained model
    file: Path | None = None  #: of a model in one file
    code: str | None = None  #: of a ready model, or, next to a folder, of the architecture that was trained there
    base: Path | None = None  #: folder that relative paths start from; None: the working folder

    @property
    def ready(self) -> bool:
        """True if code or a file alone gives the model."""
        return self.folder is None

    @property
    def title(self) -> str:
        """A short name: of the folder, or of the object that the code names."""
        if self.file is not None:
            return self.file.name.removesuffix(".gz").removesuffix(ARPA)
        return self.text.rpartition(":")[2] if self.folder is None else self.folder.resolve().name

    def at(self, folder: Path) -> ModelReference:
        """Return this architecture in another folder, such as a snapshot."""
        return replace(self, text=str(folder) if self.code is None else f"{self.code}@{folder}", folder=folder)


def model_reference(reference: str | Path | ModelReference, base: Path | None = None) -> ModelReference:
    """Decide what a reference to a model names.

    In this order: a folder that exists, a file of n-grams (``.arpa``, ``.arpa.gz``), code (``file.py:name``,
    ``package.module:name``), the name of an entry point of the group ``truesource.models``, code and a folder
    (``CODE@FOLDER``).

    Args:
        reference: text or object; a `Path` is always a folder; a `ModelReference` is returned as it is.
        base: folder that relative paths start from; None: the working folder.

    Raises:
        InputError: it names none of these, or a folder of a run or of a corpus (code ``no-model``).
    """
    if isinstance(reference, ModelReference):
        return reference
    text = str(as_path(reference, "a model")) if isinstance(reference, Path) or not reference else reference
    folder = (base or Path()).joinpath(expand_user(text))
    if is_arpa(folder):
        return ModelReference(text, file=folder, base=base)
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
        return ModelReference(text, folder=(base or Path()).joinpath(expand_user(trained)), code=code, base=base)
    raise InputError(
        f"there is no model {text!r}: it is not a folder, not a file of n-grams (.arpa), not code as file.py:name, and"
        " no installed package offers a model of this name",
        code="no-model",
    )


def is_arpa(path: Path) -> bool:
    """Return True if a path is a file of n-grams, by its name."""
    return path.name.removesuffix(".gz").endswith(ARPA) and path.is_file()


def require_there(reference: str) -> None:
    """Refuse a reference to no model, a folder of another kind, or a missing file of code.

    Raises:
        InputError: it is one of these; nothing has been read or run.
    """
    named = model_reference(reference)
    if named.code is not None:
        code_file(named.code, named.base)


def is_own(architecture: str) -> bool:
    """Return True if an architecture is custom code, or an entry point that names it; nothing is run."""
    return is_code(architecture) or entry_point(ARCHITECTURES, architecture) is not None


def code_of_architecture(name: str) -> str:
    """Return the code of a custom architecture: an entry point is replaced by the code that it names.

    Raises:
        InputError: two packages offer it (code ``ambiguous``).
    """
    entry = None if is_code(name) else entry_point(ARCHITECTURES, name)
    return name if entry is None else f"{entry.module}:{entry.attr}"


def names_model(text: str) -> bool:
    """Return True if a reference names a model, and not a text, a corpus or a grammar."""
    try:
        named = model_reference(text)
    except InputError as error:
        if error.code != "no-model":
            raise
        return False
    return named.folder is None or any((named.folder / name).is_file() for name in ("config.json", FILE))


def entry_point(group: str, name: str) -> EntryPoint | None:
    """Return the entry point of an installed package of a name; None if no package has it.

    Raises:
        InputError: two packages offer it (code ``ambiguous``).
    """
    entries = {entry.value: entry for entry in entry_points(group=group, name=name)}
    if len(entries) > 1:
        raise InputError(
            f"installed packages offer {' and '.join(sorted(entries))} as {name!r}; name one as code", code="ambiguous"
        )
    return next(iter(entries.values()), None)


def _code_and_folder(text: str) -> tuple[str, str]:
    """Return the two parts of ``CODE@FOLDER``; two empty texts if it has another form."""
    at = text.find("@")
    while at >= 0:
        if text[at + 1 :] and is_own(text[:at]):
            return code_of_architecture(text[:at]), text[at + 1 :]
        at = text.find("@", at + 1)
    return "", ""
