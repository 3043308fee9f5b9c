"""Predicted queries that passages are indexed with: a model that writes them, and its queries or published ones.

Inputs come from the plan, by role: src/encore/plan/artifacts/doc2query.py says which folder each role is.
"""


rule train_doc2query:
    """Train a T5 to write the query that a passage answers, on training queries."""
    input:
        manifests("doc2query_models/{doc2query_model}", "collection", "tokenizer", "checkpoint"),
    output:
        model="results/doc2query_models/{doc2query_model}/model.safetensors",
        manifest="results/doc2query_models/{doc2query_model}/manifest.json",
    log:
        "results/logs/train_doc2query/{doc2query_model}.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("train_doc2query")
    resources:
        **by_attempt(mem_mb=8_000, runtime=8 * 60),
        about=about_of("doc2query_models/{doc2query_model}"),
    params:
        spec=spec_of("doc2query_models/{doc2query_model}"),
    shell:
        f"{MAKE} train_doc2query" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule predict_queries:
    """Give every passage its predicted queries: published ones, or samples of a trained T5."""
    input:
        manifests("predicted_queries/{predicted_queries}", "fetched", "collection", "doc2query_model"),
        large_files("predicted_queries/{predicted_queries}", doc2query_model="model.safetensors"),
    output:
        manifest="results/predicted_queries/{predicted_queries}/manifest.json",
    log:
        "results/logs/predict_queries/{predicted_queries}.log",
    conda:
        "../../envs/environment.yaml"
    threads: EXECUTION.processes * threads_of("predict_queries")
    resources:
        **at_least_where_it_resumes("predicted_queries/{predicted_queries}", mem_mb=8_000, runtime=24 * 60),
        processes=EXECUTION.processes,
        about=about_of("predicted_queries/{predicted_queries}"),
    params:
        spec=spec_of("predicted_queries/{predicted_queries}"),
    shell:
        f"{MAKE} predict_queries"
        " --planned {params.spec:q} --processes {resources.processes}"
        " --output {output.manifest:q} > {log:q} 2>&1"
