"""Languages of texts, by ISO 639's codes."""

import re

from encore.errors import EncoreError

ENGLISH = "en"
# What Anserini has an analyser for, besides English (its AnalyzerMap): stop words, stems, or pairs of characters;
# behind each its other codes: ISO 639-2's and 3's, ir_datasets' (dt), and of countries where they are no language's.
_CODES = """
ar ara arb; bn ben; da dan dk; de deu ger; es spa; fa fas per pes; fi fin; fr fra fre; hi hin; hu hun; id ind; it ita;
ja jpn jp; ko kor; nl nld dut dt; no nor nb nob nn nno; pl pol; pt por; ru rus; sv swe; te tel; th tha; tr tur;
uk ukr ua; zh zho chi cmn cn
"""
_CALLED = {code: own.split()[0] for own in _CODES.split(";") for code in own.split()} | {"eng": ENGLISH}
ANALYSED = frozenset(_CALLED.values()) - {ENGLISH}
# ISO 639-1's other codes. Of those with three letters, which are thousands, none is refused.
_OTHERS = """
aa ab ae af ak am an as av ay az ba be bg bi bm bo br bs ca ce ch co cr cs cu cv cy dv dz ee el en eo et eu ff fj fo fy
ga gd gl gn gu gv ha he ho hr ht hy hz ia ie ig ii ik io is iu jv ka kg ki kj kk kl km kn kr ks ku kv kw ky la lb lg li
ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nd ne ng nr nv ny oc oj om or os pa pi ps qu rm rn ro rw sa sc sd se sg
sh si sk sl sm sn so sq sr ss st su sw ta tg ti tk tl tn to ts tt tw ty ug ur uz ve vi vo wa wo xh yi yo za zu
"""
DOTLESS = frozenset({"az", "aze", "tr"})  # whose small I has no dot
WITHOUT_BLANKS = frozenset({"ja", "km", "lo", "my", "th"})  # between words of more characters than a piece
SEGMENTED = frozenset({"zh"})  # whose words white space does not part, and jieba does
RULES = 2  # how texts are read that are not English: another number where their sentences or words move
SPOKEN = {"passages": "language_of_passages", "queries": "language_of_queries"}  # in results: if not the dataset's
UNKNOWN_SHARE = "unknown_share_in_"  # and then `passages`: the share of [UNK] among tokens, in a store's results


def language_code(given: str) -> str:
    """The code by which a language is known here, of one of its codes, with or without a region: ``pt`` of ``pt-BR``.

    Raises:
        EncoreError: it is not a code of ISO 639.
    """
    code = re.split("[-_]", given.lower())[0]
    code = _CALLED.get(code, code)
    if code in ANALYSED or code in _OTHERS.split() or re.fullmatch("[a-z]{3}", code):
        return code
    known = " ".join(sorted(ANALYSED))
    raise EncoreError(f"{given!r} is not a code of ISO 639; give the language's (BM25 analyses en {known})")
