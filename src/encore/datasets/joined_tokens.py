"""The token store of collections that are read as one (kind ``concat``), joined from their own token stores.

It has the bytes of the store that is made from the texts of the joined collection, which nobody has to write then.
"""

import shutil
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from encore.data import vocabulary
from encore.data.collection import LANGUAGE, Collection
from encore.data.tokens import TokenStore, unknown_shares
from encore.datasets.concat import named_parts
from encore.errors import EncoreError
from encore.storage.files import replacing, sha256, write_array, write_text

SEQUENCES = ("passages", "queries", "sentences", "titles")
UNJOINED = ("passages", "queries")  # a joined collection has articles alone


def join_stores(collections: list[Path], stores: list[Path], folder: Path) -> dict[str, Any]:
    """Write the token store of collections as one into ``folder`` and return its counts.

    Args:
        collections: the folders of the parts, whose names are those of the datasets with a digest behind.
        stores: their token stores.
    """
    names = [path.name.rpartition("-")[0] for path in collections]
    named_parts(names, map(Collection, collections))
    if len(stores) != len(collections):
        raise EncoreError(f"there are {len(collections)} collections and {len(stores)} token stores; give one of each")
    if len({tuple(map(sha256, vocabulary.files(store / "tokenizer"))) for store in stores}) > 1:
        raise EncoreError(f"{', '.join(map(str, stores))} are of different tokenizers; make them with one")
    vocabulary.copy_tokenizer(stores[0] / "tokenizer", folder / "tokenizer")
    parts = [TokenStore(store) for store in stores]
    for name in UNJOINED:
        write_text(folder / f"{name}.names.txt", "")
    if all((store / LANGUAGE).is_file() for store in stores):
        shutil.copyfile(stores[0] / LANGUAGE, folder / LANGUAGE)
    counts = {f"tokens_in_{name}": _join_sequences(folder, name, parts) for name in SEQUENCES}
    counts |= _join_structure(folder, parts)
    return counts | unknown_shares(TokenStore(folder))


def _join_sequences(folder: Path, name: str, parts: list[TokenStore]) -> int:
    used = parts if name not in UNJOINED else []
    with replacing(folder / f"{name}.ids.bin") as temporary, temporary.open("wb") as file:
        for store in used:
            with (store.folder / f"{name}.ids.bin").open("rb") as ids:
                shutil.copyfileobj(ids, file, 2**24)
    offsets = _joined(getattr(store, name).offsets for store in used)
    write_array(folder / f"{name}.offsets.npy", offsets)
    return int(offsets[-1])


def _join_structure(folder: Path, parts: list[TokenStore]) -> dict[str, int]:
    sections = _joined(part.sections for part in parts)
    articles = _joined(part.articles for part in parts)
    first = np.cumsum([0, *(len(part.sections) - 1 for part in parts)])
    links = np.concatenate([part.links + begin for part, (begin, _) in zip(parts, pairwise(first), strict=True)])
    for name, array in (("sections", sections), ("articles", articles), ("links", links)):
        write_array(folder / f"{name}.npy", array)
    return {"sections": len(sections) - 1, "articles": len(articles) - 1, "links": len(links)}


def _joined(offsets: Iterable[np.ndarray]) -> np.ndarray:
    """Where things begin, as one: each array begins with 0 and ends with how many there are in its part."""
    parts = list(offsets)
    begins = np.cumsum([0, *(each[-1] for each in parts)])
    return np.concatenate([begins[:1], *(each[1:] + begin for each, begin in zip(parts, begins, strict=False))])
