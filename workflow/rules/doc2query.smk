"""Predicted queries that passages are indexed with: a model that writes them, and what it writes or others did."""


rule train_doc2query:
    """Train a T5 to write the query that a passage answers, on training queries."""
    input:
        source=ancient(source_of("results/doc2query_models/{doc2query_model}")),
        collection=made_from("results/doc2query_models/{doc2query_model}", "collection"),
        tokenizer=made_from("results/doc2query_models/{doc2query_model}", "tokenizer"),
        checkpoint=made_from("results/doc2query_models/{doc2query_model}", "checkpoint"),
    output:
        model="results/doc2query_models/{doc2query_model}/model.safetensors",
        manifest="results/doc2query_models/{doc2query_model}/manifest.json",
    log:
        "results/logs/train_doc2query/{doc2query_model}.log",
    benchmark:
        "results/benchmarks/train_doc2query/{doc2query_model}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(8_000),
        runtime=escalate(8 * 60),
        checkpoint_s=PLAN.config.execution.checkpoint_seconds,
    params:
        spec=spec_of("results/doc2query_models/{doc2query_model}"),
    shell:
        "python workflow/scripts/train_doc2query.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --tokenizer {input.tokenizer:q}"
        " --checkpoint {input.checkpoint:q}"
        " --source {input.source:q}"
        " --state results/state/{wildcards.doc2query_model:q}"
        " --checkpoint-seconds {resources.checkpoint_s}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule predict_queries:
    """Give every passage its predicted queries: published ones, or samples of a trained T5."""
    input:
        source=ancient(source_of("results/predicted_queries/{predicted_queries}")),
        fetched=made_from("results/predicted_queries/{predicted_queries}", "fetched"),
        collection=made_from("results/predicted_queries/{predicted_queries}", "collection"),
        doc2query_model=made_from("results/predicted_queries/{predicted_queries}", "doc2query_model"),
        model=ancient(
            made_from("results/predicted_queries/{predicted_queries}", "doc2query_model", "model.safetensors")
        ),
    output:
        manifest="results/predicted_queries/{predicted_queries}/manifest.json",
    log:
        "results/logs/predict_queries/{predicted_queries}.log",
    benchmark:
        "results/benchmarks/predict_queries/{predicted_queries}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/predicted_queries/{predicted_queries}", 8_000),
        runtime=minutes("results/predicted_queries/{predicted_queries}", 24 * 60),
    params:
        spec=spec_of("results/predicted_queries/{predicted_queries}"),
    shell:
        "python workflow/scripts/predict_queries.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --doc2query-model {input.doc2query_model:q}"
        " --source {input.source:q}"
        " --fetched {input.fetched:q}"
        " --state results/state/{wildcards.predicted_queries:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"
