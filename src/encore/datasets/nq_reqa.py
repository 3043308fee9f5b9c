"""Natural Questions as ReQA: training rows as paragraphs with questions, by the rules of the ReQA evaluation.

A row counts if its annotation has exactly one short answer, and a long answer that is a ``<P>`` block; HTML tokens are
dropped (google/retrieval-qa-eval, nq_to_squad.py). Two forms are read. In the original one each token has its bytes in
the page, so blanks are put where the page has white space between two tokens. The simplified one has tokens alone:
there a blank is put between two tokens, unless one of them is a mark that clings to the other.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from encore.datasets.reqa.paragraphs import ParagraphQuestion, SourceParagraph
from encore.datasets.reqa.published import published_kind
from encore.errors import EncoreError
from encore.storage.text_files import numbered_objects

_TAG = re.compile(r"<[^>]*>")
_TO_THE_LEFT = re.compile(r"[.,;:?!%)\]}]+|''|'(s|m|d|re|ve|ll|S)|n't")  # follow their word without a blank
_TO_THE_RIGHT = re.compile(r"[(\[{$#]|``")  # are followed without one
Token = tuple[str, bool]  # what it says, and whether a blank follows; tags say nothing


def nq_paragraphs(paths: Iterable[Path], counts: Counter[str]) -> Iterator[SourceParagraph]:
    """A paragraph for each row that counts, in order; reasons for leaving rows out go to ``counts``."""
    for path in paths:
        for number, row in numbered_objects(path):
            counts["rows"] += 1
            try:
                found = _paragraph(row, counts)
            except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
                raise EncoreError(
                    f"{path}, line {number}: no row of Natural Questions ({error!r}); fix or remove it"
                ) from error
            if found is not None:
                yield found


def _paragraph(row: dict[str, Any], counts: Counter[str]) -> SourceParagraph | None:
    annotation = row["annotations"][0]
    short, long = annotation["short_answers"], annotation["long_answer"]
    first, last = long["start_token"], long["end_token"]
    if len(short) != 1:
        counts["rows_without_one_short_answer"] += 1
        return None
    if first < 0:
        counts["rows_without_long_answer"] += 1
        return None
    if "document_tokens" in row:
        words = [token["token"] for token in row["document_tokens"][first:last]]
    else:
        words = row["document_text"].split(" ")[first:last]
    if words[0] != "<P>":
        counts["rows_whose_long_answer_is_no_paragraph"] += 1
        return None
    tokens_read = _read_tokens(row, first, last, words)
    begin, end = short[0]["start_token"] - first, short[0]["end_token"] - first
    if not 0 <= begin < end <= len(words):
        raise ValueError("the short answer is not within the long one")
    text = _joined(tokens_read)
    before = len(_joined(tokens_read[:begin], closed=False))
    return SourceParagraph(
        _title(row), text, [ParagraphQuestion(row["question_text"], [(before, _joined(tokens_read[begin:end]))])]
    )


def _read_tokens(row: dict[str, Any], first: int, last: int, words: list[str]) -> list[Token]:
    """A long answer's tokens; a tag is nothing, and no blank follows it.

    A blank follows a word if the page has white space, outside of tags, before the next one; without a page, if there
    usually is one.
    """
    tokens, blanks = row["document_tokens"][first:last] if "document_tokens" in row else None, [False] * len(words)
    page = row["document_html"].encode() if tokens else b""
    tags = [each["html_token"] for each in tokens] if tokens else [_TAG.fullmatch(word) is not None for word in words]
    for place, following in pairwise(place for place, tag in enumerate(tags) if not tag):
        if tokens:
            between = page[tokens[place]["end_byte"] : tokens[following]["start_byte"]].decode()
            blanks[place] = re.search(r"\s", _TAG.sub("", between)) is not None
        else:
            clings = _TO_THE_RIGHT.fullmatch(words[place]) or _TO_THE_LEFT.fullmatch(words[following])
            blanks[place] = clings is None
    return [("" if tag else word, blank) for word, tag, blank in zip(words, tags, blanks, strict=True)]


def _joined(tokens_read: Iterable[Token], closed: bool = True) -> str:
    """Tokens with their blanks; ``closed`` without the last."""
    text = "".join(word + " " * blank for word, blank in tokens_read)
    return text.rstrip(" ") if closed else text


def _title(row: dict[str, Any]) -> str:
    """The page's title; rows of the simplified form have it in the address only."""
    if "document_title" in row:
        return str(row["document_title"])
    address = urlsplit(html.unescape(row.get("document_url", "")))
    named = parse_qs(address.query).get("title", [unquote(address.path.rpartition("/")[2])])
    return named[0].replace("_", " ")


KIND = published_kind(nq_paragraphs)
