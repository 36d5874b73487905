#!/usr/bin/env bash
# Boots one of Debian's own kernels in QEMU and runs a command in it as root. Needs neither KVM nor modules of the host.
#
#   boot.sh [options] -- COMMAND [ARGUMENT...]
#     -k SERIES     6.12, 6.1 or newest (6.12)         -t SECONDS  limit for the whole run (600)
#     -m MIB        memory of the guest (1024)         -n "NIC..." network cards of QEMU to add (none)
#     -s N          processors of the guest (1)        -p          only prepare: download, unpack, make the initramfs
#
# The guest sees the host's files, read-only below a tmpfs, at the same paths, with the caller's directory and
# environment, so a virtual environment and every tool of the host are available. /lab is a directory that both can write
# ($ROCE_LAB_SHARE; else private to the run). ROCE_LAB_GUEST=1 is set. There is no udev: load drivers by name.
#
# Exit status: the command's; 124: the limit was reached; 125: the guest died or its preparation failed; 2: usage.
set -u
here=$(dirname "$(realpath "$0")")
. "$here/prepare.sh"

usage() { sed -n '2,13p' "$here/boot.sh" >&2; exit 2; }

series=6.12 memory=1024 processors=1 limit=600 cards= only_prepare=
while getopts k:m:s:t:n:ph option; do
  case $option in
    k) series=$OPTARG ;; m) memory=$OPTARG ;; s) processors=$OPTARG ;; t) limit=$OPTARG ;; n) cards=$OPTARG ;;
    p) only_prepare=1 ;; *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ -n "$only_prepare" ] || [ $# -gt 0 ] || usage

prepare_kernel "$series" || exit 125
[ -z "$only_prepare" ] || exit 0

run=$(mktemp -d "$cache/run.XXXXXX")
share=${ROCE_LAB_SHARE:-$run/share}
orders=$share/.run
emulator= printer=
clean_up() {
  # shellcheck disable=SC2086  # empty when not started
  kill $emulator $printer 2>/dev/null
  rm -rf "$run"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$orders"
rm -f "$orders/status"
cp "$here/initramfs/start.sh" "$orders/start.sh"
printf '%q ' "$@" >"$orders/command"
{
  printf 'cd %q 2>/dev/null || cd /\n' "$PWD"
  export -p | grep -Ev '^declare -x (PWD|OLDPWD|SHLVL|_|TMPDIR|HOSTNAME|ROCE_LAB_[A-Z_]*)='
  echo 'export ROCE_LAB_GUEST=1'
} >"$orders/environment"

# The guest's clock counts instructions, two nanoseconds each, so that the guest sees the same processor on every host: on a
# slow or busy host its seconds take longer, and no deadline in the guest passes too early. While it is idle its clock is the
# host's. Without cmpxchg16b: QEMU 7.2 leaves an operand in the flags after it, and an interrupt there crashes the guest.
# Without AVX2: under QEMU 7.2 numpy's sort with it returns wrong orders and crashes.
case $machine in
  aarch64) board=(-machine virt,gic-version=3 -cpu neoverse-n1) console=ttyAMA0 ;;
  *) board=(-machine q35 -cpu max,-cx16,-avx2) console=ttyS0 ;;
esac
arguments=(
  "${board[@]}" -accel tcg,tb-size=256 -icount shift=1 -m "$memory" -smp "$processors" -nodefaults -no-reboot
  -display none -monitor none -parallel none -serial "file:$run/console"
  -kernel "$kernel/boot/vmlinuz-$release" -initrd "$kernel/initrd.img"
  -append "console=$console loglevel=5 panic=-1 rdinit=/init nokaslr mitigations=off tsc=reliable random.trust_cpu=on no_timer_check"
  -fsdev "local,id=root,path=${root:-/},security_model=none,readonly=on,multidevs=remap"
  -device virtio-9p-pci,fsdev=root,mount_tag=hostroot
  -fsdev "local,id=share,path=$share,security_model=none"
  -device virtio-9p-pci,fsdev=share,mount_tag=labshare
  -fsdev "local,id=modules,path=$kernel/lib/modules,security_model=none,readonly=on"
  -device virtio-9p-pci,fsdev=modules,mount_tag=labmodules
  -device virtio-serial-pci -chardev "pipe,id=out,path=$run/out" -device virtserialport,chardev=out,name=out
  -object rng-builtin,id=random -device virtio-rng-pci,rng=random
)
number=0
for card in $cards; do
  number=$((number + 1))
  arguments+=(-netdev "hubport,id=net$number,hubid=0"
    -device "$card,romfile=,netdev=net$number,mac=52:54:00:00:00:$(printf %02x "$number")")
done

mkfifo "$run/out.in" "$run/out.out" # the names that QEMU's chardev "pipe" expects
cat "$run/out.out" &
printer=$!
timeout -k 5 "$limit" "qemu-system-$machine" "${arguments[@]}" 2>"$run/errors" </dev/null &
emulator=$!
wait "$emulator"
ended=$?
exec 8<>"$run/out.out" && exec 8>&- # releases the printer if QEMU never opened its end
wait "$printer" 2>/dev/null

if [ -e "$orders/status" ]; then exit "$(cat "$orders/status")"; fi
if [ "$ended" = 124 ]; then
  echo "lab: not done after $limit s" >&2
else
  echo "lab: the guest ended without an exit status (QEMU: $ended)" >&2
  cat "$run/errors" >&2
  ended=125
fi
{ echo "--- its console:"; tail -n 100 "$run/console"; } >&2
exit "$ended"
