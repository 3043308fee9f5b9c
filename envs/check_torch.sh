#!/usr/bin/env bash
# Run the tests of devices with PyPI's own build of PyTorch where an environment has another one, such as a build for CPUs
# that this machine's pip finds; on Linux PyPI's holds CUDA. It takes 2.5 GB of downloads, and 5 GB until it has ended;
# `uv` must be on PATH. All other packages are those of the environment:
#     bash envs/check_torch.sh .venv/bin/python
set -euo pipefail
envs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${1:?usage: bash envs/check_torch.sh PYTHON}
skip() { echo "PyPI's build of PyTorch: skipped, since $*" && exit; }
version=$("$python" -c 'from importlib.metadata import version; print(version("torch"))')
[[ $version == *+* ]] || skip "$version here is that build, with which all tests run"
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
free=$(df --output=avail --block-size=1G "$work" | tail -1)
((free >= 10)) || skip "$((free)) GB are free, of which it wants 10"

packages() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
"$python" -m venv --without-pip "$work/own"
own=$work/own/bin/python
TMPDIR=$work timeout 1200 uv pip install --quiet --no-config --no-cache --no-deps --require-hashes --python "$own" \
    --requirement "$envs/torch.txt" --requirement "$envs/cuda.txt" || skip "its packages did not come, as said above"
echo "import site; site.addsitedir('$(packages "$python")')" >"$(packages "$own")/others.pth"
"$own" -c 'import torch; print("PyTorch", torch.__version__, "in place of", "'"$version"'")'

cd "$envs/.."
one() { "$0" -m pytest -q -p no:cacheprovider -m 'not slow and not everything' "$1" || [[ $? == 5 ]]; } # 5: none is chosen
export -f one # a process for each file, since simulated devices leave traces in this build that other files' peers meet
grep -rlE --include='test_*.py' 'simulated_gpu|gpu: str|usefixtures\("gpu"\)' tests/unit |
    xargs -P 2 -n 1 bash -c 'one "$1"' "$own"
