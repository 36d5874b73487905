#!/bin/sh
# Build a Debian package: deploy/deb/build.sh FOLDER. Needs dpkg-deb and a Python 3.11 or newer with pip and venv (PYTHON, else python3).
# It contains the packages of requirements.lock (LOCK=requirements-switches.lock: with the libraries for all switches, LOCK=requirements-wire.lock: for captures) below /opt/roce-exporter and runs with Debian's own Python.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:?where to put the package: $0 FOLDER}
python=${PYTHON:-python3}
lock=${LOCK:-requirements.lock}
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$top/roce_exporter/__init__.py")
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
work=$(mktemp -d)
trap 'rm -rf "$root" "$work"' EXIT
chmod 755 "$root"

library=$root/opt/roce-exporter/lib
"$python" -m pip install --quiet --require-hashes --only-binary=:all: --no-compile --requirement="$top/$lock" \
  --target="$library"
"$python" -m venv "$work/build"
"$work/build/bin/pip" install --quiet --require-hashes --only-binary=:all: --requirement="$top/requirements-build.lock"
"$work/build/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir="$work" "$top"
rm -rf "${library:?}/bin"
"$python" -m pip install --quiet --no-deps --no-index --no-compile --target="$library" "$work"/*.whl
rm -rf "${library:?}/bin"
find "$library" -name __pycache__ -prune -exec rm -rf {} +

install -D -m 755 "$top/deploy/deb/roce-exporter.py" "$root/opt/roce-exporter/bin/roce-exporter"
install -D -m 644 "$top/deploy/systemd/roce-exporter.service" "$root/lib/systemd/system/roce-exporter.service"
install -D -m 644 "$top/deploy/systemd/roce-exporter.sysusers" "$root/usr/lib/sysusers.d/roce-exporter.conf"
install -D -m 644 "$top/deploy/systemd/roce-exporter.default" "$root/etc/default/roce-exporter"
install -D -m 644 "$top/deploy/systemd/roce-exporter-switches.service" "$root/lib/systemd/system/roce-exporter-switches.service"
install -D -m 644 "$top/deploy/systemd/roce-exporter-switches.default" "$root/etc/default/roce-exporter-switches"
install -D -m 644 -t "$root/lib/systemd/system" "$top/deploy/systemd/roce-exporter-counters@.service" "$top/deploy/systemd/roce-exporter-namespaces.service"
install -D -m 644 "$top/deploy/systemd/roce-exporter-wire.service" "$root/lib/systemd/system/roce-exporter-wire.service"
install -D -m 644 "$top/deploy/systemd/roce-exporter-wire.default" "$root/etc/default/roce-exporter-wire"
documents=$root/usr/share/doc/roce-exporter
install -D -m 644 "$top/LICENSE" "$documents/copyright"
install -D -m 644 -t "$documents" "$top/deploy/systemd/switches.yml" "$top/deploy/systemd/90-roce-exporter-counters.rules"
install -D -m 644 -t "$documents/drop-ins" "$top"/deploy/systemd/drop-ins/*.conf
install -D -m 644 -t "$root/usr/share/roce-exporter/alerts" "$top"/alerts/*.yml
install -D -m 644 -t "$root/usr/share/roce-exporter/alerts/compat" "$top"/alerts/compat/*.yml
install -D -m 644 -t "$root/usr/share/roce-exporter/dashboards" "$top"/dashboards/*.json "$top"/dashboards/*.rules.yml

"$work/build/bin/pip" install --quiet --require-hashes --only-binary=:all: --requirement="$top/deploy/manual/requirements.lock"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$library "$work/build/bin/python" "$top/deploy/manual/generate.py" "$root/usr/share"
find "$root/usr/share/man" -name "*.1" -exec gzip -9n {} +

install -d "$root/DEBIAN"
install -m 755 "$top/deploy/deb/postinst" "$top/deploy/deb/prerm" "$top/deploy/deb/postrm" "$root/DEBIAN/"
printf '%s\n' /etc/default/roce-exporter /etc/default/roce-exporter-switches /etc/default/roce-exporter-wire >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<END
Package: roce-exporter
Version: $version
Architecture: $architecture
Maintainer: ${MAINTAINER:-roce_exporter authors <root@localhost>}
Section: net
Priority: optional
Depends: python3 (>= 3.11), systemd (>= 252), init-system-helpers
Installed-Size: $(du -sk "$root" | cut -f1)
Description: Prometheus exporter for the health of RDMA over Converged Ethernet
 Exports the state of RoCE ports, congestion control, PFC pause and storms, loss
 and link errors, under the same metric names for all NIC vendors. It only reads.
END
mkdir -p "$folder"
dpkg-deb --root-owner-group --build "$root" "$folder/roce-exporter_${version}_$architecture.deb" >/dev/null
echo "$folder/roce-exporter_${version}_$architecture.deb"
