"""What all suites of this folder draw by, and how they count."""

from collections.abc import Callable

SEED = 20261122  # of every draw
Count = Callable[[str, str, int, int], None]  # of what suite, of what class, how many trials, how many held
