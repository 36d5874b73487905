#!/bin/sh
# Install Debian packages, as root, without starting their services, now or at the next boot: sh deploy/packages.sh PACKAGE...
# What is installed is left as it is. The exit code is 1 if a package cannot be installed.
#
# Debian starts a service when it installs it, unless /usr/sbin/policy-rc.d forbids it. Afterwards that file is as it was before.
set -eu
PATH=$PATH:/usr/sbin:/sbin # a shell of `su` has neither
policy=/usr/sbin/policy-rc.d
kept=$policy.kept-by-roce-exporter
mark="# of roce_exporter's deploy/packages.sh, while it runs"

exists() { [ -e "$1" ] || [ -L "$1" ]; }
installed() { dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }
apt() { apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >/dev/null; }

restore() {
  rm -f "$policy"
  ! exists "$kept" || mv "$kept" "$policy"
}

new=
for package; do installed "$package" || new="$new $package"; done
[ -n "$new" ] || exit 0

# Of two runs the second waits. What is there under this lock was left by a run that was killed.
exec 9<"$0"
flock 9
if grep -qs "$mark" "$policy"; then restore; fi
trap restore EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
! exists "$policy" || mv "$policy" "$kept"
printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
chmod 755 "$policy"

export DEBIAN_FRONTEND=noninteractive
apt update || true # older lists may do
# One that no list has must not prevent the others.
# shellcheck disable=SC2086 # a list of names
apt install --yes --no-install-recommends $new 2>/dev/null ||
  for package in $new; do apt install --yes --no-install-recommends "$package" || true; done
status=0
for package in $new; do
  installed "$package" || { status=1; continue; }
  update-rc.d "$package" disable >/dev/null 2>&1 || true
  systemctl disable "$package" >/dev/null 2>&1 || true
done
exit $status
