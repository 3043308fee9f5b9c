#!/usr/bin/env bash
# Snakemake copies this file beside each environment that it makes from environment.yaml, and runs it in there. The
# Snakefile says where the locks are. With another digest of theirs Snakemake makes another environment.
# locks: eff2b42a119ab394
set -euo pipefail
bash "$ENCORE_ENVS/install.sh" ${GPU:+gpu}
