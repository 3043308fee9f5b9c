"""Write the embedded collections again from the docstrings of the installed Python and packages, or check them."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from encore.errors import EncoreError
from tools.pydocs import shipped

EMBEDDED_FOLDER = Path(__file__).parents[2] / "src/encore/datasets/embedded"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.pydocs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and say which files are not current")
    parser.add_argument("--folder", type=Path, default=EMBEDDED_FOLDER, help="the files; those of the library without")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="processes that read the sources")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        if not given.check:
            shipped.write(given.folder, Path(work), given.processes)
        elif wrong := shipped.check(given.folder, Path(work), given.processes):
            raise EncoreError(f"not current: {', '.join(wrong)}; write them again with `python -m tools.pydocs`")


if __name__ == "__main__":
    try:
        main()
    except EncoreError as error:
        sys.exit(f"error: {error}")
