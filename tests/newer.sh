# Functions that bring packages of Debian suites newer than the machine's: downloaded and unpacked, never installed. Sourced.
#
# apt runs with a configuration of its own (lists, sources, cache, an empty list of installed packages) below $cache, so
# the machine's apt sees nothing of it. The mirror is the machine's own. Of several suites the highest version is taken,
# for the machine's architecture or for $ROCE_LAB_ARCH; there PACKAGE:$host is that of the machine.

cache=${ROCE_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/roce-lab}${ROCE_LAB_ARCH:+/$ROCE_LAB_ARCH}
host=$(dpkg --print-architecture)
architecture=${ROCE_LAB_ARCH:-$host}
newer_suites="trixie trixie-backports unstable"
newer_apt=$cache/apt
mkdir -p "$cache" || exit 125

# with_newer COMMAND...: runs a command (apt-get, apt-cache, a function) for which apt knows the newer suites only.
with_newer() (
  prepare_newer || exit 1
  APT_CONFIG=$newer_apt/apt.conf
  export APT_CONFIG
  "$@"
)

debian_mirror() {
  # shellcheck disable=SC2016  # apt's own variable
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | head -n 1
}

# Writes the configuration, and fetches the lists where there are none of today.
prepare_newer() {
  local mirror suite
  [ -z "$(find "$newer_apt/.fetched" -mtime -1 2>/dev/null)" ] || return 0
  mirror=$(debian_mirror)
  # A machine that never fetched lists does not say.
  [ -n "$mirror" ] || { apt-get -qq update >>"$cache/apt.log" 2>&1; mirror=$(debian_mirror); }
  [ -n "$mirror" ] || { echo "newer: apt has no source of Debian's main archive, or no lists: apt-get update" >&2; return 1; }
  mkdir -p "$newer_apt"/{lists,archives}/partial
  : >"$newer_apt/status"
  printf 'Package: *\nPin: release c=main\nPin-Priority: 500\n' >"$newer_apt/preferences" # backports count like the rest
  for suite in $newer_suites; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
  done >"$newer_apt/sources.list"
  cat >"$newer_apt/apt.conf" <<END
APT::Architecture "$architecture";
APT::Architectures "$architecture,$host";
Dir::State "$newer_apt";
Dir::State::lists "$newer_apt/lists";
Dir::State::status "$newer_apt/status";
Dir::Cache "$newer_apt";
Dir::Etc::sourcelist "$newer_apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "$newer_apt/preferences";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
APT::Sandbox::User "root";
END
  if APT_CONFIG=$newer_apt/apt.conf apt-get -qq update >>"$cache/apt.log" 2>&1; then
    touch "$newer_apt/.fetched"
  elif [ -e "$newer_apt/.fetched" ]; then
    echo "newer: no lists of $newer_suites could be fetched; those of $(date -r "$newer_apt/.fetched" +%F) are used" >&2
  else
    echo "newer: cannot fetch the lists of $newer_suites; see $cache/apt.log" >&2
    return 1
  fi
}

# newest_version PACKAGE: the highest version of a package; fails where no suite has it.
newest_version() {
  with_newer apt-cache policy "$1" | awk '$1 == "Candidate:" && $2 != "(none)" {print $2; found = 1} END {exit !found}'
}

# unpack_newest FOLDER PACKAGE...: the newest version of each package, unpacked into a folder.
unpack_newest() {
  local folder=$1 place archive status=0
  shift
  place=$(mktemp -d "$cache/package.XXXXXX")
  mkdir -p "$folder"
  (cd "$place" && with_newer apt-get -qq download "$@" >>"$cache/apt.log" 2>&1) ||
    { echo "newer: cannot download $*; see $cache/apt.log" >&2; status=1; }
  [ $status != 0 ] || for archive in "$place"/*.deb; do dpkg-deb -x "$archive" "$folder" || status=1; done
  rm -rf "$place"
  return $status
}
