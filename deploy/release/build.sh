#!/bin/sh
# Build everything that a user downloads: deploy/release/build.sh FOLDER. The source is the newest commit; uncommitted changes
# are not in it. The same commit gives the same bytes, whatever the folder, user, umask and time zone (docs/releasing.md).
#   PYTHON       a Python 3.11 or newer with pip and venv, else python3
#   PACKAGES     of deploy/NAME/build.sh, those to build; else all that exist
#   RELEASE_KEY  the key that signs SHA256SUMS, as gpg names it; without it the release is not signed. Nothing is signed while the
#                owner's address is not set (addresses.py), unless RELEASE_TRIAL=1 says that nobody will get the files
set -eu
umask 022
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:?where to put the release: $0 FOLDER}
here=$(pwd)
PYTHON=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')
SOURCE_DATE_EPOCH=$(git -C "$top" log -1 --format=%ct)
export PYTHON SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
[ -z "$(ls -A "$folder" 2>/dev/null)" ] || { echo "$folder is not empty; a release needs a folder of its own" >&2; exit 2; }
[ -z "$(git -C "$top" status --porcelain)" ] || echo "uncommitted changes are not in this release" >&2
if [ -n "${RELEASE_KEY:-}" ] && [ "${RELEASE_TRIAL:-}" != 1 ]; then
  "$PYTHON" "$top/deploy/release/addresses.py" --check
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$work/source
new=$work/new
mkdir "$new"
git clone --quiet --depth=1 "file://$top" "$source"
cd "$source"
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' roce_exporter/__init__.py)
name=$new/roce-exporter-$version

# Wheel and source distribution, with the locked build tools.
"$PYTHON" -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
  --requirement=requirements-build.lock
"$work/build/bin/python" -m hatchling build --target=sdist --target=wheel --directory="$new" >/dev/null 2>&1 \
  || "$work/build/bin/python" -m hatchling build --target=sdist --target=wheel --directory="$new"

# The zipapp, for both architectures. The libraries in it are for glibc 2.17 and newer, and for any Python from 3.11 on.
for machine in x86_64 aarch64; do
  "$work/build/bin/pip" download --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
    --python-version=3.11 --implementation=cp --abi=cp311 --abi=abi3 --abi=none --platform="manylinux2014_$machine" \
    --platform="manylinux_2_17_$machine" --requirement=requirements-demo.lock --dest="$work/wheels/$machine"
  cp "$new"/*.whl "$work/wheels/$machine"
done
"$PYTHON" deploy/release/make_zipapp.py "$name.pyz" "$version" "$work/wheels"

# Archives. Symbolic links become files.
archive() {
  output=$1
  shift
  tar --create --dereference --hard-dereference --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX "$@" | gzip --no-name -9 >"$output"
}
archive "$name-dashboards.tar.gz" --transform="s,^,roce-exporter-$version-," dashboards/*.json dashboards/*.rules.yml \
  dashboards/kustomization.yaml dashboards/provisioning dashboards/README.md
"$work/build/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: --requirement=requirements.lock
PYTHONPATH=. make --silent dist PYTHON="$work/build/bin/python" BUILD="$work/dist"
archive "$name-alerts.tar.gz" --transform="s,^,roce-exporter-$version-," alerts/*.yml alerts/compat alerts/runbooks \
  alerts/templates alerts/README.md --directory="$work/dist" operator
archive "$name-mixin.tar.gz" --transform="s,^,roce-exporter-$version-," --directory="$work/dist" mixin
chart=$(sed -n 's/^version: //p' deploy/helm/roce-exporter/Chart.yaml)
archive "$new/roce-exporter-$chart.tgz" --directory=deploy/helm --exclude=.helmignore --exclude=roce-exporter/ci roce-exporter

# Packages, for both architectures; the image is for both by itself. Each script prints the path of what it made.
export PACKAGES="${PACKAGES-deb rpm container}"
for package in $PACKAGES; do
  script=deploy/$package/build.sh
  [ -f "$script" ] || continue
  case $package in container) machines=- ;; *) machines='x86_64 aarch64' ;; esac
  for machine in $machines; do
    MACHINE=$machine "$script" "$new" >"$work/made"
    while read -r made; do
      [ -f "$made" ] || { echo "$script printed $made, which is not a file" >&2; exit 1; }
    done <"$work/made"
  done
done

# What is inside: of the packages, and of the zipapp, which also has the libraries of the demo.
"$work/build/bin/python" deploy/sbom.py requirements.lock "$work/wheels/x86_64" >"$name.cdx.json"
"$work/build/bin/python" deploy/sbom.py requirements-demo.lock "$work/wheels/x86_64" demo >"$name.pyz.cdx.json"

# What was built from what: not among its own subjects.
"$PYTHON" deploy/release/provenance.py "$new" "$(git rev-parse HEAD)" >"$work/provenance"
mv "$work/provenance" "$name.provenance.json"

cd "$new"
sha256sum -- * >"$work/sums"
mv "$work/sums" SHA256SUMS
if [ -n "${RELEASE_KEY:-}" ]; then
  gpg --batch --armor --local-user "$RELEASE_KEY" --output SHA256SUMS.asc --detach-sign SHA256SUMS
else
  echo "this release is not signed: RELEASE_KEY is not set" >&2
fi
cd "$here"
mkdir -p "$folder"
mv "$new"/* "$folder"
ls -d "$folder"/*
