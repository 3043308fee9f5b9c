"""Vocabularies: training one of WordPiece, and the Hugging Face folder that holds one of any kind.

The folder has ``tokenizer.json`` (all that the ``tokenizers`` library needs), ``tokenizer_config.json`` (for
``AutoTokenizer``; it names the special tokens) and, of WordPiece, ``vocab.txt`` (one piece a line, by id).
"""

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from encore.config.checkpoints import FETCH_AGAIN
from encore.config.languages import DOTLESS, ENGLISH, WITHOUT_BLANKS
from encore.errors import EncoreError
from encore.storage.files import read_object, write_json, write_text

CONFIG = "tokenizer_config.json"
FILES = ("tokenizer.json", CONFIG, "vocab.txt")
CHARACTERS = 1000  # of English texts, the most frequent ones; others become [UNK], as in BERT's vocabulary
COVERAGE = 0.9995  # of the characters of other texts, by SentencePiece's default for many characters
LONGEST, LONGEST_WITHOUT_BLANKS = 100, 300  # characters of a word; a longer one is [UNK], as in BERT
TOGETHER = 256  # texts whose characters are counted at once
CONTINUES = "##"
PAD, UNK, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")  # theirs, as a folder names them
BERTS = MappingProxyType(dict(zip(ROLES, SPECIAL, strict=True)))


class SpecialTokens(NamedTuple):
    """Ids of the special tokens."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


def train(texts: Iterable[str], size: int, language: str = ENGLISH) -> list[str]:
    """The pieces of a WordPiece vocabulary by id: special tokens, characters, then merges from frequent to rare.

    Equal texts give equal pieces, whatever their order. Texts are not held, but their distinct words are.

    Args:
        texts: read twice, for their characters and for their words; so no iterator, which ends once.
        language: of the texts, which says how they are normalised and how many characters are kept.
    """
    if isinstance(texts, Iterator):
        raise TypeError("texts are read twice; give what can be iterated again")
    characters = _characters(texts, language)
    fixed = _fixed(characters)
    if size < len(fixed):
        raise EncoreError(
            f"a vocabulary of {size} cannot hold the {len(fixed)} special tokens and characters of its texts; "
            "raise `vocabulary` of the run's `scale:`"
        )
    tokenizer = _untrained(language)
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


def fewest_pieces(texts: Iterable[str], language: str) -> list[str]:
    """The pieces that every vocabulary of these texts has: special tokens and characters."""
    return _fixed(_characters(texts, language))


def unknown_share(texts: Iterable[str], ordered: Sequence[str], language: str) -> float:
    """The share of [UNK] among the tokens of texts, by a vocabulary of pieces in the order of their ids."""
    tokenizer, texts, unknown = build_tokenizer(ordered, language), iter(texts), ordered.index(UNK)
    parts = iter(lambda: list(islice(texts, TOGETHER)), [])
    encoded = (each for part in parts for each in tokenizer.encode_batch_fast(part, add_special_tokens=False))
    found = Counter(piece == unknown for each in encoded for piece in each.ids)
    return found[True] / max(found.total(), 1)


def build_tokenizer(ordered: Sequence[str], language: str = ENGLISH) -> Tokenizer:
    """BERT's uncased tokenizer with these pieces by id; accents and vowel signs of other languages stay."""
    tokenizer = _untrained(language)
    numbers = {piece: number for number, piece in enumerate(ordered)}
    longest = LONGEST_WITHOUT_BLANKS if language in WITHOUT_BLANKS else LONGEST
    tokenizer.model = models.WordPiece(
        numbers, unk_token=UNK, continuing_subword_prefix=CONTINUES, max_input_chars_per_word=longest
    )
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUES)
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS}:0 $A:0 {SEP}:0",
        pair=f"{CLS}:0 $A:0 {SEP}:0 $B:1 {SEP}:1",
        special_tokens=[(CLS, numbers[CLS]), (SEP, numbers[SEP])],
    )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, special: Mapping[str, str] = BERTS) -> None:
    """Write a tokenizer's Hugging Face folder; texts are neither cut nor padded by it.

    Args:
        special: the special tokens by their roles.
    """
    tokenizer.no_padding()
    tokenizer.no_truncation()
    write_text(folder / "tokenizer.json", tokenizer.to_str(pretty=True) + "\n")
    kind: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    if is_wordpiece(tokenizer):
        write_text(folder / "vocab.txt", "".join(f"{piece}\n" for piece in pieces(tokenizer)))
    if is_wordpiece(tokenizer) and _is_rebuilt(tokenizer):
        normal = tokenizer.normalizer.normalize_str("Aé") if tokenizer.normalizer else "Aé"
        lower, strips = normal.startswith("a"), normal.endswith("e")
        read = {"do_lower_case": lower, **({"strip_accents": strips} if strips != lower else {})}
        if tokenizer.normalizer and tokenizer.normalizer.normalize_str("中") == "中":
            read["tokenize_chinese_chars"] = False
        kind = {"tokenizer_class": "BertTokenizer", **read, "model_max_length": 512}
    write_json(folder / CONFIG, {**kind, **special})


