#!/bin/sh
# Build a package for RHEL 9 and its kin and print its path: deploy/rpm/build.sh FOLDER. Needs rpmbuild, and what deploy/stage.sh needs, which has the files.
# The same commit gives the same bytes: every time in it is SOURCE_DATE_EPOCH, by default that of the newest commit.
#
# MACHINE=aarch64 builds for aarch64 on any machine, MACHINE=x86_64 for x86_64; by default it is for this one.
# RPM_PYTHON=python3.11: the package of Python that it requires, and the name of its command. RHEL 9's own python3 is 3.9, which is too old.
set -eu
LC_ALL=C TZ=UTC
export LC_ALL TZ
umask 022
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
folder=${1:?where to put the package: $0 FOLDER}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory="*" -C "$top" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
python=${RPM_PYTHON:-python3.12}
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$top/roce_exporter/__init__.py")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage

bound=$("$top/deploy/stage.sh" "$stage" usr/lib/systemd/system)
[ -z "$bound" ] || [ "$python" = "python$bound" ] || { echo "these libraries need RPM_PYTHON=python$bound" >&2; exit 1; }
sed -i "1s|.*|#!/usr/bin/$python -IB|" "$stage/opt/roce-exporter/bin/roce-exporter"
# where Fedora and RHEL have the functions of zsh; bash and fish look where they do on Debian
mv "$stage/usr/share/zsh/vendor-completions" "$stage/usr/share/zsh/site-functions"
find "$stage/opt/roce-exporter/bin" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +

# Folders of the package, files, and files that an administrator edits; not the folders of the system.
{
  (cd "$stage" && find opt/roce-exporter usr/share/roce-exporter usr/share/doc/roce-exporter -type d) | sed 's|.*|%dir "/&"|'
  (cd "$stage" && find . -not -type d) | sed -e 's|^\./etc/.*|%config(noreplace) "&"|' -e 's|^\./.*|"&"|' -e 's|"\./|"/|'
} | sort >"$work/files"
# No macros of the machine that builds may change the payload: no bytecode, no stripping, no links to build ids, no generated requirements.
rpmbuild -bb --quiet --target="${MACHINE:-$(uname -m)}" --buildroot="$work/root" \
  --define="_topdir $work" --define="_rpmdir $work/out" --define="_tmppath $work" --define="_dbpath $work/db" \
  --define="stage $stage" --define="file_list $work/files" --define="package_version $version" --define="python $python" \
  --define="_buildhost localhost" --define="use_source_date_epoch_as_buildtime 1" --define="clamp_mtime_to_source_date_epoch 1" \
  --define="__os_install_post %{nil}" --define="debug_package %{nil}" --define="_build_id_links none" \
  --define="_binary_payload w9.gzdio" --define="_binary_filedigest_algorithm 8" --define="_docdir /usr/share/doc" \
  --define="_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" "$here/roce-exporter.spec" >&2
mkdir -p "$folder"
for package in "$work"/out/*.rpm; do
  mv "$package" "$folder/"
  echo "$folder/${package##*/}"
done
