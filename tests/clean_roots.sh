#!/bin/sh
# The built files and the README's two commands in clean roots: tests/clean_roots.sh [SUITE...], by default Debian 12, 13 and unstable and Ubuntu
# 24.04. As root; needs mmdebstrap, git and rpmbuild.
#
# In each root wheel, Debian package, RPM and zipapp of the newest commit (or of RELEASE, a folder that deploy/release/build.sh made) serve a simulated
# host, of which a storm is counted, and pass the quick tests; tests/tests_in_root.sh says how. The commands run in roots that have nothing, as root, as
# a user with sudo and as a user without; Ubuntu 22.04, whose Python is too old, must refuse them; tests/commands_in_root.sh says how.
# FILES="wheel deb rpm zipapp commands" selects, and so does WAYS="root sudo user" of the commands. Roots and the locked wheels are kept in
# ~/.cache/roce-clean (ROCE_CLEAN_CACHE); delete them to have newer roots. QUICK="tests/unit/test_web.py" selects quick tests,
# TESTS those of the second command. ARCH=arm64 makes roots of that architecture, which qemu-user runs: its emulator must be registered in
# /proc/sys/fs/binfmt_misc with the flag F, as tests/tools.sh nightly does.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cache=${ROCE_CLEAN_CACHE:-$HOME/.cache/roce-clean}
python=${PYTHON:-python3}
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM
files=${FILES:-wheel deb rpm zipapp commands}
case ${ARCH:=$(dpkg --print-architecture)} in arm64) machine=aarch64 ;; amd64) machine=x86_64 ;; *) echo "$0: no packages for $ARCH" >&2; exit 2 ;; esac
if [ "$machine" != "$(uname -m)" ] && ! grep -qs 'flags:.*F' "/proc/sys/fs/binfmt_misc/qemu-$machine"; then
  echo "$0: nothing runs programs of $ARCH here: install qemu-user-static and arch-test, and register it as tests/tools.sh nightly does" >&2
  exit 2
fi
if [ -z "${RELEASE:-}" ] && [ "$files" != commands ]; then
  RELEASE=$work/release
  PACKAGES="deb rpm" PYTHON=$python "$top/deploy/release/build.sh" "$RELEASE" >&2
fi

# make_root NAME SUITE OPTION...: NAME.tar in the cache. The index of unstable expires after a week; a mirror or a clock that is behind must not end
# the tests. Debian 12 has no keys of Ubuntu's archive, newer suites have; below root's home apt's own user could not read them.
make_root() {
  name=$1 suite=$2
  shift 2
  [ ! -e "$cache/$name.tar" ] || return 0
  case $suite in
    noble | jammy)
      keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
      [ -e $keyring ] || { keyring=$cache/keys$keyring; bash -c '. "$1/tests/newer.sh" && unpack_newest "$2/keys" ubuntu-keyring' - "$top" "$cache"; }
      case $ARCH in amd64) archive=archive.ubuntu.com/ubuntu ;; *) archive=ports.ubuntu.com/ubuntu-ports ;; esac
      set -- --keyring="$keyring" --aptopt='APT::Sandbox::User "root"' --components=main,universe --include=apt "$@" "$suite" "$cache/$name.part.tar" "http://$archive"
      ;;
    *) set -- "$@" "$suite" "$cache/$name.part.tar" ;;
  esac
  mmdebstrap --quiet --variant=minbase --architectures="$ARCH" --aptopt='Acquire::Check-Valid-Until "false"' "$@" && mv "$cache/$name.part.tar" "$cache/$name.tar"
}

# What the quick tests need in addition to the package: requirements-test.lock without requirements.lock, the linters and the mixin's renderer.
tests_lock() {
  awk '/^[a-z0-9]/ { name = $1; sub(/==.*/, "", name) }
    NR == FNR { own[name] = 1; next }
    name && !(name in own) && name !~ /^(mypy|ruff|gojsonnet|types-)/' "$top/requirements.lock" "$top/requirements-test.lock"
}

# fetch_libraries VERSION: the locked wheels for a version of Python, downloaded once.
fetch_libraries() {
  folder=$cache/libraries-$1-$ARCH
  mkdir -p "$folder"
  tests_lock >"$folder/tests.lock"
  cat "$top/requirements.lock" "$folder/tests.lock" >"$work/all.lock"
  cmp -s "$work/all.lock" "$folder/.fetched" && return 0
  "$python" -m pip download --quiet --only-binary=:all: --no-deps --require-hashes --python-version="$1" --dest="$folder" \
    --platform="manylinux_2_28_$machine" --platform="manylinux_2_17_$machine" --platform="manylinux2014_$machine" --platform="manylinux_2_12_$machine" \
    --requirement="$work/all.lock"
  cp "$work/all.lock" "$folder/.fetched"
}

# new_root NAME: a new $root from the cache's NAME.tar
new_root() {
  root=$work/root
  rm -rf "$root"
  mkdir "$root"
  tar --extract -f "$cache/$1.tar" -C "$root"
  echo '127.0.0.1 localhost' >"$root/etc/hosts"
}

# Everything that the tests of the built files need; they reach no network.
add_built_files() {
  # no systemd runs in a chroot
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
  version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  fetch_libraries "$version"
  mkdir "$root/checkout"
  cp -r "$cache/libraries-$version-$ARCH" "$root/libraries"
  cp -r "$RELEASE" "$root/built"
  for package in "$RELEASE"/*".$machine.rpm"; do
    [ ! -e "$package" ] || { mkdir "$root/rpm" && rpm --root "$root/rpm" --nodeps --noscripts --ignorearch --install "$package"; }
  done
  git -C "$top" archive HEAD -- . ':!roce_exporter' | tar --extract -C "$root/checkout"
}

# A clone, and what reaches the network, where a proxy may have a certificate of its own.
add_clone() {
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  cp /etc/ssl/certs/ca-certificates.crt "$root/certificates"
  git -c safe.directory='*' clone --quiet --no-local --depth=1 "file://$top" "$root/clone"
}

# In namespaces of its own, so that mounts and processes end with the command. The new PID namespace needs its own /proc.
# shellcheck disable=SC2016 # variables of the inner shell
in_root() {
  unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && mkdir -p "$0/dev/pts" && mount -t devpts devpts "$0/dev/pts" && exec chroot "$0" "$@"' "$root" "$@"
}

# check WHAT COMMAND...: runs a command in $root
check() {
  what=$1
  shift
  echo "== $suite: $what"
  in_root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@" || { echo "== $suite: $what failed"; status=1; }
}

status=0
[ $# -gt 0 ] || set -- bookworm trixie sid noble jammy
for suite; do
  built='' ways=${WAYS:-root sudo user}
  for file in $files; do [ "$file" = commands ] || built="$built $file"; done
  [ "$suite" != jammy ] || { built='' ways=old; }
  if [ -n "$built" ]; then
    make_root "$suite-$ARCH" "$suite" --include=python3-venv,init-system-helpers,systemd,iproute2,ethtool,pciutils || { status=1; continue; }
    new_root "$suite-$ARCH"
    add_built_files
  fi
  for file in $built; do check "$file" QUICK="${QUICK:-}" sh /checkout/tests/tests_in_root.sh "$file"; done
  case $files in *commands*) ;; *) continue ;; esac
  make_root "$suite-$ARCH-bare" "$suite" || { status=1; continue; }
  for way in $ways; do
    new_root "$suite-$ARCH-bare"
    add_clone
    check "commands, $way" TESTS="${TESTS:-}" PIP_CERT=/certificates sh /clone/tests/commands_in_root.sh "$way"
  done
done
exit $status
