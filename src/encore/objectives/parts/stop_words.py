"""English function words, as COSTA leaves them out of its word spans; the paper names no list, and this one is ours."""

import numpy as np

_WORDS = """
a about above across after afterwards again against all almost alone along already also although always am among
amongst an and another any anyhow anyone anything anyway anywhere are aren around as at away be became because
become becomes becoming been before beforehand behind being below beside besides between beyond both but by can
cannot could couldn d did didn do does doesn doing don done down during each either else elsewhere enough etc even
ever every everyone everything everywhere except few first for former formerly from further had hadn has hasn have
haven having he hence her here hereafter hereby herein hereupon hers herself him himself his how however i ie if in
indeed instead into is isn it its itself just last latter latterly least less ll many may maybe me meanwhile might
mightn more moreover most mostly much must mustn my myself namely needn neither never nevertheless next no nobody
none nor not nothing now nowhere o of off often on once one only onto or other others otherwise our ours ourselves
out over own per perhaps quite rather re really s same shall shan she should shouldn since so some somehow someone
something sometime sometimes somewhere still such t than that the their theirs them themselves then thence there
thereafter thereby therefore therein thereupon these they this those though through throughout thru thus to together
too toward towards under until up upon us ve very via was wasn we well were weren what whatever when whence whenever
where whereafter whereas whereby wherein whereupon wherever whether which while whither who whoever whole whom whose
why will with within without won would wouldn y yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_WORDS.split())


def content_pieces(pieces: list[str]) -> np.ndarray:
    """True for pieces that are content words by themselves, [V] bool: not stop-words, punctuation or [UNK]."""
    return np.array([piece not in STOP_WORDS and _is_word(piece) for piece in pieces], dtype=bool)


def _is_word(piece: str) -> bool:
    """True if a piece has a letter or digit and is not a special token (only those are in brackets)."""
    return any(letter.isalnum() for letter in piece) and not (piece.startswith("[") and piece.endswith("]"))
