"""`encore new` fits the first models to the texts, or refuses them: letters, lengths, sentences."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from encore.config.languages import UNKNOWN_SHARE
from encore.data.vocabulary import UNK, load_tokenizer
from encore.stages.base import Job
from encore.stages.run import run_stage
from encore.storage.manifest import read_manifest
from tests.support import inside
from tests.support.own_folder import encoder, folder, judged, new, planned, raw, refused


def test_an_objective_on_pairs_of_sentences_is_left_out_where_no_text_has_two(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text=f"one{' long' * 70} sentence")
    new("own", "--beir", "data/own")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert set(run["tables"]["table1"]) == {"bm25", "random", "none", "control", "mlm", "bow", "costa"}
    text = Path("config/own.yaml").read_text()
    assert "# Left out, since they learn from texts of two sentences, and here each has one: ICT.\n" in text
    assert "passages: BFS, WLP, ICT+BFS+WLP.\n" in text


@pytest.mark.parametrize("words", [(), ("--checkpoint", "models/theirs")])
def test_an_objective_on_longer_texts_is_left_out_where_there_are_none(bare: Path, words: tuple[str, ...]) -> None:
    """COSTA's job would end, as no text has its 64 pieces."""
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text="Two sentences. They are short")
    encoder()
    new("own", "--beir", "data/own", *words)
    text = Path("config/own.yaml").read_text()
    assert "# Left out, since they learn from longer texts than any here: COSTA.\n" in text
    (rows,) = yaml.safe_load(text)["tables"].values()
    assert set(rows) >= {"none", "control", "mlm", "ict", "bow"}
    assert "costa" not in rows


def test_an_objective_on_two_sentences_is_left_out_where_they_are_longer_than_what_it_reads(bare: Path) -> None:
    """Two sentences of 61 and 30 ideographs are not in one text of 64 pieces; the 91 are enough for COSTA."""
    text = f"{signs(60)}。{signs(29)}"
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text=text)
    new("own", "--beir", "data/own", "--language", "zh")
    text = Path("config/own.yaml").read_text()
    assert "# Left out, since they learn from two sentences together, and here these are longer than" in text
    (rows,) = yaml.safe_load(text)["tables"].values()
    assert "costa" in rows
    assert "ict" not in rows


def signs(count: int, first: int = 0x4E00) -> str:
    return "".join(chr(first + number) for number in range(count))


@pytest.mark.slow
def test_a_vocabulary_has_room_for_the_characters_of_the_language(bare: Path) -> None:
    """The default's has 2,048 pieces, in which the job of a tokenizer for 2,600 ideographs would end."""
    raw(words=signs(2600))
    assert "Vocabularies have 4,096 pieces: 2,6" in new("own", "--from", "raw", "--language", "zh")
    plan, _ = planned("config/own.yaml")
    made = [each.spec for each in plan.made.values() if each.stage == "tokenizer"]
    assert [spec["vocabulary"] for spec in made] == [4096]
    assert {each.spec["backbone"]["vocabulary"] for each in plan.made.values() if each.stage == "start"} == {4096}
    assert "62% of the queries' tokens" in refused("latin", "--beir", "data/own", "--language", "en"), "1,000 are kept"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "text"), [("hi", "कल कुल काल पानी पानि। तेल तल।"), ("zh", f"{signs(2500)}。{signs(1000, 0x5A00)}。")]
)
def test_marks_and_ideographs_of_a_collection_are_in_its_tokens(bare: Path, language: str, text: str) -> None:
    """Of Devanagari's words that differ in vowel signs alone, and of 3,500 ideographs."""
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text=text)
    new("own", "--beir", "data/own", "--language", language)
    plan, _ = planned("config/own.yaml")
    made = {each.stage: each for each in plan.made.values() if each.stage in ("collection.beir", "tokenizer", "tokens")}
    for each in made.values():
        inputs = {role: parent.folder for role, parent in each.inputs.items()}
        as_planned = {"stage": each.stage, "spec": json.loads(json.dumps(each.spec)), "inputs": inputs}
        run_stage(as_planned, Job(Path(each.folder), Path("state"), source=each.source and Path(each.source)), dict)
    assert not [
        name for name in read_manifest(Path(made["tokens"].folder))["results"] if name.startswith(UNKNOWN_SHARE)
    ]
    tokenizer = load_tokenizer(Path(made["tokenizer"].folder))
    words = text.split() if language == "hi" else list(text)
    assert len({tuple(tokenizer.encode(word).ids) for word in words}) == len(set(words))
    tokens = tokenizer.encode(text).tokens
    assert tokens.count(UNK) < len(tokens) / 1000


def test_queries_of_characters_that_nothing_teaches_are_refused(bare: Path) -> None:
    """40 of 100 queries: the job that makes tokens would refuse them."""
    place = raw(words=signs(200))
    for split in ("dev", "test"):
        topics = place / f"topics.{split}.tsv"
        topics.write_text("".join(f"{line.partition(chr(9))[0]}\t{signs(200, 0x6000)}\n" for line in topics.open()))
    done = inside.encore("new", "own", "--from", "raw", "--language", "zh")
    assert "% of the queries' tokens have characters that a vocabulary of the passages and " in done.stderr
    raw_again = Path("raw/topics.dev.tsv")
    raw_again.write_text(raw_again.read_text().replace(signs(200, 0x6000), signs(200)))
    shutil.rmtree("data/own")
    new("own", "--from", "raw", "--language", "zh")


def test_words_without_blanks_are_long_enough_for_objectives(bare: Path) -> None:
    """Two phrases of 280 letters of Thai are more pieces than COSTA asks for, and by blanks they are two words."""
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text=" ".join(["กขคงจฉชซฌญ" * 28] * 2))
    new("own", "--beir", "data/own", "--language", "th")
    (rows,) = yaml.safe_load(Path("config/own.yaml").read_text())["tables"].values()
    assert "costa" in rows


@pytest.mark.parametrize("others", [(), ("--zero-shot",), ("--checkpoint", "models/theirs"), ("--pretrain",)])
def test_a_language_that_nobody_names_is_asked_for(others: tuple[str, ...], bare: Path) -> None:
    """As English its marks would be lost and its sentences never end, of which no later count says a word."""
    raw(words=signs(40, first=0x915))
    encoder()
    inside.encore("convert", "raw", "data/own")
    asked = "100% of the letters are not Latin; name the language of the texts, such as --language hi"
    assert asked in refused("own", "--beir", "data/own", *others)
    assert not Path("config/own.yaml").exists()


def test_zero_shot_search_of_a_script_that_no_model_knows_is_refused(bare: Path) -> None:
    raw(words=signs(40, first=0x915))
    message = "100% of the letters are not Latin, and the other run's models learn from Latin ones"
    done = inside.encore("new", "own", "--from", "raw", "--language", "hi", "--zero-shot")
    assert message in done.stderr
    assert message in refused("own", "--beir", "data/own", "--zero-shot", "--language", "en")
    encoder()
    new("own", "--beir", "data/own", "--zero-shot", "--language", "hi", "--checkpoint", "models/theirs")
