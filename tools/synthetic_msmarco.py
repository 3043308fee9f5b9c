"""Write made-up passages, queries and judgments with MS MARCO's counts, at any size, as a folder in BEIR's layout.

    python -m tools.synthetic_msmarco FOLDER --passages 1000000

Words follow Zipf's law as Mandelbrot has it, after the stop words of English; lengths are log-normal around MS MARCO's
56 words. A query has some words of each of its relevant passages, among others, so that BM25 finds these more often
than by chance. Numbers of queries and judgments are MS MARCO's share for that many passages. Equal arguments give equal
bytes, and a passage does not depend on how many there are.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import chain, count, islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from encore.errors import EncoreError
from encore.storage.files import open_text_writer

PASSAGES = 8_841_823
COUNTS = {"train": (502_939, 532_761), "dev": (6_980, 7_437)}  # queries and judgments of each split
LEAST = 100  # passages: that many have a query of each split
WORDS, LENGTH, SPREAD = 430_000, 56, 0.45  # different words; words of a passage on average, and their deviation (log)
ZIPF, SHIFT = 1.07, 2.7  # probability of rank r: 1 / (r + SHIFT) ** ZIPF
BLOCK = 2**14  # passages that are drawn together
OWN, OTHERS = 3, 4  # words of a query that come from each relevant passage, and from the language
# By frequency in English; Lucene's analyser leaves them out.
STOP = """the of a and to in is for that it as with be on are by this or not an at if was will there they their but such
    no into these then"""
ONSETS, VOWELS = "bdfghklmnprstvz", "aeiou"


class Judged(NamedTuple):
    """The judgments of a split: the query of each, ascending, and its passage, both numbers from 0."""

    queries: np.ndarray
    passages: np.ndarray


def write(folder: Path, passages: int, seed: int = 0) -> dict[str, int]:
    """Write ``corpus.jsonl.gz``, ``queries.jsonl.gz`` and ``qrels/<split>.tsv``; returns their counts.

    Raises:
        EncoreError: too few passages for a query of each split.
    """
    if passages < LEAST:
        raise EncoreError(f"--passages {passages}: too few for a query of each split; take {LEAST} or more")
    judged = {split: judgments(split, passages, seed) for split in COUNTS}
    wanted = np.unique(np.concatenate([each.passages for each in judged.values()]))
    own: dict[int, list[int]] = {}
    vocabulary = np.array(words())
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    with open_text_writer(folder / "corpus.jsonl.gz") as file:
        for first in range(0, passages, BLOCK):
            drawn = passages_of(first // BLOCK, seed)[: passages - first]
            for number, ranks in enumerate(drawn, first):
                text = " ".join(vocabulary[ranks].tolist())
                file.write(json.dumps({"_id": str(number), "title": "", "text": f"{text}."}) + "\n")
            for number in wanted[slice(*np.searchsorted(wanted, [first, first + BLOCK]))].tolist():
                own[number] = telling(drawn[number - first], number, seed)
    with open_text_writer(folder / "queries.jsonl.gz") as file:
        for place, (split, found) in enumerate(judged.items()):
            for name, chosen in _queries(found, own, seed + 1 + place):
                text = " ".join(vocabulary[chosen].tolist())
                file.write(json.dumps({"_id": f"{split}{name}", "text": text}) + "\n")
    for split, found in judged.items():
        pairs = zip(found.queries.tolist(), found.passages.tolist(), strict=True)
        lines = [f"{split}{query}\t{passage}\t1\n" for query, passage in pairs]
        (folder / f"qrels/{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    counts = {"passages": passages}
    for split, found in judged.items():
        counts |= {f"{split} queries": int(found.queries[-1]) + 1, f"{split} judgments": len(found.queries)}
    return counts


def judgments(split: str, passages: int, seed: int) -> Judged:
    """Which passages are relevant to which queries: one to each, and more to some."""
    queries, all_judgments = (max(1, round(count * passages / PASSAGES)) for count in COUNTS[split])
    random = np.random.default_rng([seed, len(split), passages])
    more = random.choice(queries, max(0, all_judgments - queries), replace=False)
    of_query = np.sort(np.concatenate([np.arange(queries), more]))
    return Judged(of_query, random.choice(passages, len(of_query), replace=False))


def passages_of(block: int, seed: int) -> list[np.ndarray]:
    """The passages of a block, each as the ranks of its words by frequency, from 0."""
    random = np.random.default_rng([seed, block])
    lengths = np.exp(random.normal(np.log(LENGTH) - SPREAD**2 / 2, SPREAD, BLOCK)).astype(np.int64) + 1
    ranks = np.searchsorted(_CUMULATIVE, random.random(int(lengths.sum())))
    return np.split(ranks, np.cumsum(lengths)[:-1])


def telling(ranks: np.ndarray, number: int, seed: int) -> list[int]:
    """Some words of a passage that are neither its commonest nor its rarest, drawn for its number."""
    ordered = np.unique(ranks)
    middle = ordered[len(ordered) // 3 : max(len(ordered) // 3 + 1, 5 * len(ordered) // 6)]
    random = np.random.default_rng([seed, 1, number])
    return [int(each) for each in random.choice(middle, min(OWN, len(middle)), replace=False)]


def words() -> list[str]:
    """Every word by frequency: stop words, then syllables, fewer in the commoner ones."""
    syllables = [onset + vowel for onset in ONSETS for vowel in VOWELS]
    made = (f"{''.join(parts)}n" for size in count(1) for parts in product(syllables, repeat=size))
    return list(islice(chain(STOP.split(), made), WORDS))  # they end in a consonant, which stemming leaves there


def _queries(found: Judged, own: dict[int, list[int]], seed: int) -> Iterator[tuple[int, list[int]]]:
    """Each query's number and the ranks of its words, in no order."""
    random = np.random.default_rng([seed, 2])
    starts = np.flatnonzero(np.diff(found.queries, prepend=-1))
    for query, passages in enumerate(np.split(found.passages, starts[1:])):
        ranks = [rank for passage in passages.tolist() for rank in own[passage]]
        ranks += np.searchsorted(_CUMULATIVE, random.random(OTHERS)).tolist()
        yield query, random.permutation(ranks).tolist()


_CUMULATIVE = np.cumsum((np.arange(WORDS) + 1 + SHIFT) ** -ZIPF)
_CUMULATIVE /= _CUMULATIVE[-1]


def main() -> None:
    """Write a folder as the command line says, and print what is in it."""
    parser = argparse.ArgumentParser(prog="python -m tools.synthetic_msmarco", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name, number in write(given.folder, given.passages, given.seed).items():
        print(f"{name}: {number}")


if __name__ == "__main__":
    try:
        main()
    except EncoreError as error:
        sys.exit(f"error: {error}")
