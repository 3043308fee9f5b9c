"""Published files of Wikispeedia and CACM in the forms that are read, from small archives of theirs."""

import gzip
import io
import json
import lzma
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

import convert  # noqa: E402

from encore.errors import EncoreError  # noqa: E402

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


def test_whole_records_of_cacm_come_with_the_judgments_as_published(tmp_path: Path) -> None:
    record = "<html><pre>\n\nA title &amp; more\n\nCACM July, 1961\n\nPrieve, B.\n\nCA610701 JB\n\n7 5 7\n</pre></html>"
    given = archive(tmp_path / "cacm.tar.gz", **{"CACM-0007.html": record})
    (tmp_path / "topics.cacm.txt").write_text("<DOC>\n<DOCNO> 1 </DOCNO>\nwhat\n </DOC>\n")
    (tmp_path / "qrels.cacm.txt").write_text("1 0 CACM-7 1\n")
    convert.cacm(given, tmp_path / "out")
    found = {}
    for folder in ("", "whole/"):
        row = json.loads(gzip.decompress((tmp_path / f"out/{folder}corpus.jsonl.gz").read_bytes()))
        found[folder] = row["title"], row["text"], (tmp_path / f"out/{folder}qrels/test.tsv").read_text().split()[-2]
    assert found[""] == ("A title & more", "", "CACM-0007")
    assert found["whole/"] == ("", "A title & more CACM July, 1961 Prieve, B. CA610701 JB 7 5 7", "CACM-7")
