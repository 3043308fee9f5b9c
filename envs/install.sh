#!/usr/bin/env bash
# Install the locked packages for the `python` on PATH, Python 3.11 to 3.14:
#     bash envs/install.sh [cpu|gpu]
# So do `make env`, the container and the environment that Snakemake makes with conda (environment.post-deploy.sh).
# Nothing is installed or built by what has no digest in a lock beside this file.
set -euo pipefail
envs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lock=${1:-cpu}
refuse() { echo "error: $*" >&2 && exit 1; }

version=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[[ $version =~ ^3\.1[1-4]$ ]] || refuse "Python $version is not one of 3.11 to 3.14, for which packages are locked; name another one"
machine=$(uname -sm)
case $machine in
"Linux x86_64" | "Linux aarch64" | "Darwin arm64") ;;
*) refuse "no packages are locked for $machine, only for Linux on x86_64 and aarch64 and for macOS on arm64; use the container" ;;
esac
[[ $lock == cpu || $lock == gpu ]] || refuse "there is a lock for cpu and one for gpu, not for '$lock'"
[[ $lock == cpu || $machine == "Linux x86_64" ]] || refuse "FAISS for GPUs is there for Linux on x86_64 alone, not for $machine; leave GPU=1 out"
if [[ $version == 3.14 || $machine == "Linux aarch64" ]] && ! command -v cc >/dev/null; then
    refuse "on Python $version and $machine some packages are compiled: install a C++ compiler (Debian: apt-get install g++ python3-dev)"
fi

work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
# Python compiles what it imports, and most of what is installed is never imported.
pip() { python -m pip --disable-pip-version-check "$1" -qq "${@:2}"; }
installed() { pip install --no-compile --root-user-action ignore --no-deps "$@"; }

other=faiss-$([[ $lock == cpu ]] && echo gpu || echo cpu) # both are a module of the same name
pip uninstall --yes --root-user-action ignore "$other" 2>/dev/null

echo "[1/3] PyTorch"
# Told to check digests, pip would take PyPI's build before that of another index: so it is chosen first.
pip download --no-deps --dest "$work/torch" "$(grep -o '^torch==[^ ]*' "$envs/torch.txt")"
installed --require-hashes --no-index --find-links "$work/torch" --requirement "$envs/torch.txt"
if [[ $lock == gpu ]] || python -c 'import sys; from importlib.metadata import requires
sys.exit(sys.platform != "linux" or not any("cuda" in need for need in requires("torch")))'; then
    echo "      with CUDA's libraries, which this build needs"
    installed --require-hashes --requirement "$envs/cuda.txt"
fi
echo "[2/3] the $(grep -c '==' "$envs/packages.txt") other packages of envs/$lock.txt"
# Some have no wheel. They are built with locked tools, which are no part of the environment.
installed --require-hashes --requirement "$envs/build.txt"
installed --require-hashes --no-build-isolation --requirement "$envs/$lock.txt"
pip uninstall --yes --root-user-action ignore setuptools-scm vcs-versioning wheel
