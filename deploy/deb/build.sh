#!/bin/sh
# Build a Debian package and print its path: deploy/deb/build.sh FOLDER. Needs dpkg-deb, and what deploy/stage.sh needs, which has the files.
# MACHINE=aarch64 builds the package for arm64 on any machine, MACHINE=x86_64 that for amd64; by default it is for this one.
# The same commit gives the same bytes: every time in it is SOURCE_DATE_EPOCH, by default that of the newest commit.
set -eu
LC_ALL=C TZ=UTC
export LC_ALL TZ
umask 022
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:?where to put the package: $0 FOLDER}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory="*" -C "$top" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$top/roce_exporter/__init__.py")
case ${MACHINE:-} in aarch64) architecture=arm64 ;; x86_64) architecture=amd64 ;; *) architecture=$(dpkg --print-architecture) ;; esac
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

python='python3 (>= 3.11)'
bound=$("$top/deploy/stage.sh" "$root" lib/systemd/system)
[ -z "$bound" ] || python="python3 (>= $bound), python3 (<< ${bound%.*}.$((${bound#*.} + 1)))"
# As dpkg-gencontrol counts: KiB of files, one for everything else. The size on the disk of the build would differ between file systems.
size=$(find "$root" -printf '%y %s\n' | awk '{ kib += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print kib }')
install -d -m 755 "$root/DEBIAN"
install -m 755 "$top/deploy/deb/postinst" "$top/deploy/deb/prerm" "$top/deploy/deb/postrm" "$root/DEBIAN/"
(cd "$root" && find etc -type f | sort | sed 's|^|/|') >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<END
Package: roce-exporter
Version: $version
Architecture: $architecture
Maintainer: ${MAINTAINER:-roce_exporter authors <root@localhost>}
Section: net
Priority: optional
Depends: $python, systemd (>= 252), init-system-helpers, libc6 (>= 2.28), libgcc-s1
Installed-Size: $size
Description: Prometheus exporter for the health of RDMA over Converged Ethernet
 Exports the state of RoCE ports, congestion control, PFC pause and storms, loss
 and link errors, under the same metric names for all NIC vendors. It only reads.
END
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$folder"
# one thread: xz divides its input by the number of them
dpkg-deb --root-owner-group -Zxz -z6 --threads-max=1 --build "$root" "$folder/roce-exporter_${version}_$architecture.deb" >/dev/null
echo "$folder/roce-exporter_${version}_$architecture.deb"
