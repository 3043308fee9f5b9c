"""Inline markup: reStructuredText and numpydoc to plain words, and the objects that a text refers to."""

import re

CUT = "\N{OBJECT REPLACEMENT CHARACTER}"  # stands where a formula or a page's label was: the sentence has a hole
_FILE_NAME = re.compile(r".*\.(?:py[cdi]?|txt|csv|json|cfg|ini|toml|html?|xml|gz|zip|pth|so|dll|exe|[ch])")
_TARGET = r"[~!]?\.?[A-Za-z_][\w.]*"
_ROLE = re.compile(r":(?:\w+:)?(?P<role>[\w-]+):`(?P<body>[^`]*)`")
_TITLED = re.compile(r"(?P<title>.*?)\s*<(?P<target>[^>]*)>", re.DOTALL)
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_SINGLE = re.compile(r"`([^`]+)`_{0,2}")
_TEX = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
_DOTTED = re.compile(rf"(?=.*\w\.\w|[~!]?\.)({_TARGET})(?:\(\))?")
_OBJECT_ROLE = re.compile("func|meth|class|mod|attr|obj|data|exc|const")
_HOLE = re.compile("ref|doc|eq|numref")  # roles whose body says nothing in words
_SHORT_FORMULA = re.compile(r"[\w +<>=.,()-]{1,12}")

_PLAIN = tuple(
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        (r"(?:^|\b(?:in|see|of|from|by|and|or|to|with|follows|the) +)\[[\w+-]+\]_", CUT),  # a citation as a word
        (r"\[(?:\d+|#\w*|[A-Z][\w+-]*\d{2,4}[a-z]?)\]_?|\[[\w+-]+\]_", ""),  # footnotes and citations
        (r"<?\b(?:https?|ftp)://[^\s>)]*>?|\bwww\.[^\s)]+", " "),
        (r"%\(\w+\)s|%s|\{[a-z_]\w*\}", " "),  # templates
        (r"\|(\w+)\|", r"\1"),  # substitutions
        (r"(?<![\w*])\*{1,2}([^*\s](?:[^*]*[^*\s])?)\*{1,2}(?![\w*])", r"\1"),  # emphasis
        (r"\\([*_|`])", r"\1"),  # escaped marks
        (r"`+", ""),
        (r"\(\s*(?:see|cf\.?|e\.g\.|i\.e\.)?[\s,;.]*\)", ""),  # brackets that lost their content
        (r"\s+", " "),
        (r"(?<=\w) (?=[,.;:!?)](?:\s|$))", ""),  # blanks that a removal left before a mark
    )
)


_MARKED = re.compile(r"[`$\[%{|*\\(]|://|www\.")  # most sentences have no mark at all


def plain(text: str) -> str:
    """The words of a text: roles and dotted names become their last part; TeX, URLs and templates go."""
    if not _MARKED.search(text):
        return " ".join(text.split())
    text = _ROLE.sub(lambda found: _role_words(found["role"], found["body"]), text)
    text = _TEX.sub(lambda found: _formula(found[0].strip("$")), text)
    text = _LITERAL.sub(lambda found: _words(found[1]), text)
    text = _SINGLE.sub(lambda found: _words(found[1]), text)
    for pattern, replacement in _PLAIN:
        text = pattern.sub(replacement, text)
    return text.strip()


def references(text: str) -> list[str]:
    """Dotted names that a text refers to, in order: targets of object roles, and backticked names with a dot."""
    if "`" not in text:
        return []
    found = {}
    for role in _ROLE.finditer(text):
        if _OBJECT_ROLE.fullmatch(role["role"]):
            found[role.start()] = _target(role["body"])
    for backticked in re.finditer(r"(?<![:\w])`{1,2}([^`]+)`{1,2}", text):
        if _DOTTED.fullmatch(backticked[1]):
            found[backticked.start()] = _target(backticked[1])
    return [found[place] for place in sorted(found) if re.fullmatch(r"[A-Za-z_][\w.]*", found[place])]


def names(line: str) -> list[str]:
    """The objects that one line of a See Also section lists: ``a, b.c : what they do``."""
    if roles := [_target(found["body"]) for found in _ROLE.finditer(line) if _OBJECT_ROLE.fullmatch(found["role"])]:
        return roles
    head = re.split(r"\s:\s|:(?=\s|$)|\s--?\s|\s{2,}", line.strip().lstrip("-*• "), maxsplit=1)[0]
    items = [item.strip().strip("`").removesuffix("()") for item in re.split(r",\s*|\s+and\s+", head)]
    return [item.lstrip("~!.") for item in items if re.fullmatch(_TARGET, item)]


def _role_words(role: str, body: str) -> str:
    titled = _TITLED.fullmatch(body)
    if titled and titled["title"]:
        return titled["title"]
    if "cite" in role:
        return ""
    if role == "math":
        return _formula(body)
    return CUT if _HOLE.fullmatch(role) else _words(body)


def _formula(body: str) -> str:
    """``n`` and ``x < 0`` read as words; anything longer leaves a hole."""
    return body.strip() if _SHORT_FORMULA.fullmatch(body.strip()) else CUT


def _words(body: str) -> str:
    titled = _TITLED.fullmatch(body)
    if titled and titled["title"]:
        return titled["title"]
    if _FILE_NAME.fullmatch(body) or not _DOTTED.fullmatch(body):
        return body.lstrip("~!")
    return body.rpartition(".")[2]


def _target(body: str) -> str:
    titled = _TITLED.fullmatch(body)
    return (titled["target"] if titled else body).strip().lstrip("~!.").removesuffix("()")
