# Functions that fetch Debian's kernels and build modules for them, once per machine, below $cache. Sourced.
#
# Nothing is installed but the tools: packages of kernels and headers are unpacked into the cache, so no maintainer script
# runs and the host's boot loader is left alone.

cache=${ROCE_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/roce-lab}
mkdir -p "$cache" || exit 125

# Parts of the kernel package that no test needs: a third of the time to unpack it and two thirds of its size.
unneeded=(sound drivers/gpu drivers/media drivers/net/wireless drivers/staging drivers/iio drivers/hid drivers/scsi
  drivers/input drivers/usb)
initramfs_modules=(virtio_pci 9p 9pnet_virtio overlay virtio_console)

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$cache/apt.log" 2>&1; }

# install_tools COMMAND=PACKAGE...: installs the packages whose command (or file, with its whole path) is not there.
install_tools() {
  local pair missing=()
  for pair; do command -v "${pair%%=*}" >/dev/null || [ -e "/${pair%%=*}" ] || missing+=("${pair#*=}"); done
  [ ${#missing[@]} -eq 0 ] && return
  { apt_get update && apt_get install -y --no-install-recommends "${missing[@]}"; } || {
    echo "lab: cannot install ${missing[*]}; as root: apt-get install ${missing[*]}" >&2
    return 1
  }
}

# dependency PACKAGE PATTERN: the packages that PACKAGE depends on, of names that match.
dependency() { apt-cache depends "$1" 2>/dev/null | awk -v pattern="$2" '/Depends:/ && $2 ~ pattern {print $2}'; }

# prepare_kernel SERIES: sets $kernel (where it is unpacked) and $release, downloads and unpacks what is not there.
prepare_kernel() {
  kernel=$cache/linux-$1
  exec 9>"$cache/.lock"
  flock 9
  install_tools qemu-system-x86_64=qemu-system-x86 busybox=busybox-static cpio=cpio depmod=kmod xz=xz-utils &&
    { [ -e "$kernel/.done" ] || unpack_kernel "$1"; } &&
    release=$(cat "$kernel/.done") &&
    { [ "$kernel/initrd.img" -nt "$here/initramfs/init.sh" ] || make_initramfs; }
  local status=$?
  exec 9>&-
  return $status
}

unpack_kernel() {
  local meta=linux-image-$1-amd64 package part excluded=()
  [ "$1" != 6.1 ] || meta=linux-image-amd64
  package=$(dependency "$meta" '^linux-image-')
  [ -n "$package" ] || { apt_get update; package=$(dependency "$meta" '^linux-image-'); }
  [ -n "$package" ] || { echo "lab: apt knows no $meta; the lab needs Debian 12 or newer" >&2; return 1; }
  for part in "${unneeded[@]}"; do excluded+=("--exclude=*/kernel/$part"); done
  rm -rf "$kernel"
  mkdir -p "$kernel/deb"
  (cd "$kernel/deb" && apt_get download "$package") || { echo "lab: cannot download $package" >&2; return 1; }
  dpkg-deb --fsys-tarfile "$kernel"/deb/*.deb | tar -x -C "$kernel" "${excluded[@]}" ./boot ./lib/modules || return 1
  rm -rf "$kernel/deb"
  local unpacked
  unpacked=$(ls "$kernel/lib/modules")
  depmod -b "$kernel" "$unpacked" && echo "$unpacked" >"$kernel/.done"
}

make_initramfs() {
  local tree module number=0
  tree=$(mktemp -d "$cache/initramfs.XXXXXX")
  mkdir -p "$tree"/{bin,modules,proc,sys,dev,lower,upper,new}
  cp "$(command -v busybox)" "$tree/bin/busybox"
  cp "$here/initramfs/init.sh" "$tree/init"
  chmod 755 "$tree/init"
  for module in $(for name in "${initramfs_modules[@]}"; do
    modprobe -d "$kernel" -S "$release" --show-depends "$name" | awk '$1 == "insmod" {print $2}'
  done | awk '!seen[$0]++'); do
    number=$((number + 1))
    local place
    place=$tree/modules/$(printf %02d $number)-$(basename "${module%.xz}")
    case $module in *.xz) xz -dc "$module" >"$place" ;; *) cp "$module" "$place" ;; esac
  done
  (cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"$kernel/initrd.new" &&
    mv "$kernel/initrd.new" "$kernel/initrd.img"
  local status=$?
  rm -rf "$tree"
  return $status
}

# build_module SERIES SOURCE MODULE: builds the folder SOURCE as an out-of-tree module; warnings are errors.
build_module() {
  prepare_kernel "$1" && install_tools make=make gcc-12=gcc-12 || return 1
  local headers=$cache/headers-$1 built
  [ -e "$headers/.done" ] || unpack_headers "$headers" || return 1
  built=$(mktemp -d "$cache/build.XXXXXX")
  cp -r "$2/." "$built"
  # BTF would want pahole, which nothing here reads.
  make -s -C "$headers/usr/src/linux-headers-$release" M="$built" CONFIG_DEBUG_INFO_BTF_MODULES= KCFLAGS=-Werror modules &&
    strip -g "$built"/*.ko && cp "$built"/*.ko "$3"
  local status=$?
  rm -rf "$built"
  return $status
}

unpack_headers() {
  local package=linux-headers-$release archive
  rm -rf "$1"
  mkdir -p "$1/deb"
  # shellcheck disable=SC2046  # a list of names
  (cd "$1/deb" && apt_get download "$package" $(dependency "$package" '^linux-(headers|kbuild)')) ||
    { echo "lab: cannot download $package" >&2; return 1; }
  for archive in "$1"/deb/*.deb; do dpkg-deb -x "$archive" "$1" || return 1; done
  rm -rf "$1/deb"
  sed -i "s#^include /usr/src/#include $1/usr/src/#" "$1/usr/src/$package/Makefile" && touch "$1/.done"
}

# build_extra SERIES: builds drivers of the kernel's own source that Debian does not ship, netdevsim and siw.
build_extra() {
  local target=$cache/modules-$1 source=$cache/source-$1 release_of_source=${1%%-*}
  [ ! -e "$target/.done" ] || return 0
  install_tools make=make gcc-12=gcc-12 xz=xz-utils || return 1
  rm -rf "$target" "$source"
  mkdir -p "$target" "$source/deb"
  (cd "$source/deb" && apt_get download "linux-source-$release_of_source") ||
    { echo "lab: cannot download linux-source-$release_of_source" >&2; return 1; }
  dpkg-deb --fsys-tarfile "$source"/deb/*.deb | tar -x -O --wildcards './usr/src/linux-source-*.tar.xz' |
    tar -x -J -C "$source" --strip-components=1 --wildcards '*/drivers/net/netdevsim' '*/drivers/infiniband/sw/siw' || return 1
  CONFIG_NETDEVSIM=m build_module "$1" "$source/drivers/net/netdevsim" "$target/netdevsim.ko" &&
    CONFIG_RDMA_SIW=m build_module "$1" "$source/drivers/infiniband/sw/siw" "$target/siw.ko" &&
    rm -rf "$source" && touch "$target/.done"
}
