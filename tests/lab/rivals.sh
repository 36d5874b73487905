# Downloads the programs that the lab compares with or uses into $cache/tools/bin. Sourced after prepare.sh.
#
# From Debian: node_exporter and, if not installed, Prometheus: unpacked, not installed.
# From the Go module proxy, if Go is installed: the newest node_exporter and yuuki's rdma_exporter.

node_exporter_newest=github.com/prometheus/node_exporter@latest
rdma_exporter=github.com/yuuki/rdma_exporter@latest

# unpack_tool PACKAGE PATH NAME: the program PATH of a package of Debian, as $cache/tools/bin/NAME.
unpack_tool() {
  local place
  [ ! -e "$cache/tools/bin/$3" ] || return 0
  place=$(mktemp -d "$cache/package.XXXXXX")
  (cd "$place" && { apt_get download "$1" || { apt_get update && apt_get download "$1"; }; }) &&
    dpkg-deb -x "$place/$1"_*.deb "$place" && cp "$place/$2" "$cache/tools/bin/$3"
  local status=$?
  rm -rf "$place"
  [ $status = 0 ] || echo "lab: apt brings no $1" >&2
  return $status
}

# build_tool MODULE@VERSION NAME: a program of the Go module proxy, as $cache/tools/bin/NAME. Without Go it is missing.
build_tool() {
  [ ! -e "$cache/tools/bin/$2" ] || return 0
  command -v go >/dev/null || { echo "lab: no Go, so no $2" >&2; return 0; }
  GOBIN=$cache/tools/go GOFLAGS=-modcacherw CGO_ENABLED=0 go install "$1" >>"$cache/go.log" 2>&1 ||
    { echo "lab: Go builds no $1; see $cache/go.log" >&2; return 0; }
  mv "$cache/tools/go/$(basename "${1%@*}")" "$cache/tools/bin/$2"
}

prepare_tools() {
  mkdir -p "$cache/tools/bin"
  unpack_tool prometheus-node-exporter usr/bin/prometheus-node-exporter node_exporter_debian &&
    unpack_tool prometheus usr/bin/prometheus prometheus
}

# The exporters that only --compare starts.
prepare_rivals() {
  build_tool "$node_exporter_newest" node_exporter
  build_tool "$rdma_exporter" rdma_exporter
}
