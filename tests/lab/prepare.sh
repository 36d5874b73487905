# Functions that fetch Debian's kernels and build modules for them, once per machine, below $cache. Sourced.
#
# Only tools are installed: packages of kernels and headers are unpacked into the cache, so no maintainer script
# runs and the host's boot loader is unchanged.

# A series is 6.1, 6.12 (both of the machine's own suite) or `newest`: the highest version of any suite in ../newer.sh.

. "$here/../newer.sh"

# The guest's processor. Its files are the host's own or, for another architecture, those of $root; $cross begins the names of its tools.
case $architecture in
  arm64) machine=aarch64 emulator_package=qemu-system-arm root=$cache/root cross=aarch64-linux-gnu- ;;
  *) machine=x86_64 emulator_package=qemu-system-x86 root='' cross='' ;;
esac

# Parts of the kernel package that no test needs: a third of the time to unpack it and two thirds of its size.
unneeded=(sound drivers/gpu drivers/media drivers/net/wireless drivers/staging drivers/iio drivers/hid drivers/scsi
  drivers/input drivers/usb)
initramfs_modules=(virtio_pci 9p 9pnet_virtio overlay virtio_console)

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$cache/apt.log" 2>&1; }

# install_tools COMMAND=PACKAGE...: installs the packages whose command (or file, with its whole path) is missing.
install_tools() {
  local pair missing=()
  for pair; do command -v "${pair%%=*}" >/dev/null || [ -e "/${pair%%=*}" ] || missing+=("${pair#*=}"); done
  [ ${#missing[@]} -eq 0 ] && return
  { apt_get update && apt_get install -y --no-install-recommends "${missing[@]}"; } || {
    echo "lab: cannot install ${missing[*]}; as root: apt-get install ${missing[*]}" >&2
    return 1
  }
}

# with_suite SERIES COMMAND...: runs a command with an apt configuration for the suite that has this kernel.
with_suite() {
  local series=$1
  shift
  if [ "$series" = newest ]; then with_newer "$@"; else "$@"; fi
}

# dependency PACKAGE PATTERN: the packages with matching names that PACKAGE depends on.
dependency() { apt-cache depends "$1" 2>/dev/null | awk -v pattern="$2" '/Depends:/ && $2 ~ pattern {print $2}'; }

# prepare_kernel SERIES: sets $kernel (where it is unpacked) and $release, downloads and unpacks missing files.
prepare_kernel() {
  kernel=$cache/linux-$1
  exec 9>"$cache/.lock"
  flock 9
  install_tools "qemu-system-$machine=$emulator_package" busybox=busybox-static cpio=cpio depmod=kmod xz=xz-utils &&
    { [ -e "$kernel/.done" ] && is_newest "$1" || unpack_kernel "$1"; } &&
    release=$(cat "$kernel/.done") &&
    { [ "$kernel/initrd.img" -nt "$here/initramfs/init.sh" ] || make_initramfs; }
  local status=$?
  exec 9>&-
  return $status
}

# Whether the unpacked version of a series is the current one of its suites. Without a network any version is accepted.
is_newest() {
  local version
  [ "$1" = newest ] || return 0
  version=$(newest_version "linux-image-$architecture") || return 0
  [ "$version" = "$(cat "$kernel/.version" 2>/dev/null)" ]
}

meta_package() {
  case $1 in
    newest | 6.1) echo "linux-image-$architecture" ;;
    *) echo "linux-image-$1-$architecture" ;;
  esac
}

