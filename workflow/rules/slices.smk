"""Slices of the plan: what each product is made of, and the file that says so, an input of the product's rule.

As an input it is compared also where Snakemake's own records, with the digest that is a param, were lost.
"""

import atexit
import shutil

from encore.products.kinds import BY_RULE, PRODUCTS
from encore.products.tables.plan import CURVES
from encore.products.declared import PLANS, is_written, plan_file, read_plan, slice_digest, write_plan
from encore.products.slices import built_from
from encore.storage.files import canonical
from encore.storage.processes import temporary_folder

SLICES = {}
try:
    DRAFTS = Path(temporary_folder())
    atexit.register(shutil.rmtree, DRAFTS, ignore_errors=True)
except OSError as error:
    refuse(f"{error.filename}: {error.strerror}; set TMPDIR to a folder with free space, then repeat")


wildcard_constraints:
    table=rf"(?!(?:{CURVES}|{PATTERNS.get('figure', '-')})\.)[a-z0-9_/-]+",


def slice_of(product, wildcards):
    """A product's slice of the plan; a cluster's job reads the file that was written when it was planned."""
    name = product.name(wildcards)
    if (product.rule, name) not in SLICES:
        SLICES[product.rule, name] = in_one_line(product.slice, PLAN, name).dumped() if PLAN else read_plan(name)
    return SLICES[product.rule, name]


def records():
    """The manifest of each product for people that this run is to make, or that was built from this run's slice.

    One that was built from another slice is another run's until this run has made it again.
    """
    found = {BY_RULE[rule].named(BY_RULE[rule].record, name): (rule, name) for rule, name in SLICES}
    return [record for record, key in found.items() if built_from(Path(record), SLICES[key]) is not False]


def is_reading(name):
    """Whether a product's slice may not be written: in a dry run, and where a run at work makes the product or reads it."""
    return workflow.dryrun or str(plan_file(name)) in files_of_runs()


def plan_of(product):
    """The file of a product's slice of the plan, which is written where its bytes differ; while reading, a draft of it."""

    def path(wildcards):
        name = product.name(wildcards)
        content = slice_of(product, wildcards)
        if not PLAN or (is_reading(name) and is_written(name, content)):
            return str(plan_file(name))
        return str(in_one_line(write_plan, name, content, DRAFTS if is_reading(name) else PLANS))

    return path


def reads_of(product):
    """What a product is made from."""
    return lambda wildcards: product.reads(product.typed(slice_of(product, wildcards)), product.name(wildcards))


def digest_of(product):
    """The digest of a product's slice of the plan, which is its one param."""
    return lambda wildcards: canonical(slice_digest(slice_of(product, wildcards)))


def files_of(product):
    """A product's files, of which Snakemake's own report shows one to look at: a page, or the first."""
    files = product.files[:-1]
    page = next((file for file in files if file.endswith(".html")), files[0])
    shown = {
        "category": product.category,
        "subcategory": lambda wildcards: str(Path(product.name(wildcards)).parent).replace(".", "encore"),
        "labels": lambda wildcards: {
            "name": Path(product.name(wildcards)).name,
            "shows": slice_of(product, wildcards).get("title", product.category),
        },
        "caption": f"../report/{product.rule}.rst",
    }
    return [report(file, **shown) if file == page else file for file in files]
