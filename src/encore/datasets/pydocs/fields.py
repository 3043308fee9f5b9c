"""What the configuration says about pydocs, and the identity of the content that follows from it."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.datasets import CollectionFields
from encore.config.strict import Positive
from encore.datasets.pydocs import sources
from encore.errors import EncoreError


class PydocsFields(CollectionFields):
    """An entry of the catalogue with ``kind: pydocs``."""

    embedded: ClassVar[bool] = True

    kind: Literal["pydocs"]
    packages: list[str] = Field(description="installed distributions read besides the standard library; [] for none")
    minimum_passages: Positive = Field(description="fewer are an error: the installation carries no docstrings")
    salt: str = Field("encore-1", description="hashed with a module's name to choose its split")
    train_share: Positive = Field(65, description="percentage of modules whose queries train")
    valid_share: Positive = Field(7, description="percentage for validation; the rest is test")

    @model_validator(mode="after")
    def _leave_some_for_the_test(self) -> "PydocsFields":
        if self.train_share + self.valid_share >= 100:
            raise ValueError("train_share and valid_share leave nothing for the test; together they must be below 100")
        return self

    def resolve(self) -> dict[str, Any]:
        """The content's identity: the fields, and the versions of Python and of every package that is read.

        Raises:
            EncoreError: a package is not installed.
        """
        return {
            **self.model_dump(exclude={"packages", "splits", "absent"}),
            "python": sources.python_version(),
            "packages": {name: sources.version(name) for name in sorted(set(self.packages))},
        }


def refuse_other_versions(spec: dict[str, Any]) -> None:
    """Raise an EncoreError when other versions are installed than the resolved ``spec`` was made with."""
    installed = {"python": sources.python_version()} | {name: sources.version(name) for name in spec["packages"]}
    for name, planned in {"python": spec["python"], **spec["packages"]}.items():
        if installed[name] != planned:
            raise EncoreError(
                f"pydocs was planned with {name} {planned}, but {installed[name]} is installed here; "
                "run snakemake again, in the environment that its jobs use"
            )
