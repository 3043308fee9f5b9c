#!/usr/bin/env bash
# Install this clone's last commit as a package and build nano's table with it, in a study that has what docs/study.md prints:
# under each Python that is here (another is skipped by name), with the newest versions that pyproject.toml allows, then with
# the oldest, those that its lower bounds name. The package is built from a copy: nothing else of the clone gets into it, and
# the clone stays as it is. An environment takes 2.5 GB, or 6 where PyTorch comes with CUDA, and ten minutes:
#     bash envs/check_package.sh python3.11 python3.12 python3.13
set -euo pipefail
clone=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
copy() { rm -rf "$work/copy" && mkdir "$work/copy" && git -C "$clone" archive HEAD | tar -x -C "$work/copy"; }
printed() { awk -v fence="\`\`\`$1" '$0 == "```" { shown = 0 } shown; $0 == fence { shown = 1 }' "$work/copy/docs/study.md"; }
copy
touch "$work/newest"
grep -oE '[a-z0-9-]+>=[0-9.]+' "$work/copy/pyproject.toml" | sed 's/>=\(.*\)/==\1.*/' >"$work/oldest"

study() {
    encore --version
    python -c 'import encore, sys; assert encore.__file__.startswith(sys.prefix), encore.__file__'
    mkdir config workflow
    echo 'extends: config/nano.yaml' >config/mine.yaml
    printed python >workflow/Snakefile
    source <(printed text)
    snakemake --profile local --quiet all >log 2>&1 || { cat log && exit 1; }
    encore show table1
}
export -f study printed
export work

for python in "${@:?usage: bash envs/check_package.sh PYTHON...}"; do
    "$python" -c '' 2>/dev/null || { echo "$python is not here: skipped" && continue; }
    for versions in newest oldest; do
        rm -rf "$work/empty" "$work/study" && copy
        "$python" -m venv "$work/empty"
        "$work/empty/bin/python" -m pip --disable-pip-version-check install --quiet --constraint "$work/$versions" "$work/copy[cpu]"
        mkdir "$work/study"
        (cd "$work/study" && PATH="$work/empty/bin:$PATH" bash -euo pipefail -c study)
        built=$("$python" --version)
        echo "$built, $versions: table1.csv is $(sha256sum <"$work/study/results/tables/table1.csv" | cut -c 1-16)"
    done
done
: "${built:?none of these is here}"
