"""Keys that stand for several names."""

import pytest

from encore.plan.groups import alternatives, is_group, names_of

KNOWN = ("ae", "ar", "costa", "costa-no-word", "costa-no-phrase")


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("ae", ["ae"]),
        ("{ae,ar}", ["ae", "ar"]),
        ("costa-no-*", ["costa-no-word", "costa-no-phrase"]),
        ("costa{,-no-word}", ["costa", "costa-no-word"]),
        ("{a,b}-{1,2}", ["a-1", "a-2", "b-1", "b-2"]),
        ("nothing-*", ["nothing-*"]),
        ("ae,ar", ["ae,ar"]),
    ],
)
def test_names_of_a_key(key: str, names: list[str]) -> None:
    assert names_of(key, KNOWN) == names
    assert is_group(key) == ("*" in key or "{" in key)


def test_only_braces_are_written_out() -> None:
    assert alternatives("a,b{c,d}e,f") == ["a,bce,f", "a,bde,f"]
