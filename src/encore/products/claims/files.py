"""Where claims are written: ``papers/<paper>/claims.yaml``. Planning asks this, so nothing heavy is imported."""

from pathlib import Path

from encore.config.validation import checked, read_yaml
from encore.errors import EncoreError
from encore.products.claims.entries import Claim

FILE = "claims.yaml"
SPREAD = "encore/spread.yaml"
DATASETS = "datasets.yaml"


def read_claims(papers: Path) -> dict[str, tuple[str, Claim]]:
    """Every claim with its paper, by id, in the order of the ids.

    Raises:
        EncoreError: a file is wrong, or two papers use one id.
    """
    claims: dict[str, tuple[str, Claim]] = {}
    for path in sorted(papers.glob(f"*/{FILE}")):
        for name, value in read_yaml(path).items():
            if name in claims:
                raise EncoreError(f"{path}: {name}: {claims[name][0]} has a claim of that id; give it another")
            claims[name] = path.parent.name, checked(Claim, value, f"{path}: {name}")
    return dict(sorted(claims.items(), key=lambda item: (len(item[0]), item[0])))  # C100 after C99
