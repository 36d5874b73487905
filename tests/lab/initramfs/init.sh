#!/bin/busybox sh
# The first program of the guest: mounts the host's files, read-only below a tmpfs, and goes on there.
B=/bin/busybox
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
die() { echo "lab: the guest cannot $*" >/dev/console; $B sleep 1; $B poweroff -f; }

for module in /modules/*.ko; do $B insmod "$module" || die "load $module"; done
share=trans=virtio,version=9p2000.L,msize=512000
$B mount -t 9p -o ro,$share,cache=loose hostroot /lower || die "mount the host's files"
$B mount -t tmpfs -o size=75% tmpfs /upper
$B mkdir /upper/changes /upper/work
$B mount -t overlay -o lowerdir=/lower,upperdir=/upper/changes,workdir=/upper/work overlay /new || die "mount an overlay"
$B mkdir -p /new/lab /new/lib/modules /new/proc /new/sys /new/dev /new/run /new/tmp
$B mount -t 9p -o $share,cache=none labshare /new/lab || die "mount /lab"
$B mount -t 9p -o ro,$share,cache=loose labmodules /new/lib/modules || die "mount the modules"
for place in proc sys dev; do $B mount --move /$place /new/$place; done
$B mount -t tmpfs -o mode=755 tmpfs /new/run
$B mkdir -p /new/dev/pts /new/dev/shm
$B mount -t devpts devpts /new/dev/pts
$B mount -t tmpfs tmpfs /new/dev/shm
$B mount -t debugfs debugfs /new/sys/kernel/debug
exec $B switch_root /new /bin/bash /lab/.run/start.sh
