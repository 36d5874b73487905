#!/bin/sh
# Add packages to a signed apt repository and print its folder: deploy/apt/build.sh FOLDER KEY-ID DEB...; several keys are joined by commas.
# Needs apt-ftparchive (Debian's apt-utils), gpg and xz. FOLDER is what a web server publishes; deploy/apt/README.md says how.
#
# VALID_DAYS=N: apt refuses the index N days after SOURCE_DATE_EPOCH (by default now); without it the index does not expire.
set -eu
LC_ALL=C TZ=UTC
export LC_ALL TZ
umask 022
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?where the repository is: $0 FOLDER KEY-ID DEB...}
keys=${2:?the key that signs: $0 FOLDER KEY-ID DEB...}
shift 2
now=${SOURCE_DATE_EPOCH:-$(date +%s)}
pool=$folder/pool/main/r/roce-exporter
suite=$folder/dists/stable
new=$folder/dists/.stable
trap 'rm -rf "$new"' EXIT
mkdir -p "$pool"
rm -rf "$new"

# A published package never changes: a client may have the index that has the checksum of the first one.
for package in "$@"; do
  place=$pool/${package##*/}
  if [ -e "$place" ] && ! cmp -s "$package" "$place"; then
    echo "$place exists and differs: give the package a higher version" >&2
    exit 1
  fi
  install -m 644 "$package" "$place"
done
architectures=$(find "$pool" -name '*.deb' | sed 's/.*_\([^_]*\)\.deb$/\1/' | sort -u | tr '\n' ' ' | sed 's/ $//')
[ -n "$architectures" ] || { echo "no package is given, and $pool has none" >&2; exit 1; }

for architecture in $architectures; do
  index=$new/main/binary-$architecture
  mkdir -p "$index/by-hash/SHA256"
  (cd "$folder" && apt-ftparchive -c "$here/release.conf" --arch "$architecture" packages pool) >"$index/Packages"
  xz --keep --threads=1 "$index/Packages"
  # Clients that have the previous Release still download the indexes that it names.
  [ ! -d "$suite/main/binary-$architecture/by-hash" ] || cp -a "$suite/main/binary-$architecture/by-hash" "$index/"
  for file in "$index/Packages" "$index/Packages.xz"; do
    cp "$file" "$index/by-hash/SHA256/$(sha256sum "$file" | cut -d' ' -f1)"
  done
done

release() {
  apt-ftparchive -c "$here/release.conf" -o "APT::FTPArchive::Release::Architectures=$architectures" release "$new"
}
# No checksum of a file that is here only by its checksum, nor a date of the machine that builds.
{
  release | sed -n '/^SHA256:/q; /^Date:/!p'
  date --date="@$now" '+Date: %a, %d %b %Y %H:%M:%S UTC'
  [ -z "${VALID_DAYS:-}" ] || date --date="@$((now + VALID_DAYS * 86400))" '+Valid-Until: %a, %d %b %Y %H:%M:%S UTC'
  release | sed -n '/^SHA256:/,$p' | grep -v /by-hash/
} >"$new.Release"
mv "$new.Release" "$new/Release"

sign() {
  # shellcheck disable=SC2046  # one --local-user per key
  gpg --batch --yes --quiet --digest-algo=SHA512 --faked-system-time="$now" $(printf -- '--local-user=%s ' $(echo "$keys" | tr , ' ')) "$@"
}
sign --armor --detach-sign --output="$new/Release.gpg" "$new/Release"
sign --clear-sign --output="$new/InRelease" "$new/Release"
# shellcheck disable=SC2046  # one word per key
gpg --batch --armor --export $(echo "$keys" | tr , ' ') >"$folder/roce-exporter.asc"
chmod -R u=rwX,go=rX "$folder"

# The old index is in place until the new one is whole; between the two renames a client gets one error and tries again.
rm -rf "$folder/dists/.old"
[ ! -d "$suite" ] || mv "$suite" "$folder/dists/.old"
mv "$new" "$suite"
rm -rf "$folder/dists/.old"
echo "$folder"
