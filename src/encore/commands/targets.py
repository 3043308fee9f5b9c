"""``encore targets``: the targets of a lineage, a system, a source or a dataset."""

import argparse

from encore.commands.plan import plan_of
from encore.errors import EncoreError
from encore.plan import folders
from encore.plan.lineage import split_index
from encore.products.targets import lineage_targets


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("lineage", help="for example bert-base+costa~temperature=0.05+marco-bm25")


def answer(arguments: argparse.Namespace) -> int:
    """The model's folder for every seed, if it is a lineage, then the targets."""
    plan = plan_of(arguments)
    if texts := folders.named(plan, arguments.lineage):
        print("\n".join(texts))
        return 0
    if arguments.lineage in plan.catalogue.systems:
        print("\n".join(dict.fromkeys(lineage_targets(plan, arguments.lineage))))
        return 0
    if "+" not in arguments.lineage and (meant := folders.misspelt(plan, arguments.lineage)):
        raise EncoreError(meant)
    name, index = split_index(arguments.lineage)
    lineage = plan.resolve.lineage(name)
    if index:
        plan.resolve.index_type(index)
    found = [plan.model(lineage, seed).manifest for seed in plan.config.seeds]
    found += lineage_targets(plan, arguments.lineage) if lineage.steps else []
    print("\n".join(dict.fromkeys(found)))
    return 0
