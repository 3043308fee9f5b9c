"""Predicted queries: what they are learned from, how they are sampled, read and indexed; and that no answer leaks."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encore.config.systems import T5, read_expansion
from encore.data import collection as common
from encore.data import vocabulary
from encore.data.collection import Collection, Judgment
from encore.data.runs import read_run
from encore.errors import EncoreError
from encore.retrieval.doc2query import model, predictions, sampling, training
from encore.retrieval.doc2query.model import Doc2QueryTokenizer, filled
from encore.retrieval.doc2query.training import training_pairs
from encore.storage import sealed
from encore.storage.manifest import record
from encore.training import distributed, loop
from encore.training.distributed import ProcessGroup
from tests.support import inside
from tests.support.little_memory import in_little_memory

WORDS = ["read", "write", "open", "close", "sort", "merge", "split", "join", "parse", "print"]
NAMES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_collection(folder: Path, secrets: bool = True) -> Path:
    """Passage i is about word i, and so are its queries; those of test and valid say words that stand nowhere else."""
    grades = {"train": range(6), "valid": range(6, 8), "test": range(8, 10)} if secrets else {"train": range(6)}
    queries = [
        {"_id": f"{split}{i}", "text": f"how to {WORDS[i]}" if split == "train" else f"xylophone {WORDS[i]}"}
        for split, rows in grades.items()
        for i in rows
    ]
    with record(folder, stage="collection.beir", spec={}, inputs=[]):
        common.write_collection(
            folder,
            [{"_id": f"d{i}", "title": "", "text": f"the function {word}s a file"} for i, word in enumerate(WORDS)],
            queries,
            {split: [Judgment(f"{split}{i}", f"d{i}", 1) for i in rows] for split, rows in grades.items()},
        )
    return folder


def write_tokenizer(folder: Path) -> Path:
    texts = [f"the function {word}s a file how to {word} xylophone" for word in WORDS]
    with record(folder, stage="tokenizer", spec={}, inputs=[]):
        vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(texts, 200)), folder)
    return folder


FIELDS = {"train_split": "train", "queries": None, "sample": 0, "layers": 1, "hidden": 16}
FIELDS |= {"heads": 2, "intermediate": 32, "dropout": 0.1, "steps": 6, "batch": 4, "learning_rate": 0.01}
FIELDS |= {"warmup": 0.5, "length": 12, "query_length": 8}
NUMERICS = {"precision": "fp32", "threads": 1, "micro_batch": None}
SAMPLING = {"per_passage": 2, "top_k": 5, "length": 12, "query_length": 8, "seed": 0, "numerics": NUMERICS}
HOW = sampling.Sampling(**SAMPLING)


def learned(places: tuple[Path | None, ...], changes: dict[str, Any] | None = None, **others: Any) -> None:
    """Train the T5 of an entry of doc2query.yaml."""
    entry = T5(**{"kind": "t5", "collection": "c", "backbone": "b", **FIELDS, **(changes or {})})
    training.train(entry, NUMERICS, *places, **others)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``collection``, ``tokenizer`` and the ``doc2query_model`` that was trained on it."""
    root = tmp_path_factory.mktemp("expanding")
    write_collection(root / "collection")
    write_tokenizer(root / "tokenizer")
    with record(root / "doc2query_model", stage="train_doc2query", spec={}, inputs=[]):
        learned((root / "collection", root / "tokenizer", root / "doc2query_model", root / "state"))
    return root


# What is learned from


def test_a_pair_is_a_training_query_and_its_passage() -> None:
    pairs = training_pairs(Collection(write_collection(Path("c"))), "train")
    assert pairs == [(f"the function {word}s a file", f"how to {word}") for word in WORDS[:6]]


def test_only_the_best_grade_is_an_answer() -> None:
    with record(Path("c"), stage="collection.beir", spec={}, inputs=[]):
        rows = [{"_id": name, "title": "T", "text": f"text {name}"} for name in NAMES]
        judged = [Judgment("q", "a", 1), Judgment("q", "b", 3), Judgment("q", "c", 0)]
        common.write_collection(Path("c"), rows, [{"_id": "q", "text": "?"}], {"train": judged})
    assert training_pairs(Collection(Path("c")), "train") == [("T text b", "?")]


def test_a_sample_of_queries_is_the_sample_that_fine_tuning_takes() -> None:
    collection = Collection(write_collection(Path("c")))
    chosen = common.topics(collection, "train", 3, 1)
    assert [
        f"train{WORDS.index(query.split()[-1])}" for _, query in training_pairs(collection, "train", 3, 1)
    ] == chosen


