"""Languages of texts, by ISO 639's codes."""

ENGLISH = "en"
CODE = r"[a-z]{2,3}"
# What Anserini has an analyser for, besides English (its AnalyzerMap): stop words, stems, or pairs of characters.
ANALYSED = frozenset(
    [
        *("ar", "bn", "da", "de", "es", "fa", "fi", "fr", "hi", "hu", "id", "it"),
        *("ja", "ko", "nl", "no", "pl", "pt", "ru", "sv", "te", "th", "tr", "uk", "zh"),
    ]
)
DOTLESS = frozenset({"az", "tr"})  # whose small I has no dot
UNKNOWN_SHARE = "unknown_share_in_"  # and then `passages`: the share of [UNK] among tokens, in a store's results
