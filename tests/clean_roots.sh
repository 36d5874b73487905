#!/bin/sh
# The built files in clean roots of Debian: tests/clean_roots.sh [SUITE...], by default bookworm, trixie and sid. As root; needs mmdebstrap and git.
#
# In each root wheel, Debian package and zipapp of the newest commit (or of RELEASE, a folder that deploy/release/build.sh made) serve a simulated
# host, of which a storm is counted, and pass the quick tests; FILES="wheel deb" selects. tests/tests_in_root.sh says how. Roots and the locked
# wheels are kept in ~/.cache/roce-clean (ROCE_CLEAN_CACHE); delete them to have newer roots. QUICK="tests/unit/test_web.py" selects tests.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cache=${ROCE_CLEAN_CACHE:-$HOME/.cache/roce-clean}
python=${PYTHON:-python3}
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM
if [ -z "${RELEASE:-}" ]; then
  RELEASE=$work/release
  PACKAGES=deb PYTHON=$python "$top/deploy/release/build.sh" "$RELEASE" >&2
fi

# The index of unstable expires after a week; a mirror or a clock that is behind must not end the tests.
make_root() {
  [ ! -e "$cache/$1.tar" ] || return 0
  mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=python3-venv,init-system-helpers,systemd "$1" "$cache/$1.part.tar"
  mv "$cache/$1.part.tar" "$cache/$1.tar"
}

# What the quick tests need in addition to the package: requirements-test.lock without requirements.lock, the linters and the mixin's renderer.
tests_lock() {
  awk '/^[a-z0-9]/ { name = $1; sub(/==.*/, "", name) }
    NR == FNR { own[name] = 1; next }
    name && !(name in own) && name !~ /^(mypy|ruff|gojsonnet|types-)/' "$top/requirements.lock" "$top/requirements-test.lock"
}

# fetch_libraries VERSION: the locked wheels for a version of Python, downloaded once.
fetch_libraries() {
  folder=$cache/libraries-$1
  mkdir -p "$folder"
  tests_lock >"$folder/tests.lock"
  cat "$top/requirements.lock" "$folder/tests.lock" >"$work/all.lock"
  cmp -s "$work/all.lock" "$folder/.fetched" && return 0
  "$python" -m pip download --quiet --only-binary=:all: --no-deps --require-hashes --python-version="$1" --dest="$folder" \
    --requirement="$work/all.lock"
  cp "$work/all.lock" "$folder/.fetched"
}

# A root with everything that its tests need; it reaches no network for them.
fill_root() {
  tar --extract -f "$cache/$1.tar" -C "$root"
  echo '127.0.0.1 localhost' >"$root/etc/hosts"
  # no systemd runs in a chroot
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
  version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  fetch_libraries "$version"
  mkdir "$root/checkout"
  cp -r "$cache/libraries-$version" "$root/libraries"
  cp -r "$RELEASE" "$root/built"
  git -C "$top" archive HEAD -- . ':!roce_exporter' | tar --extract -C "$root/checkout"
}

# In namespaces of its own, so that mounts and processes end with the command. The new PID namespace needs its own /proc.
# shellcheck disable=SC2016 # variables of the inner shell
in_root() {
  unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && exec chroot "$0" "$@"' "$root" "$@"
}

status=0
for suite in ${*:-bookworm trixie sid}; do
  make_root "$suite"
  root=$work/$suite
  mkdir "$root"
  fill_root "$suite"
  for file in ${FILES:-wheel deb zipapp}; do
    echo "== $suite: $file"
    in_root env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 QUICK="${QUICK:-}" sh /checkout/tests/tests_in_root.sh "$file" || { echo "== $suite: $file failed"; status=1; }
  done
  rm -rf "$root"
done
exit $status
