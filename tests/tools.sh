#!/usr/bin/env bash
# Installs the programs that the tests of a tier run: tests/tools.sh ci|nightly. As root; what is there already is not installed again,
# and no service is started.
set -euo pipefail
cd "$(dirname "$0")/.."
ci="amtool:prometheus-alertmanager cpp:cpp curl:curl ethtool:ethtool faketime:faketime fish:fish git:git gpg:gnupg gpgv:gpgv ip:iproute2 lspci:pciutils
  make:make man:man-db mandoc:mandoc openssl:openssl prometheus:prometheus prometheus-alertmanager:prometheus-alertmanager
  prometheus-node-exporter:prometheus-node-exporter promtool:prometheus ps:procps redis-server:redis-server strace:strace
  systemd-analyze:systemd unshare:util-linux xz:xz-utils zsh:zsh"
nightly="apt-ftparchive:apt-utils buildah:buildah etcd:etcd-server kubectl:kubernetes-client mmdebstrap:mmdebstrap qemu-aarch64-static:qemu-user-static rpmbuild:rpm shellcheck:shellcheck systemd-nspawn:systemd-container victoria-metrics:victoria-metrics"
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
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] || { echo "tools: only root can install ${missing[*]}" >&2; exit 1; }
  echo "tools: ${missing[*]}"
  sh deploy/packages.sh "${missing[@]}"
fi
# systemd registers the emulator of arm64; a container has none.
kernel=/proc/sys/fs/binfmt_misc
if [ "$1" = nightly ] && [ ! -e $kernel/qemu-aarch64 ] && [ "$(uname -m)" = x86_64 ]; then
  { [ -e $kernel/register ] || mount -t binfmt_misc binfmt_misc $kernel; } && cat /usr/lib/binfmt.d/qemu-aarch64.conf >$kernel/register ||
    echo "tools: this kernel runs no programs of arm64: nothing can be registered in $kernel" >&2
fi
