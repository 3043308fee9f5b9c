"""The files of the program next to the library, from any working folder: catalogue, rules and the programs they call.

``encore/program`` has links to a clone's folders; in an installed package the files are there themselves.
"""

from pathlib import Path

from encore.errors import EncoreError

PROGRAM = Path(__file__).resolve().parents[1] / "program"


def program_folder(folder: str, has: str) -> Path:
    """A folder of the program, by its name in a clone; that of the working folder, if it has the same file.

    So paths are relative in a clone, and a study that has a whole folder of its own uses that.
    """
    own, program = Path(folder), (PROGRAM / folder).resolve()
    return own if (own / has).exists() or own.resolve() == program else program


CATALOGUE = program_folder("config", "backbones.yaml")
PAPERS = CATALOGUE / "papers"


def of_papers(file: str, papers: Path = PAPERS) -> dict[str, Path]:
    """That file of each paper which has it, by the paper: of the catalogue, and of a study that uses the program's."""
    found = {path.parent.name: path for path in sorted(papers.glob(f"*/{file}"))}
    for path in () if Path("config/backbones.yaml").exists() else sorted(Path("config/papers").glob(f"*/{file}")):
        if path.parent.name in found:
            raise EncoreError(f"{path}: the program has a paper of that name; give the folder another")
        found[path.parent.name] = path
    return found


def named(path: Path) -> str:
    """A file of the catalogue as plans name it, on every machine alike: by its path in a clone."""
    return str(path.relative_to(CATALOGUE.parent) if path.is_relative_to(CATALOGUE.parent) else path)


def found(name: str | Path) -> Path:
    """The file of such a name; that of the working folder, if it has one."""
    own = Path(name)
    return own if own.is_file() else CATALOGUE.parent / own


def name_to_extend(run: Path) -> str:
    """A run's file as another one names it after ``extends:``, on every machine alike; ``found`` finds it again."""
    name = Path("config") / run.name
    is_programs = run.resolve().parent == (PROGRAM / "config").resolve()
    return str(name if is_programs and found(name).resolve() == run.resolve() else run)
