"""Every table of the catalogue and every claim, after a finished nano run: for ``make test-all``, not ``make test``."""

import csv

import pytest
import yaml
from clones import Clone

RUN = ("--profile", "local", "--configfile", "config/nano-papers.yaml")
CLAIMS = ("results/claims.csv", "results/claims_printed.csv")


@pytest.mark.everything
def test_everything_is_built_and_nothing_is_bad(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> None:
    clone = finished.copy(tmp_path_factory.mktemp("everything") / "nano")
    clone.snakemake("all", *CLAIMS, *RUN, timeout=7200).succeeded()
    assert "Nothing to be done" in clone.snakemake("all", *CLAIMS, *RUN).succeeded()
    wanted = yaml.safe_load((clone.root / RUN[-1]).read_text())["tables"]
    for name, rows in wanted.items():
        with (clone.root / f"results/tables/{name}.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        made = {line["row"] for line in lines}
        asked = made if rows == "all" else {row.rsplit(": ", 1)[-1] for row in rows}
        assert made == asked, name
        assert name.partition("/")[2] == "" or any(line["reported"] for line in lines), name
    empty = {name for name in wanted if not _reproduced(clone, name)}
    assert empty == WITHOUT_VALUES
    assert "0 bad" in clone.encore("audit", "--config", RUN[-1]).succeeded()


# Questions whose answers are words, and what nothing measures here.
WITHOUT_VALUES = {"bow/table2", "bow/table4", "tct_colbert/table1", "tct_colbert/table6", "two_tower/table1"}


def _reproduced(clone: Clone, name: str) -> list[str]:
    with (clone.root / f"results/tables/{name}.csv").open(newline="") as file:
        return [line["reproduced"] for line in csv.DictReader(file) if line["reproduced"]]
