#!/bin/bash
# Example: upgrade the exporter on many systemd hosts, wave by wave, and stop at the first wave that is not fit afterwards.
#
#   upgrade-in-waves.sh PROMETHEUS_URL VERSION COMMAND... <hosts
#
# hosts: one line per host, its wave and its name as in the label instance, for example from Prometheus, one host first, then a
# rack, then the rest by tens of racks. Waves go in the order of the lines. COMMAND gets the host's name as its last argument, for example
# a script with: ssh "$1" 'apt-get install -y roce-exporter=1.2.3 && roce-exporter check setup --prometheus=http://prometheus:9090'
#
# A wave is fit if every host of it is scraped, reports VERSION, and has none of the exporter's own alerts, pending ones included.
# ROCE_WAVE_STEADY (60): for how many seconds it must be fit. ROCE_WAVE_SECONDS (300): how long to wait for that.
# ROCE_WAVE_PARALLEL (10): hosts at a time.
set -euo pipefail

prometheus=${1:?URL of Prometheus} version=${2:?version} && shift 2
(($#)) || { echo "COMMAND is missing" >&2; exit 2; }
alerts='RoceExporterDown|RoceDataMissing'

# The number that an expression returns.
number() {
    curl -fsS --get "$prometheus/api/v1/query" --data-urlencode "query=scalar(($1) or vector(0))" |
        sed -nE 's/.*"result":\[[0-9.]+,"([^"]+)"\].*/\1/p'
}

# Prints what is not as it must be on these hosts (instance=~"$1", of which there are $2); nothing if they are fit.
unfit() {
    local up new alerting
    up=$(number "count(count by (instance) (up{job=~\"roce.*\",instance=~\"$1\"} == 1))") || return
    new=$(number "count(count by (instance) (roce_exporter_build_info{instance=~\"$1\",version=\"$version\"}))") || return
    alerting=$(number "count(ALERTS{alertname=~\"$alerts\",instance=~\"$1\"})") || return
    [[ "$up $new $alerting" == "$2 $2 0" ]] || echo "$up of $2 are up, $new have version $version, $alerting alerts"
}

wave() {
    local name=$1 hosts pattern found end since
    shift
    hosts=$# pattern=$(IFS='|' && echo "$*")
    printf '%s\0' "$@" | xargs -0 -n 1 -P "${ROCE_WAVE_PARALLEL:-10}" "${command[@]}" ||
        { echo "wave $name: the command failed on a host; stopped" >&2; exit 1; }
    end=$((SECONDS + ${ROCE_WAVE_SECONDS:-300})) since=$SECONDS
    until ((SECONDS - since >= ${ROCE_WAVE_STEADY:-60})); do
        ((SECONDS < end)) || { echo "wave $name: ${found:-Prometheus does not answer}; stopped" >&2; exit 1; }
        sleep 1
        found=$(unfit "${pattern//./\\\\.}" "$hosts" 2>&1) && [[ -z $found ]] || since=$SECONDS
    done
    echo "wave $name: $hosts hosts have version $version"
}

command=("$@")
declare -A members=()
order=()
while read -r name host; do
    [[ -n $host ]] || { echo "not a wave and a host: $name" >&2; exit 2; }
    [[ -n ${members[$name]:-} ]] || order+=("$name")
    members[$name]+=" $host"
done
for name in "${order[@]}"; do
    read -ra hosts <<<"${members[$name]}"
    wave "$name" "${hosts[@]}"
done
