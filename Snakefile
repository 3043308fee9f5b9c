"""Encore: from raw text to every table. workflow/Snakefile is the table of contents, which Snakemake's catalogue names."""


include: "workflow/Snakefile"


workflow.default_target = "all"  # Snakemake forgets that of an included file
