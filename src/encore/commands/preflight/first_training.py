"""When the first training of the longest chain can start, and what it waits for last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from encore.commands.preflight.jobs import TRAINING, Needed
from encore.commands.preflight.schedule import Schedule


class FirstTraining(NamedTuple):
    """A training's folder, the seconds after which it starts, and the folder that it waits for last, if for any."""

    folder: str
    seconds: float
    last: str | None


def first_training(missing: Sequence[Needed], schedule: Schedule) -> FirstTraining | None:
    """The first training on the longest chain of the missing jobs; None where no training is on it.

    The longest chain goes through the job that a training waits for longest, so that one is its last preparation.
    """
    by = {job.artifact.folder: job for job in missing}
    for place, folder in enumerate(schedule.critical):
        if by[folder].rule in TRAINING:
            return FirstTraining(folder, schedule.begins[folder], schedule.critical[place - 1] if place else None)
    return None
