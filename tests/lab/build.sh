#!/usr/bin/env bash
# build.sh SERIES SOURCE MODULE: builds the folder SOURCE as a module for the kernel that boot.sh starts.
set -u
here=$(dirname "$(realpath "$0")")
. "$here/prepare.sh"
[ $# = 3 ] || { sed -n 2p "$here/build.sh" >&2; exit 2; }
build_module "$@"
