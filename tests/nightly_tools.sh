#!/usr/bin/env bash
# Compiles the programs of the nightly tests that have no Debian package, from their Go modules into the cache of the tests: about
# 20 minutes on two cores, once per version. tests/nightly_tools.sh [NAME...] compiles only these. A program that cannot be
# had is one line and the exit code 1; its tests are skipped then, and with CI=true they fail and name it.
# shellcheck disable=SC2317  # the functions are called by their names in a table
set -uo pipefail
here=$(dirname "$(realpath "$0")")
cache=${ROCE_TEST_CACHE:-$HOME/.cache/roce-exporter-tests}
bin=$cache/bin
mkdir -p "$bin" && work=$(mktemp -d) || exit
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0

# The folder of a module.
module() { (cd / && go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'; }

# Modules with replacements are compiled in a copy, as the main module.
copied() {
  local folder
  folder=$(module "$1") && [ -n "$folder" ] || return 1
  cp -r "$folder" "$work/source" && chmod -R u+w "$work/source" && cd "$work/source" || return 1
}

installed() { GOBIN=$work go install "$1"; }

# Kubernetes replaces its staging modules by folders; whoever depends on it names the versions that are published from them.
kube_apiserver() {
  local version=$1 listed name at=k8s.io/component-base/version minor
  mkdir "$work/source" && cd "$work/source" && go mod init lab && go mod edit -require "k8s.io/kubernetes@$version" || return 1
  listed=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
  for name in $(grep -oE '^\s*k8s.io/[a-z0-9-]+ v0.0.0( |$)' "$listed" | awk '{print $1}' | sort -u); do
    go mod edit -replace "$name=$name@v0.${version#v1.}"
  done
  minor=${version#v1.}
  GOFLAGS="-trimpath -mod=mod" go build -o "$work/kube-apiserver" \
    -ldflags "-X $at.gitVersion=$version -X $at.gitMajor=1 -X $at.gitMinor=${minor%%.*}" k8s.io/kubernetes/cmd/kube-apiserver
}

# A collector with the components that deploy/opentelemetry/ names.
collector() {
  local version=$1 contrib=github.com/open-telemetry/opentelemetry-collector-contrib core=go.opentelemetry.io/collector
  installed "$core/cmd/builder@v0.$version.0" && cat >"$work/builder.yaml" <<END && "$work/builder" --config="$work/builder.yaml"
dist: {name: otelcol, output_path: $work, version: 0.$version.0}
receivers: [{gomod: $contrib/receiver/prometheusreceiver v0.$version.0}]
exporters:
  - {gomod: $contrib/exporter/prometheusremotewriteexporter v0.$version.0}
  - {gomod: $core/exporter/otlphttpexporter v0.$version.0}
extensions: [{gomod: $contrib/extension/healthcheckextension v0.$version.0}]
providers:
  - {gomod: $core/confmap/provider/fileprovider v1.$((version - 94)).0}
  - {gomod: $core/confmap/provider/yamlprovider v1.$((version - 94)).0}
END
}

# windows_exporter's parser and its collector of performance counters, for Linux: the calls of Windows' libraries are ours.
windows_collector() {
  local folder name
  folder=$(module "github.com/prometheus-community/windows_exporter@$1") && [ -n "$folder" ] || return 1
  for name in go.mod go.sum internal/collector/performancecounter/{performancecounter,types}.go internal/config/{config,flatten}.go \
    internal/types/const.go; do
    mkdir -p "$work/source/$(dirname "$name")" && sed '/^\/\/go:build windows$/d' "$folder/$name" >"$work/source/$name" || return 1
  done
  for name in main:cmd/roce_check pdh:internal/pdh mi:internal/mi collectors:pkg/collector; do
    mkdir -p "$work/source/${name#*:}" && cp "$here/deploy/windows_exporter/${name%:*}.go" "$work/source/${name#*:}/" || return 1
  done
  cd "$work/source" && GOFLAGS="-trimpath -mod=mod" go build -o "$work/roce_check" ./cmd/roce_check
}

# Without the tag its receivers and its querier end with a panic at the first request.
thanos() { copied "github.com/thanos-io/thanos@$1" && go build -tags "netgo slicelabels" -o "$work/thanos" ./cmd/thanos; }

# Program, version, and how to compile it into $work.
tools="fake_server v0.14.1 installed github.com/openconfig/gnmi/testing/fake/gnmi/cmd/fake_server@v0.14.1
helm v3.19.2 installed helm.sh/helm/v3/cmd/helm@v3.19.2
kustomize v5.8.1 installed sigs.k8s.io/kustomize/kustomize/v5@v5.8.1
kube-apiserver v1.35.4 kube_apiserver v1.35.4
otelcol 165 collector 165
roce_check v0.31.8-$(cat "$here"/deploy/windows_exporter/*.go | cksum | tr ' ' -) windows_collector v0.31.8
thanos v0.42.4 thanos v0.42.4"

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
