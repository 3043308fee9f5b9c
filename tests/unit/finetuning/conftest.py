"""The small store and its collection, and tasks on a small encoder in double precision."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.support import small_finetuning


@pytest.fixture(scope="session")
def store() -> Any:
    return small_finetuning.small_store()


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return small_finetuning.small_collection(tmp_path_factory.mktemp("collection"))


@pytest.fixture
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
