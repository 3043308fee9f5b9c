"""From judged queries to TCT HN+: a teacher, what it says, a student, its hard negatives, and both once more."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data.collection import Collection, QuerySample
from encore.data.runs import read_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.negatives import mining
from encore.finetuning.scoring import open_scorer
from encore.finetuning.step import FinetuneInputs
from encore.finetuning.teachers import TeacherRequest
from encore.finetuning.teachers.outputs import PairScores, TextVectors
from encore.finetuning.teachers.published import write_published_scores
from encore.finetuning.teachers.stage import write_teacher_outputs
from encore.models.late_interaction import max_sim
from encore.retrieval.dense import Queries, answer_exactly
from encore.retrieval.encode import Encoding, make_shard
from tests.support import inside
from tests.support.small_home import NUMERICS, STEP, finetuned

KNOWN = {name: value for name, value in STEP.items() if name != "validate_every"}
COLBERT = {**KNOWN, "scorer": "late-interaction", "token_dimension": 8, "per_query": 1}
TCT = {**KNOWN, "loss": "kl-in-batch", "teacher_temperature": 0.05, "validate_every": 4}
TEACH = {"split": "train", "queries": None, "sample": 0, "least_negatives": 0, "fill": 5, "numerics": NUMERICS}


def trained(home: Path, step: dict[str, Any], weights: str, output: str, mined: str, *teachers: str) -> Path:
    places = [home / name for name in ("tokens", "collection", weights)]
    inputs = FinetuneInputs(*places, home / mined if mined else None, [home / teacher for teacher in teachers])
    finetuned(step, inputs, home / output, home / f"state-{output}")
    return home / output


def said(home: Path, form: str, model: str, output: str, mined: str = "negatives") -> Path:
    request = TeacherRequest(form=form, **TEACH)
    write_teacher_outputs(request, home / model, home / "tokens", home / "collection", home / mined, home / output)
    return home / output


@pytest.fixture(scope="module")
def chain(home: Path, negatives: Path) -> Path:
    """colbert, tct, the negatives that it mines, tct-hn, colbert-hn, tct-hn-plus; each in the folder of its name.

    The first three steps by the programs of the workflow.
    """
    texts = {name: name for name in ("tokens", "collection", "negatives")}
    spec = {"step": COLBERT, "seed": 0, "numerics": NUMERICS}
    inside.made("finetune", spec, texts | {"weights": "start"}, "colbert", home)
    inside.made("teacher_scores", {**TEACH, "form": "vectors"}, texts | {"model": "colbert"}, "says", home)
    taught = texts | {"weights": "colbert", "teacher0": "says"}
    inside.made("finetune", {**spec, "step": TCT}, taught, "tct", home)

    how = Encoding(16, NUMERICS)
    make_shard(how, home / "tct", home / "tokens", "000-of-001", home / "index", home / "state")
    queries = Queries(QuerySample("train"), 20, 8, NUMERICS, "tct")
    places = [home / name for name in ("tct", "tokens", "collection")]
    answer_exactly(queries, *places, [home / "index"], home / "answers")
    ranking = {query: found.documents for query, found in read_run(home / "answers").items()}
    mining.write_negatives(
        home / "hard", *mining.mine(ranking, Collection(home / "collection").qrels("train"), depth=20, keep=5)
    )

    said(home, "vectors", "colbert", "says-hn", "hard")
    trained(home, TCT, "tct", "tct-hn", "hard", "says-hn")
    trained(home, COLBERT, "colbert", "colbert-hn", "hard")
    said(home, "vectors", "colbert-hn", "says-hn-plus", "hard")
    trained(home, TCT, "tct", "tct-hn-plus", "hard", "says-hn-plus")
    return home


def losses(model: Path) -> list[float]:
    rows = [line.split("\t") for line in (model / "losses.tsv").read_text().splitlines()]
    place = rows[0].index("distillation")
    return [float(row[place]) for row in rows[1:]]


def test_students_learn_what_their_teacher_says(chain: Path) -> None:
    for name in ("tct", "tct-hn", "tct-hn-plus"):
        values = losses(chain / name)
        assert min(values) >= 0, "a divergence is never negative"
    assert losses(chain / "tct")[-1] < losses(chain / "tct")[0]
    weights = [(chain / name / "model.safetensors").read_bytes() for name in ("tct", "tct-hn", "tct-hn-plus")]
    assert len(set(weights)) == 3


def test_mined_negatives_are_the_students_own_and_never_judged(chain: Path) -> None:
    run = read_run(chain / "answers")
    rows = [line.split("\t") for line in gunzip(chain / "hard" / "negatives.tsv.gz")]
    assert len(rows) == 200
    for query, document, _ in rows:
        assert document in run[query].documents
        assert document != f"d{query[1:]}"


def gunzip(path: Path) -> list[str]:
    from encore.storage.files import open_text

    with open_text(path) as file:
        return file.read().splitlines()[1:]


def test_what_is_kept_of_tokens_scores_as_the_teacher_does(chain: Path) -> None:
    store = TokenStore(chain / "tokens")
    vectors = {name: TextVectors(chain / "says", name) for name in ("queries", "passages")}
    queries, passages = vectors["queries"].rows[:7], vectors["passages"].rows[:9]
    assert len(vectors["queries"].rows) == 40
    import torch

    padded = [vectors["queries"].padded(queries), vectors["passages"].padded(passages)]
    given = [torch.from_numpy(array).float() if number % 2 == 0 else torch.from_numpy(array)
             for pair in padded for number, array in enumerate(pair)]  # fmt: skip
    found = max_sim(*given).numpy()
    pairs = np.repeat(queries, 9), np.tile(passages, 7)
    direct = open_scorer(chain / "colbert", store).score(*pairs).reshape(7, 9)
    np.testing.assert_allclose(found, direct, rtol=2e-3, atol=2e-3)
    assert np.abs(direct).max() > 0.05
    results = json.loads((chain / "says" / "manifest.json").read_text())["results"]
    assert results["queries"] == 40
    assert results["pairs"] == 40 * 6
    assert results["vectors_of_passages"] == int(vectors["passages"].offsets[-1])


@pytest.fixture(scope="module")
def cross(chain: Path) -> Path:
    step = {**KNOWN, "scorer": "cross-encoder", "length": 16, "query_length": 8, "steps": 4}
    return trained(chain, step, "start", "cross", "negatives")


def test_a_cross_encoder_scores_no_batch(chain: Path, cross: Path) -> None:
    with pytest.raises(EncoreError, match="cross gives texts no vectors, so it cannot score a batch"):
        said(chain, "vectors", cross.name, "never")


@pytest.mark.usefixtures("cross")
@pytest.mark.parametrize("teacher", ["colbert", "tct", "cross"])
def test_pairs_have_the_teachers_scores(chain: Path, teacher: str, tmp_path: Path) -> None:
    store = TokenStore(chain / "tokens")
    request, texts = TeacherRequest(form="scores", **TEACH), [chain / name for name in ("tokens", "collection")]
    write_teacher_outputs(request, chain / teacher, *texts, chain / "negatives", tmp_path)
    row = store.queries.names.index("q7")
    own = [store.passages.names.index(line.split("\t")[1]) for line in gunzip(chain / "negatives" / "negatives.tsv.gz")
           if line.startswith("q7\t")]  # fmt: skip
    passages = np.array([[store.passages.names.index("d7"), *own]])
    found = PairScores(tmp_path, len(store.passages)).of(np.array([row]), passages)
    direct = open_scorer(chain / teacher, store).score(np.repeat(row, passages.size), passages[0])
    np.testing.assert_allclose(found[0], direct, rtol=1e-4, atol=1e-5)
    assert len(own) == 5


@pytest.mark.parametrize("loss", ["kl-pairwise", "margin-mse"])
def test_pairwise_students_learn_of_two_teachers(chain: Path, loss: str) -> None:
    for teacher in ("colbert", "tct"):
        said(chain, "scores", teacher, f"pairs-{teacher}")
    step = {**KNOWN, "loss": loss, "steps": 30, "learning_rate": 5e-3}
    student = trained(chain, step, "colbert", loss, "negatives", "pairs-colbert", "pairs-tct")
    assert np.mean(losses(student)[-5:]) < losses(student)[0]


def test_a_single_vector_teacher_scores_batches_too(chain: Path) -> None:
    said(chain, "vectors", "tct", "says-vectors")
    vectors = TextVectors(chain / "says-vectors", "passages")
    assert vectors.longest == 1
    assert vectors.vectors.dtype == np.float32
    student = trained(chain, TCT, "start", "student", "negatives", "says-vectors")
    assert losses(student)[-1] < losses(student)[0]


def test_a_teacher_of_other_negatives_is_one_clear_line(chain: Path) -> None:
    with pytest.raises(EncoreError, match=r"says-hn/pair_queries.npy is missing"):
        trained(chain, {**KNOWN, "loss": "kl-pairwise"}, "colbert", "never", "negatives", "says-hn")
    with pytest.raises(EncoreError, match=r"says-hn has no vector of row \d+ of the passages"):
        trained(chain, {**TCT, "per_query": 5, "steps": 60}, "colbert", "never", "negatives", "says-hn")


def test_students_and_teachers_leave_out_copies_where_they_are_told_to(
    home: Path, negatives: Path, tmp_path: Path
) -> None:
    """Here every passage is a copy of every answer, so none is left to learn from."""
    place = shutil.copytree(home / "collection", tmp_path / "collection")
    (place / "copies.tsv.gz").write_bytes(gzip.compress("".join(f"d{row}\td0\n" for row in range(1, 64)).encode()))
    inputs = FinetuneInputs(home / "tokens", place, home / "start", negatives)
    with pytest.raises(EncoreError, match="nothing to learn"):
        finetuned(COLBERT, inputs, tmp_path / "model", tmp_path / "state", ignore_copies=True)
    taught = TeacherRequest(form="vectors", ignore_copies=True, **TEACH)
    with pytest.raises(EncoreError, match="nothing to learn"):
        write_teacher_outputs(taught, home / "start", home / "tokens", place, negatives, tmp_path / "says")


# Published scores


LINES = ["3.5\t1.0\tq0\td0\td5", "2.0\t-1.0\tq1\td1\td6", "3.5\t0.5\tq0\td0\td7"]


def published(home: Path, source: Path, output: Path) -> dict[str, int]:
    from encore.config.sources import score_files
    from encore.storage.files import contents

    return write_published_scores(str(source), home / "tokens", output, contents(score_files(str(source))))


def test_published_scores_become_triples_and_pairs(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "t2"
    source.mkdir()
    (source / "one.tsv").write_text("\n".join(LINES) + "\n")
    (source / "two.tsv").write_text("\n".join(LINES).replace("3.5", "4.5").replace("-1.0", "-2.0") + "\n")
    assert published(home, source, tmp_path / "out") == {"files": 2, "triples": 3, "pairs": 5}
    store = TokenStore(home / "tokens")
    query, passage = store.queries.names.index, store.passages.names.index
    scores = PairScores(tmp_path / "out", len(store.passages))
    assert scores.triples.tolist() == [
        [query("q0"), passage("d0"), passage("d5")],
        [query("q1"), passage("d1"), passage("d6")],
        [query("q0"), passage("d0"), passage("d7")],
    ]
    found = scores.of(np.array([query("q0"), query("q1")]), np.array([[passage("d0"), passage("d7")],
                                                                      [passage("d1"), passage("d6")]]))  # fmt: skip
    assert found.tolist() == [[4.0, 0.5], [2.0, -1.5]]


@pytest.mark.parametrize("loss", ["kl-pairwise", "margin-mse"])
def test_students_learn_from_a_published_file(home: Path, loss: str, tmp_path: Path) -> None:
    judged = Collection(home / "collection").qrels("train")
    lines = [f"2.0\t{-i}.5\t{query}\t{next(iter(judged[query]))}\td{60 + i}" for i in range(3) for query in judged]
    (tmp_path / "scores.tsv").write_text("\n".join(lines) + "\n")
    assert published(home, tmp_path / "scores.tsv", home / f"published-{loss}")["triples"] == 120
    step = {**KNOWN, "loss": loss, "negatives": "none", "steps": 30, "learning_rate": 5e-3}
    student = trained(home, step, "start", f"student-{loss}", "", f"published-{loss}")
    assert np.mean(losses(student)[-5:]) < losses(student)[0]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("3.5\t1.0\tq0\td0", "line 2: not `pos_score<TAB>neg_score<TAB>query_id<TAB>pos_id<TAB>neg_id`"),
        ("high\t1.0\tq0\td0\td5", "line 2: could not convert string to float: 'high'"),
        ("nan\t1.0\tq0\td0\td5", "line 2: a score is not finite"),
        ("3.5\t1.0\tq999\td0\td5", "line 2: query 'q999' is not in the collection"),
        ("3.5\t1.0\tq0\td0\td999", "line 2: document 'd999' is not in the collection"),
        ("9.5\t1.0\tq0\td0\td9", "line 2: a pair has another score than on line 1"),
    ],
)
def test_a_wrong_line_is_named(home: Path, line: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "scores.tsv").write_text(f"{LINES[0]}\n{line}\n")
    with pytest.raises(EncoreError, match=says) as refused:
        published(home, tmp_path / "scores.tsv", tmp_path / "out")
    assert "\n" not in str(refused.value)


def test_files_of_other_triples_are_not_averaged(home: Path, tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("\n".join(LINES))
    (tmp_path / "two.tsv").write_text("\n".join([LINES[0], LINES[2], LINES[1]]))
    with pytest.raises(EncoreError, match=r"two.tsv, line 2: other texts than in the first file"):
        published(home, tmp_path, tmp_path / "out")
    (tmp_path / "two.tsv").write_text(LINES[0])
    with pytest.raises(EncoreError, match=r"two.tsv has 1 lines, the first file 3"):
        published(home, tmp_path, tmp_path / "out")


def test_what_was_fetched_is_read_from_its_folder(home: Path, tmp_path: Path) -> None:
    """Its own manifest says what the files are, so the plan has no digest of them."""
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "one.tsv").write_text(LINES[0])
    assert write_published_scores(str(tmp_path), home / "tokens", tmp_path / "out")["triples"] == 1


def test_a_changed_source_is_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text(LINES[0])
    with pytest.raises(EncoreError, match="is not what was planned with"):
        write_published_scores(str(tmp_path), home / "tokens", tmp_path / "out", {"one.tsv": "another"})
