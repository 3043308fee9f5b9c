"""How fast a machine is: measured by ``encore calibrate``, or estimated from a published peak and a stated utilisation.

A profile is a JSON file, ``results/state/machines/<name>.json``; named machines are in ``config/machines.yaml``.
"""

from __future__ import annotations

import math
from pathlib import Path

from pydantic import Field, ValidationError

from encore.commands.preflight.cost import Cost, Work
from encore.config.run import Positive, Share, Strict
from encore.config.validation import checked, nearest, read_yaml
from encore.errors import EncoreError
from encore.storage.files import write_text

PROFILES = Path("results/state/machines")
HERE = "here"  # the profile of the machine that was calibrated last
ON_DEVICE = ("train", "encode")  # kinds whose rate is the device's; the rest is the host's
RATES = {"encode_host": "host_encode"}  # kind of work: the host's rate that it goes by, where it is called otherwise


class Peak(Strict):
    """What a device could do at best, and the share of it that is expected of it."""

    bf16: float = Field(gt=0, description="floating-point operations a second, in 10^12, dense")
    fp32: float = Field(gt=0)
    utilisation_bf16: Share = 0.35
    utilisation_fp32: Share = 0.6


class RatePoint(Strict):
    """What was measured with one model on so many texts of so many tokens."""

    hidden: Positive
    layers: Positive
    rows: float
    length: float
    flops: float = Field(gt=0, description="operations a second")


class Machine(Strict):
    """A machine: its device (a GPU, or the processor itself where there is none) and its host."""

    name: str
    device: str
    gpus: int = Field(0, ge=0, description="1 where the device is a GPU")
    gpu_memory_gb: float | None = None
    cores: Positive = 1
    ram_gb: float | None = None
    watts: float = Field(gt=0, description="of the device at work; of a core where the device is the processor")
    host_watts: float = Field(0.0, ge=0, description="of the rest of the machine, for each GPU at work")
    peak: Peak | None = None
    points: dict[str, list[RatePoint]] = Field({}, description="measured, by kind of work: train, encode")
    rates: dict[str, float] = Field({}, description="of the host: units a second")
    starts: dict[str, float] = Field({}, description="seconds that a program takes to begin")
    precision: str = Field("fp32", description="that was measured in")
    measured: bool = False
    source: str

    def seconds(self, cost: Cost, precision: str = "fp32") -> float:
        """How long a job takes, alone on the machine."""
        return self.starts.get(cost.start, 1.0) + sum(self.work(work, precision) for work in cost.works)

    def work(self, work: Work, precision: str = "fp32") -> float:
        """Seconds of one kind of work."""
        if work.kind in ON_DEVICE:
            return work.amount / self.flops(work, precision)
        return work.amount / self.rates[RATES.get(work.kind, work.kind)] / work.threads

    def flops(self, work: Work, precision: str) -> float:
        """Operations a second: of the measured point that is nearest in size, or a share of the peak."""
        points = self.points.get(work.kind, [])
        if points:
            return min(points, key=lambda point: _distance(point, work)).flops
        if self.peak is None:
            raise EncoreError(f"machine {self.name!r} says nothing of {work.kind}; run `encore calibrate` again")
        if precision == "bf16":
            return self.peak.bf16 * 1e12 * self.peak.utilisation_bf16
        return self.peak.fp32 * 1e12 * self.peak.utilisation_fp32

    @property
    def how(self) -> str:
        """Where its numbers come from, in a word."""
        return "measured" if self.measured else "estimated"


def _distance(point: RatePoint, work: Work) -> float:
    """How unlike two pieces of work are: width and layers count before the size of the batch."""
    if work.shape is None:
        return 0.0
    model = abs(math.log(point.hidden / work.shape.hidden)) + abs(math.log(point.layers / work.shape.layers))
    batch = abs(math.log(point.rows * point.length / max(work.rows * work.length, 1.0)))
    return 4 * model + batch + 0.5 * abs(math.log(point.length / max(work.length, 1.0)))


def find_machine(name: str | None, catalogue: Path) -> Machine:
    """A machine by name: a measured profile, or an entry of ``machines.yaml``.

    Without a name it is the machine that was calibrated here, or else the entry ``cpu``.

    Raises:
        EncoreError: there is no such machine (says which is near), or a file is damaged.
    """
    profile = PROFILES / f"{name or HERE}.json"
    if profile.is_file():
        return read_machine(profile)
    known = read_yaml(catalogue)
    host = known.pop("host")
    wanted = name or "cpu"
    if wanted not in known:
        profiles = [path.stem for path in PROFILES.glob("*.json")]
        near = nearest(wanted, [*known, *profiles]) or f"; there are {', '.join([*known, *profiles])}"
        raise EncoreError(f"--machine {wanted!r} is not in {catalogue} and was not calibrated here{near}")
    entry = known[wanted]
    merged = {part: {**host.get(part, {}), **entry.get(part, {})} for part in ("rates", "starts")}
    machine: Machine = checked(Machine, {"name": wanted, **entry, **merged}, f"{catalogue}: {wanted}")
    return machine


def read_machine(path: Path) -> Machine:
    """A measured profile.

    Raises:
        EncoreError: it is damaged.
    """
    try:
        return Machine.model_validate_json(path.read_bytes())
    except (ValidationError, ValueError) as error:
        reason = str(error).splitlines()[1 if isinstance(error, ValidationError) else 0].strip()
        raise EncoreError(f"{path} is no machine's profile ({reason}); run `encore calibrate` again") from error


def write_machine(machine: Machine) -> Path:
    """Keep a profile, and make it the one that is taken without a name."""
    for name in (machine.name, HERE):
        write_text(PROFILES / f"{name}.json", machine.model_dump_json(indent=1) + "\n")
    return PROFILES / f"{machine.name}.json"