@pytest.mark.slow
def test_validation_and_test_queries_are_never_seen(trained: Path) -> None:
    """Without them, their judgments and their texts the model and what it writes are the same bytes."""
    write_collection(Path("without"), secrets=False)
    without = Path("without")
    assert len(Collection(without).queries()) < len(Collection(trained / "collection").queries())
    learned((without, trained / "tokenizer", Path("doc2query_model"), Path("state")))
    name = "model.safetensors"
    assert Path("doc2query_model", name).read_bytes() == (trained / "doc2query_model" / name).read_bytes()
    with_them = list(sampling.sample(HOW, trained / "doc2query_model", trained / "collection", Path("one")))
    assert list(sampling.sample(HOW, Path("doc2query_model"), without, Path("other"))) == with_them


@pytest.mark.slow
def test_the_leak_test_would_notice_a_leak(trained: Path) -> None:
    places = (trained / "collection", trained / "tokenizer", Path("doc2query_model"), Path("state"))
    learned(places, {"train_split": "test"})
    name = "model.safetensors"
    assert Path("doc2query_model", name).read_bytes() != (trained / "doc2query_model" / name).read_bytes()


# Training


@pytest.mark.slow
def test_an_interrupted_training_ends_with_the_same_bytes(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, original = [], loop.checkpoint.save_checkpoint

    def stop_after_the_third(folder: Path, run: str, step: int, content: dict) -> None:
        original(folder, run, step, content)
        saved.append(step)
        if step == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop.checkpoint, "save_checkpoint", stop_after_the_third)
    places = (trained / "collection", trained / "tokenizer", Path("doc2query_model"), Path("state"))
    with pytest.raises(KeyboardInterrupt):
        learned(places, seconds=0)
    learned(places, seconds=0)
    assert saved == [1, 2, 3, 4, 5, 6]
    for name in ("model.safetensors", "losses.tsv"):
        assert Path("doc2query_model", name).read_bytes() == (trained / "doc2query_model" / name).read_bytes()


@pytest.mark.slow
def test_the_loss_is_the_mean_over_the_querys_tokens(trained: Path) -> None:
    """Against log-softmax by hand, with a short and a long query, so that filling counts if anything does."""
    learner, words = model.load_model(trained / "doc2query_model")
    learner.eval()
    pairs = [("the function reads a file", "read"), ("the function", "how to read the file")]
    task = training.QueryWriting(pairs, words, 12, 8)
    batch = task.collate([task.example(place, np.random.default_rng(0)) for place in range(2)])
    loss = task.forward(learner, torch.nn.ModuleDict(), {key: torch.from_numpy(row) for key, row in batch.items()})[0]
    total, count = 0.0, 0
    for text, asked in pairs:
        (passage,), (query,) = words.rows([text], 12), words.rows([asked], 8)
        shifted = torch.tensor([[words.pad, *query[:-1]]])
        logits = learner(input_ids=torch.tensor([passage]), decoder_input_ids=shifted).logits[0].double()
        total -= sum(logits.log_softmax(-1)[place, token].item() for place, token in enumerate(query))
        count += len(query)
    assert float(loss["tokens"].detach()) == pytest.approx(total / count, rel=1e-5)
    assert task.loss_denominators(batch) == {"tokens": count}


@pytest.mark.slow
def test_training_learns_something(trained: Path) -> None:
    places = (trained / "collection", trained / "tokenizer", Path("doc2query_model"), Path("state"))
    learned(places, {"steps": 60, "dropout": 0.0})
    losses = [float(line.split("\t")[1]) for line in Path("doc2query_model/losses.tsv").read_text().splitlines()[1:]]
    assert len(losses) == 60
    assert sum(losses[-5:]) / 5 < sum(losses[:5]) / 5 - 1


@pytest.mark.slow
def test_another_model_than_a_t5_is_refused(trained: Path) -> None:
    folder = Path("bert")
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(EncoreError, match="holds a 'bert', no T5"):
        model.load_model(folder)


@pytest.mark.slow
def test_a_checkpoint_is_gone_on_from(trained: Path) -> None:
    changes = {"steps": 1, "learning_rate": 1e-12}
    places = (trained / "collection", None, Path("doc2query_model"), Path("state"))
    learned(places, changes, begun=trained / "doc2query_model")
    before, after = (
        model.load_model(folder)[0].state_dict() for folder in (trained / "doc2query_model", Path("doc2query_model"))
    )
    begun = {name for name in before if torch.equal(before[name], torch.zeros_like(before[name]))}
    assert before.keys() - begun, "a model of zeros is like any other"
    assert [name for name in before if not torch.allclose(before[name], after[name], atol=1e-9)] == []


