"""Loading any model; networks are imported where a reference names one."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from truesource.generator.language_model import LanguageModel
from truesource.grammar.support.errors import extras_for
from truesource.lmtrain.code import load_code
from truesource.lmtrain.ready import ready_model
from truesource.lmtrain.references import ModelReference, model_reference


def load_model(
    reference: str | Path | ModelReference, *, base: Path | None = None, device: str | None = None
) -> LanguageModel:
    """Load any model: a folder, code, an entry point, or an architecture of one's own that was trained here.

    * a folder, see `truesource.lmtrain.trained_models.load_folder`; a `Path` is always a folder;
    * ``file.py:name`` or ``package.module:name``: a model that is ready, see `truesource.lmtrain.ready.ready_model`;
    * the name of an entry point of the group ``truesource.models``, which names such code;
    * ``CODE@FOLDER``: the architecture that ``CODE`` names, trained in ``FOLDER``.

    Code is run only where the reference names it, never because a folder does.

    Args:
        reference: as above.
        base: folder that relative paths start from; None: the working folder.
        device: of networks in folders, such as ``"cpu"``; None: see `truesource.lmtrain.device`.

    Raises:
        InputError: there is no such model, or it cannot be used; see the functions above.
    """
    named = model_reference(reference, base)
    code = None if named.code is None else load_code(named.code, named.base)
    if code is not None and named.folder is None:
        return ready_model(code)
    folder = cast(Path, named.folder)
    with extras_for(f"the model {named.text}"):
        from truesource.lmtrain.trained_models import load_folder, load_own_model
    return load_folder(folder, device=device) if code is None else load_own_model(folder, code, device=device)