unpack_kernel() {
  local meta package part excluded=()
  meta=$(meta_package "$1")
  package=$(with_suite "$1" dependency "$meta" '^linux-image-')
  [ -n "$package" ] || [ "$1" = newest ] || { apt_get update; package=$(dependency "$meta" '^linux-image-'); }
  [ -n "$package" ] || { echo "lab: apt knows no $meta; the lab needs Debian 12 or newer" >&2; return 1; }
  for part in "${unneeded[@]}"; do excluded+=("--exclude=*/kernel/$part"); done
  rm -rf "$kernel"
  mkdir -p "$kernel/deb"
  # shellcheck disable=SC2046  # a list of names: from Linux 7 on the image is in packages of its own
  (cd "$kernel/deb" && with_suite "$1" apt_get download "$package" \
    $(with_suite "$1" dependency "$package" '^linux-(binary|modules|base)-[0-9]')) ||
    { echo "lab: cannot download $package" >&2; return 1; }
  for part in "$kernel"/deb/*.deb; do
    dpkg-deb --fsys-tarfile "$part" | tar -x -C "$kernel" "${excluded[@]}" --exclude=./usr/share || return 1
  done
  rm -rf "$kernel/deb"
  settle_kernel && depmod -b "$kernel" "$unpacked" || return 1
  [ "$1" != newest ] || newest_version "linux-image-$architecture" >"$kernel/.version"
  echo "$unpacked" >"$kernel/.done"
}

# Moves files that newer packages have below /usr to the older paths; sets $unpacked to the kernel's release.
settle_kernel() {
  [ ! -d "$kernel/usr/lib/modules" ] || { mkdir -p "$kernel/lib" && mv "$kernel/usr/lib/modules" "$kernel/lib/modules"; } ||
    return 1
  unpacked=$(ls "$kernel/lib/modules")
  [ -e "$kernel/boot/vmlinuz-$unpacked" ] ||
    { mkdir -p "$kernel/boot" && mv "$kernel/lib/modules/$unpacked/vmlinuz" "$kernel/boot/vmlinuz-$unpacked"; }
}

make_initramfs() {
  local tree module number=0
  tree=$(mktemp -d "$cache/initramfs.XXXXXX")
  mkdir -p "$tree"/{bin,modules,proc,sys,dev,lower,upper,new}
  cp "$root$(command -v busybox)" "$tree/bin/busybox"
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
  prepare_kernel "$1" && install_tools make=make "${cross}gcc-12=gcc-12${cross:+-${cross%-}}" patchelf=patchelf || return 1
  local headers=$cache/headers-$release built
  [ -e "$headers/.done" ] || unpack_headers "$1" "$headers" || return 1
  built=$(mktemp -d "$cache/build.XXXXXX")
  cp -r "$2/." "$built"
  # shellcheck disable=SC2086  # two words or none
  # BTF would need pahole, and is not used here. gcc 12 has another flag for the alignment option of gcc 14, which does not align functions that are
  # called rarely: so modules have no places for ftrace, which arm64 requires to be aligned.
  { [ ! -e "$built/names.py" ] || python3 "$2/names.py" "$release" >"$built/names.h"; } &&
    make -s -C "$headers/usr/src/linux-headers-$release" M="$built" CC="${cross}gcc-12" ${cross:+ARCH=$architecture CROSS_COMPILE=$cross} CONFIG_DEBUG_INFO_BTF_MODULES= \
      CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= CC_FLAGS_FTRACE= KCFLAGS=-Werror modules &&
    "${cross}strip" -g "$built"/*.ko && cp "$built"/*.ko "$3"
  local status=$?
  rm -rf "$built"
  return $status
}

unpack_headers() {
  local package=linux-headers-$release archive
  rm -rf "$2"
  mkdir -p "$2/deb"
  # shellcheck disable=SC2046  # a list of names
  (cd "$2/deb" && with_suite "$1" apt_get download "$package" \
    $(with_suite "$1" dependency "$package" '^linux-(headers|kbuild)' | sed "/kbuild/s/\$/:$host/")) ||
    { echo "lab: cannot download $package" >&2; return 1; }
  for archive in "$2"/deb/*.deb; do dpkg-deb -x "$archive" "$2" || return 1; done
  rm -rf "$2/deb"
  sed -i -e "s#^include /usr/src/#include $2/usr/src/#" -e "s#^KBUILD_OUTPUT=/usr/src/#KBUILD_OUTPUT=$2/usr/src/#" \
    "$2/usr/src/$package/Makefile"
  [ "$1" != newest ] || lend_libraries "$2" || return 1
  touch "$2/.done"
}

# The build tools of a newer suite need its C library, which is unpacked next to them for their use only.
lend_libraries() {
  local libraries=$1/usr/lib/x86_64-linux-gnu program
  unpack_newest "$1" {libc6,libelf1t64,libssl3t64,zlib1g,libzstd1}":$host" || return 1
  find "$1"/usr/lib/linux-kbuild-* -type f -perm -100 | while read -r program; do
    [ "$(head -c 4 "$program" | tail -c 3)" != ELF ] ||
      patchelf --set-interpreter "$libraries/ld-linux-x86-64.so.2" --set-rpath "$libraries" "$program" || exit 1
  done
}

# build_extra SERIES: builds drivers of the kernel's own source that Debian does not ship, netdevsim and siw.
build_extra() {
  prepare_kernel "$1" || return 1
  local target=$cache/modules-$1 source=$cache/source-$1 package
  [ "$(cat "$target/.done" 2>/dev/null)" != "$release" ] || return 0
  install_tools make=make "${cross}gcc-12=gcc-12${cross:+-${cross%-}}" xz=xz-utils || return 1
  package=linux-source-$(echo "$release" | grep -oE '^[0-9]+\.[0-9]+')
  rm -rf "$target" "$source"
  mkdir -p "$target" "$source/deb"
  (cd "$source/deb" && with_suite "$1" apt_get download "$package") || { echo "lab: cannot download $package" >&2; return 1; }
  dpkg-deb --fsys-tarfile "$source"/deb/*.deb | tar -x -O --wildcards './usr/src/linux-source-*.tar.xz' |
    tar -x -J -C "$source" --strip-components=1 --wildcards '*/drivers/net/netdevsim' '*/drivers/infiniband/sw/siw' || return 1
  CONFIG_NETDEVSIM=m build_module "$1" "$source/drivers/net/netdevsim" "$target/netdevsim.ko" &&
    CONFIG_RDMA_SIW=m build_module "$1" "$source/drivers/infiniband/sw/siw" "$target/siw.ko" &&
    rm -rf "$source" && echo "$release" >"$target/.done"
}
