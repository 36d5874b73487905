#!/bin/bash
# Custom plugin of Node Problem Detector: is a RoCE port of this node failed (or degraded)?
#
#   check-roce-health.sh failed|degraded [URL of /health.json]
#
# Exit status as Node Problem Detector expects it: 0 no problem, 1 problem, 2 unknown. One line on standard output.
# Needs bash, and curl for https:// or a user; without curl it reads http:// by itself. Nothing is changed on the node.
set -euo pipefail

level=${1:-failed}
url=${2:-${ROCE_HEALTH_URL:-http://127.0.0.1:10123/health.json}}
oldest=${ROCE_HEALTH_MAX_AGE:-120} # seconds; the exporter judges every 15

unknown() {
    echo "$1"
    exit 2
}

fetch() {
    if command -v curl >/dev/null; then
        curl --silent --fail --max-time 4 -- "$url"
        return
    fi
    [[ $url =~ ^http://([^/:]+):([0-9]+)(/.*)$ ]] || return 1
    exec 3<>"/dev/tcp/${BASH_REMATCH[1]}/${BASH_REMATCH[2]}"
    printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "${BASH_REMATCH[3]}" "${BASH_REMATCH[1]}" >&3
    read -r _ status _ <&3
    [[ $status == 200 ]] || return 1
    cat <&3
}

# The document has one field per line, and the fields of the whole host are indented by one space (docs/operating.md).
field() {
    sed -n "s/^ \"$1\": \"\{0,1\}\([^\"]*[^\",]\)\"\{0,1\},\{0,1\}\r\{0,1\}$/\1/p" <<<"$document"
}

case $level in failed | degraded) ;; *) unknown "the first argument must be failed or degraded, not $level" ;; esac
document=$(fetch 2>/dev/null) || unknown "no verdict: $url does not answer; is roce_exporter running?"
[[ $(field version) == 1 ]] || unknown "no verdict: $url is not version 1 of the document"
time=$(field time)
[[ $time =~ ^[0-9]+ ]] || unknown "no verdict yet"
((EPOCHSECONDS - ${time%%.*} <= oldest)) || unknown "the verdict is older than $oldest s: is the exporter stuck?"

health=$(field health) summary=$(field summary)
case $health in
healthy) ;;
degraded) if [[ $level == degraded ]]; then
    echo "$summary"
    exit 1
fi ;;
failed)
    echo "$summary"
    exit 1
    ;;
*) unknown "${summary:-no ports judged}" ;;
esac
echo "$summary"
