"""What the pages say about files and numbers is so."""

import copy
import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from encore.products.catalogue import DEFAULT_RUN, load_plan
from encore.products.targets import everything_declared, needed_by
from tests.support.small_reads import table_scores

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for folder in ("docs", "config", "benchmarks") for path in (ROOT / folder).glob("*.md")),
    ]
)
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", page.read_text())
    for name, anchor in links:
        if "://" in name:
            continue
        target = page.parent / name if name else page
        assert target.exists(), f"{name} is not there"
        assert not anchor or anchor in anchors(target.read_text()), f"{name} has no section {anchor}"


def test_the_programs_that_the_page_on_trust_names_are_there():
    """Tests below tests/, programs of the package below src/encore, those of the pages in docs/."""
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", (ROOT / "docs/trust.md").read_text())
    assert len(named) > 30
    roots = (ROOT / "tests", ROOT / "src/encore", ROOT)
    assert [name for name in named if not any((root / name).is_file() for root in roots)] == []


def anchors(text: str) -> set[str]:
    """The sections of a page as links name them."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {"#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_pages_and_sections_that_code_and_configuration_name_are_there():
    """``docs/collections.md, "Wikipedia"`` in a comment or a message."""
    files = [path for folder in ("src", "workflow", "config", "benchmarks") for path in (ROOT / folder).rglob("*.*")]
    texts = [path.read_text() for path in files if path.suffix in (".py", ".smk", ".yaml", ".md")]
    named = {match for text in texts for match in re.findall(r'\b(docs/[\w-]+\.md)(?:, "([^"\n]+)")?', text)}
    named = {(page, section) for page, section in named if page != "docs/experiments-tct_colbert-v2.md"}  # pyserini's
    assert len(named) > 10
    for page, section in sorted(named):
        assert (ROOT / page).is_file(), page
        titles = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.M)
        assert not section or any(title.startswith(section) for title in titles), f"{page} has no section {section!r}"


def test_each_link_in_the_root_is_explained():
    links = [path.name for path in ROOT.iterdir() if path.is_symlink()]
    assert f"(`{'` and `'.join(sorted(links))}` link into it)" in README


def test_the_pages_are_found():
    assert {"README.md", "design.md", "protocol.md", "pydocs.md", "add-an-objective.md"} <= {
        page.name for page in PAGES
    }


def test_the_index_lists_every_page():
    index = (ROOT / "docs/README.md").read_text()
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages
    assert {page for page in pages if f"]({page})" not in index} == set()


def test_the_example_of_a_checkpoint_in_an_archive_can_be_planned(tmp_path, monkeypatch):
    page = (ROOT / "docs/checkpoints.md").read_text()
    run = tmp_path / "own.yaml"
    run.write_text("extends: config/nano.yaml\n" + re.search(r"```yaml\n(sources:.*?)```", page, re.S)[1])
    monkeypatch.chdir(ROOT)
    plan = load_plan(run)
    fetched = plan.model(plan.resolve.lineage("theirs"), 0).inputs["checkpoint"]
    assert fetched.stage == "fetch_source"
    assert re.search("sha256:[0-9a-f]{64}", str(fetched.spec))


def test_the_example_of_an_own_collection_can_be_run(tmp_path, monkeypatch):
    page = (ROOT / "docs/own-collection.md").read_text()
    example = re.search(r"```yaml\n# 2,067.*?(extends: .*?)```", page, re.S)[1]
    own = tmp_path / "own"
    (own / "qrels").mkdir(parents=True)
    (own / "corpus.jsonl").write_text('{"_id": "1", "title": "", "text": "wing"}\n')
    (own / "queries.jsonl").write_text('{"_id": "1", "text": "wing"}\n')
    for split in ("train", "test"):
        (own / f"qrels/{split}.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n")
    run = tmp_path / "own.yaml"
    run.write_text(example.replace("data/own", str(own)))
    monkeypatch.chdir(ROOT)
    plan = load_plan(run)
    folders = {each.folder for each in needed_by(plan, everything_declared(plan))}
    searched = {folder for folder in folders if folder.startswith("results/collections/")}
    assert {folder.rpartition("-")[0] for folder in searched} == {"results/collections/own"}


def test_the_readme_can_be_read_to_its_end():
    """At most 150 lines and 1,300 words, with the five papers on the first screen."""
    lines = README.splitlines()
    assert len(lines) <= 150
    assert len([word for word in README.split() if re.search(r"\w", word)]) <= 1300
    papers = {path.name for path in (ROOT / "config/papers").iterdir() if f"`{path.name}/table1`" in README}
    assert len(papers) == 5
    assert all(f"`{name}/table1`" in "\n".join(lines[:20]) for name in papers)


GENERATED = {"values", "columns", "table-data", "performance", "performance-details", "printed-claims"}
GENERATED |= {page.stem for page in PAGES if page.stem.startswith("results")}
WRITTEN = [page for page in PAGES if page.parent.name == "docs" and page.stem not in GENERATED]
RECORDED_LATER = "## By the share of the labels"  # a section that is written again with its record


def read(page):
    """A page's text without code, pictures, and tables that a program or a record has written."""
    text = re.sub(r"^<!-- (?!end)[^>]*-->\n.*?^<!-- end of [^>]*-->$", "", page.read_text(), flags=re.S | re.M)
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.S | re.M)
    return re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.M)


