"""Runs: the ranked passages of every query of a split."""


rule lucene_search:
    """Rank passages with BM25."""
    input:
        index=made_from("results/runs/{bm25}/{topics}", "index"),
        collection=made_from("results/runs/{bm25}/{topics}", "collection"),
    output:
        run="results/runs/{bm25}/{topics}/run.trec.gz",
        manifest="results/runs/{bm25}/{topics}/manifest.json",
    log:
        "results/logs/lucene_search/{bm25}/{topics}.log",
    benchmark:
        "results/benchmarks/lucene_search/{bm25}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 2
    resources:
        mem_mb=memory("results/runs/{bm25}/{topics}", PLAN.config.execution.java_memory_mb + 2_000),
        runtime=minutes("results/runs/{bm25}/{topics}", 60),
        java_mb=PLAN.config.execution.java_memory_mb,
    params:
        spec=spec_of("results/runs/{bm25}/{topics}"),
    shell:
        "python workflow/scripts/lucene_search.py"
        " --spec {params.spec:q}"
        " --index {input.index:q}"
        " --collection {input.collection:q}"
        " --threads {threads}"
        " --memory-mb {resources.java_mb}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule search:
    """Rank passages by the inner product with the query's vector, exactly, over all shards."""
    input:
        model=made_from("results/runs/{model}/{topics}", "model"),
        weights=ancient(made_from("results/runs/{model}/{topics}", "model", "model.safetensors")),
        tokens=made_from("results/runs/{model}/{topics}", "tokens"),
        collection=made_from("results/runs/{model}/{topics}", "collection"),
        shards=shards_of("results/runs/{model}/{topics}"),
        vectors=ancient(shards_of("results/runs/{model}/{topics}", "index")),
        subset=made_from("results/runs/{model}/{topics}", "subset"),
    output:
        run="results/runs/{model}/{topics}/run.trec.gz",
        manifest="results/runs/{model}/{topics}/manifest.json",
    log:
        "results/logs/search/{model}/{topics}.log",
    benchmark:
        "results/benchmarks/search/{model}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/runs/{model}/{topics}", 4_000),
        runtime=minutes("results/runs/{model}/{topics}", 2 * 60),
    params:
        spec=spec_of("results/runs/{model}/{topics}"),
    shell:
        "python workflow/scripts/search.py"
        " --spec {params.spec:q}"
        " --model {input.model:q}"
        " --tokens {input.tokens:q}"
        " --collection {input.collection:q}"
        " --indexes {input.shards:q}"
        " --subset {input.subset:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule tune_fusion:
    """Choose the weight of the sparse scores in a fusion, on queries that no table reports."""
    input:
        collection=made_from("results/fusions/{fusion}/{topics}", "collection"),
        sparse_train=made_from("results/fusions/{fusion}/{topics}", "sparse_train"),
        dense_train=made_from("results/fusions/{fusion}/{topics}", "dense_train"),
        sparse_held_out=made_from("results/fusions/{fusion}/{topics}", "sparse_held_out"),
        dense_held_out=made_from("results/fusions/{fusion}/{topics}", "dense_held_out"),
    output:
        manifest="results/fusions/{fusion}/{topics}/manifest.json",
    log:
        "results/logs/tune_fusion/{fusion}/{topics}.log",
    benchmark:
        "results/benchmarks/tune_fusion/{fusion}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(60),
    params:
        spec=spec_of("results/fusions/{fusion}/{topics}"),
    shell:
        "python workflow/scripts/tune_fusion.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --train {input.sparse_train:q} {input.dense_train:q}"
        " --held-out {input.sparse_held_out:q} {input.dense_held_out:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule fuse:
    """Rank passages by the weighted sparse score plus the dense one."""
    input:
        sparse=made_from("results/runs/{fusion}/{topics}", "sparse"),
        dense=made_from("results/runs/{fusion}/{topics}", "dense"),
        weight=made_from("results/runs/{fusion}/{topics}", "weight"),
    output:
        run="results/runs/{fusion}/{topics}/run.trec.gz",
        manifest="results/runs/{fusion}/{topics}/manifest.json",
    log:
        "results/logs/fuse/{fusion}/{topics}.log",
    benchmark:
        "results/benchmarks/fuse/{fusion}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(60),
    params:
        spec=spec_of("results/runs/{fusion}/{topics}"),
    shell:
        "python workflow/scripts/fuse.py"
        " --spec {params.spec:q}"
        " --sparse {input.sparse:q}"
        " --dense {input.dense:q}"
        " --weight {input.weight:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule rerank:
    """Rank the best results of a run again with a trained scorer."""
    input:
        first=made_from("results/runs/{rerank}/{topics}", "first"),
        tokens=made_from("results/runs/{rerank}/{topics}", "tokens"),
        model=made_from("results/runs/{rerank}/{topics}", "model"),
        weights=ancient(made_from("results/runs/{rerank}/{topics}", "model", "model.safetensors")),
    output:
        run="results/runs/{rerank}/{topics}/run.trec.gz",
        manifest="results/runs/{rerank}/{topics}/manifest.json",
    log:
        "results/logs/rerank/{rerank}/{topics}.log",
    benchmark:
        "results/benchmarks/rerank/{rerank}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/runs/{rerank}/{topics}", 8_000),
        runtime=minutes("results/runs/{rerank}/{topics}", 8 * 60),
        checkpoint_s=PLAN.config.execution.checkpoint_seconds,
    params:
        spec=spec_of("results/runs/{rerank}/{topics}"),
    shell:
        "python workflow/scripts/rerank.py"
        " --spec {params.spec:q}"
        " --model {input.model:q}"
        " --tokens {input.tokens:q}"
        " --first {input.first:q}"
        " --state results/state/{wildcards.rerank:q}/{wildcards.topics:q}"
        " --checkpoint-seconds {resources.checkpoint_s}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"
