#!/usr/bin/env bash
# Install this clone as a package into an empty environment, with the newest packages that fit, and plan a study with it
# in its own folder:
#     bash envs/check_package.sh python3.13
set -euo pipefail
clone=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
"${1:?usage: bash envs/check_package.sh PYTHON}" -m venv "$work/empty"
"$work/empty/bin/python" -m pip --disable-pip-version-check install --quiet "$clone[cpu]"
export PATH="$work/empty/bin:$PATH"

mkdir -p "$work/study/workflow" && cd "$work/study"
encore --version
python -c 'import encore, sys; assert not encore.__file__.startswith(sys.argv[1]), encore.__file__' "$clone"
printf 'extends: config/nano.yaml\ntitle: Mine\n' >mine.yaml
cat >workflow/Snakefile <<'END'
from encore.storage.program_files import PROGRAM


configfile: "mine.yaml"


module encore:
    snakefile: PROGRAM / "workflow/Snakefile"
    config: config


use rule * from encore
END
snakemake results/tables/table1.csv --dry-run --quiet rules --cores 2 | tee planned
grep -q '^table ' planned
echo "$(python --version): the package plans a study"