def _is_rebuilt(tokenizer: Tokenizer) -> bool:
    """True if Transformers' class for BERT, which ignores ``tokenizer.json``, reads texts in the same way."""
    is_plain = not isinstance(tokenizer.normalizer, normalizers.Sequence)
    return is_plain and tokenizer.model.max_input_chars_per_word == LONGEST


def files(folder: Path) -> list[Path]:
    """The files of a tokenizer's folder."""
    return [folder / name for name in FILES if (folder / name).is_file()]


def copy_tokenizer(source: Path, folder: Path) -> None:
    """Write a tokenizer's files into another folder: a store has the one that made it, a model the one it reads by."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in files(source):
        shutil.copyfile(path, folder / path.name)


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise EncoreError(f"{path} is missing; name a folder with a Hugging Face tokenizer")
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises nothing narrower
        raise EncoreError(f"{path} is not a tokenizer ({error}); replace the file") from error


def is_wordpiece(tokenizer: Tokenizer) -> bool:
    """True for a tokenizer of BERT's kind, which the fast encoder and pre-training read."""
    return isinstance(tokenizer.model, models.WordPiece)


def special_names(folder: Path) -> dict[str, str]:
    """The special tokens of a folder by their roles, BERT's where it names none."""
    found: dict[str, str] = {}
    for name in ("special_tokens_map.json", CONFIG):
        said = read_object(folder / name, FETCH_AGAIN)
        tokens = {role: said[role] for role in ROLES if said.get(role)}
        found |= {role: each["content"] if isinstance(each, dict) else str(each) for role, each in tokens.items()}
    return found or dict(BERTS)


def special_tokens(tokenizer: Tokenizer, folder: Path) -> SpecialTokens:
    """Ids of the five special tokens that the folder names."""
    numbers: dict[str, int] = tokenizer.get_vocab()
    named = special_names(folder)
    for role, usual in BERTS.items():
        if named.get(role, usual) not in numbers:
            raise EncoreError(f"{folder}: the vocabulary lacks {named.get(role, usual)}; take a BERT tokenizer")
    return SpecialTokens(*(numbers[named.get(role, usual)] for role, usual in BERTS.items()))


def pieces(tokenizer: Tokenizer) -> list[str]:
    """Pieces in the order of their ids, which must be 0, 1, 2, ..."""
    numbers = tokenizer.get_vocab()
    if sorted(numbers.values()) != list(range(len(numbers))):
        raise EncoreError("the vocabulary's ids are not 0, 1, 2, ... without holes; take another tokenizer")
    return sorted(numbers, key=numbers.__getitem__)


def _untrained(language: str) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK, continuing_subword_prefix=CONTINUES))
    tokenizer.normalizer = _normalizer(language)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _normalizer(language: str) -> Any:
    """Lower case; in English, accents and all other marks go, as in BERT's uncased vocabulary."""
    if language == ENGLISH:
        return normalizers.BertNormalizer(lowercase=True)
    marked = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    if language not in DOTLESS:
        return marked
    return normalizers.Sequence([normalizers.Replace("İ", "i"), normalizers.Replace("I", "ı"), marked])


def _characters(texts: Iterable[str], language: str) -> list[str]:
    """The most frequent characters of normalised texts, in code-point order; ties by code point.

    BERT's normaliser takes each character by itself, so it is asked once for each that occurs.
    """
    normalizer = _normalizer(language)
    counts: Counter[str] = Counter()
    for code, count in _code_points(texts).items():
        for character in normalizer.normalize_str(chr(code)):
            counts[character] += count
    seen = sorted((character for character in counts if not character.isspace()), key=lambda c: (-counts[c], c))
    if language == ENGLISH:
        return sorted(seen[:CHARACTERS])
    covered = np.cumsum([counts[character] for character in seen])
    return sorted(seen[: int(np.searchsorted(covered, COVERAGE * covered[-1])) + 1] if seen else [])


def _fixed(characters: Sequence[str]) -> list[str]:
    return [*SPECIAL, *characters, *(CONTINUES + character for character in characters if _continues(character))]


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
