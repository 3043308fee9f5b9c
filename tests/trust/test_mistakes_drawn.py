"""Whatever is wrong in a configuration is one line with its file, before any job, and never a traceback."""

import random
import re
from collections.abc import Iterator

import pytest
from trials import SEED, Count
from wrong_configurations import MISTAKES, RUN

from encore.errors import EncoreError
from encore.products import targets
from encore.products.catalogue import load_plan
from encore.products.claims.plan import refuse_unknown_claims
from tests.support.clones import Clone

OF_EACH_CLASS = 12
SAMPLE = random.Random(SEED).sample(sorted(MISTAKES), 8)
SIZES = [pytest.param(SAMPLE, 1, id="sample")]
SIZES += [pytest.param([kind], OF_EACH_CLASS, id=kind, marks=pytest.mark.everything) for kind in MISTAKES]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    with pytest.MonkeyPatch.context() as patch:
        clone = Clone.fresh(tmp_path_factory.mktemp("mistakes") / "clone")
        patch.chdir(clone.root)
        yield clone


@pytest.mark.parametrize(("kinds", "times"), SIZES)
def test_one_line_for_every_mistake(pristine: Clone, kinds: list[str], times: int, count: Count) -> None:
    taken = []
    for kind in kinds:
        wrong = [text for trial in range(times) if (text := tried(pristine, kind, trial))]
        count("wrong configurations", kind, times, times - len(wrong))
        taken += wrong
    assert not taken, "\n".join(taken)


@pytest.mark.usefixtures("pristine")
def test_what_is_right_is_taken() -> None:
    """Or a mistake would be answered by what is no answer to it."""
    assert [answer(target) for target in (None, "results/tables/table1.csv")] == ["", ""]


def tried(pristine: Clone, kind: str, trial: int) -> str:
    """How a mistake was not answered in one line; empty where it was."""
    kept = {path: path.read_bytes() for path in (pristine.root / "config").glob("*.yaml")}
    try:
        target = MISTAKES[kind](random.Random(f"{SEED} {kind} {trial}"))
        message = answer(target)
        is_right = message and "\n" not in message and (target or re.search(r"config/\S+\.yaml", message))
        return "" if is_right else f"{kind}, trial {trial}: {message or 'was taken'}"
    except Exception as error:
        return f"{kind}, trial {trial}: {type(error).__name__}: {error}"
    finally:
        if (pristine.root / RUN).is_dir():
            (pristine.root / RUN).rmdir()
        for path, content in kept.items():
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)


def answer(target: str | None) -> str:
    """What is refused by what Snakemake asks before the first job."""
    try:
        plan = load_plan(RUN)
        refuse_unknown_claims(plan)
        if target:
            targets.check_target(plan, target)
        else:
            targets.everything_declared(plan)
    except EncoreError as error:
        return str(error)
    return ""
