"""Lineages have one spelling."""

import pytest

from encore.errors import EncoreError
from encore.plan.lineage import Lineage, StepName, parse, scalar, spelled


def test_a_lineage_is_read_into_backbone_steps_and_overrides():
    lineage = parse("bert-base+costa~epochs=3~temperature=0.01+marco-bm25")
    assert lineage.backbone == "bert-base"
    assert lineage.steps == (StepName("costa", (("epochs", "3"), ("temperature", "0.01"))), StepName("marco-bm25"))
    assert lineage.steps[0].values() == {"epochs": 3, "temperature": 0.01}
    assert str(lineage.parent) == "bert-base+costa~epochs=3~temperature=0.01"


@pytest.mark.parametrize(
    "text", ["tiny", "tiny+mlm+marco-bm25", "a+b~x=true", "a+b~x=-0.5", "a+b~x=1e-05".replace("05", "5")]
)
def test_a_canonical_lineage_reads_back_as_it_was_written(text):
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("tiny+costa~temperature=0.10", "tiny+costa~temperature=0.1"),
        ("tiny+costa~temperature=1.0", "tiny+costa~temperature=1"),
        ("tiny+costa~temperature=0.05~epochs=3", "tiny+costa~epochs=3~temperature=0.05"),
        ("tiny+mlm~learning_rate=0.00001", "tiny+mlm~learning_rate=1e-5"),
    ],
)
def test_any_other_spelling_is_refused_with_the_right_one(wrong, right):
    with pytest.raises(EncoreError, match="must be spelled") as refused:
        parse(wrong)
    assert repr(right) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "Tiny", "tiny+", "tiny++mlm", "tiny+mlm~", "tiny+mlm~x", "tiny+a,b", "tiny mlm", "tiny+mlm~x=1~x=2"]
)
def test_what_is_no_lineage_is_refused_in_one_line(text):
    with pytest.raises(EncoreError) as refused:
        parse(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [0.05, 3, 1e-5, 5e-6, 0.1, 1.5, True, False, "code", -2.25])
def test_the_spelling_of_a_value_reads_back_as_the_value(value):
    assert scalar(spelled(value)) == value
    assert type(scalar(spelled(value))) is type(value)


def test_a_whole_number_has_no_point():
    assert spelled(2.0) == "2"


def test_a_backbone_alone_is_a_lineage():
    assert parse("tiny") == Lineage("tiny")
