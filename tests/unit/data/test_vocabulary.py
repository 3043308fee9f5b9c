"""Vocabularies: the same bytes in every process, known pieces, refusals."""

import json
import os
import random
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers

from encore.data import vocabulary
from encore.errors import EncoreError

# Many pairs occur equally often, so that any chance in breaking ties shows.
TEXTS = [f"{a}{b}{c} {c}{a}{b} {b}{b}{a}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
PROGRAM = "import sys, test_vocabulary as t, encore.data.vocabulary as v; print(v.train({texts}, 400))"


def trained_elsewhere(texts: str, seed: int) -> str:
    """What a new process with another salt for its hashes trains."""
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-c", PROGRAM.format(texts=texts)]
    return subprocess.run(program, capture_output=True, text=True, check=True, env=environment).stdout


def test_every_process_trains_the_same_pieces() -> None:
    first, second = (trained_elsewhere("t.TEXTS", seed) for seed in (1, 2))
    assert first == second
    assert first.count(",") == 399


def test_the_order_of_the_texts_does_not_matter() -> None:
    assert vocabulary.train(TEXTS, 400) == vocabulary.train(TEXTS[::-1], 400)


class Stream:
    """Texts that are made while they are read, and how many of them lived at once."""

    def __init__(self, count: int) -> None:
        self.count, self.alive, self.most, self.readings = count, 0, 0, 0

    def __iter__(self) -> Iterator[str]:
        self.readings += 1
        for number in range(self.count):
            yield Counted(TEXTS[number % len(TEXTS)], self)


class Counted(str):
    """A text that says when it is gone."""

    stream: Stream

    def __new__(cls, text: str, stream: Stream) -> "Counted":
        made = super().__new__(cls, text)
        made.stream = stream
        stream.alive += 1
        stream.most = max(stream.most, stream.alive)
        return made

    def __del__(self) -> None:
        self.stream.alive -= 1


def test_texts_are_read_twice_and_never_held() -> None:
    stream = Stream(10 * len(TEXTS))
    assert vocabulary.train(stream, 400) == vocabulary.train(TEXTS * 10, 400)
    assert stream.readings == 2
    assert stream.most < 1000 < stream.count


def test_texts_that_can_be_read_once_are_refused() -> None:
    with pytest.raises(TypeError, match="read twice"):
        vocabulary.train(iter(TEXTS), 400)


def merges_by_hand(words: Counter[str], size: int) -> list[str]:
    """WordPiece training, slowly: join the most frequent pair, on ties the first by number."""
    split = {word: [word[0], *(f"##{character}" for character in word[1:])] for word in words}
    pieces = list(vocabulary.SPECIAL) + sorted(set("".join(words)))
    pieces += [f"##{character}" for character in sorted(set("".join(words)))]
    while len(pieces) < size:
        pairs: Counter[tuple[int, int]] = Counter()
        for word, count in words.items():
            for left, right in zip(split[word], split[word][1:], strict=False):
                pairs[pieces.index(left), pieces.index(right)] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        left, right = pieces[best[0]], pieces[best[1]]
        pieces.append(left + right.removeprefix("##"))
        for word, parts in split.items():
            joined: list[str] = []
            for part in parts:
                if joined and (joined[-1], part) == (left, right):
                    joined[-1] = pieces[-1]
                else:
                    joined.append(part)
            split[word] = joined
    return pieces


def test_pieces_are_those_of_the_algorithm() -> None:
    text = "low low low low low lower lower newest newest newest newest newest newest widest widest widest"
    assert vocabulary.train([text], 34) == merges_by_hand(Counter(text.split()), 34)


def test_special_tokens_come_first_and_rare_characters_last() -> None:
    pieces = vocabulary.train(["b. a-A é"], 16)
    assert pieces[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert pieces[5:] == ["-", ".", "a", "b", "e", "##a", "##b", "##e"]  # punctuation never continues a word


def test_only_the_most_frequent_characters_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "CHARACTERS", 2)
    assert vocabulary.train(["aab bac d"], 9) == [*vocabulary.SPECIAL, "a", "b", "##a", "##b"]


@pytest.mark.slow
def test_characters_are_counted_as_in_normalised_texts() -> None:
    """Every assigned character, in any surroundings: capitals, accents, ideographs, control characters, marks."""
    unassigned = ("Cn", "Co", "Cs")  # among them private ones, and halves of pairs
    everything = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in unassigned]
    assert len(everything) > 140_000
    random.Random(0).shuffle(everything)
    texts = ["", *("".join(everything[first : first + 300]) for first in range(0, len(everything), 300)), "Ünïcödé"]
    normalizer, whole, each = normalizers.BertNormalizer(lowercase=True), Counter[str](), Counter[str]()
    for text in texts:
        whole.update(normalizer.normalize_str(text))
    for code, count in vocabulary._code_points(texts).items():
        for character in normalizer.normalize_str(chr(code)):
            each[character] += count
    assert each == whole


