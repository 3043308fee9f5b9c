"""Texts and judgments in the common form, their vocabulary, and their tokens.

Inputs come from the plan, by role: src/encore/plan/artifacts/collections.py says which folder each role is.
"""


rule collection:
    """Convert a dataset to the common form: corpus, queries, judgments, articles."""
    input:
        manifests("collections/{collection}", "collection", "fetched", "source.*", "part.*"),
    output:
        manifest="results/collections/{collection}/manifest.json",
    log:
        "results/logs/collection/{collection}.log",
    conda:
        "../../envs/environment.yaml"
    threads: lambda wildcards: preprocessing_cores(artifact_in("collections/{collection}", wildcards))
    resources:
        **at_least("collections/{collection}", mem_mb=800, runtime=30),
        about=about_of("collections/{collection}"),
    params:
        spec=spec_of("collections/{collection}"),
    shell:
        f"{MAKE} collection"
        " --planned {params.spec:q} --threads {threads} --output {output.manifest:q} > {log:q} 2>&1"


rule tokenizer:
    """Train a WordPiece vocabulary on a collection, or take a checkpoint's own."""
    input:
        manifests("tokenizers/{tokenizer}", "collection", "checkpoint"),
    output:
        manifest="results/tokenizers/{tokenizer}/manifest.json",
    log:
        "results/logs/tokenizer/{tokenizer}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("tokenizers/{tokenizer}", mem_mb=4_000, runtime=30),
        about=about_of("tokenizers/{tokenizer}"),
    params:
        spec=spec_of("tokenizers/{tokenizer}"),
    shell:
        f"{MAKE} tokenizer" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule tokens:
    """Write a collection's texts once as token ids, flat and memory-mapped; those of several as one are joined."""
    input:
        manifests("tokens/{tokens}", "collection", "part.*", "part_token.*", "tokenizer"),
    output:
        manifest="results/tokens/{tokens}/manifest.json",
    log:
        "results/logs/tokens/{tokens}.log",
    conda:
        "../../envs/environment.yaml"
    threads: EXECUTION.preprocessing_cores
    resources:
        **at_least("tokens/{tokens}", mem_mb=2_000, runtime=60),
        about=about_of("tokens/{tokens}"),
    params:
        spec=spec_of("tokens/{tokens}"),
    shell:
        f"{MAKE} tokens" " --planned {params.spec:q} --threads {threads} --output {output.manifest:q} > {log:q} 2>&1"
