"""A comparison is fair when every objective, and the control, spend the same."""

from encore.commands.flops import RowFlops, budget_complaints


def rows(**changes):
    spent = {"none": (0, 1.0), "control": (0, 3.0), "mlm": (2.0, 1.0), "ict": (1.9, 1.0)} | changes
    roles = {"none": "none", "control": "control"}
    return [RowFlops(row, "s", roles.get(row, "objective"), *values) for row, values in spent.items()]


def test_budgets_within_a_tenth_are_fair():
    assert budget_complaints(rows()) == []


def test_a_cheap_objective_is_named():
    (complaint,) = budget_complaints(rows(ict=(1.7, 1.0)))
    assert "ict" in complaint


def test_a_control_that_spends_too_little_or_too_much_is_named():
    assert "control" in budget_complaints(rows(control=(0, 2.5)))[0]
    assert "control" in budget_complaints(rows(control=(0, 3.5)))[0]


def test_settings_are_compared_apart():
    dear = [RowFlops("mlm", "other", "objective", 9.0, 1.0)]
    assert budget_complaints(rows() + dear) == []
