"""What nano and other runs need by the forecast."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from encore.commands.preflight.downloads import Fetches
from encore.commands.preflight.forecast import Forecast, forecast
from encore.commands.preflight.jobs import Jobs
from encore.commands.preflight.machines import find_machine
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.config.run_file import read_run
from encore.config.validation import read_yaml
from encore.plan.artifact import Artifact
from encore.plan.catalogue import Catalogue, with_entries_of
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.stages.needs import Needs

ROOT = Path(__file__).parents[2]
RUN = Path("config/nano.yaml")


@cache
def shipped() -> Catalogue:
    """Read once, which takes a third of a second."""
    return load_catalogue(ROOT / "config")


def planned(run: Path = RUN, **changes: Any) -> Plan:
    """The plan of a run with changes; its catalogue's sources are its own."""
    own = replace(shipped(), sources=dict(shipped().sources))
    config = read_run(run, {**read_yaml(run), **changes} if changes else None)
    return Plan(config, with_entries_of(config, own))


def estimate(plan: Plan, name: str = "cpu", gpus: int = 1, tables: tuple[str, ...] = ()) -> Forecast:
    return forecast(plan, tables, find_machine(name), gpus)


def needs_of(plan: Plan, *made: Artifact) -> list[Needs]:
    """What the jobs need that make artifacts, on the processor."""
    jobs = Jobs(plan, CollectionSizes(plan, read_stated()), find_machine("cpu"), Fetches(plan, {}))
    return [jobs.of(each).needs for each in made]
