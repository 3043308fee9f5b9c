"""Predicted queries that passages are indexed with: a model that writes them, and what it writes or others did."""


rule train_expander:
    """Train a T5 to write the query that a passage answers, on training queries."""
    input:
        source=ancient(source_of("results/expanders/{expander}")),
        collection=made_from("results/expanders/{expander}", "collection"),
        tokenizer=made_from("results/expanders/{expander}", "tokenizer"),
        checkpoint=made_from("results/expanders/{expander}", "checkpoint"),
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
        mem_mb=escalate(8_000),
        runtime=escalate(8 * 60),
        checkpoint_s=PLAN.config.execution.checkpoint_seconds,
    params:
        spec=spec_of("results/expanders/{expander}"),
    shell:
        "python workflow/scripts/train_expander.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --tokenizer {input.tokenizer:q}"
        " --checkpoint {input.checkpoint:q}"
        " --source {input.source:q}"
        " --state results/state/{wildcards.expander:q}"
        " --checkpoint-seconds {resources.checkpoint_s}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule expand:
    """Give every passage its predicted queries: published ones, or samples of a trained T5."""
    input:
        source=ancient(source_of("results/expansions/{expansion}")),
        fetched=made_from("results/expansions/{expansion}", "fetched"),
        collection=made_from("results/expansions/{expansion}", "collection"),
        expander=made_from("results/expansions/{expansion}", "expander"),
        model=ancient(made_from("results/expansions/{expansion}", "expander", "model.safetensors")),
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
        mem_mb=memory("results/expansions/{expansion}", 8_000),
        runtime=minutes("results/expansions/{expansion}", 24 * 60),
    params:
        spec=spec_of("results/expansions/{expansion}"),
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
