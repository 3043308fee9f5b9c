"""Snakemake's own report of a finished run: pages to look at, in chapters, with what each shows."""

import re
import zipfile

from tests.support.clones import Clone


def test_it_shows_tables_and_figures_in_chapters_with_titles_and_captions(nano: Clone) -> None:
    done = nano.nano("--report", "report.zip", "results/tables/table1.csv", "results/figures/table1.png")
    done.succeeded()
    with zipfile.ZipFile(nano.root / "report.zip") as report:
        (name,) = [name for name in report.namelist() if name.endswith("report.html")]
        page = report.read(name).decode()
        shown = [name.rpartition("/")[2] for name in report.namelist() if "/data/" in name]
    assert {"table1.html", "table1.png"} <= set(shown)
    for chapter in ("Tables", "Figures"):
        assert f'"{chapter}"' in page
    (title,) = set(re.findall(r"<title>(.*?)</title>", (nano.root / "results/tables/table1.html").read_text()))
    assert f'"{title}"' in page
    assert "Measures of every system, mean over seeds" in page
    assert "Encore replays five papers" in page
