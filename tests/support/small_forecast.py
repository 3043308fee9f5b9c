"""What nano needs by the forecast."""

from pathlib import Path
from typing import Any

from encore.commands.preflight import costs
from encore.commands.preflight.forecast import Forecast, forecast
from encore.config.validation import read_yaml
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan

RUN = Path("config/nano.yaml")


def planned(**changes: Any) -> Plan:
    return load_plan(RUN, {**read_yaml(RUN), **changes})


def estimate(plan: Plan, name: str = "cpu", gpus: int = 1, tables: tuple[str, ...] = ()) -> Forecast:
    return forecast(plan, tables, costs.find_machine(name), gpus)
