"""PROP: words, language model, word sets, and the preference for the better set."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encore import objectives
from encore.errors import EncoreError
from encore.objectives.parts.chunks import ChunkBlock
from encore.objectives.parts.lexicon import Lexicon, Occurrences
from encore.objectives.parts.preference import mask_words
from encore.objectives.parts.word_sets import Drawn, PreparedPairs, set_sizes
from encore.objectives.prop import Collected, LanguageModel, PropSets, smoothed
from encore.training.randomness import generator
from tests.support import oracles, small_store
from tests.support.small_decoding import assert_gradient
from tests.support.small_objective import STEP, batch_of, encoder, heads_of, make
from tests.support.whole_loss import whole_loss

STORE = small_store.store([])
THE, OF, DOT, WORD, PIECE = 5, 6, 7, 8, 80


def lexicon(*texts: list[int]) -> tuple[Lexicon, Occurrences]:
    """The words of texts, and where they stand in them."""
    words, block = Lexicon(STORE.pieces, STORE.continues), [np.array(text, dtype=np.uint16) for text in texts]
    words.enter(block)
    words.close()
    return words, words.find(block)


def language_model(fields: PropSets, *texts: list[int]) -> tuple[LanguageModel, Lexicon]:
    """The language models of texts that are a collection, and their words."""
    words, collected = Lexicon(STORE.pieces, STORE.continues), Collected(fields)
    block = ChunkBlock(0, 0, [np.array(text, dtype=np.uint16) for text in texts])
    collected.add(collected.counted(block, words.enter(block.texts)))
    words.close()
    collected.close(words)
    return collected.distribution(block, words.find(block.texts)), words


# Words


def test_words_are_groups_of_pieces_and_equal_words_share_a_number() -> None:
    words, found = lexicon([8, 80, 81, 8, 80], [], [80, 8, 80, 81])  # the second text begins inside a word
    assert found.text.tolist() == [0, 0, 2, 2]
    assert found.place.tolist() == [0, 3, 0, 1]
    assert found.word[0] == found.word[3] != found.word[1]
    assert len(words) == 3
    pieces, lengths = words.pieces(found.word)
    assert pieces.tolist() == [8, 80, 81, 8, 80, 80, 8, 80, 81]
    assert lengths.tolist() == [3, 2, 1, 3]
    assert words.spelled(int(found.word[0])) == "word0piece0piece1"


def test_content_words_are_no_stop_words_no_punctuation_and_not_the_unknown() -> None:
    words, _ = lexicon([THE, DOT, 1, WORD, THE, PIECE])
    assert {words.spelled(word): bool(words.content()[word]) for word in range(5)} == {
        "the": False,
        ".": False,
        "[UNK]": False,
        "word0": True,
        "thepiece0": True,
    }
    assert not lexicon([WORD])[0].alphabetic()[0]
    assert lexicon([THE])[0].alphabetic()[0]


# The language model, against numbers of Albert-Ma/PROP at 8f0248f (prop/multiprocessing_generate_word_sets.py): one
# document with these counts, |d| = 9, mu = 20, t = 0.05, np.random.seed(0), 20,000 pairs.

COUNTS = {"alpha": 5, "beta": 3, "gamma": 1, "delta": 0, "epsilon": 0}
CORPUS = {"alpha": 4000, "beta": 300, "gamma": 120, "delta": 2000, "epsilon": 580}
DOCUMENTS = {"alpha": 400, "beta": 100, "gamma": 60, "delta": 350, "epsilon": 90}
REFERENCE_SCORES = {
    "epsilon delta beta alpha alpha": -7.563445708617763,
    "beta beta delta gamma beta beta": -11.031655820762857,
    "delta delta": -2.8427713618623214,
}
REFERENCE_SHARES = {"alpha": 0.275, "beta": 0.2756, "gamma": 0.1211, "delta": 0.2297, "epsilon": 0.0986}
NAMES = list(COUNTS)


def reference_model() -> LanguageModel:
    """The language model of a collection with the reference's counts; text 0 is its document."""
    texts: list[list[int]] = [[] for _ in range(402)]
    for number, name in enumerate(NAMES):
        own, others = COUNTS[name], DOCUMENTS[name] - (1 if COUNTS[name] else 0)
        counts = [own, *[1] * (others - 1), CORPUS[name] - own - (others - 1)]
        for text, count in enumerate(counts, 0 if own else 1):
            texts[text].extend([WORD + number] * count)
    fields = PropSets(length=512, smoothing=20.0, subsampling=5e-2)
    return language_model(fields, *texts)[0]


