#!/bin/sh
# The demo, from a fresh clone: sh deploy/try.sh [FLAG...]. The flags are those of `roce-exporter demo`; --duration=60 ends it after a minute.
#
# As root or with sudo it installs what is missing of these Debian packages, and starts none of their services. They and .venv remain;
# where there is only virtualenv to make .venv, its own cache does too.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=deploy/bare.sh
. deploy/bare.sh
export PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 PIP_ROOT_USER_ACTION=ignore
prepare 'prometheus prometheus no alerts
prometheus-alertmanager alertmanager,prometheus-alertmanager alerts are not grouped or muted
redis-server redis-server no switch'
say "installing roce_exporter into .venv"
environment .venv
install pip '.[demo]'
exec .venv/bin/roce-exporter demo "$@"
