"""The ledger of claims on printed numbers, written once for all that read it."""

import csv
from pathlib import Path

import pytest

from encore.plan.catalogue import Catalogue
from encore.products.claims import printed_claims
from encore.products.claims.power import Power

PAPERS = Path("config/papers")


@pytest.fixture(scope="session")
def ledger(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("claims") / "claims_printed.csv"
    printed_claims.write_printed(path, PAPERS, catalogue)
    return path


@pytest.fixture(scope="session")
def lines(ledger: Path) -> dict[str, dict[str, str]]:
    """Of each claim, by its name."""
    with ledger.open(newline="", encoding="utf-8") as file:
        return {line["id"]: line for line in csv.DictReader(file)}


@pytest.fixture(scope="session")
def power(catalogue: Catalogue) -> Power:
    return Power(PAPERS, catalogue.tables, printed_claims.printed_values(PAPERS, catalogue.tables))
