"""docs/own-collection.md, followed to the letter: nano is the default here, the texts are the standard library's."""

import csv
import importlib
import inspect
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from encore.data import vocabulary
from tests.support import small_checkpoints
from tests.support.clones import Clone
from tests.support.documented import ROOT, documented, of_page
from tests.support.small_published import of_sentence_transformers, published

PAGE = "docs/own-collection.md"
MODULES = ("os", "shutil", "json", "random", "statistics", "pathlib", "datetime", "decimal", "email.message")
TABLE = Path("results/tables/table1.csv")
WORDS = {
    "en": ["open", "close", "file", "print", "folder", "window", "password", "screen", "net", "update", "key", "menu"],
    "hi": ["खोलें", "बंद", "फ़ाइल", "छापें", "फ़ोल्डर", "खिड़की", "कूटशब्द", "पर्दा", "जाल", "नवीनीकरण", "बटन", "सूची"],
}


def write_folder(folder: Path) -> None:
    """What section 1 says: functions with their docstrings; a query is a docstring's first line, and every third tests.

    Some functions are asked for twice, by a query that trains and by one that tests.
    """
    texts = {}
    for module in map(importlib.import_module, MODULES):
        for name, member in inspect.getmembers(module):
            for called, each in [(name, member), *(inspect.getmembers(member) if inspect.isclass(member) else [])]:
                text = inspect.getdoc(each) if callable(each) else None
                if text and len(text.split()) > 12 and text not in texts.values():
                    texts[f"{module.__name__}.{name}.{called}"] = text
    assert len(texts) > 250
    (folder / "qrels").mkdir(parents=True)
    judged: dict[str, list[str]] = {"train": [], "test": []}
    queries = []
    for number, (name, text) in enumerate(texts.items()):
        splits = ["test" if number % 3 == 0 else "train", *(["test"] if number % 12 == 1 else [])]
        for which, split in enumerate(splits):
            query = f"q{number}-{which}"
            words = text.split()[:8] if not which else text.split()[3:12]
            row = {
                "_id": query,
                "text": " ".join(words),
                "metadata": {"cluster": name.partition(".")[0] + str(number % 20)},
            }
            queries.append(json.dumps(row))
            judged[split].append(f"{query}\t{name}\t1")
    rows = (json.dumps({"_id": name, "title": name, "text": text}) for name, text in texts.items())
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n")
    for split, lines in judged.items():
        text = "\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n"
        (folder / f"qrels/{split}.tsv").write_text(text)


def write_encoder(folder: Path, texts: Path) -> None:
    """A small encoder where a user puts files of the hub: a BERT with a vocabulary of the texts, and how it pools."""
    bodies = [json.loads(line)["text"] for line in texts.read_text().splitlines()]
    small_checkpoints.bert(folder, pieces=600)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(bodies, 600)), folder)
    of_sentence_transformers(folder, length=16)


