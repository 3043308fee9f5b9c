"""Whole docstrings as documents: pydocs' objects and queries again, with all of each body instead of its beginning.

They replace MS MARCO's documents, whose text is title, address and body. Here these are the object's dotted name, the
path of its module and the body without its summary, the summary being the query. A name often says what its object does
(``sort_values``: "Sort by the values ..."), so a title or an address that shares a content word with the object's own
query is left out: what is left cannot be what finds the document.
"""

import re
from pathlib import Path
from typing import Any

from encore.data.collection import Collection, Row, judgments_of, write_collection
from encore.data.text_fields import Form
from tools.pydocs.derived import PydocsObject, objects

TITLE_ADDRESS_BODY = Form((("title", "url", "text"),))
BEGINNING = 4  # letters that two words share that are forms of one
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SHORT = 3  # words of fewer letters say nothing


def write_documents(folder: Path, base: Collection) -> dict[str, Any]:
    """Write the documents of a pydocs and return their counts."""
    rows = [document(each) for each in objects(base)]
    return write_collection(
        folder,
        rows,
        base.query_rows(),
        {split: judgments_of(base.qrels(split)) for split in base.splits()},
        statistics={
            "titles": sum(bool(row["title"]) for row in rows),
            "addresses": sum(bool(row["url"]) for row in rows),
            "words": sum(len(row["text"].split()) for row in rows),
            "longer_than_passages": sum(
                len(row["text"]) > len(passage["text"]) for row, passage in zip(rows, base.corpus(), strict=True)
            ),
        },
        form=TITLE_ADDRESS_BODY,
    )


def document(each: PydocsObject) -> Row:
    """An object as a document."""
    fields = {"title": each.id, "url": each.module.replace(".", "/")}
    kept = {name: "" if shares_a_word(text, each.query or "") else text for name, text in fields.items()}
    return {"_id": each.id, **kept, "text": " ".join(each.sentences)}


def shares_a_word(name: str, query: str) -> bool:
    """Whether a dotted name has a word of a query, or one that begins alike (``sorted`` and ``sort_values``)."""
    ours, theirs = _words(name), _words(query)
    return any(one[:BEGINNING] == other[:BEGINNING] for one in ours for other in theirs)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if len(word) >= _SHORT}