def test_empty_texts_end_nothing() -> None:
    assert vocabulary._code_points([""] * 3000 + ["ab", "b"]) == {97: 1, 98: 2}


def test_a_saved_tokenizer_reads_back(tmp_path: Path) -> None:
    pieces = vocabulary.train(["A list of calls, and a list"], 60)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(pieces), tmp_path)
    tokenizer = vocabulary.load_tokenizer(tmp_path)
    assert (tmp_path / "vocab.txt").read_text().splitlines() == pieces == vocabulary.pieces(tokenizer)
    assert tokenizer.encode("The LIST, óf").tokens == ["[CLS]", "[UNK]", "list", ",", "of", "[SEP]"]
    assert vocabulary.special_tokens(tokenizer, tmp_path) == (0, 1, 2, 3, 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(vocabulary.FILES)


def test_a_checkpoints_tokenizer_is_kept_without_cutting(tmp_path: Path) -> None:
    own = vocabulary.build_tokenizer(vocabulary.train(["many calls of a list"], 60))
    own.enable_truncation(4)
    own.enable_padding(length=9)
    vocabulary.save_tokenizer(own, tmp_path)
    assert len(vocabulary.load_tokenizer(tmp_path).encode("many calls of a list", add_special_tokens=False).ids) > 4
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["do_lower_case"] is True


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match=r"a vocabulary of 8 cannot hold the 11"):
        vocabulary.train(["abc"], 8)
    with pytest.raises(EncoreError, match=r"tokenizer\.json is missing"):
        vocabulary.load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoreError, match="is not a tokenizer"):
        vocabulary.load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text(Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")).to_str())
    with pytest.raises(EncoreError, match=r"lacks \[PAD\]"):
        vocabulary.special_tokens(vocabulary.load_tokenizer(tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("language", "text", "normal"),
    [
        ("en", "Élan कल कुल", "elan कल कल"),
        ("hi", "Élan कल कुल", "élan कल कुल"),
        ("tr", "ISI İSİ", "ısı isi"),
        ("de", "ISI", "isi"),
    ],
)
def test_marks_and_letters_are_kept_as_the_language_needs_them(language: str, text: str, normal: str) -> None:
    tokenizer = vocabulary.build_tokenizer(vocabulary.train([text] * 9, 200, language), language)
    assert tokenizer.normalizer.normalize_str(text) == normal
    assert vocabulary.UNK not in tokenizer.encode(text).tokens


def test_an_alphabet_covers_nearly_all_characters_of_other_languages() -> None:
    """3,500 ideographs by Zipf's law: English's 1,000 characters leave a fifth of them unknown."""
    rng = random.Random(0)
    signs = [chr(0x4E00 + number) for number in range(3500)]
    weights = [1 / (number + 1) for number in range(3500)]
    texts = ["".join(rng.choices(signs, weights, k=60)) for _ in range(1000)]
    unknown = {}
    for language in ("en", "zh"):
        tokenizer = vocabulary.build_tokenizer(vocabulary.train(texts, 8000, language), language)
        tokens = [token for encoding in tokenizer.encode_batch(texts) for token in encoding.tokens[1:-1]]
        unknown[language] = tokens.count(vocabulary.UNK) / len(tokens)
    assert unknown["en"] > 0.05
    assert 0 < unknown["zh"] < 0.001


@pytest.mark.parametrize(
    ("language", "text"), [("hi", "घर कुल été"), ("tr", "ISI İSİ"), ("th", "ประเทศไทยเป็นประเทศ" * 10)]
)
def test_other_libraries_read_the_same_of_a_vocabulary_of_a_language(language: str, text: str, tmp_path: Path) -> None:
    """Also capitals of Turkish, and words of Thai without blanks, which BERT's tokenizer takes for a too long one."""
    from transformers import AutoTokenizer

    tokenizer = vocabulary.build_tokenizer(vocabulary.train([text] * 9, 200, language), language)
    vocabulary.save_tokenizer(tokenizer, tmp_path)
    assert vocabulary.UNK not in tokenizer.encode(text).tokens
    assert AutoTokenizer.from_pretrained(tmp_path)(text)["input_ids"] == tokenizer.encode(text).ids
