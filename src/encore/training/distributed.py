"""Several processes that train as one: each works through its share of every batch.

All of them hold the same weights. Vectors to contrast are shown to all, and gradients are summed, so that each process
takes the step that a single one would take with the whole batch. Sums are in another order then, so with several
processes a training ends with other bytes, even on CPU.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, nn

from encore.storage import environment
from encore.storage.machine import is_out_of_memory
from encore.training import launch

PATIENCE = timedelta(hours=2)  # of the others while the first validates


@dataclass(frozen=True)
class ProcessGroup:
    """This process among those that train together; by default it is alone.

    Numbers that the host has are exchanged in its memory, so that no process waits for its device.
    """

    rank: int = 0
    size: int = 1

    @property
    def lead(self) -> bool:
        """True for the process that prints, validates and saves."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """The examples of this process among ``count``.

        They are spread, so that of a batch that is sorted by length no process has the longest texts.
        """
        return range(self.rank, count, self.size)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a tensor [...] over all processes, element by element."""
        if self.size > 1:
            values = values.clone()
            torch.distributed.all_reduce(values)
        return values

    def largest(self, value: int) -> int:
        """The largest of a number that each process has."""
        if self.size == 1:
            return value
        values = torch.tensor(value)
        torch.distributed.all_reduce(values, torch.distributed.ReduceOp.MAX)
        return int(values)

    @contextmanager
    def together(self) -> Iterator[None]:
        """If one process runs out of memory, all stop, so that none waits for another.

        Raises:
            torch.OutOfMemoryError: on every process, where one of them ran out of memory.
        """
        error = None
        try:
            yield
        except RuntimeError as found:
            if not is_out_of_memory(found):
                raise
            error = str(found)
        if self.sum(torch.tensor(float(error is not None))) > 0:
            raise torch.OutOfMemoryError(error or "another process ran out of memory")

    def room(self, rows: Tensor, count: int) -> list[Tensor]:
        """Memory for ``gather``: what this process sends, and what all have sent [size, ...]; none where it is alone.

        To be called in ``together``, as it may be too much.

        Args:
            rows: [n, ...], those of this process's share of the batch.
            count: the examples of the whole batch.
        """
        if self.size == 1:
            return []
        kind = torch.uint8 if rows.dtype == torch.bool else rows.dtype
        shape = (-(-count // self.size), *rows.shape[1:])
        return [torch.zeros(each, dtype=kind, device=rows.device) for each in (shape, (self.size, *shape))]

    def gather(self, rows: Tensor, room: list[Tensor]) -> None:
        """Fill the memory that ``room`` has made with the rows of all processes; it takes no more, so none runs out.

        With a list of tensors NCCL would first make one of all of them.
        """
        if self.size > 1:
            sent, found = room
            sent[: len(rows)] = rows.detach().view(sent.dtype)
            torch.distributed.all_gather_into_tensor(found.flatten(0, 1), sent)

    def joined(self, rows: Tensor, count: int, room: list[Tensor]) -> Tensor:
        """The rows of a whole batch, once they are gathered. To be called in ``together``, as it may be too much.

        Arguments as in ``room``, and what it has made.

        Returns:
            [count, ...] in the batch's order; gradients reach this process's own rows, the others' are values.
        """
        if self.size == 1:
            return rows
        shares = list(room[1].view(rows.dtype))
        shares[self.rank] = torch.cat([rows, shares[self.rank][len(rows) :]])
        return torch.stack(shares, dim=1).flatten(0, 1)[:count]  # as `share` deals them

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum each parameter's gradient over all processes, in place; one that none has a gradient of stays without.

        Raises:
            torch.OutOfMemoryError: on every process, where one has no memory for a gradient that only others have.
        """
        if self.size == 1:
            return
        every = [parameter for parameter in parameters if parameter.requires_grad]
        has = self.sum(torch.tensor([float(parameter.grad is not None) for parameter in every]))
        used = [parameter for parameter, count in zip(every, has.tolist(), strict=True) if count]
        with self.together():
            for parameter in used:
                own = parameter.grad
                parameter.grad = torch.zeros_like(parameter) if own is None else own.contiguous()
        sums = [torch.distributed.all_reduce(parameter.grad, async_op=True) for parameter in used]
        for each in sums:
            each.wait()


ALONE = ProcessGroup()


@contextmanager
def process_group(device: torch.device) -> Iterator[ProcessGroup]:
    """Join the other processes that torchrun started with this one, until all are done."""
    size = environment.number(environment.SIZE)
    if size == 1:
        yield ALONE
        return
    # Without the GPU, a barrier before any other collective would guess it from the rank.
    backend, gpu = ("cpu:gloo,cuda:nccl", device) if device.type == "cuda" else ("gloo", None)
    torch.distributed.init_process_group(backend, timeout=PATIENCE, device_id=gpu)
    # Not left after an error: NCCL would wait for the others, which wait for this one. `program.py` then ends at once.
    yield ProcessGroup(launch.rank(), size)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
