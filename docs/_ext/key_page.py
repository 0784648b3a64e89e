"""The page of signature keys."""

from __future__ import annotations

from truesource.evaluation.core.signature import KEY_GROUPS

HEAD = """\
# Signature keys

The build of the site generates this page from the one list of keys in the code. A signature is `key:value` pairs joined
by
`|`. [Signatures](../concepts/signatures.md) takes one apart. A number has only the keys that could change it.
"""


def page() -> str:
    """The page, in Markdown."""
    parts = [HEAD]
    for title, keys in KEY_GROUPS.items():
        rows = "".join(f"| `{key}` | {meaning} |\n" for key, meaning in keys.items())
        parts.append(f"## {title}\n\n| key | meaning |\n| --- | --- |\n{rows}")
    return "\n".join(parts)
