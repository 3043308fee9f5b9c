"""Large foreign tab-separated files, read some hundred thousand lines at a time, plain or compressed by gzip or xz."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from encore.errors import EncoreError
from encore.storage.progress import Progress
from encore.storage.text_files import numbered_lines, opened

BYTES = 32 * 2**20  # of text in a block


class TsvBlock(NamedTuple):
    """Lines of a file that follow each other."""

    first: int  # the number of the first one
    columns: list[pa.StringArray]  # no value is empty

    def __len__(self) -> int:
        return len(self.columns[0])


def read_tsv(path: Path, names: Sequence[str]) -> Iterator[TsvBlock]:
    """The lines of a file, each of which has a value for every name; quotes mean nothing."""
    if not path.is_file():
        raise EncoreError(f"{path} is missing; put it there, or run the command that makes it again")
    bad: list[int] = []
    done, progress = 0, Progress(path.name, "lines")
    try:
        for batch in _opened(path, names, bad):
            block = TsvBlock(done + 1, batch.columns)
            _refuse_empty(path, names, block)
            yield block
            done += len(block)
            progress.more(len(block))
    except (pa.ArrowInvalid, OSError) as error:
        if bad:
            raise malformed(path, bad[0], names) from error
        if isinstance(error, pa.ArrowInvalid):
            for _ in numbered_lines(path):  # which says where the text is broken
                pass
        raise EncoreError(f"{path}, after line {done}: cannot be read ({error}); replace the file") from error


def malformed(path: Path, number: int, names: Sequence[str]) -> EncoreError:
    """The message about a line that is not of a file's form."""
    return EncoreError(f"{path}, line {number}: not `{'<TAB>'.join(names)}`; fix or remove the line")


def _opened(path: Path, names: Sequence[str], bad: list[int]) -> Iterator[pa.RecordBatch]:
    def refuse(row: Any) -> str:
        bad.append(row.number)
        return "error"

    with opened(path) as file:
        if not file.read(1):  # Arrow calls an empty file an error
            return
    with pa.input_stream(opened(path) if path.suffix == ".xz" else path, compression="detect") as stream:
        yield from csv.open_csv(
            stream,
            read_options=csv.ReadOptions(column_names=list(names), block_size=BYTES, use_threads=False),
            parse_options=csv.ParseOptions(
                delimiter="\t",
                quote_char=False,
                escape_char=False,
                ignore_empty_lines=False,
                invalid_row_handler=refuse,  # has the line's number as long as one thread reads
            ),
            convert_options=csv.ConvertOptions(
                column_types={name: pa.string() for name in names}, null_values=[], strings_can_be_null=False
            ),
        )


def _refuse_empty(path: Path, names: Sequence[str], block: TsvBlock) -> None:
    for column in block.columns:
        empty = np.flatnonzero(pc.equal(pc.binary_length(column), 0).to_numpy(zero_copy_only=False))
        if len(empty):
            raise malformed(path, block.first + int(empty[0]), names)
