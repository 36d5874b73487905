#!/bin/sh
# The Debian package in clean roots of Debian: tests/clean_roots.sh [SUITE...], by default bookworm, trixie and sid. As root; needs mmdebstrap.
#
# In each root the package (DEB, else it is built) is installed and serves a simulated host, and a storm is counted. Roots are kept in
# ~/.cache/roce-clean (ROCE_CLEAN_CACHE); delete them to have newer ones.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cache=${ROCE_CLEAN_CACHE:-$HOME/.cache/roce-clean}
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=${DEB:-$("$top/deploy/deb/build.sh" "$work")}

# The index of unstable expires after a week; a mirror or a clock that is behind must not end the tests.
make_root() {
  [ ! -e "$cache/$1.tar" ] || return 0
  mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=python3,init-system-helpers,systemd "$1" "$cache/$1.part.tar"
  mv "$cache/$1.part.tar" "$cache/$1.tar"
}

status=0
for suite in ${*:-bookworm trixie sid}; do
  make_root "$suite"
  root=$work/$suite
  mkdir "$root"
  tar --extract -f "$cache/$suite.tar" -C "$root"
  cp "$package" "$root/package.deb"
  cp "$top/tests/storm_in_root.py" "$root/"
  # no systemd runs in a chroot
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
  chroot "$root" dpkg --install /package.deb >"$work/log" 2>&1 || { cat "$work/log"; status=1; continue; }
  printf '%s: ' "$suite"
  chroot "$root" python3 /storm_in_root.py /opt/roce-exporter/bin/roce-exporter || { echo "no storm was counted"; status=1; }
  rm -rf "$root"
done
exit $status
