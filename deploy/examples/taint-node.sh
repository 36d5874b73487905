#!/bin/bash
# Example: taint this Kubernetes node while a RoCE port has failed. Run it every minute from a DaemonSet or a systemd timer.
#
#   NODE_NAME=gpu-1 taint-node.sh
#
# The taint keeps new pods away that do not tolerate it (NoSchedule); running ones stay. It is removed when no port has failed any more.
# Without a verdict (exporter down, no link anywhere) nothing changes: an exporter that restarts must not empty a cluster.
set -euo pipefail

node=${NODE_NAME:?set NODE_NAME to the name of this node}
taint=${ROCE_TAINT:-roce.example.com/port-failed}
found=$(dirname "$0")/check-roce-health.sh # as installed, else as in the repository
[[ -e $found ]] || found=$(dirname "$0")/../node-problem-detector/check-roce-health.sh
check=${ROCE_CHECK:-$found}
[[ -x $check ]] || { echo "$check: no such program; install check-roce-health.sh in the folder of $0" >&2; exit 2; }

status=0
message=$("$check" failed) || status=$?
case $status in
0) wanted=no ;;
1) wanted=yes ;;
*)
    echo "no verdict, nothing changed: $message" >&2
    exit 0
    ;;
esac

present=no
keys=$(kubectl get node "$node" --output=jsonpath='{range .spec.taints[*]}{.key}{"\n"}{end}')
if grep --quiet --line-regexp --fixed-strings "$taint" <<<"$keys"; then present=yes; fi

if [[ $wanted == yes && $present == no ]]; then
    kubectl taint node "$node" "$taint=:NoSchedule"
    kubectl annotate node "$node" --overwrite "$taint=$message"
elif [[ $wanted == no && $present == yes ]]; then
    kubectl taint node "$node" "$taint-"
    kubectl annotate node "$node" "$taint-"
fi
