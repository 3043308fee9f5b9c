#!/usr/bin/env bash
# Resolve both locks without installing anything; `uv` must be on PATH. That is: nothing that a package needs is missing
# on any Python or platform, no version is refused, and what is not built on purpose has a wheel.
set -euo pipefail
cd "$(dirname "$0")"
built=(connection-pool pyserini) # plain Python, of which there is only the source
resolve() { uv pip compile --quiet --no-header --no-annotate "$@"; }
pinned() { sed -n 's/^\([A-Za-z0-9._-]*==[^ ;]*\).*/\1/p' "$@" | tr '[:upper:]_' '[:lower:]-' | sed 's/\.\([a-z-]*==\)/-\1/' | sort -u; }

work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export UV_CACHE_DIR=$work/cache # each run would leave a gigabyte of unpacked sources in a lasting one
for lock in cpu gpu; do
    resolve --universal --python-version 3.11 $lock.txt | grep -v -e win32 -e emscripten | pinned >"$work/needed"
    missing=$(comm -23 "$work/needed" <(pinned packages.txt torch.txt cuda.txt $lock.txt))
    [[ -z $missing ]] || { echo "error: envs/$lock.txt lacks ${missing//$'\n'/, }; make the locks anew with envs/lock.sh" >&2 && exit 1; }
    echo "envs/$lock.txt: $(wc -l <"$work/needed") packages, whole on every Python and platform"
done
while read -r lock platform minors compiled; do
    sources=("${built[@]}" $compiled)
    for minor in ${minors//,/ }; do
        MACOSX_DEPLOYMENT_TARGET=14.0 resolve --python-version "3.$minor" --python-platform "$platform" \
            --only-binary :all: "${sources[@]/#/--no-binary=}" "$lock.txt" >"$work/resolved"
        echo "envs/$lock.txt: a wheel for each on Python 3.$minor, $platform${compiled:+, but for $compiled}"
    done
done <<END
cpu x86_64-manylinux_2_28 11,12,13
cpu x86_64-manylinux_2_28 14 immutables mwparserfromhell
cpu aarch64-manylinux_2_28 11,12,13 pytrec-eval-terrier
cpu aarch64-manylinux_2_28 14 immutables mwparserfromhell pytrec-eval-terrier
cpu aarch64-apple-darwin 11,12,13
cpu aarch64-apple-darwin 14 immutables mwparserfromhell
gpu x86_64-manylinux_2_28 11,12,13
gpu x86_64-manylinux_2_28 14 immutables mwparserfromhell
END
