"""Published files of Wikispeedia, Cranfield and CACM in the forms that are read, from small archives of theirs."""

import io
import json
import lzma
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

import convert  # noqa: E402

from encore.data.collection import Collection  # noqa: E402
from encore.datasets.beir import BeirFields  # noqa: E402
from encore.datasets.kinds import build_collection  # noqa: E402
from encore.errors import EncoreError  # noqa: E402
from encore.storage.files import read_jsonl  # noqa: E402

ARTICLE = """   #copyright

Zulu

2007 Schools Wikipedia Selection. Related subjects: African Geography

   Zulu warriors
   Enlarge
   Zulu warriors of the late nineteenth century, with others in the background.

   The Zulu are an African ethnic group of about
   eleven million people who live mainly in South Africa.

History

     * A list, which is indented further, is no prose of eight words.

   Too short a line.

   They were originally a minor clan in what is "today" Northern
   Natal (founded about the year 1709).

   Retrieved from " http://en.wikipedia.org/wiki/Zulu"
   This reference article is mainly selected from the English Wikipedia with only minor checks.
"""


def archive(path: Path, **files: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"some/folder/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


def test_articles_keep_their_prose_by_section_and_their_links(tmp_path: Path) -> None:
    texts = {"Zulu.txt": ARTICLE, "D%C3%A1l_Riata.txt": ARTICLE}
    given = archive(tmp_path / "wikispeedia_articles_plaintext.tar.gz", **texts)
    with pytest.raises(EncoreError, match=r"wikispeedia_paths-and-graph\.tar\.gz is missing"):
        convert.wikispeedia(given, tmp_path / "out")
    links = "# said of it\n\nZulu\tD%C3%A1l_Riata\nZulu\tNowhere\n"
    archive(tmp_path / "wikispeedia_paths-and-graph.tar.gz", **{"links.tsv": links})
    convert.wikispeedia(given, tmp_path / "out")
    with lzma.open(tmp_path / "out/articles.jsonl.xz", "rt") as file:
        first, second = map(json.loads, file)
    assert (first["id"], first["title"], first["links"]) == ("Dál_Riata", "Dál Riata", [])
    assert (second["id"], second["links"]) == ("Zulu", ["Dál_Riata"])
    assert second["sections"] == [
        {
            "heading": "",
            "paragraphs": [
                "The Zulu are an African ethnic group of about eleven million people who live mainly in South Africa."
            ],
        },
        {
            "heading": "History",
            "paragraphs": [
                'They were originally a minor clan in what is "today" Northern Natal (founded about the year 1709).'
            ],
        },
    ]


def test_a_part_has_four_fifths_of_the_articles_and_the_links_between_them(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(50)]
    given = archive(tmp_path / "articles.tar.gz", **{f"{name}.txt": ARTICLE for name in names})
    links = "".join(f"n0\t{name}\n" for name in names)
    archive(tmp_path / "wikispeedia_paths-and-graph.tar.gz", **{"links.tsv": links})
    convert.wikispeedia(given, tmp_path / "out", part=True)
    with lzma.open(tmp_path / "out/articles.jsonl.xz", "rt") as file:
        rows = {row["id"]: row for row in map(json.loads, file)}
    assert rows.keys() == set(names) - {f"n{number}" for number in (16, 21, 25, 28, 33, 37, 39, 42, 45)}
    assert set(rows["n0"]["links"]) == rows.keys()


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(read_jsonl(folder / f"{name}.jsonl.gz"))


DOCUMENTS = (
    ".I 1\n.T\na wing\n.A\nada\n.B\nj. 1\n.W\na wing\n  it is long .\n"
    ".I 2\n.T\nfirst .\n.A\nbob\n.B\n.W\nfirst .\n.A\nof another\n.W\nsecond .\n.I 3\n.T\n.A\n.B\n.W\n"
)
QUERIES = ".I 001\r\n.W \r\nwhat is\r\na wing .\r\n.I 004\r\n.W\r\nwhat is new .\r\n"


@pytest.fixture
def cranfield(tmp_path: Path) -> Path:
    files = {"cran.all.1400": DOCUMENTS, "cran.qry": QUERIES, "cranqrel": "1 1 1\n1 2 4 \n2 3 2\n2 1 -1\n"}
    convert.cranfield(archive(tmp_path / "cran.tar.gz", **files), tmp_path / "out")
    return tmp_path / "out"


def test_cranfields_best_code_becomes_the_highest_gain(cranfield: Path) -> None:
    head = "query-id\tcorpus-id\tscore\n"
    assert (cranfield / "qrels/test.tsv").read_text() == head + "1\t1\t1\n1\t2\t4\n2\t3\t2\n2\t1\t-1\n"
    assert (cranfield / "extra/qrels.binary-all.tsv").read_text() == head + "1\t1\t1\n1\t2\t1\n2\t3\t1\n2\t1\t1\n"
    assert (cranfield / "extra/qrels.gain.tsv").read_text() == head + "1\t1\t4\n1\t2\t1\n2\t3\t3\n"


def record(*blocks: str) -> str:
    return "<html>\n<pre>\n\n\n" + "\n\n".join(blocks) + "\n\n</pre>\n</html>\n"


@pytest.fixture
def cacm(tmp_path: Path) -> Path:
    citations = "2\t5\t2\n1\t5\t2\n"
    files = {
        "CACM-0002.html": record(
            "On n &lt; 7", "It is\nshort.", "Two blocks.", "CACM JUly, 1968", "Ada, L.", "CA680701JB x", citations
        ),
        "CACM-0001.html": record("No date", "Text.", "June, 1969", "Ada, L.", "CA690603 JB y", citations),
    }
    (tmp_path / "topics.cacm.txt").write_text("<DOC>\n<DOCNO> 1 </DOCNO>\n\nWhat is\nshort?\n</DOC>\n")
    (tmp_path / "qrels.cacm.txt").write_text("1 Q0 CACM-2 1\n1 Q0 CACM-0001 1\n")
    convert.cacm(archive(tmp_path / "cacm.tar.gz", **files), tmp_path / "out")
    return tmp_path / "out"


def test_a_cacm_record_is_parted_at_its_date(cacm: Path) -> None:
    first, second = rows(cacm, "corpus")
    assert (second["title"], second["text"]) == ("On n < 7", "It is short. Two blocks.")
    assert second["metadata"] == {"date": "CACM JUly, 1968", "other": ["Ada, L."]}
    assert first["text"] == "Text. June, 1969 Ada, L."


def test_cacms_ids_are_padded_in_our_judgments_only(cacm: Path) -> None:
    assert (cacm / "qrels/test.tsv").read_text().splitlines()[1:] == ["1\tCACM-0002\t1", "1\tCACM-0001\t1"]
    assert "CACM-2 " in (cacm / "extra/qrels.cacm.as-published.txt").read_text()
    assert (cacm / "cacm.tar.gz").is_file()


def test_what_is_converted_is_a_collection(cacm: Path, tmp_path: Path) -> None:
    fields = BeirFields.model_validate({"kind": "beir", "path": str(cacm), "splits": {"test": {"role": "test"}}})
    build_collection("beir", fields.resolve(), tmp_path / "built", source=cacm)
    assert Collection(tmp_path / "built").qrels("test") == {"1": {"CACM-0002": 1, "CACM-0001": 1}}


def test_topics_that_are_missing_are_named(tmp_path: Path) -> None:
    given = archive(tmp_path / "cacm.tar.gz", **{"CACM-0001.html": record("Title")})
    with pytest.raises(EncoreError, match=r"topics\.cacm\.txt is missing"):
        convert.cacm(given, tmp_path / "out")