def test_scores_are_those_of_the_reference() -> None:
    background = np.array([DOCUMENTS[name] for name in NAMES]) / 1000
    likelihood = smoothed(np.array(list(COUNTS.values())), background, 9, 20.0)
    scores = dict(zip(NAMES, np.log(likelihood), strict=True))
    for words, score in REFERENCE_SCORES.items():
        assert sum(scores[word] for word in words.split()) == pytest.approx(score, rel=1e-12)


def test_words_are_drawn_as_often_as_by_the_reference() -> None:
    drawn = reference_model().draw(0, np.full(20_000, 6), generator(0))
    assert drawn is not None
    shares = np.bincount(drawn.words, minlength=5) / len(drawn.words)
    assert shares == pytest.approx([REFERENCE_SHARES[name] for name in NAMES], abs=0.006)
    background = np.array([DOCUMENTS[name] for name in NAMES]) / 1000
    expected = np.log(smoothed(np.array(list(COUNTS.values())), background, 9, 20.0))
    assert np.allclose(drawn.scores, expected[drawn.words], rtol=1e-12)


def test_sizes_are_poisson_without_zero() -> None:
    sizes = set_sizes(3.0, 20_000, generator(0))
    reference = {1: 0.1621, 2: 0.23865, 3: 0.2346, 4: 0.17175, 5: 0.10435}  # of the reference's run above
    counts = np.bincount(sizes) / len(sizes)
    assert counts[0] == 0
    assert [counts[size] for size in reference] == pytest.approx(list(reference.values()), abs=0.012)


def test_rare_words_and_stop_words_are_never_drawn() -> None:
    texts = [[WORD, WORD, WORD + 1, THE, DOT], [WORD, WORD, WORD + 2, OF]] * 3
    model, words = language_model(PropSets(length=48, least_count=4, sampled_words=10), *texts)
    drawn = model.draw(0, np.full(200, 3), generator(0))
    assert drawn is not None
    assert {words.spelled(word) for word in set(drawn.words.tolist())} == {"word0"}
    alone, _ = language_model(PropSets(length=48, least_count=100), *texts)
    assert alone.draw(0, np.array([1, 1]), generator(0)) is None


# Word sets


def test_the_higher_score_comes_first_and_keeps_its_words() -> None:
    words, scores = np.arange(8), np.array([1.0, 1, 5, 1, 9, 0, 2, 2])
    drawn = Drawn(words, scores, np.array([2, 2, 1, 1, 1, 1])).better_first()
    assert drawn.words.tolist() == [2, 3, 0, 1, 4, 5, 6, 7]
    assert drawn.totals.tolist() == [6, 2, 9, 0, 2, 2]


def prepare(store: Any, output: Path, **fields: Any) -> PreparedPairs:
    PropSets(length=48, **{"skip_share": 0.0, "least_count": 1, **fields}).write(store, output)
    return PreparedPairs(output)


def test_sets_have_the_same_size_and_are_a_function_of_the_seed_and_the_document(tmp_path: Path) -> None:
    store = small_store.random_store(6)
    runs = [prepare(store, tmp_path / name, set_seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1))]
    names = ("documents", "pieces", "offsets", "scores")
    files = [[(tmp_path / run / f"{name}.npy").read_bytes() for name in names] for run in "abc"]
    assert files[0] == files[1] != files[2]
    starts = ~store.continues
    for pairs in runs:
        assert pairs.scores.shape == (len(pairs.documents), 10, 2)
        assert (pairs.scores[..., 0] >= pairs.scores[..., 1]).all()
        sizes = [
            [starts[part].sum() for part in pairs.pair(document, pair)]
            for document in range(len(pairs.documents))
            for pair in range(10)
        ]
        assert all(better == worse > 0 for better, worse in sizes)


