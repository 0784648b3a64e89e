"""Cards: the ``README.md`` of a folder of data or of a model, with metadata for the Hugging Face hub.

`huggingface_hub` writes the metadata; each kind of folder has a module ``card`` with its own text. Nothing here needs a
network.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import one_line

if TYPE_CHECKING:
    from huggingface_hub import CardData, EvalResult

UNKNOWN = "unknown"  #: notation of the hub for an unknown licence
ARTIFICIAL = "art"  #: code of ISO 639-2 for artificial languages
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
_NAMES = (
    "afl-3.0 agpl-3.0 apache-2.0 artistic-2.0 bsd-2-clause bsd-3-clause bsd-3-clause-clear bsl-1.0 cc-by-2.0 "
    "cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 "
    "cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 "
    "cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0 ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 "
    "eupl-1.2 gpl-2.0 gpl-3.0 isc lgpl-2.1 lgpl-3.0 lppl-1.3c mit mpl-2.0 ms-pl ncsa ofl-1.1 osl-3.0 postgresql "
    "unknown unlicense wtfpl zlib "
)
#: licences of the hub under the lower-case form of their SPDX identifier
_OF_HUB = frozenset(_NAMES.split())
#: licences of the hub under another name
_RENAMED = {"c-uda-1.0": "c-uda", "odbl-1.0": "odbl", "odc-by-1.0": "odc-by", "pddl-1.0": "pddl"}
_SIZES = {
    10**3: "n<1K",
    10**4: "1K<n<10K",
    10**5: "10K<n<100K",
    10**6: "100K<n<1M",
    10**7: "1M<n<10M",
    10**8: "10M<n<100M",
    10**9: "100M<n<1B",
}


def dataset_card(
    name: str,
    text: str,
    *,
    rows: int,
    splits: Sequence[str],
    license: str | None,  # noqa: A002
    tasks: Sequence[str],
    tags: Sequence[str],
    language: str | None = None,
) -> str:
    """Return the card of a folder of data, which lets `datasets` load it.

    Args:
        name: name of the folder.
        text: text below the metadata, Markdown.
        rows: number in all splits together.
        splits: names; the files of a split are ``data/SPLIT-*.parquet``.
        license: see `checked_license`; None if unknown.
        tasks: categories of the hub.
        tags: in addition to ``truesource``.
        language: code of the language, None if unknown.
    """
    from huggingface_hub import DatasetCardData

    files = [{"split": split, "path": f"data/{split}-*.parquet"} for split in splits]
    data = DatasetCardData(
        **license_fields(license),
        language=language,
        pretty_name=one_line(name),
        task_categories=[*tasks],
        tags=[*tags, "truesource"],
        size_categories=[next((text for limit, text in _SIZES.items() if rows < limit), "n>1B")],
        configs=[{"config_name": "default", "data_files": files}],
    )
    return _card(data, text)


def model_card(
    name: str,
    text: str,
    *,
    license: str | None,  # noqa: A002
    tags: Sequence[str],
    library: str,
    task: str | None,
    language: str | None = None,
    results: Sequence[EvalResult] = (),
) -> str:
    """Return the card of a folder of a model.

    Args:
        name: name of the model.
        text: text below the metadata, Markdown.
        license: see `checked_license`; None if unknown.
        tags: in addition to ``truesource``.
        library: library that opens the folder.
        task: pipeline of `transformers` for the folder, None for none.
        language: code of the language, None if unknown.
        results: results of evaluation.
    """
    from huggingface_hub import ModelCardData

    data = ModelCardData(
        **license_fields(license),
        language=language,
        library_name=library,
        pipeline_tag=task,
        tags=["truesource", *tags],
        model_name=one_line(name) if results else None,
        eval_results=[*results] or None,
    )
    return _card(data, text)


def _card(data: CardData, text: str) -> str:
    """Return a card as the class ``RepoCard`` of the hub writes it, whose import takes a third of a second."""
    return f"---\n{data.to_yaml()}\n---\n\n{text}"


def checked_license(identifier: str) -> str:
    """Return an SPDX identifier, such as ``CC-BY-4.0`` or ``LicenseRef-LDC``, or ``unknown``.

    Raises:
        InputError: it is not one.
    """
    if not _SPDX.fullmatch(identifier):
        raise InputError(
            f"expecting an SPDX identifier such as Apache-2.0 or CC-BY-4.0, or unknown, not {identifier!r}",
            code="bad-license",
        )
    return identifier


def license_fields(license: str | None) -> dict[str, Any]:  # noqa: A002
    """Return the fields that name a licence: a licence of the hub, or ``other`` and its SPDX identifier."""
    name = (license or UNKNOWN).lower()
    short_name = re.sub(r"-(only|or-later)$", "", name)
    if short_name in _OF_HUB or short_name in _RENAMED:
        return {"license": _RENAMED.get(short_name, short_name)}
    return {"license": "other", **({"license_name": name} if _SPDX.fullmatch(name) else {})}
