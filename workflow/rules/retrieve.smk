"""Runs: the ranked passages of every query of a split.

Inputs come from the plan, by role: src/encore/plan/artifacts/systems.py says which folder each role is.
"""


rule lucene_search:
    """Rank passages with BM25."""
    input:
        manifests("runs/{bm25}/{topics}", "index", "collection"),
    output:
        run="results/runs/{bm25}/{topics}/run.npz",
        manifest="results/runs/{bm25}/{topics}/manifest.json",
    log:
        "results/logs/lucene_search/{bm25}/{topics}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 2
    resources:
        **at_least("runs/{bm25}/{topics}", mem_mb=EXECUTION.java_memory_mb + 1_000, runtime=60),
        about=about_of("runs/{bm25}/{topics}"),
    params:
        spec=spec_of("runs/{bm25}/{topics}"),
    shell:
        MAKE
        + " lucene_search --planned {params.spec:q} --threads {threads} --output {output.manifest:q} > {log:q} 2>&1"


rule take_run:
    """Take the answers to a split's queries out of a run that others made."""
    input:
        manifests("runs/{run}/{topics}", "fetched", "collection"),
    output:
        run="results/runs/{run}/{topics}/run.npz",
        manifest="results/runs/{run}/{topics}/manifest.json",
    log:
        "results/logs/take_run/{run}/{topics}.log",
    priority: 2  # a file that cannot be read is said before others have worked
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("runs/{run}/{topics}", mem_mb=4_000, runtime=30),
        about=about_of("runs/{run}/{topics}"),
    params:
        spec=spec_of("runs/{run}/{topics}"),
    shell:
        f"{MAKE} take_run" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule search_shard:
    """Find the best passages of one shard, where each is searched by a separate job."""
    input:
        manifests("hits/{model}/{topics}/{shard}", "model", "tokens", "collection", "shard*", "subset"),
        large_files("hits/{model}/{topics}/{shard}", model="model.safetensors", shard="index"),
    output:
        hits="results/hits/{model}/{topics}/{shard}/hits.npy",
        manifest="results/hits/{model}/{topics}/{shard}/manifest.json",
    log:
        "results/logs/search_shard/{model}/{topics}/{shard}.log",
    priority: 1  # before further vectors are made
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("search_shard")
    resources:
        **at_least("hits/{model}/{topics}/{shard}", mem_mb=4_000, runtime=2 * 60),
        about=about_of("hits/{model}/{topics}/{shard}"),
    params:
        spec=spec_of("hits/{model}/{topics}/{shard}"),
    shell:
        f"{MAKE} search_shard" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule search:
    """Rank passages by the inner product with the query's vector, exactly, over all shards, or merge the hits in each."""
    input:
        manifests("runs/{model}/{topics}", "model", "tokens", "collection", "shard*", "hit*", "subset"),
        large_files("runs/{model}/{topics}", model="model.safetensors", shard="index"),
    output:
        run="results/runs/{model}/{topics}/run.npz",
        manifest="results/runs/{model}/{topics}/manifest.json",
    log:
        "results/logs/search/{model}/{topics}.log",
    priority: 1  # before further vectors are made
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("search")
    resources:
        **at_least("runs/{model}/{topics}", mem_mb=4_000, runtime=2 * 60),
        about=about_of("runs/{model}/{topics}"),
    params:
        spec=spec_of("runs/{model}/{topics}"),
    shell:
        f"{MAKE} search" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule tune_fusion:
    """Choose the weight of the sparse scores in a fusion, on queries that no table reports."""
    input:
        manifests(
            "fusions/{fusion}/{topics}",
            "collection",
            "sparse_train",
            "dense_train",
            "sparse_held_out",
            "dense_held_out",
        ),
    output:
        manifest="results/fusions/{fusion}/{topics}/manifest.json",
    log:
        "results/logs/tune_fusion/{fusion}/{topics}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **by_attempt(mem_mb=4_000, runtime=60),
        about=about_of("fusions/{fusion}/{topics}"),
    params:
        spec=spec_of("fusions/{fusion}/{topics}"),
    shell:
        f"{MAKE} tune_fusion" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule fuse:
    """Rank passages by the weighted sparse score plus the dense one."""
    input:
        manifests("runs/{fusion}/{topics}", "sparse", "dense", "weight"),
    output:
        run="results/runs/{fusion}/{topics}/run.npz",
        manifest="results/runs/{fusion}/{topics}/manifest.json",
    log:
        "results/logs/fuse/{fusion}/{topics}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **by_attempt(mem_mb=4_000, runtime=60),
        about=about_of("runs/{fusion}/{topics}"),
    params:
        spec=spec_of("runs/{fusion}/{topics}"),
    shell:
        f"{MAKE} fuse" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule rerank:
    """Rank the best results of a run again with a trained scorer, or a whole collection by vectors of tokens."""
    input:
        manifests("runs/{rerank}/{topics}", "first", "tokens", "model", "collection"),
        large_files("runs/{rerank}/{topics}", model="model.safetensors"),
    output:
        run="results/runs/{rerank}/{topics}/run.npz",
        manifest="results/runs/{rerank}/{topics}/manifest.json",
    log:
        "results/logs/rerank/{rerank}/{topics}.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("rerank")
    resources:
        **at_least("runs/{rerank}/{topics}", mem_mb=8_000, runtime=8 * 60),
        about=about_of("runs/{rerank}/{topics}"),
    params:
        spec=spec_of("runs/{rerank}/{topics}"),
    shell:
        f"{MAKE} rerank" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"
