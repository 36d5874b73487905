#!/usr/bin/env bash
# Installs the programs that the tests of a tier run: tests/tools.sh ci|nightly. As root; what is there already is not installed again,
# and no service is started.
set -euo pipefail
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive
ci="amtool:prometheus-alertmanager buildah:buildah cpp:cpp curl:curl faketime:faketime fish:fish git:git gpg:gnupg gpgv:gpgv ip:iproute2
  make:make man:man-db mandoc:mandoc mmdebstrap:mmdebstrap openssl:openssl prometheus:prometheus prometheus-alertmanager:prometheus-alertmanager
  prometheus-node-exporter:prometheus-node-exporter promtool:prometheus ps:procps redis-server:redis-server strace:strace
  systemd-analyze:systemd systemd-nspawn:systemd-container tshark:tshark unshare:util-linux xz:xz-utils zsh:zsh"
nightly="apt-ftparchive:apt-utils rpmbuild:rpm shellcheck:shellcheck victoria-metrics:victoria-metrics"
case "${1:-}" in
ci) wanted=$ci ;;
nightly) wanted="$ci $nightly" ;;
*) echo "usage: tests/tools.sh ci|nightly" >&2; exit 2 ;;
esac
missing=()
for pair in $wanted; do
  command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
[ -e /usr/share/bash-completion/bash_completion ] || missing+=(bash-completion)
[ ${#missing[@]} -gt 0 ] || exit 0
echo "tools: apt-get install ${missing[*]}"
[ "$(id -u)" = 0 ] || { echo "tools: only root can install them" >&2; exit 1; }
# Debian's packages of servers would start them. The policy is removed again, so that the machine is as it was.
if [ ! -e /usr/sbin/policy-rc.d ]; then
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
fi
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"
