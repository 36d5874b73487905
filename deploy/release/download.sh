#!/bin/sh
# Download what a release is built from, by the hashes of the lock files: deploy/release/download.sh FOLDER. After it, with pip told to look there
# alone, `make release` needs no network (docs/releasing.md); the image needs its two bases besides. PYTHON as in build.sh.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:?where to put the packages: $0 FOLDER}
python=${PYTHON:-python3}
fetch() { "$python" -m pip download --quiet --disable-pip-version-check --require-hashes --only-binary=:all: --dest="$folder" "$@"; }

for lock in requirements-build.lock requirements.lock deploy/manual/requirements.lock; do
  fetch --requirement="$lock"
done
# As make_zipapp.py and deploy/stage.sh choose them: for the oldest Python, and for this one.
for machine in x86_64 aarch64; do
  set -- --platform="manylinux2014_$machine"
  fetch --python-version=3.11 --implementation=cp --abi=cp311 --abi=abi3 --abi=none "$@" --platform="manylinux_2_17_$machine" \
    --requirement=requirements-demo.lock
  fetch --platform="manylinux_2_28_$machine" --platform="manylinux_2_17_$machine" "$@" --platform="manylinux_2_12_$machine" \
    --requirement=requirements.lock
done