def words(text):
    return len([word for word in text.split() if re.search(r"\w", word)])


def test_guide_and_design_are_short():
    """At most 18,000 words in all that people read there, which each page said more than once before."""
    assert len(WRITTEN) > 20
    assert sum(words(read(page)) for page in WRITTEN) <= 18_000


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_sentences_are_short(page):
    """At most 25 words: a span of code is one, an address none."""
    text = read(page).partition(RECORDED_LATER)[0]
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("|", "#", "<")))
    text = re.sub(r"`[^`]+`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    sentences = [each for part in parts for each in re.split(r"(?<=[.?!])\W*\s(?=\W*(?:[A-Z0-9]|code))", part)]
    assert [" ".join(each.split()) for each in sentences if words(each) > 25] == []


def test_the_example_of_a_change_makes_as_many_jobs_as_it_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    run = yaml.safe_load(DEFAULT_RUN.read_text())
    changed = copy.deepcopy(run)
    changed["scale"]["steps"] |= yaml.safe_load(re.search(r"write `(ict: \{.*?\})`", README)[1])
    differing = {
        key for key, value in changed["scale"]["steps"]["ict"].items() if run["scale"]["steps"]["ict"].get(key) != value
    }
    assert differing == {"temperature"}, "the README's line must be the configuration's but for the temperature"
    before, after = (_folders(each) for each in (run, changed))
    says = int(re.search(r"plans (\d+) jobs", README)[1])
    assert "snakemake results/tables/table1.csv --profile local -n" in README
    assert "encore whatif scale.steps.ict.temperature=0.1 " in README, "the key that wins over the catalogue's"
    assert says == len(after - before) + len(["table1"])


def _folders(run):
    """All that table 1, the example's target, is made from."""
    plan = load_plan(DEFAULT_RUN, run)
    return {each.folder for scores in table_scores(plan, "table1") for each in scores.ancestors()}


def test_no_page_promises_a_file_of_the_configuration_that_is_not_there():
    named = {name for page in PAGES for name in re.findall(r"`(config/[\w./-]+\.(?:yaml|csv|json))`", page.read_text())}
    assert len(named) > 5
    assert sorted(name for name in named - {"config/own.yaml", "config/mine.yaml"} if not (ROOT / name).exists()) == []


def _drawing():
    """``docs/draw.py`` as a module."""
    described = importlib.util.spec_from_file_location("draw_pictures", ROOT / "docs/draw.py")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", [pytest.param("table1", marks=pytest.mark.slow), "rooms"])
def test_pictures_show_what_is_there(name):
    drawing = _drawing()
    page = (ROOT / drawing.PICTURES[name][0]).read_text()
    assert drawing.drawn_anew(name) == page, "run `make picture`"
