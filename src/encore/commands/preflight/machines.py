"""What a machine's GPU can do."""

from pathlib import Path

from pydantic import Field

from encore.config.validation import Share, Strict, checked, nearest, read_yaml
from encore.errors import EncoreError
from encore.storage.program_files import CATALOGUE

MACHINES = CATALOGUE / "machines.yaml"
CPU = "cpu"  # the entry without a GPU, which is taken without a name


class Peak(Strict):
    """What a GPU could do at best, and the share of it that is expected of it."""

    fp32: float = Field(gt=0, description="floating-point operations a second, in 10^12, dense")
    bf16: float | None = Field(None, gt=0, description="none before A100, since these have neither bf16 nor tf32")
    utilisation_bf16: Share = 0.35
    utilisation_fp32: Share = 0.6


class Machine(Strict):
    """A machine: one kind of GPU, or the processor alone."""

    name: str
    device: str
    gpu_memory_gb: float | None = None
    node_memory_gb: float = Field(256, gt=0, description="main memory of a node with such GPUs")
    peak: Peak | None = Field(None, description="of the GPU; none without one")
    source: str

    def computes_in(self, precision: str) -> bool:
        """True if models run in it there, as ``training/machine.py`` finds out when a job begins."""
        has = precision == "bf16" if self.peak is None else self.peak.bf16 is not None
        return has or precision == "fp32"

    def flops_a_second(self, precision: str) -> float | None:
        """Operations a second that are expected of its GPU; None without one."""
        if self.peak is None:
            return None
        if self.peak.bf16 and precision in ("bf16", "tf32"):
            share = 1.0 if precision == "bf16" else 0.5  # as on A100 and later
            return share * self.peak.bf16 * 1e12 * self.peak.utilisation_bf16
        return self.peak.fp32 * 1e12 * self.peak.utilisation_fp32


def find_machine(name: str | None, catalogue: Path = MACHINES) -> Machine:
    """A machine by name; without a name the processor."""
    known, wanted = read_yaml(catalogue), name or CPU
    if wanted not in known:
        near = nearest(wanted, known) or f"; known are {', '.join(known)}"
        raise EncoreError(f"--machine {wanted!r} is not in {catalogue}{near}")
    machine: Machine = checked(Machine, {"name": wanted, **known[wanted]}, f"{catalogue}: {wanted}")
    return machine
