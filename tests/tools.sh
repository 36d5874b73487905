#!/usr/bin/env bash
# Installs the programs that the tests of a tier run: tests/tools.sh ci|nightly. As root; what is there already is not installed again,
# and no service is started.
set -euo pipefail
cd "$(dirname "$0")/.."
ci="amtool:prometheus-alertmanager cpp:cpp curl:curl ethtool:ethtool faketime:faketime fish:fish git:git gpg:gnupg gpgv:gpgv ip:iproute2 lspci:pciutils
  make:make man:man-db mandoc:mandoc openssl:openssl prometheus:prometheus prometheus-alertmanager:prometheus-alertmanager
  prometheus-node-exporter:prometheus-node-exporter promtool:prometheus ps:procps redis-server:redis-server strace:strace
  systemd-analyze:systemd unshare:util-linux xz:xz-utils zsh:zsh"
nightly="apt-ftparchive:apt-utils buildah:buildah etcd:etcd-server mmdebstrap:mmdebstrap qemu-aarch64-static:qemu-user-static rpmbuild:rpm shellcheck:shellcheck systemd-nspawn:systemd-container victoria-metrics:victoria-metrics"
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
[ "$(id -u)" = 0 ] || { echo "tools: only root can install ${missing[*]}" >&2; exit 1; }
echo "tools: ${missing[*]}"
exec sh deploy/packages.sh "${missing[@]}"