def test_a_document_draws_the_same_whatever_the_others_draw(tmp_path: Path) -> None:
    store = small_store.random_store(4)
    all_of_them, some = (prepare(store, tmp_path / str(share), skip_share=share) for share in (0.0, 0.7))
    assert 0 < len(some.documents) < len(all_of_them.documents)
    for row, document in enumerate(some.documents):
        other = int(np.flatnonzero(all_of_them.documents == document)[0])
        assert np.array_equal(some.scores[row], all_of_them.scores[other])


def test_short_documents_are_skipped_in_the_share_that_is_said(tmp_path: Path) -> None:
    store = small_store.store([[[[WORD, WORD + 1, WORD + 2]]] * 1000, [[[WORD + i for i in range(40)]]] * 50])
    pairs = prepare(store, tmp_path, skip_share=0.8, skip_below=40, stored_pairs=1, packing="section")
    long = pairs.documents >= 1000
    assert long.sum() == 50
    assert (~long).sum() / 1000 == pytest.approx(0.2, abs=0.04)


# Training


def test_example_takes_five_of_the_ten_pairs_without_repetition() -> None:
    objective = make("prop")
    example = objective.example(3, generator(0))
    stored = [objective.sets.pair(3, pair) for pair in range(10)]
    assert len(example.sets) == 10
    for better, worse in zip(example.sets[::2], example.sets[1::2], strict=True):
        assert any(np.array_equal(better, one) and np.array_equal(worse, other) for one, other in stored)
    assert (objective.chunks[objective.usable[3]] == example.ids).all()


def test_a_step_without_its_word_sets_is_refused() -> None:
    step = objectives.fields({**STEP, "objective": "prop"})
    with pytest.raises(EncoreError, match="objective prop needs its word sets"):
        objectives.load("prop")(step, small_store.random_store())


def test_words_are_masked_whole_in_the_share_of_words_and_at_most_sixty_pieces() -> None:
    fields = objectives.fields({**STEP, "objective": "prop"})
    ids = np.array([WORD, PIECE] * 20)
    masked = mask_words(ids, STORE, fields, generator(0))
    first = int(masked.positions[0])
    assert first % 2 == 0
    assert masked.positions.tolist() == [first, first + 1]  # 15 % of 20 words are three pieces: one word of two
    assert len(mask_words(np.full(100, WORD), STORE, fields, generator(0)).positions) == 15
    assert len(mask_words(np.full(600, WORD), STORE, fields, generator(0)).positions) == 60
    assert len(mask_words(np.full(1, WORD), STORE, fields, generator(0)).positions) == 1


def test_the_preference_and_its_gradient_are_those_of_the_formula() -> None:
    objective, model = make("prop", pairs=2, temperature=0.5, preference_weight=2.0), encoder().double()
    heads = heads_of(objective, model).double()
    _, batch = batch_of(objective, range(3))

    @torch.no_grad()
    def expected() -> float:
        documents, sets = (model.embed(batch[f"{part}ids"], batch[f"{part}mask"]).numpy() for part in ("", "set_"))
        scores = np.array([[sets[4 * d + s] @ documents[d] for s in range(4)] for d in range(3)])
        return oracles.preference(scores.reshape(3, 2, 2) / 0.5)  # better and worse in turn

    terms = whole_loss(objective, model, heads, batch)
    assert set(terms) == {"loss", "mlm", "preference", "accuracy"}
    assert terms["preference"].item() == pytest.approx(expected(), rel=1e-9)
    assert terms["loss"].item() == pytest.approx(terms["mlm"].item() + 2 * terms["preference"].item(), rel=1e-9)
    assert_gradient(terms["preference"], model, expected, directions=2)
