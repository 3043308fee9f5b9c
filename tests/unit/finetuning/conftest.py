"""The small store and its collection."""

from typing import Any

import pytest

from tests.support import small_finetuning


@pytest.fixture(scope="session")
def store() -> Any:
    return small_finetuning.small_store()


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return small_finetuning.small_collection(tmp_path_factory.mktemp("collection"))
