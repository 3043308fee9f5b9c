"""Characters that were written as UTF-8 and read as Latin-1, as in parts of MS MARCO's passages, made right again.

ir_datasets does so to the passages that it gives, so files of others with the passages' texts need the same.
"""

from __future__ import annotations

import re

_READ_WRONG = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def repaired(text: str) -> str:
    """The text with each such character, two to four of them, replaced by the one that was meant."""
    return text if text.isascii() else _READ_WRONG.sub(_meant, text)


def _meant(found: re.Match[str]) -> str:
    try:
        return found.group().encode("latin-1").decode()
    except UnicodeDecodeError:
        return found.group()
