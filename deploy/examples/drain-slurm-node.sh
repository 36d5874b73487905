#!/bin/bash
# Example: drain this Slurm node while a RoCE port has failed. Set it as HealthCheckProgram in slurm.conf (HealthCheckInterval=60).
#
# Running jobs end normally, new ones do not start. A node that this script drained is resumed when no port has failed any more; one
# that someone else drained is left alone. Without a verdict (exporter down, no link anywhere) nothing changes.
set -euo pipefail

node=${SLURMD_NODENAME:-$(hostname -s)}
mark=${ROCE_DRAIN_MARK:-RoCE}
found=$(dirname "$0")/check-roce-health.sh # as installed, else as in the repository
[[ -e $found ]] || found=$(dirname "$0")/../node-problem-detector/check-roce-health.sh
check=${ROCE_CHECK:-$found}
[[ -x $check ]] || { echo "$check: no such program; install check-roce-health.sh in the folder of $0" >&2; exit 2; }

status=0
message=$("$check" failed) || status=$?
if ((status > 1)); then
    echo "no verdict, nothing changed: $message" >&2
    exit 0
fi

shown=$(scontrol --oneliner show node "$node")
drained=no
ours=no
if [[ $shown =~ State=[A-Z_+*]*DRAIN ]]; then drained=yes; fi
if [[ $shown == *"Reason=$mark: "* ]]; then ours=yes; fi

if ((status == 1)) && [[ $drained == no ]]; then
    scontrol update "NodeName=$node" State=DRAIN "Reason=$mark: $message"
elif ((status == 0)) && [[ $drained == yes && $ours == yes ]]; then
    scontrol update "NodeName=$node" State=RESUME
fi
