#!/bin/sh
# Build the image for amd64 and arm64 as one OCI archive: BUILD=IMAGE@sha256:... RUNTIME=IMAGE@sha256:... deploy/container/build.sh FOLDER
# Needs buildah 1.28 or newer and GNU tar. Nothing is executed for the other architecture, so it needs no emulator.
#   BUILD, RUNTIME  the bases that the Containerfile names, by the digest of their index; or localhost/NAME, an image of the local store,
#                   in which {arch} becomes amd64 or arm64
#   LOCK            requirements-switches.lock adds the libraries for all switches, requirements-wire.lock those for captures
#   PIP_FIND_LINKS, PIP_NO_INDEX=1  the folder that deploy/release/download.sh filled: then no network is needed
#   REVISION        the label with the revision of the source; else the commit of the checkout
# The same source, bases, SOURCE_DATE_EPOCH (else the time of the commit) and version of buildah make the same bytes, in any folder.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:?where to put the archive: $0 FOLDER}
fail() {
  echo "$0: $1" >&2
  exit "${2:-1}"
}
command -v buildah >/dev/null || fail "buildah is not installed; without it, leave the image out of a release (PACKAGES)"
for base in "${BUILD:-}" "${RUNTIME:-}"; do
  case $base in
    *@sha256:* | localhost/*) ;;
    "") fail "BUILD and RUNTIME must name the base images, NAME@sha256:DIGEST; without a registry, leave the image out of a release (PACKAGES)" 2 ;;
    *) fail "$base has no digest: a tag can change between two builds" 2 ;;
  esac
done
case $(uname -m) in aarch64) here=arm64 ;; *) here=amd64 ;; esac
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$top/roce_exporter/__init__.py")
home=$(sed -n 's/^Homepage = "\(.*\)"$/\1/p' "$top/pyproject.toml")
revision=${REVISION:-$(git -C "$top" describe --always --exclude='*' --abbrev=40 --dirty)}
case ${PIP_NO_INDEX:+${PIP_FIND_LINKS:-}} in
  '') set -- ;;
  /*) set -- --volume="$PIP_FIND_LINKS:$PIP_FIND_LINKS:ro" --build-arg=PIP_FIND_LINKS="$PIP_FIND_LINKS" --build-arg=PIP_NO_INDEX="$PIP_NO_INDEX" ;;
  *) fail "PIP_FIND_LINKS must be the whole path of a folder" 2 ;;
esac
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}
umask 022 # that of the files in the image
work=$(mktemp -d)
list=roce-exporter-release-$$
images=
# shellcheck disable=SC2086 # a list of identifiers
trap 'buildah rmi $list $images >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

# The identifier of the image of a base for one architecture. By its name, buildah 1.28 may take the one for another architecture.
base() {
  name=$(echo "$1" | sed "s/{arch}/$2/")
  case $name in localhost/*) policy=never ;; *) policy=missing ;; esac
  found=$(buildah pull --quiet --policy=$policy --platform="linux/$2" "$name" 2>"$work/said") \
    || fail "the base image $name for $2 cannot be had: $(tail -n 1 "$work/said")"
  is=$(buildah inspect --type=image --format='{{.OCIv1.Architecture}}' "$found")
  [ "$is" = "$2" ] || fail "the base image $name for $2 cannot be had: it is for $is"
  echo "$found"
}

builder=$(base "$BUILD" $here)
amd64=$(base "$RUNTIME" amd64)
arm64=$(base "$RUNTIME" arm64)
buildah manifest create "$list" >&2
for architecture in amd64 arm64; do
  if [ $architecture = amd64 ]; then runtime=$amd64; else runtime=$arm64; fi
  buildah build --quiet --pull=never --format=oci --identity-label=false --timestamp="$SOURCE_DATE_EPOCH" --iidfile="$work/image" \
    --platform="linux/$architecture" --build-arg="BUILDPLATFORM=linux/$here" --build-arg="BUILD=$builder" \
    --build-arg="RUNTIME=$runtime" --build-arg="LOCK=${LOCK:-requirements.lock}" \
    --label="org.opencontainers.image.source=$home" --label="org.opencontainers.image.version=$version" --label="org.opencontainers.image.revision=$revision" \
    "$@" --ignorefile="$top/deploy/container/Containerfile.dockerignore" --file="$top/deploy/container/Containerfile" "$top" >&2
  images="$images $(cat "$work/image")"
  buildah manifest add "$list" "$(cat "$work/image")" >&2
done
mkdir "$work/layout"
buildah manifest push --quiet --all "$list" "oci:$work/layout:roce-exporter:$version" >&2
mkdir -p "$folder"
archive=$folder/roce-exporter-$version-oci.tar
# buildah's own archives hold the time and the order of writing
tar --create --file="$archive" --directory="$work/layout" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
  --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX blobs index.json oci-layout
echo "$archive"
