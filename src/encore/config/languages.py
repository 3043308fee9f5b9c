"""Languages of texts, by ISO 639's codes."""

import re

from encore.errors import EncoreError

ENGLISH = "en"
# Languages besides English with an analyser in Anserini (its AnalyzerMap): stop words, stems, or pairs of characters.
# Other codes follow: of ISO 639-2 and 639-3, of ir_datasets (dt), and of countries, unless another language has it.
_CODES = """
ar ara arb; bn ben; da dan dk; de deu ger; es spa; fa fas per pes; fi fin; fr fra fre; hi hin; hu hun; id ind; it ita;
ja jpn jp; ko kor; nl nld dut dt; no nor nb nob nn nno; pl pol; pt por; ru rus; sv swe; te tel; th tha; tr tur;
uk ukr ua; zh zho chi cmn cn
"""
_CALLED = {code: own.split()[0] for own in _CODES.split(";") for code in own.split()} | {"eng": ENGLISH}
ANALYSED = frozenset(_CALLED.values()) - {ENGLISH}
# The other codes of ISO 639-1. Codes of three letters, of which there are thousands, are all accepted.
_OTHERS = """
aa ab ae af ak am an as av ay az ba be bg bi bm bo br bs ca ce ch co cr cs cu cv cy dv dz ee el en eo et eu ff fj fo fy
ga gd gl gn gu gv ha he ho hr ht hy hz ia ie ig ii ik io is iu jv ka kg ki kj kk kl km kn kr ks ku kv kw ky la lb lg li
ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nd ne ng nr nv ny oc oj om or os pa pi ps qu rm rn ro rw sa sc sd se sg
sh si sk sl sm sn so sq sr ss st su sw ta tg ti tk tl tn to ts tt tw ty ug ur uz ve vi vo wa wo xh yi yo za zu
"""
# Languages of other letters, among those of Anserini and ir_datasets.
NOT_LATIN = frozenset({"ar", "bn", "fa", "hi", "ja", "ko", "ru", "te", "th", "uk", "yue", "zh"})
DOTLESS = frozenset({"az", "aze", "tr"})  # the small letter of I has no dot
WITHOUT_BLANKS = frozenset({"ja", "km", "lo", "my", "th"})  # between words; runs of characters are split into pieces
SEGMENTED = frozenset({"zh"})  # words are found by jieba, as no white space separates them
RULES = 2  # version of how other languages than English are read; raise it if sentences or words change
SPOKEN = {"passages": "language_of_passages", "queries": "language_of_queries"}  # keys of results
UNKNOWN_SHARE = "unknown_share_in_"  # and then `passages`: the share of [UNK] among tokens, in a store's results


def language_code(given: str) -> str:
    """Encore's code for a language, from any of its codes, with or without a region: ``pt`` for ``pt-BR``."""
    code = re.split("[-_]", given.lower())[0]
    code = _CALLED.get(code, code)
    if code in ANALYSED or code in _OTHERS.split() or re.fullmatch("[a-z]{3}", code):
        return code
    known = " ".join(sorted(ANALYSED))
    raise EncoreError(f"{given!r} is not a code of ISO 639; give the language's (BM25 analyses en {known})")
