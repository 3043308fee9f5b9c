"""Splitting text into sentences by rule: deterministic, no model, no data to download.

In English a sentence ends at ``.``, ``!`` or ``?`` (with closing quotes or brackets) before white space and a capital
letter, a digit or an opening mark, unless the word before the full stop is an abbreviation, an initial or the number of
a list.

In other languages it ends at any character that Unicode calls a terminal of sentences (among them danda and the Arabic
question mark) before white space, unless a lower-case letter follows, or the character is a full stop after a single
letter, a number of one or two digits (ordinals, as in *3. Oktober*) or a common abbreviation of German, French or
Russian. After an ideographic terminal no white space is needed.
"""

import re
from itertools import pairwise

import regex

from encore.config.languages import ENGLISH

RULES = "encore-1"  # the name and the version of what follows; another number where a boundary moves
_BOUNDARY = re.compile(r"""(?<=[.!?])[)\]"'’”]*\s+(?=[("'\[‘“`*]*[^\W_a-z]|[("'\[‘“`*]+\w)""")
_PARAGRAPH = re.compile(r"\n\s*\n")
_LAST_WORD = re.compile(r"(\S+)\.$")
_ABBREVIATION = re.compile(
    r"""adm|al|approx|appl|apr|aug|ave|bros|ca|capt|cf|chap|co|col|comp|corp|dec|dept|div|dr|e\.g|ed|eds|eg|eqs?|esp|est
    |et|etc|ex|feb|figs?|fri|gen|gov|hon|i\.e|ie|inc|incl|jan|jr|jul|jun|lat|lt|ltd|maj|mar|max|mon|mr|mrs|ms|mts?|nat
    |nos|nov|oct|op|pg|ph\.d|pp|prof|pt|rd|refs?|rep|resp|rev|sat|sec|sect|sen|sep|sept|sgt|sr|st|sun|supp|tab|tel|thu
    |trans|tue|u\.k|u\.s|univ|v|viz|vols?|vs|wed""",
    re.VERBOSE,
)
# These end sentences as often as not, so they hold a sentence together only before a number ("No. 7").
_BEFORE_NUMBERS = frozenset({"no", "nr", "p", "art"})


# Of German, French and Russian, without those that often end a sentence: etc., usw., и др.
_ABBREVIATION_ELSEWHERE = (
    r"abb|abs|apr|art|aug|av|bd|bzgl|bzw|ca|cf|chap|dez|dr|déc|env|evtl|ex|feb|fig|févr|geb|gest|ggf|hl|hr|hrsg|inkl"
    r"|janv|jh|jr|juill|kap|mgr|mio|mm|mme|mr|mrd|mrs|nov|nr|oct|okt|pp|prof|sept|sog|st|ste|\w*str|tab|tel|tél|vgl|vol"
    r"|zzgl|акад|англ|гг|гл|гр|доц|им|кв|млн|млрд|напр|нем|обл|пл|пос|проф|рис|руб|св|см|стр|табл|тел|тыс|ул|фр|чел"
)
_ELSEWHERE = regex.compile(
    rf"""(?<=\p{{Sentence_Terminal}})
    (?<!(?<![^\W_])(?i:\p{{L}}|{_ABBREVIATION_ELSEWHERE})\.|(?<![\w.,])\d\d?\.)
    [\p{{Pe}}\p{{Pf}}"']*(?:\s»(?=\s))?\s+(?!\p{{Ll}})
    |(?<=[。．！？｡])[\p{{Pe}}\p{{Pf}}"']*(?![。．！？｡])""",
    regex.VERBOSE,
)


def split(text: str, language: str = ENGLISH) -> list[str]:
    """The sentences of ``text`` in order, each on one line with single blanks; none is empty.

    Joined with blanks they give the text back, up to white space. A blank line always ends a sentence.
    """
    paragraphs = (" ".join(paragraph.split()) for paragraph in _PARAGRAPH.split(text))
    split_one = _split_paragraph if language == ENGLISH else _split_at_terminals
    return [sentence for paragraph in paragraphs for sentence in split_one(paragraph)]


def spans(text: str) -> list[tuple[int, int]]:
    """The begin and end of each sentence of ``split`` in the text, white space around it left out."""
    places, found = [place for place, sign in enumerate(text) if not sign.isspace()], []
    first = 0
    for sentence in split(text):
        last = first + len("".join(sentence.split()))
        found.append((places[first], places[last - 1] + 1))
        first = last
    return found


def _split_paragraph(paragraph: str) -> list[str]:
    sentences, start = [], 0
    for boundary in _BOUNDARY.finditer(paragraph):
        if not _is_abbreviated(paragraph[start : boundary.start()], paragraph[boundary.end()]):
            sentences.append(paragraph[start : boundary.end()].strip())
            start = boundary.end()
    rest = paragraph[start:].strip()
    return [*sentences, rest] if rest else sentences


def _split_at_terminals(paragraph: str) -> list[str]:
    ends = [0, *(boundary.end() for boundary in _ELSEWHERE.finditer(paragraph)), len(paragraph)]
    sentences = (paragraph[start:end].strip() for start, end in pairwise(ends))
    return [sentence for sentence in sentences if sentence]


def _is_abbreviated(before: str, following: str) -> bool:
    """True if the full stop that ends ``before`` belongs to its last word; ``following`` is the next character."""
    found = _LAST_WORD.search(before)
    if found is None:
        return False
    word = found.group(1).lstrip("([\"'‘“`*").lower()
    if word in _BEFORE_NUMBERS:
        return following.isdigit()
    initial = len(word) == 1 and word.isalpha() and word != "i" and found.group(1)[-1].isupper()
    list_number = before == found.group(0) and word.isdigit()
    return _ABBREVIATION.fullmatch(word) is not None or initial or list_number
