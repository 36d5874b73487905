#!/bin/sh
# Lay out the files that every package of a host has in common: deploy/stage.sh ROOT UNITS; UNITS is the folder of systemd's units below ROOT.
# Needs a Python 3.11 or newer with venv (PYTHON, else the first of the PATH: RHEL 9's python3 is 3.9). Called by deploy/deb/build.sh and deploy/rpm/build.sh.
#
# The packages of requirements.lock (LOCK=requirements-switches.lock: with the libraries for all switches, LOCK=requirements-wire.lock: for captures)
# go below /opt/roce-exporter and run with the system's Python. Prints the version of the Python that they are bound to, for example 3.11, or nothing:
# the extension modules of requirements.lock have the stable ABI and load in every Python from 3.11 on; those of the other two do not.
#
# MACHINE=aarch64 or x86_64 takes the libraries of another machine than this one.
#
# The tree depends on the commit alone: wheels are chosen for glibc 2.28 and not for the machine that builds, and modes and times are fixed.
set -eu
LC_ALL=C TZ=UTC
export LC_ALL TZ
umask 022
top=$(cd "$(dirname "$0")/.." && pwd)
root=${1:?where to put the files: $0 ROOT UNITS}
units=$root/${2:?the folder of the units: $0 ROOT UNITS}
: "${SOURCE_DATE_EPOCH:?the time of all files, in seconds since 1970}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=$(
  . "$top/deploy/bare.sh"
  find_python || { say "needs Python 3.11 or newer with venv, and no python3 is on the PATH"; exit 2; }
  echo "$python"
)
"$python" -m venv "$work/build"
pip=$work/build/bin/pip
"$pip" install --quiet --require-hashes --only-binary=:all: --requirement="$top/requirements-build.lock"
"$pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir="$work" "$top"
library=$root/opt/roce-exporter/lib
machine=${MACHINE:-$(uname -m)}
"$pip" install --quiet --require-hashes --only-binary=:all: --no-compile --requirement="$top/${LOCK:-requirements.lock}" --target="$library" \
  --platform="manylinux_2_28_$machine" --platform="manylinux_2_17_$machine" --platform="manylinux2014_$machine" --platform="manylinux_2_12_$machine"
"$work/build/bin/python" -m zipfile --extract "$work"/roce_exporter-*.whl "$library"
# Commands name the Python of the build. RECORD lists them, and other files that are not here.
rm -rf "${library:?}/bin" "$library"/*.dist-info/RECORD "$library"/*.dist-info/REQUESTED
# PyYAML's extension is for one version of Python, and optional: the exporter does not use it.
rm -f "$library"/yaml/_yaml.*.so
find "$library" -name __pycache__ -prune -exec rm -rf {} +

install -D -m 755 "$top/deploy/deb/roce-exporter.py" "$root/opt/roce-exporter/bin/roce-exporter"
install -d -m 755 "$root/usr/bin"
ln -s /opt/roce-exporter/bin/roce-exporter "$root/usr/bin/roce-exporter"
install -D -m 644 -t "$units" "$top"/deploy/systemd/*.service
for name in roce-exporter roce-exporter-switches roce-exporter-wire roce-exporter-probe; do
  install -D -m 644 "$top/deploy/systemd/$name.default" "$root/etc/default/$name"
done
install -D -m 644 "$top/deploy/systemd/roce-exporter.sysusers" "$root/usr/lib/sysusers.d/roce-exporter.conf"
documents=$root/usr/share/doc/roce-exporter
install -D -m 644 "$top/LICENSE" "$documents/copyright"
install -D -m 644 -t "$documents" "$top/deploy/systemd/switches.yml" "$top/deploy/systemd/90-roce-exporter-counters.rules"
install -D -m 644 -t "$documents/drop-ins" "$top"/deploy/systemd/drop-ins/*.conf
install -D -m 644 -t "$root/usr/share/roce-exporter/alerts" "$top"/alerts/*.yml
install -D -m 644 -t "$root/usr/share/roce-exporter/alerts/compat" "$top"/alerts/compat/*.yml
install -D -m 644 -t "$root/usr/share/roce-exporter/dashboards" "$top"/dashboards/*.json "$top"/dashboards/*.rules.yml
"$pip" install --quiet --require-hashes --only-binary=:all: --requirement="$top/deploy/manual/requirements.lock"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$library "$work/build/bin/python" "$top/deploy/manual/generate.py" "$root/usr/share"
find "$root/usr/share/man" -name "*.1" -exec gzip -9n {} +

chmod -R u=rwX,go=rX "$root"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
find "$library" -name '*.cpython-3*.so' | sed -n 's/.*\.cpython-3\([0-9]*\)-.*/3.\1/p' | sort -u
