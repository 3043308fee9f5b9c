"""What a unit of work takes: a table of coefficients by rule, fitted to finished jobs by ``encore calibrate``.

For a job that has to do the amounts ``a`` (``amounts.py``), each of these is a sum over the rule's coefficients:

- ``seconds``: of the processor, ``sum(c * a)``; what a rule does in ``parallel`` is shared by the threads that it is
  given. Where there is a GPU, it does the operations ``on_gpu``, at its maker's peak times a stated utilisation unless
  the rates were measured on a GPU. The host's part comes on top; in a training it runs at the same time;
- ``ram``, ``disk``, ``scratch``: bytes of memory at the peak, bytes that stay, bytes that lie there while the job runs.

A coefficient is ``fitted``, or ``stated`` where small jobs do not tell: sizes that follow from a format, and rates that
were measured apart. A rule that is not in the table is taken for ``other``, and the forecast says so.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from encore.commands.preflight.amounts import Amounts
from encore.config.strict import Strict
from encore.config.validation import checked, read_yaml
from encore.errors import EncoreError

SHIPPED = Path(__file__).with_name("cpu.yaml")
OWN = Path("results/state/rates.yaml")
OTHER = "other"
CPU = "cpu"


class Formula(Strict):
    """A sum over amounts; the coefficients of each."""

    fitted: dict[str, float] = {}
    stated: dict[str, float] = {}

    def parts(self, amounts: Amounts) -> dict[str, float]:
        """The terms of the sum, by amount."""
        both = {**self.stated, **self.fitted}
        return {name: value * amounts.get(name, 0.0) for name, value in both.items()}

    def of(self, amounts: Amounts) -> float:
        """The sum."""
        return sum(self.parts(amounts).values())


class RuleRates(Strict):
    """What the jobs of a rule, or of a stage of it, take."""

    jobs: int = Field(0, ge=0, description="finished jobs that it was fitted to; 0 where none was")
    error: float | None = Field(None, description="median error of a job that was left out, as a share")
    parallel: list[str] = Field([], description="amounts whose seconds are shared by threads")
    on_gpu: list[str] = Field(["flops"], description="amounts, in operations, that a GPU does where there is one")
    seconds: Formula
    ram: Formula
    disk: Formula
    scratch: Formula = Formula()
    source: str = Field("", description="of what is stated")


class Errors(Strict):
    """Of jobs that were left out of the fit one at a time: half, and nine in ten, were as near as this."""

    half: float
    nine_in_ten: float


class Rates(Strict):
    """The whole table, and what it was fitted to."""

    device: str = Field(description="`cpu`, or the GPU that the jobs ran on")
    machine: str
    runs: str = Field(description="whose finished jobs")
    date: str
    jobs: int
    error: Errors | None = None
    rules: dict[str, RuleRates]

    def knows(self, stage: str) -> bool:
        """Whether something is known of a stage or of its rule."""
        return stage in self.rules or stage.partition(".")[0] in self.rules

    def of(self, stage: str) -> RuleRates:
        """What is known of a stage, else of its rule, else of any."""
        return self.rules.get(stage) or self.rules.get(stage.partition(".")[0]) or self.rules[OTHER]

    def seconds(
        self,
        stage: str,
        amounts: Amounts,
        threads: int,
        flops_a_second: float | None = None,
        processes: int = 1,
        feeding: int = 1,
    ) -> float:
        """How long a job takes, alone on its cores.

        Args:
            threads: that its rule is given.
            flops_a_second: of a GPU; None where the job occupies none.
            processes: GPUs that share a training.
            feeding: processes that make its batches, while the GPUs compute.
        """
        rule = self.of(stage)
        parts = rule.seconds.parts(amounts)
        parts |= {name: parts[name] / threads for name in rule.parallel if name in parts}
        if flops_a_second is None:
            return sum(parts.values())
        own = sum(parts.pop(name, 0.0) for name in rule.on_gpu)
        operations = sum(amounts.get(name, 0.0) for name in rule.on_gpu)
        device = (operations / flops_a_second if self.device == CPU else own) / processes
        start = parts.pop("start", 0.0) + parts.pop("imports", 0.0)
        host = sum(parts.values()) / feeding
        return start + (max(device, host) if "trained_tokens" in amounts else device + host)

    @property
    def about(self) -> str:
        """What it was fitted to, and how wrong it was there, in a line."""
        fitted = f"{self.jobs} finished jobs of {self.runs}, {self.date}, {self.machine}"
        if self.error is None:
            return fitted
        half, most = (f"{100 * value:.0f} %" for value in (self.error.half, self.error.nine_in_ten))
        return f"{fitted}; of jobs left out, half within {half}, nine in ten within {most}"


def read_rates(path: Path | None = None) -> Rates:
    """A table of rates: the file that is named, else the one that was fitted here, else the one that is shipped.

    Raises:
        EncoreError: the named file is missing, or one is damaged.
    """
    if path and not path.is_file():
        raise EncoreError(f"--rates {path}: there is no such file; `encore calibrate --output {path}` makes it")
    chosen = path or (OWN if OWN.is_file() else SHIPPED)
    rates: Rates = checked(Rates, read_yaml(chosen), str(chosen))
    if OTHER not in rates.rules:
        raise EncoreError(f"{chosen} lacks the rule {OTHER!r}, for what was not measured; run `encore calibrate` again")
    return rates
