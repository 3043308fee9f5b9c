"""``encore new``: its flags, and the run's file that it writes."""

import argparse
from pathlib import Path


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore new``; ``--config`` is the run that the new one extends."""
    parser.add_argument("name", help="of the collection and of its run: config/NAME.yaml is written")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--beir", type=Path, metavar="FOLDER", help="a folder in BEIR's layout")
    source.add_argument("--ir-datasets", metavar="ID", help="what ir_datasets calls it, such as beir/scifact")
    parser.add_argument("--zero-shot", action="store_true", help="only test models that learned from the other run's")
    parser.add_argument(
        "--drop", action="store_true", help="leave out documents without text and judgments of what does not exist"
    )


def answer(arguments: argparse.Namespace) -> int:
    """Look at the collection, write the run's file, and say what to type next.

    Raises:
        EncoreError: the name is taken or cannot be one, or the collection cannot be used; then nothing is written.
    """
    import yaml

    from encore.commands.new.run_text import about, run_text
    from encore.commands.new.source import beir_source, ir_datasets_source
    from encore.config.run_file import read_run
    from encore.config.validation import DATASET, refuse_odd_name
    from encore.errors import EncoreError
    from encore.products.catalogue import CATALOGUE, load_catalogue, load_plan
    from encore.products.targets import everything_declared
    from encore.storage import typed
    from encore.storage.files import write_text

    refuse_odd_name(arguments.name, "a dataset", DATASET)
    path = CATALOGUE / f"{arguments.name}.yaml"
    catalogue = load_catalogue()
    if path.exists() or arguments.name in catalogue.datasets:
        taken = f"{path} is there already" if path.exists() else f"the catalogue has a dataset {arguments.name!r}"
        raise EncoreError(f"{taken}; choose another name, or remove it")
    base = read_run(arguments.config)
    zero_shot = arguments.zero_shot
    if arguments.beir:
        found = beir_source(arguments.beir, zero_shot=zero_shot, drop=arguments.drop)
    else:
        found = ir_datasets_source(arguments.ir_datasets, Path(base.execution.data_root), zero_shot=zero_shot)
    text = run_text(arguments.name, found, (str(arguments.config), base), catalogue)
    everything_declared(load_plan(path, yaml.safe_load(text)))  # what cannot be planned is refused here
    write_text(path, text)
    run = typed.called(path)
    print("\n".join([f"{path} is written.", *about(found), "Now:"]))
    print(f"  {typed.encore('preflight', run=run)}\n  {typed.snakemake(run=run)}")
    return 0
