"""Predicted queries that passages are indexed with: a model that writes them, and what it writes or others did."""


rule train_expander:
    """Train a T5 to write the query that a passage answers, on training queries."""
    input:
        **manifests("expanders/{expander}", "collection", "tokenizer", "checkpoint"),
        source=ancient(source_of("expanders/{expander}")),
    output:
        model="results/expanders/{expander}/model.safetensors",
        manifest="results/expanders/{expander}/manifest.json",
    log:
        "results/logs/train_expander/{expander}.log",
    benchmark:
        "results/benchmarks/train_expander/{expander}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **growing(mem_mb=8_000, runtime=8 * 60),
    params:
        spec=spec_of("expanders/{expander}"),
    shell:
        "python workflow/scripts/train_expander.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --tokenizer {input.tokenizer:q}"
        " --checkpoint {input.checkpoint:q}"
        " --source {input.source:q}"
        " --state results/state/{wildcards.expander:q}"
        " --checkpoint-seconds {EXECUTION.checkpoint_seconds}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule expand:
    """Give every passage its predicted queries: published ones, or samples of a trained T5."""
    input:
        **manifests("expansions/{expansion}", "fetched", "collection", "expander"),
        **large_files("expansions/{expansion}", expander="model.safetensors"),
        source=ancient(source_of("expansions/{expansion}")),
    output:
        manifest="results/expansions/{expansion}/manifest.json",
    log:
        "results/logs/expand/{expansion}.log",
    benchmark:
        "results/benchmarks/expand/{expansion}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("expansions/{expansion}", mem_mb=8_000, runtime=24 * 60),
    params:
        spec=spec_of("expansions/{expansion}"),
    shell:
        "python workflow/scripts/expand.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --expander {input.expander:q}"
        " --source {input.source:q}"
        " --fetched {input.fetched:q}"
        " --state results/state/{wildcards.expansion:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"
