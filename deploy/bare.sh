# What deploy/try.sh and tests/run.sh do on a machine that may have nothing: Python, Debian packages, a virtual environment. Sourced in the root
# of a clone. What is there is used; what is missing is installed as root or with sudo; what cannot be installed is one line on standard error.

say() { echo "${0##*/}: $*" >&2; }

# there PROGRAM...: whether one of them is on the PATH
there() {
  for program; do
    ! command -v "$program" >/dev/null || return 0
  done
  return 1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# find_python: sets `python` to the first one that is new enough; false if there is no Python at all, the end if all are too old
find_python() {
  for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    ! new_enough "$python" || return 0
  done
  python=${PYTHON:-python3}
  there "$python" || return 1
  say "needs Python 3.11 or newer, and $python is $("$python" --version 2>&1). Install one next to it (uv python install 3.13) and" \
    "repeat this; or use pipx, the single file or the container: docs/operating.md#with-an-older-python"
  exit 2
}

has_pip() { "$1" -m pip --python "$1" --version >/dev/null 2>&1; }
can_make_environment() { there uv virtualenv || "$python" -c 'import ensurepip' 2>/dev/null || has_pip "$python"; }

# install_packages PACKAGE...: false if there is no apt-get, or neither root nor sudo
install_packages() {
  there apt-get || return 1
  if [ "$(id -u)" = 0 ]; then
    set -- sh deploy/packages.sh "$@"
  elif there sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    set -- sudo sh deploy/packages.sh "$@"
  else
    return 1
  fi
  say "$*"
  "$@"
}

# missing: the lines of $programs (package, its programs with commas between them, what is lost without it) without a program on the PATH
missing() {
  echo "$programs" | while read -r package names loss; do
    # shellcheck disable=SC2046 # a list of names
    there $(echo "$names" | tr , ' ') || echo "$package ($loss)"
  done
}

# prepare PROGRAMS: finds Python, and installs what is missing of it and of the programs
prepare() {
  programs=$1
  wanted=
  if ! find_python; then
    wanted=python3-venv
  elif ! can_make_environment; then
    wanted=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  fi
  # shellcheck disable=SC2046,SC2086 # lists of names
  set -- $wanted $(missing | sed 's/ (.*//')
  [ $# = 0 ] || install_packages "$@" || true
  find_python || { say "needs Python 3.11 or newer, and no python3 is on the PATH"; exit 2; }
  python=$("$python" -c 'import sys; print(sys.executable)') # not a shim that starts it slowly
  can_make_environment ||
    { say "$python has no pip: install python3-venv as root, or uv or virtualenv as any user, and repeat this"; exit 2; }
  lost=$(missing | paste -sd , | sed 's/,/, /g')
  [ -z "$lost" ] || say "not installed, for want of root, sudo or a package: $lost"
}

# environment FOLDER: a virtual environment of $python, into which `install` installs
environment() {
  folder=$1
  new_enough "$folder/bin/python" || [ ! -e "$folder/pyvenv.cfg" ] || rm -rf "$folder"
  installer=$folder/bin/python
  if has_pip "$installer"; then
    return
  elif there uv; then
    [ -e "$installer" ] || uv venv --quiet --python "$python" "$folder"
    installer=uv
  elif has_pip "$python"; then
    [ -e "$installer" ] || "$python" -m venv --without-pip "$folder"
    installer=$python
  elif "$python" -c 'import ensurepip' 2>/dev/null; then
    "$python" -m venv "$folder"
  else
    virtualenv --quiet --python="$python" "$folder"
  fi
}

# install ARGUMENT...: pip install
install() {
  if [ "$installer" = uv ]; then
    uv pip install --quiet --python "$folder/bin/python" "$@"
  else
    "$installer" -m pip --python "$folder/bin/python" install --quiet --disable-pip-version-check --no-compile "$@"
  fi
}
