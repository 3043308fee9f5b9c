"""The language of a dataset: who has it, what depends on it, and what stays as it was."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from encore.config.languages import language_code
from encore.data.article_texts import articles
from encore.data.collection import Collection
from encore.datasets.kinds import build_collection, load_kind
from encore.errors import EncoreError
from encore.plan.artifact import Topics
from encore.plan.artifacts.collections import named_collection
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from tests.support.own_folder import folder, judged, new


def plan(**changed: Any) -> Plan:
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    run["datasets"]["own"] |= changed
    run["datasets"]["part"] = {"kind": "subset", "of": "own", "passages": 20}
    return load_plan(Path("config/own.yaml"), run)


def test_a_language_is_written_kept_and_changes_what_reads_the_texts(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text="वह घर गया। वह सोया।")
    new("own", "--beir", "data/own", "--language", "hi")
    assert "ict" in yaml.safe_load(Path("config/own.yaml").read_text())["tables"]["table1"], "texts of two sentences"
    planned = plan()
    assert planned.resolve.dataset("own").fields.language == planned.resolve.dataset("part").fields.language == "hi"
    english = plan(language="en")
    names = [{each: one.resolve.dataset(each).content for each in ("own", "part")} for one in (planned, english)]
    marked = {"language": "hi", "rules": 2}  # so that texts of other rules are not taken for these
    assert names[0]["own"] == {**names[1]["own"], **marked}
    assert names[0]["part"] == {**names[1]["part"], **marked}
    told, *others = notes(planned)
    assert told.startswith("own: queries are in another script")
    assert others == ["BM25 reads own with Lucene's analyser of its language (hi)."]
    without = "in lower case and without a final 's, with no stems or stop words: Anserini has no analyser for it."
    assert notes(plan(language="sw"))[1:] == [f"BM25 reads own (sw) {without}"]
    assert notes(english) == [told]


@pytest.mark.slow
def test_negatives_and_fusion_are_of_a_run_over_the_languages_index(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", "data/own", "--language", "en")
    stages = ("lucene_index", "lucene_search", "negatives", "fuse")
    made = {}
    for language in ("en", "hi"):
        one = plan(language=language)
        one.run("hybrid", 0, "own", Topics("test", 10))
        made[language] = {stage: {each.name for each in one.made.values() if each.stage == stage} for stage in stages}
    assert all(made["en"][stage] and made["en"][stage].isdisjoint(made["hi"][stage]) for stage in stages)


def notes(one: Plan) -> list[str]:
    return list(one.resolve.datasets.notes_behind([named_collection(one, "own")]))


@pytest.mark.slow
def test_texts_of_several_languages_are_joined_only_under_a_language_of_their_own(bare: Path) -> None:
    place = folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", str(place), "--language", "hi")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    run["datasets"]["other"] = {**run["datasets"]["own"], "language": "bn"}
    run["datasets"]["both"] = {"kind": "concat", "of": ["own", "other"]}
    with pytest.raises(EncoreError, match="'both' joins texts of several languages \\(bn, hi\\); give it a `language`"):
        load_plan(Path("config/own.yaml"), run)
    run["datasets"]["both"]["language"] = "hi"
    assert load_plan(Path("config/own.yaml"), run).resolve.datasets.own("both").fields.language == "hi"


def test_a_collection_says_its_language_and_is_split_by_it(tmp_path: Path) -> None:
    place = folder({"test": judged(0, 9)}, str(tmp_path / "own"), "वह घर गया। वह सोया।")
    fields = {"kind": "beir", "path": str(place), "splits": {"test": {"role": "test"}}}
    found = {}
    for language in ("en", "hi"):
        read = load_kind("beir").fields.model_validate({**fields, "language": language})
        build_collection("beir", read.resolve() | read.language_spec, tmp_path / language, source=place)
        made = Collection(tmp_path / language)
        assert made.language == language
        found[language] = len(next(articles(made))["sections"][0]["sentences"])
    assert found == {"en": 1, "hi": 3}
    same = {language_code(code) for code in ("hin", "HI", "hi-IN", "hi_Deva")}
    assert same == {load_kind("beir").fields.model_validate({**fields, "language": "hi-IN"}).language} == {"hi"}


def test_codes_of_a_language_are_understood_and_others_refused_with_the_right_ones() -> None:
    asked = {"nb": "no", "nn": "no", "zh-CN": "zh", "zh_TW": "zh", "cmn": "zh", "pt-BR": "pt", "eng": "en", "dt": "nl"}
    asked |= {"jp": "ja", "en-GB": "en", "sw": "sw", "yue": "yue", "tw": "tw", "ca": "ca"}
    assert {given: language_code(given) for given in asked} == asked
    for wrong in ("xx", "cz", "Hindi", "", "zhs1"):
        with pytest.raises(
            EncoreError, match=f"^'{wrong}' is not a code of ISO 639; give the language's .*en ar bn .* zh"
        ):
            language_code(wrong)


@pytest.mark.slow
def test_a_language_of_a_run_is_read_by_any_of_its_codes(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", "data/own", "--language", "nob")
    assert yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]["language"] == "no", "quoted in YAML"
    named = [plan(language=given).resolve.dataset("own").content["language"] for given in ("nb", yaml.safe_load("no"))]
    assert named == ["no", "no"]
    with pytest.raises(EncoreError, match=r"datasets\.own\.language: 'xx' is not a code of ISO 639"):
        plan(language="xx")
