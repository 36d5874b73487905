#!/usr/bin/env bash
# Compiles the programs of the nightly tests that have no Debian package, from their Go modules into the cache of the tests: four
# minutes each on two cores, once per version. tests/nightly_tools.sh [NAME...] compiles only these. A program that cannot be
# had is one line and the exit code 1; its tests are skipped then, and with CI=true they fail and name it.
# shellcheck disable=SC2317  # the functions are called by their names in a table
set -uo pipefail
here=$(dirname "$(realpath "$0")")
cache=${ROCE_TEST_CACHE:-$HOME/.cache/roce-exporter-tests}
bin=$cache/bin
mkdir -p "$bin" && work=$(mktemp -d) || exit
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0

installed() { GOBIN=$work go install "$1"; }

newest() { installed "$1" && mv "$work/node_exporter" "$work/node_exporter_newest"; }

# A Collector is put together from its parts; later versions need modules that the proxy does not have.
collector() {
  local contrib=github.com/open-telemetry/opentelemetry-collector-contrib version=${1##*@}
  cat >"$work/manifest.yaml" <<EOF
dist: {name: otelcol, output_path: $work/collector, module: otelcol, version: ${version#v}}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version}]
processors:
  - gomod: $contrib/processor/attributesprocessor $version
  - gomod: $contrib/processor/transformprocessor $version
  - gomod: $contrib/processor/filterprocessor $version
exporters: [{gomod: $contrib/exporter/prometheusexporter $version}]
EOF
  installed "$1" && "$work/builder" --config="$work/manifest.yaml" && mv "$work/collector/otelcol" "$work/"
}

# Perses' own command asks a server; this is its importer and the checks of its result.
perses() {
  local copy=$work/perses
  cp -r "$(go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)",/\1/p')" "$copy" && chmod -R u+w "$copy" || return
  mkdir "$copy/cmd/import" && cp "$here/dashboards/perses_import.go" "$copy/cmd/import/main.go" &&
    (cd "$copy" && GOFLAGS="-trimpath -mod=mod" go build -o "$work/perses_import" ./cmd/import) &&
    rm -rf "$cache/perses" && mkdir "$cache/perses" && mv "$copy/cue" "$copy/cue.mod" "$cache/perses/"
}

# Kubernetes replaces its own modules by folders: whoever depends on it names the versions that are published from them.
apiserver() {
  local version=${1##*@} listed
  cd "$work" && go mod init server && go mod edit -require="$1" || return
  listed=$(go mod download -json "$1" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
  grep -oE '^\s*k8s.io/[a-z0-9-]+ v0.0.0( |$)' "$listed" | awk '{ print $1 }' | sort -u |
    while read -r name; do go mod edit -replace="$name=$name@v0.${version#v1.}"; done
  go build -mod=mod -ldflags="-X k8s.io/component-base/version.gitVersion=$version" -o kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
}

# The definitions of its kinds are next to it.
operator() {
  local name=${1%@*} version=${1##*@}
  cd "$work" && go mod init server || return
  for part in "" /pkg/apis/monitoring /pkg/client; do go mod edit -require="$name$part@$version" || return; done
  go build -mod=mod -o prometheus-operator "$name/cmd/operator" && rm -rf "$cache/operator" &&
    cp -r "$(go list -mod=mod -m -f '{{.Dir}}' "$name")/example/prometheus-operator-crd" "$cache/operator" && chmod -R u+w "$cache/operator"
}

# Program, version, how to compile it into $work, and from what.
tools="fake_server v0.14.1 installed github.com/openconfig/gnmi/testing/fake/gnmi/cmd/fake_server@v0.14.1
helm v3.19.2 installed helm.sh/helm/v3/cmd/helm@v3.19.2
kube-apiserver v1.35.4 apiserver k8s.io/kubernetes@v1.35.4
node_exporter_newest v1.12.1 newest github.com/prometheus/node_exporter@v1.12.1
otelcol v0.130.0 collector go.opentelemetry.io/collector/cmd/builder@v0.130.0
perses_import v0.49.0 perses github.com/perses/perses@v0.49.0
prometheus-operator v0.85.0 operator github.com/prometheus-operator/prometheus-operator@v0.85.0"

failed=0
while read -r name version way argument; do
  case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
  if [ "$(cat "$bin/.$name" 2>/dev/null)" = "$version" ] && [ -x "$bin/$name" ]; then continue; fi
  begin=$SECONDS
  if ! command -v go >/dev/null; then
    echo "nightly_tools: no $name: Go 1.21 or newer is not installed (https://go.dev/dl)"
    failed=1
  elif ("$way" "$argument") >"$cache/$name.log" 2>&1 && mv "$work/$name" "$bin/"; then
    echo "$version" >"$bin/.$name"
    echo "nightly_tools: $name $version, compiled in $((SECONDS - begin)) s"
  else
    echo "nightly_tools: no $name $version: $(grep -v '^go: downloading' "$cache/$name.log" | tail -n 1) (see $cache/$name.log)"
    failed=1
  fi
  chmod -R u+w "$work" && rm -rf "${work:?}"/*
done <<<"$tools"
exit $failed
