"""Texts and judgments in the common form, their vocabulary, and their tokens."""


rule collection:
    """Bring a dataset into the common form: corpus, queries, judgments, articles."""
    input:
        source=ancient(source_of("results/collections/{collection}")),
        collection=made_from("results/collections/{collection}", "collection"),
        fetched=made_from("results/collections/{collection}", "fetched"),
        sources=each_of("results/collections/{collection}", "source."),
        parts=each_of("results/collections/{collection}", "part."),
    output:
        manifest="results/collections/{collection}/manifest.json",
    log:
        "results/logs/collection/{collection}.log",
    benchmark:
        "results/benchmarks/collection/{collection}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 2
    resources:
        mem_mb=memory("results/collections/{collection}", 4_000),
        runtime=minutes("results/collections/{collection}", 30),
    params:
        spec=spec_of("results/collections/{collection}"),
    shell:
        "python workflow/scripts/collection.py"
        " --spec {params.spec:q}"
        " --source {input.source:q}"
        " --collection {input.collection:q}"
        " --fetched {input.fetched:q}"
        " --sources {input.sources:q}"
        " --parts {input.parts:q}"
        ' --data-root "$ENCORE_DATA_ROOT"'
        " --processes {threads}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule tokenizer:
    """Train a WordPiece vocabulary on a collection, or take a checkpoint's own."""
    input:
        source=ancient(source_of("results/tokenizers/{tokenizer}")),
        collection=made_from("results/tokenizers/{tokenizer}", "collection"),
        checkpoint=made_from("results/tokenizers/{tokenizer}", "checkpoint"),
    output:
        manifest="results/tokenizers/{tokenizer}/manifest.json",
    log:
        "results/logs/tokenizer/{tokenizer}.log",
    benchmark:
        "results/benchmarks/tokenizer/{tokenizer}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(30),
    params:
        spec=spec_of("results/tokenizers/{tokenizer}"),
    shell:
        "python workflow/scripts/tokenizer.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --checkpoint {input.checkpoint:q}"
        " --source {input.source:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule tokens:
    """Write a collection's texts once as token ids, flat and memory-mapped."""
    input:
        collection=made_from("results/tokens/{tokens}", "collection"),
        tokenizer=made_from("results/tokens/{tokens}", "tokenizer"),
    output:
        manifest="results/tokens/{tokens}/manifest.json",
    log:
        "results/logs/tokens/{tokens}.log",
    benchmark:
        "results/benchmarks/tokens/{tokens}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 2
    resources:
        mem_mb=memory("results/tokens/{tokens}", 4_000),
        runtime=minutes("results/tokens/{tokens}", 60),
    params:
        spec=spec_of("results/tokens/{tokens}"),
    shell:
        "python workflow/scripts/tokens.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --tokenizer {input.tokenizer:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"
