"""WordPiece vocabularies: training one, and the Hugging Face folder that holds it.

The folder has ``tokenizer.json`` (all that the ``tokenizers`` library needs), ``vocab.txt`` (one piece a line, by id)
and ``tokenizer_config.json`` (for ``AutoTokenizer``).
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from encore.errors import EncoreError
from encore.storage.files import write_json, write_text

CONFIG = "tokenizer_config.json"
FILES = ("tokenizer.json", CONFIG, "vocab.txt")
LIMIT = 2**16 - 1  # tokens are stored in 16 bits
CHARACTERS = 1000  # the most frequent ones; others become [UNK], as in BERT's vocabulary
TOGETHER = 256  # texts whose characters are counted at once
CONTINUES = "##"
PAD, UNK, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class SpecialTokens(NamedTuple):
    """Ids of the special tokens."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


def train(texts: Iterable[str], size: int) -> list[str]:
    """The pieces of a WordPiece vocabulary by id: special tokens, characters, then merges from frequent to rare.

    Equal texts give equal pieces, whatever their order. Texts are not held, but their distinct words are.

    Args:
        texts: read twice, for their characters and for their words; so no iterator, which ends once.

    Raises:
        EncoreError: ``size`` is too large for 16 bits, or too small for the characters of the texts.
    """
    check_size(size)
    if isinstance(texts, Iterator):
        raise TypeError("texts are read twice; give what can be iterated again")
    characters = _characters(texts)
    fixed = [*SPECIAL, *characters, *(CONTINUES + character for character in characters if _continues(character))]
    if size < len(fixed):
        raise EncoreError(
            f"a vocabulary of {size} cannot hold the {len(fixed)} special tokens and characters of its texts; "
            "raise the backbone's `vocabulary`"
        )
    tokenizer = _untrained()
    # The trainer numbers "##" characters in the order of a hash table and breaks ties by those numbers. Declared as
    # special tokens they are numbered first and in our order, so that nothing is left to chance.
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=fixed,
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return pieces(tokenizer)


def build_tokenizer(ordered: Sequence[str]) -> Tokenizer:
    """BERT's uncased tokenizer with these pieces by id."""
    tokenizer = _untrained()
    numbers = {piece: number for number, piece in enumerate(ordered)}
    tokenizer.model = models.WordPiece(numbers, unk_token=UNK, continuing_subword_prefix=CONTINUES)
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUES)
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS}:0 $A:0 {SEP}:0",
        pair=f"{CLS}:0 $A:0 {SEP}:0 $B:1 {SEP}:1",
        special_tokens=[(CLS, numbers[CLS]), (SEP, numbers[SEP])],
    )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write a tokenizer's Hugging Face folder; texts are neither cut nor padded by it."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    write_text(folder / "tokenizer.json", tokenizer.to_str(pretty=True) + "\n")
    write_text(folder / "vocab.txt", "".join(f"{piece}\n" for piece in pieces(tokenizer)))
    lower = bool(getattr(tokenizer.normalizer, "lowercase", False))
    names = {f"{token.strip('[]').lower()}_token": token for token in SPECIAL}
    write_json(
        folder / CONFIG, {"tokenizer_class": "BertTokenizer", "do_lower_case": lower, "model_max_length": 512, **names}
    )


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder.

    Raises:
        EncoreError: the folder holds no WordPiece tokenizer, or one that is too large for 16 bits.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise EncoreError(f"{path} is missing; name a folder with a Hugging Face tokenizer")
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises nothing narrower
        raise EncoreError(f"{path} is not a tokenizer ({error}); replace the file") from error
    if not isinstance(tokenizer.model, models.WordPiece):
        raise EncoreError(
            f"{path} is not a WordPiece tokenizer; only BERT's kind is supported, choose such a checkpoint"
        )
    check_size(tokenizer.get_vocab_size())
    return tokenizer


def special_tokens(tokenizer: Tokenizer, folder: Path) -> SpecialTokens:
    """Ids of BERT's five special tokens.

    Raises:
        EncoreError: the vocabulary lacks one.
    """
    numbers: dict[str, int] = tokenizer.get_vocab()
    for token in SPECIAL:
        if token not in numbers:
            raise EncoreError(f"{folder}: the vocabulary lacks {token}; take a BERT tokenizer")
    return SpecialTokens(*(numbers[token] for token in SPECIAL))


def check_size(size: int) -> None:
    """Refuse vocabularies whose ids do not fit into the 16 bits that tokens are stored in."""
    if size > LIMIT:
        raise EncoreError(f"a vocabulary of {size} is too large: tokens are stored in 16 bits; take at most {LIMIT}")


def pieces(tokenizer: Tokenizer) -> list[str]:
    """Pieces in the order of their ids, which must be 0, 1, 2, ..."""
    numbers = tokenizer.get_vocab()
    if sorted(numbers.values()) != list(range(len(numbers))):
        raise EncoreError("the vocabulary's ids are not 0, 1, 2, ... without holes; take another tokenizer")
    return sorted(numbers, key=numbers.__getitem__)


def _untrained() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK, continuing_subword_prefix=CONTINUES))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _characters(texts: Iterable[str]) -> list[str]:
    """The most frequent characters of normalised texts, in code-point order; ties by code point.

    BERT's normaliser takes each character by itself, so it is asked once for each that occurs.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    counts: Counter[str] = Counter()
    for code, count in _code_points(texts).items():
        for character in normalizer.normalize_str(chr(code)):
            counts[character] += count
    seen = sorted((character for character in counts if not character.isspace()), key=lambda c: (-counts[c], c))
    return sorted(seen[:CHARACTERS])


def _code_points(texts: Iterable[str]) -> dict[int, int]:
    texts, counts = iter(texts), np.zeros(sys.maxunicode + 1, dtype=np.int64)
    while together := list(islice(texts, TOGETHER)):
        found = np.bincount(np.frombuffer("".join(together).encode("utf-32-le"), dtype="<u4"))
        counts[: len(found)] += found
    return {code: int(counts[code]) for code in np.flatnonzero(counts).tolist()}


def _continues(character: str) -> bool:
    """True if a word can continue with this character: punctuation and ideographs are words by themselves."""
    normalized = normalizers.BertNormalizer(lowercase=True).normalize_str(f"a{character}a")
    return len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normalized)) == 1
