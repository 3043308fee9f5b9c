"""Numbers that were altered together with the digests that should betray it: the audit finds them nevertheless."""

import csv
import hashlib
import io
import json
import re
from pathlib import Path

from encore.storage.files import write_json
from tests.support.clones import Clone
from tests.support.papers import RUN

NANO = ("--config", "config/nano.yaml")
FILES = ("tables/table1.csv", "figures/table1.csv")
CUT = ("--config", RUN[-1])


def forge(clone: Clone, name: str, record: str, text: str) -> None:
    """Write another text into a product, and its digest into the manifest."""
    path, manifest = clone.root / "results" / name, clone.root / "results" / record
    data = text.encode()
    said = json.loads(manifest.read_text())
    assert said["outputs"][path.name]["sha256"] != hashlib.sha256(data).hexdigest()
    said["outputs"][path.name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    path.unlink()  # it may be linked to another clone's
    path.write_bytes(data)
    write_json(manifest, said)  # as Encore writes it


def bad(clone: Clone, *config: str) -> list[str]:
    """What the audit calls bad; of nano's own products, which the cut plans otherwise and never made, it is silent."""
    found = re.findall(r"^bad: (.*)$", clone.encore("audit", *config).output, re.MULTILINE)
    return [line for line in found if "has another plan than the configuration" not in line]


def test_a_number_in_the_report_then_in_a_table_and_a_figure(nano: Clone) -> None:
    """For these the digest of the report's input is wrong too; a report made again alone would show forged numbers."""
    page, table, figure = (nano.root / f"results/{name}" for name in ("report/index.html", *FILES))
    before = {path: path.read_text() for path in (page, table, figure)}
    number = next(line["reproduced"] for line in csv.DictReader(io.StringIO(before[table])) if line["reproduced"])
    forge(nano, "report/index.html", "report/manifest.json", before[page].replace(f"<dd>{number}", "<dd>0.98765", 1))
    (line,) = bad(nano, *NANO)
    assert re.match(r"results/report/index.html#w-table1-\d+-\d+ does not show what is in results/", line)
    nano.encore("audit", "--prune", "--yes", *NANO).succeeded()
    assert nano.built() == {"report"}
    assert page.read_text() == before[page]

    difference = next(csv.DictReader(io.StringIO(before[figure])))["difference"]
    for path, right in ((table, number), (figure, difference)):
        name = str(path.relative_to(nano.root / "results"))
        forge(nano, name, name.replace(".csv", ".manifest.json"), before[path].replace(right, "0.4321", 1))
    found = bad(nano, *NANO)
    for path, column, right in ((table, "reproduced", number), (figure, "difference", difference)):
        (line,) = [line for line in found if line.startswith(f"{path.relative_to(nano.root)}: ")]
        assert f"{column} is '0.4321', comes out again as {right!r}" in line
    nano.encore("audit", "--prune", "--yes", *NANO).succeeded()
    assert {job.split()[0] for job in nano.built()} == {"table", "figure", "report"}
    assert {path: path.read_text() for path in before} == before
    assert "0 bad" in nano.encore("audit", *NANO).succeeded()


def test_a_number_in_the_claims(papers: Clone, tmp_path: Path) -> None:
    clone = papers.copy(tmp_path / "forged")
    assert bad(clone, *CUT) == []
    text = (clone.root / "results/claims.csv").read_text()
    lines = list(csv.DictReader(io.StringIO(text)))
    claim, column = next((line, key) for key in ("estimate", "why") for line in lines if line[key])
    forge(clone, "claims.csv", "claims.manifest.json", text.replace(claim[column], "0.98765", 1))
    (line,) = bad(clone, *CUT)
    assert line == f"results/claims.csv: {claim['id']}: {column} is '0.98765', comes out again as {claim[column]!r}"
    clone.encore("audit", "--prune", "--yes", *CUT).succeeded()
    assert not (clone.root / "results/claims.csv").exists()
    clone.snakemake("results/claims.csv", *RUN).succeeded()
    assert (clone.root / "results/claims.csv").read_text() == text


def test_a_number_next_to_a_known_one(nano: Clone) -> None:
    """A run that compares published scores declares ``checks.csv``: it is never left to another run's audit."""
    known = "{system: bm25, dataset: pydocs-stdlib, measure: RR@10, published: 0.5, within: 0.9, source: a page}"
    nano.replace("config/nano.yaml", "depth: 200\n", f"depth: 200\nchecks: [{known}]\n")
    nano.nano("results/checks.csv").succeeded()
    assert bad(nano, *NANO) == []
    path, record = (nano.root / f"results/checks.{ending}" for ending in ("csv", "manifest.json"))
    (line,) = csv.DictReader(io.StringIO(path.read_text()))
    forge(nano, "checks.csv", "checks.manifest.json", path.read_text().replace(line["ours"], "0.98765", 1))
    (found,) = bad(nano, *NANO)
    assert found.startswith("results/checks.csv: line 2: ours is '0.98765', comes out again as")
    record.write_text(record.read_text().replace("a page", "another"))
    done = nano.encore("audit", *NANO)
    assert done.code == 1
    assert "results/checks.manifest.json has another plan than the configuration" in done.output
    nano.encore("audit", "--prune", "--yes", *NANO).succeeded()
    assert not path.exists()


def test_what_a_claim_rests_on(papers: Clone, tmp_path: Path) -> None:
    """An artifact that is bad stands behind the claims too, which go with it."""
    clone = papers.copy(tmp_path / "damaged")
    folder = next((clone.root / "results/losses").glob("*/*"))
    loss = folder / "loss.json"
    text = loss.read_text()
    loss.unlink()
    loss.write_text(text + " ")
    (line,) = bad(clone, *CUT)
    assert str(loss.relative_to(clone.root)) in line
    assert "claims: about bow/table1" in line
    clone.encore("audit", "--prune", "--yes", *CUT).succeeded()
    assert not (clone.root / "results/claims.csv").exists()
