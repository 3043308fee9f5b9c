"""Runs judged by answers: DPR's top-k accuracy, over all questions, whatever was retrieved for them."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest
import regex

from encore.config.datasets import Split
from encore.data.collection import Collection, write_collection
from encore.data.rankings import Run, rank
from encore.datasets.kinds import build_collection
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, judging
from encore.plan.artifact import Topics
from encore.products.catalogue import load_plan
from tests.support import small_dpr

TOKENS = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", flags=regex.IGNORECASE | regex.UNICODE)
MEASURES = {"R@1": "Success@1", "R@2": "Success@2", "R@5": "Success@5", "RR@10": "RR@10"}
PROTOCOL = EvaluationProtocol(splits={"test": MEASURES}, judged_by_answers=["test"])


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    files = small_dpr.write(tmp_path / "files")
    build_collection("dpr", small_dpr.fields(files).resolve(), tmp_path / "c", source=files)
    return Collection(tmp_path / "c")


def run(**rankings: list[str]) -> Run:
    return {
        name.replace("_", "-"): rank(documents, np.arange(len(documents), 0, -1))
        for name, documents in rankings.items()
    }


def means(found: Run, collection: Collection) -> dict[str, float]:
    return {name: scored.values.mean() for (_, name), scored in judging.judge(found, collection, PROTOCOL).items()}


def test_a_question_counts_by_its_first_passage_with_an_answer(collection: Collection) -> None:
    found = run(test_0=["6", "5", "2"], test_1=["3", "1"], test_2=["1", "2", "3", "5", "6"])
    assert means(found, collection) == pytest.approx(
        {"R@1": 1 / 3, "R@2": 1 / 3, "R@5": 2 / 3, "RR@10": (1 / 3 + 1) / 3}
    )


def test_a_title_that_has_the_answer_counts_for_nothing(collection: Collection) -> None:
    assert means(run(test_0=["6"]), collection)["R@1"] == 0, "'Anne Isabella' is the title of 6"


def test_questions_without_a_passage_count_too(collection: Collection) -> None:
    scored = judging.judge(run(test_1=["3"]), collection, PROTOCOL)["test", "R@5"]
    assert (scored.queries, scored.values.tolist()) == (["test-0", "test-1", "test-2"], [0.0, 1.0, 0.0])
    assert scored.answered.tolist() == [False, True, False]


def test_tied_passages_behind_the_last_rank_widen_the_interval(collection: Collection) -> None:
    tied = {"test-0": rank(["2", "5", "6"], [1.0, 1.0, 1.0])}  # in the order 6, 5, 2
    scored = judging.judge(tied, collection, PROTOCOL)["test", "R@1"]
    assert (scored.values[0], scored.low[0], scored.high[0]) == (0.0, 0.0, 1.0)


def test_a_passage_of_another_collection_is_refused(collection: Collection) -> None:
    with pytest.raises(EncoreError, match="document '77' of the run is not in"):
        judging.judge(run(test_0=["77", "1"]), collection, PROTOCOL)


def words(text: str) -> list[str]:
    return [found.group().lower() for found in TOKENS.finditer(unicodedata.normalize("NFD", text))]


def test_values_are_those_of_dprs_definition(tmp_path: Path) -> None:
    """Random questions and passages; the share of questions whose first k passages have an answer, token by token."""
    rng = np.random.default_rng(3)
    signs = [*list("aB1 .-'"), "é", "é", "\xa0", "$"]
    texts = ["".join(rng.choice(signs, rng.integers(1, 25))) + "z" for _ in range(120)]
    answers = {f"q{n}": ["".join(rng.choice(signs, rng.integers(1, 4))) + "1" for _ in range(2)] for n in range(60)}
    corpus = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts)]
    rows = [{"_id": name, "text": "?"} for name in answers]
    answered = [{"_id": name, "answers": given} for name, given in answers.items()]
    write_collection(tmp_path, corpus, rows, {}, answers=answered, questions={"test": list(answers)})
    ranked = {name: [f"d{n}" for n in rng.choice(120, 10, replace=False)] for name in answers}

    def right(name: str, document: str) -> bool:
        text = words(texts[int(document[1:])])
        given = [words(answer) for answer in answers[name]]
        return any(text[i : i + len(each)] == each for each in given for i in range(len(text)))

    found = means({name: rank(each, np.arange(10, 0, -1)) for name, each in ranked.items()}, Collection(tmp_path))
    for k in (1, 2, 5):
        expected = np.mean([any(right(name, each) for each in ranked[name][:k]) for name in answers])
        assert 0 < expected < 1
        assert found[f"R@{k}"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ["R@5", "nDCG@10", "AP", "Success(rel=2)@5"])
def test_what_answers_cannot_tell_is_no_measure_of_such_a_split(measure: str) -> None:
    with pytest.raises(ValueError, match="cannot be measured by answers"):
        Split(role="test", judged_by="answers", measures={"x": measure})


def test_success_needs_a_number_of_ranks() -> None:
    with pytest.raises(ValueError, match="'Success' needs a number of ranks, as in Success@10"):
        Split(role="test", judged_by="answers", measures={"x": "Success"})


@pytest.mark.parametrize("role", ["train", "valid"])
def test_nothing_is_trained_or_chosen_on_answers(role: str) -> None:
    with pytest.raises(ValueError, match=f"role {role} needs judgments"):
        Split.model_validate({"role": role, "judged_by": "answers"})


@pytest.mark.usefixtures("at_the_root")
@pytest.mark.parametrize(
    ("dataset", "questions"), [("nq-open", "dpr-training-nq"), ("trivia-qa", "dpr-training-trivia")]
)
def test_open_questions_are_planned_without_their_files(dataset: str, questions: str) -> None:
    plan = load_plan(Path("config/nano.yaml"), None)
    scores = plan.scores("bm25", None, dataset, "test")
    assert scores.spec["judged_by_answers"] == ["test"]
    assert scores.spec["splits"]["test"] == {"R@5": "Success@5", "R@20": "Success@20", "R@100": "Success@100"}
    assert plan.run("bm25", None, dataset, Topics("test", plan.config.depth)) is scores.inputs["run"]
    made = plan.collection(dataset)
    assert set(made.inputs) == {"source.dpr-wikipedia", f"source.{questions}", "source.dpr-questions"}
    assert all(made.spec[role] == artifact.name for role, artifact in made.inputs.items())
    assert "judged_by_answers" not in plan.scores("bm25", None, "msmarco-passage", "test").spec