def write_languages(clone: Path) -> None:
    """Help texts of made-up sentences in two languages, and a small encoder of the page's kind.

    As the page's it is a BERT with a vocabulary of Unigram, of more pieces than 16 bits can number.
    """
    for language, own in WORDS.items():
        folder = clone / f"data/help-{language}"
        (folder / "qrels").mkdir(parents=True)
        texts = [" ".join(own[(place * step + step) % 12] for place in range(9)) for step in range(1, 61)]
        texts = [f"{text} {own[number % 12]}{number}" for number, text in enumerate(texts)]
        rows = {"corpus": ("d", texts), "queries": ("q", [text.split()[-1] for text in texts])}
        for name, (letter, lines) in rows.items():
            made = (json.dumps({"_id": f"{letter}{number}", "text": text}) for number, text in enumerate(lines))
            (folder / f"{name}.jsonl").write_text("\n".join(made) + "\n")
        judged = (f"q{number}\td{number}\t{1 + number % 2}" for number in range(60))
        (folder / "qrels/test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    hub = clone / "data/checkpoints/sentence-transformers--paraphrase-multilingual-MiniLM-L12-v2"
    published(hub, "bert", words=[word for own in WORDS.values() for word in own], hidden_act="gelu")
    of_sentence_transformers(hub, length=8)


@pytest.fixture(scope="module")
def followed(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, dict[str, str]]:
    """The clone after every command of the page in order, and what each printed."""
    clone = finished.copy(tmp_path_factory.mktemp("own") / "clone")
    shutil.copyfile(clone.root / "config/nano.yaml", clone.root / "config/config.yaml")
    write_folder(clone.root / "data/own")
    hub = clone.root / "data/checkpoints/sentence-transformers--all-MiniLM-L6-v2"
    write_encoder(hub, clone.root / "data/own/corpus.jsonl")
    write_languages(clone.root)
    said = {}
    for command in of_page(ROOT / PAGE, PAGE):
        if command.inline:
            continue
        words = shlex.split(command.text)[1:]
        done = clone.snakemake(*words, timeout=1800) if command.tool == "snakemake" else clone.encore(*words)
        # A run may be beyond this machine; the page of results is of the run that was built last.
        allowed = {0, 1} if words[0] in ("preflight", "audit") else {0}
        assert done.code in allowed, f"{command}: {done.output}"
        said[command.text] = done.output
    return clone, said


def test_every_command_of_the_page_runs(followed: tuple[Clone, dict[str, str]]) -> None:
    _, said = followed
    assert [text.split()[:2] for text in said] == [
        ["encore", "new"],
        ["encore", "preflight"],
        ["snakemake", "--profile"],
        ["encore", "show"],
        ["encore", "new"],
        ["encore", "new"],
        ["snakemake", "--profile"],
        ["snakemake", "--profile"],
        ["encore", "show"],
        ["encore", "new"],
        ["snakemake", "--profile"],
        ["encore", "show"],
        ["encore", "new"],
        ["snakemake", "--profile"],
        ["encore", "show"],
        ["encore", "new"],
        ["snakemake", "--profile"],
        ["encore", "audit"],
        ["encore", "crate"],
    ]
    assert re.search(r"audit: \d+ artifacts verified, 0 bad", said["encore audit --config config/own.yaml"])


def test_the_run_that_is_written_has_the_form_that_the_page_shows(followed: tuple[Clone, dict[str, str]]) -> None:
    clone, _ = followed
    shown = next(
        block for block in re.findall(r"```yaml\n(.*?)```", (ROOT / PAGE).read_text(), re.S) if "extends" in block
    )
    page, written = yaml.safe_load(shown), yaml.safe_load((clone.root / "config/own.yaml").read_text())
    assert written.keys() == page.keys()
    assert written["scale"] == page["scale"]
    assert written["datasets"]["own"].keys() == page["datasets"]["own"].keys()
    assert written["datasets"]["own"]["splits"] == page["datasets"]["own"]["splits"]
    text = (clone.root / "config/own.yaml").read_text()
    assert re.search(
        r"# Of the test queries \d+ have a relevant passage and \d+ have the text of a training query", text
    )


def test_the_table_tells_unseen_queries_apart_and_names_the_run(followed: tuple[Clone, dict[str, str]]) -> None:
    clone, said = followed
    table = said["encore show table1 --config config/own.yaml"]
    assert "RR@10 (unseen)" in table
    assert "also answers a training query" in table
    summary = said["snakemake --profile local --configfile config/own.yaml"]
    assert "`encore show table1 --config config/own.yaml`" in summary
    assert "`encore audit --config config/own.yaml`" in summary
    with (clone.root / TABLE).open(newline="") as file:
        lines = {(line["row"], line["column"]): line for line in csv.DictReader(file)}
    both = [int(lines["bm25", column]["queries_judged"]) for column in ("rr10", "rr10-unseen")]
    assert 0 < both[1] < 0.9 * both[0]
    rr, ndcg = (float(lines["bm25", column]["reproduced"]) for column in ("rr10", "ndcg10"))
    assert 0 < rr < ndcg < 1, "of one relevant passage a query, 1 / rank and 1 / log2(1 + rank)"
    asked = ["results/tables/table1.csv", "--row", "bm25", "--column", "rr10-unseen", "--config", "config/own.yaml"]
    explained = clone.encore("explain", *asked).succeeded()
    assert f"shows ours {lines['bm25', 'rr10-unseen']['reproduced']}" in explained


def test_two_languages_have_a_table_each(followed: tuple[Clone, dict[str, str]]) -> None:
    _, said = followed
    table = said["encore show published --config config/help-hi.yaml"]
    assert "BM25 reads help-hi with Lucene's analyser of its language (hi)." in table
    assert "relevant are grades from 1 on of help-hi." in table
    assert "help-hi: models read 8 tokens of a passage, and 60 of 60 are longer." in table
    assert re.search(r"^\| BM25 +\| +1\.000\* ", table, re.M), "a word of its language is found"


def test_an_audit_of_another_run_leaves_this_ones_products_alone(followed: tuple[Clone, dict[str, str]]) -> None:
    """The default's audit found the table bad, and pruning removed it."""
    clone, _ = followed
    before = (clone.root / TABLE).read_bytes()
    output = clone.encore("audit", "--prune", "--yes").succeeded()
    assert "of another run: `encore audit --config config/own" in output
    assert "nothing to prune" in output
    assert (clone.root / TABLE).read_bytes() == before


def test_zero_shot_models_are_those_of_the_other_run(followed: tuple[Clone, dict[str, str]]) -> None:
    _, said = followed
    assert "nDCG@10" in said["encore show zero-shot --config config/own-zero-shot.yaml"]
    made = re.findall(
        r"^(?:local)?rule (\w+):", said["snakemake --profile local --configfile config/own-zero-shot.yaml"], re.M
    )
    assert "evaluate" in made
    assert {"pretrain", "finetune", "start"}.isdisjoint(made), "the finished run has them"


def test_the_page_is_among_those_whose_commands_are_checked() -> None:
    assert len({command.text for command in documented() if command.page == PAGE}) >= 8
