"""Rules that make no file; each calls the command of the same name."""


rule audit:
    """Recompute every digest upstream of tables, figures, claims and the report, and name what does not fit."""
    log:
        "results/logs/audit.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    shell:
        'python -m encore.commands audit --config "$ENCORE_RUN" 2>&1 | tee {log:q}; exit ${{PIPESTATUS[0]}}'


rule preflight:
    """Print which jobs the declared tables lack, and their bytes, memory and GPU-hours; refuse what exceeds a limit."""
    log:
        "results/logs/preflight.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    shell:
        'python -m encore.commands preflight --config "$ENCORE_RUN" 2>&1 | tee {log:q}; exit ${{PIPESTATUS[0]}}'