# Sampling


@pytest.mark.slow
def test_every_passage_gets_its_queries_in_the_corpus_order(trained: Path) -> None:
    found = list(sampling.sample(HOW, trained / "doc2query_model", trained / "collection", Path("state")))
    assert [name for name, _ in found] == [f"d{i}" for i in range(10)]
    assert {len(queries) for _, queries in found} == {2}
    said = {word for _, queries in found for query in queries for word in query.split()}
    assert said
    assert not said & set(vocabulary.SPECIAL)


@pytest.mark.slow
def test_samples_go_on_where_they_were_interrupted(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that lie there are not written again, and those that do not are the same as in one go."""
    monkeypatch.setattr(sampling, "BLOCK", 4)
    place = (HOW, trained / "doc2query_model", trained / "collection")
    whole = list(sampling.sample(*place, Path("whole")))
    blocks = sorted(path.name for path in Path("whole").iterdir())
    assert len(blocks) == 3
    written, original = [], sampling._write

    def killed(*given: Any) -> Any:
        written.append(given[4])
        if len(written) == 3:
            raise InterruptedError
        return original(*given)

    monkeypatch.setattr(sampling, "_write", killed)
    with pytest.raises(InterruptedError):
        sampling.sample(*place, Path("state"))
    assert sorted(path.name for path in Path("state").iterdir()) == blocks[:2]
    assert list(sampling.sample(*place, Path("state"))) == whole
    assert written == [0, 4, 8, 8]


@pytest.mark.parametrize("processes", [2, 3, 5])
@pytest.mark.slow
def test_any_number_of_processes_writes_the_same_queries(
    processes: int, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three blocks each process writes its own, and none those of others; one was there already."""
    monkeypatch.setattr(sampling, "BLOCK", 4)
    place, written, original = (HOW, trained / "doc2query_model", trained / "collection"), [], sampling._write
    whole = list(sampling.sample(*place, Path("whole")))
    monkeypatch.setattr(sampling, "_write", lambda *given: (written.append(given[4]), original(*given))[1])
    found = list(Path("whole").iterdir())
    monkeypatch.setattr(sealed, "is_whole", lambda path: False)  # all look before any writes
    for rank in range(processes):
        group = ProcessGroup(rank, processes)
        monkeypatch.setattr(ProcessGroup, "largest", lambda group, value: value)
        monkeypatch.setattr(distributed, "process_group", lambda device, group=group: nullcontext(group))
        queries = sampling.sample(*place, Path("shared"))
    assert list(queries) == whole
    assert sorted(written) == [0, 4, 8]
    for path in found:
        assert (Path("shared") / path.name).read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_fewer_passages_are_asked_at_once_where_memory_runs_out(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = in_little_memory(monkeypatch, sampling, "_generate", 4, argument=2)
    found = list(sampling.sample(HOW, trained / "doc2query_model", trained / "collection", Path("state")))
    assert [len(queries) for _, queries in found] == [2] * 10
    assert "out of memory; continuing with " in capsys.readouterr().out
    assert sizes[0] == 10
    assert max(sizes[1:]) <= 5


@pytest.mark.slow
def test_two_processes_predict_what_one_does(trained: Path) -> None:
    """By torchrun, as the rule does it."""
    inputs = {"collection": trained / "collection", "doc2query_model": trained / "doc2query_model"}
    for processes in (1, 2):
        words = inside.making("predict_queries", {"kind": "t5", **SAMPLING}, inputs, f"by-{processes}")
        command = [sys.executable, *words, "--processes", str(processes)]
        subprocess.run(command, check=True, timeout=600, env=os.environ | {"OMP_NUM_THREADS": "1"})
    one, two = ({path.name: path.read_bytes() for path in Path(f"by-{n}").iterdir()} for n in (1, 2))
    assert one[predictions.NAME] == two[predictions.NAME]
    assert one["manifest.json"] == two["manifest.json"]
    assert not list(Path("results/state").iterdir())


@pytest.mark.slow
def test_a_damaged_block_of_samples_is_written_again(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sampling, "BLOCK", 4)
    place = (HOW, trained / "doc2query_model", trained / "collection")
    whole = list(sampling.sample(*place, Path("state")))
    first, second, third = sorted(Path("state").iterdir())
    capsys.readouterr()
    first.write_bytes(first.read_bytes().replace(b"d0", b"d1", 1))
    second.write_bytes(third.read_bytes())
    assert list(sampling.sample(*place, Path("state"))) == whole
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if "is damaged" in line] == [
        f"{path} is damaged; it is made again" for path in (first, second)
    ]


@pytest.mark.slow
def test_the_seed_and_top_k_decide_the_samples(trained: Path) -> None:
    place = (trained / "doc2query_model", trained / "collection")
    first, second, one = (
        [queries for _, queries in sampling.sample(replace(HOW, **change), *place, Path(f"state{number}"))]
        for number, change in enumerate([{}, {"seed": 1}, {"top_k": 1}])
    )
    assert first != second
    assert all(queries[0] == queries[1] for queries in one), "the most probable token alone leaves no choice"


@pytest.mark.slow
def test_words_are_cut_ended_and_read_back(trained: Path) -> None:
    words = Doc2QueryTokenizer.of_vocabulary(trained / "tokenizer")
    rows = words.rows(["how to read", "how to read the file", ""], 5)
    assert [row[-1] for row in rows] == [words.end] * 3
    assert [len(row) for row in rows] == [4, 5, 1]
    assert words.texts(filled(rows, words.pad)) == ["how to read", "how to read the", ""]


# The common form


def test_empty_queries_are_left_out_and_counted() -> None:
    assert predictions.write_predicted_queries(Path("e"), [("a", ["x", ""]), ("b", [])]) == {
        "passages": 2,
        "queries": 1,
        "empty": 1,
    }


def test_expansions_of_another_corpus_are_refused() -> None:
    collection = Collection(write_collection(Path("c")))
    for names in (range(9), range(11), reversed(range(10))):
        predictions.write_predicted_queries(Path("e"), [(f"d{i}", ["x"]) for i in names])
        with pytest.raises(EncoreError, match="other passages"):
            list(predictions.expanded(collection, Path("e")))
    predictions.write_predicted_queries(Path("e"), [(f"d{i}", [f"query {i}", "x"]) for i in range(10)])
    assert list(predictions.expanded(collection, Path("e")))[3] == ("d3", "the function closes a file query 3 x")


# The stages, from training to a run


SEARCH = {"k1": 0.9, "b": 0.4, "depth": 10, "split": "test", "queries": None, "sample": 0, "system": "bm25-doct5"}


def found(folder: str) -> dict[str, list[str]]:
    run = read_run(Path(folder))
    return {query: ranking.documents for query, ranking in run.items()}


@pytest.mark.slow
def test_stages_train_write_and_index() -> None:
    write_collection(Path("c"))
    write_tokenizer(Path("t"))
    training = {"expansion": FIELDS | {"checkpoint": None}, "seed": 0, "numerics": NUMERICS}
    inside.made("train_doc2query", training, {"collection": "c", "tokenizer": "t"}, "m")
    out = inside.made("predict_queries", {"kind": "t5", **SAMPLING}, {"collection": "c", "doc2query_model": "m"}, "e")
    counts = json.loads(Path("e/manifest.json").read_text())["results"]
    assert f"{counts['queries']} queries for 10 passages" in out
    assert counts["queries"] + counts["empty"] == 20
    assert not list(Path("results/state").iterdir())
    inside.made("lucene_index", {}, {"collection": "c", "predicted_queries": "e"}, "i")
    assert set(json.loads(Path("i/manifest.json").read_text())["inputs"]) == {"c/manifest.json", "e/manifest.json"}


@pytest.mark.slow
def test_a_passage_is_found_by_a_published_query_alone() -> None:
    """No passage says xylophone; d2 is predicted to be asked for so, and only the expanded index finds it."""
    write_collection(Path("c"))
    text = "".join("xylophone parse\n" if i == 2 else "\n" for i in range(10))
    Path("p.txt").write_text(text)
    content = read_expansion({"kind": "published", "path": "p.txt"}).content()
    spec = {"kind": "published", "content": content}
    inside.made("predict_queries", spec, {"collection": "c"}, "e", source="p.txt")
    for name, more in {"plain": {}, "expanded": {"predicted_queries": "e"}}.items():
        inside.made("lucene_index", {}, {"collection": "c", **more}, name)
        inside.made("lucene_search", SEARCH, {"index": name, "collection": "c"}, f"{name}-run")
    assert found("plain-run") == {"test8": ["d8"], "test9": ["d9"]}
    assert sorted(found("expanded-run")["test8"]) == ["d2", "d8"]
    Path("p.txt").write_text("changed")
    refused = inside.make("predict_queries", spec, {"collection": "c"}, "e", source="p.txt")
    assert (refused.returncode, refused.stderr.count("p.txt has changed since it was planned with")) == (1, 1)
