"""The root of results: one digest over every table, figure and claim, and over all that they were made from.

Who can write into a folder can forge everything in it, manifests included. A root that was written down elsewhere (in a
commit, in a footnote) cannot be forged with it.
"""

import json
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from encore.storage.files import full_digest, readable_object, sha256, write_json
from encore.storage.manifest import MANIFEST

RESULTS = Path("results")
ROOT = RESULTS / "root.json"
SIGNATURE = RESULTS / "root.json.sig"  # of `ssh-keygen -Y sign`


def product_manifests() -> list[Path]:
    """The manifests of all tables, figures and claims in results; the report has none: it shows times of jobs."""
    found = [*RESULTS.glob(f"*.{MANIFEST}"), *(RESULTS / "tables").rglob(f"*.{MANIFEST}")]
    found += (RESULTS / "figures").rglob(f"*.{MANIFEST}")
    return sorted(found)


def manifests_behind(products: list[Path]) -> dict[str, str]:
    """The digest of each manifest that products were made from, their own included, by its path.

    What is missing or cannot be read has ``missing`` for a digest.
    """
    found: dict[str, str] = {}
    waiting = [str(path) for path in products]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = sha256(Path(name))
            waiting += [str(read) for read in json.loads(Path(name).read_bytes())["inputs"] if read.endswith(MANIFEST)]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            found.setdefault(name, "missing")
    return dict(sorted(found.items()))


def compute_root() -> dict[str, Any] | None:
    """The root of ``results/``, or None if no product is made.

    Returns:
        ``root``, 64 hexadecimal digits: the sha256 of the canonical JSON of ``manifests``, which has the sha256 of each
        manifest by its path.
    """
    manifests = manifests_behind(product_manifests())
    return {"root": full_digest(manifests), "manifests": manifests} if manifests else None


def write_root() -> str | None:
    """Write ``results/root.json`` if it changes, and return the root, or None if no product is made."""
    content = compute_root()
    if content is None:
        return None
    if read_root() != content:
        write_json(ROOT, content)
    return str(content["root"])


def read_root() -> dict[str, Any] | None:
    """The root that the last run recorded, with any keys that were added, or None if it cannot be read."""
    content = readable_object(ROOT)
    return {**content, "root": str(content["root"])} if {"root", "manifests"} <= content.keys() else None


def beginning_of_root(text: str) -> str:
    """The type of a flag that has the first digits of a root: of fewer than 16 others can be found that have them."""
    if not (16 <= len(text) <= 64 and set(text.lower()) <= set("0123456789abcdef")):
        raise ArgumentTypeError(f"{text!r} is not the first 16 to 64 digits of a root, as `encore audit` prints it")
    return text


def compare_root(expected: str | None) -> tuple[str | None, str]:
    """Compare the root of the results with the one that a user wrote down elsewhere.

    Args:
        expected: the first 16 digits of it or more; None without.

    Returns:
        What is wrong, or None; and what to print of the root.
    """
    content = compute_root()
    if content is None:
        return ("nothing is made, so there is no root" if expected else None), "no root: nothing is made"
    root = str(content["root"])
    if expected is not None and not root.startswith(expected.lower()):
        return f"the root of these results is {root}, not {expected}: they are other ones", f"root {root}"
    recorded = read_root()
    if recorded is None:
        return None, f"root {root} (results/root.json {'cannot be read' if ROOT.exists() else 'is missing'})"
    if recorded["root"] != root:
        return None, f"root {root} (when the last run ended: {recorded['root']})"
    edited = "" if recorded == content else " (results/root.json was edited: entries besides the root differ)"
    return None, f"root {root}{edited}"
