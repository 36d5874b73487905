#!/bin/sh
# Runs in a booted machine with the package: writes the state of the unit as lines `KEY VALUE` to /report.
exec >/report 2>/report.errors
drop_ins=/etc/systemd/system/roce-exporter.service.d

tell() {
  pid=$(systemctl show -P MainPID roce-exporter)
  echo "$1.active $(systemctl is-active roce-exporter)"
  echo "$1.ready $(curl --silent http://localhost:10123/-/ready)"
  for key in CapEff CapBnd CapAmb NoNewPrivs Seccomp; do
    echo "$1.$key $(sed -n "s/^$key:\t//p" "/proc/$pid/status")"
  done
  echo "$1.user $(ps -o user:20= -p "$pid")"
  echo "$1.etc $(nsenter --target="$pid" --mount ls /etc | wc -l)"
  echo "$1.kmsg $(nsenter --target="$pid" --mount ls /dev | grep -c '^kmsg$')"
  echo "$1.home $(nsenter --target="$pid" --mount ls -A /root /home/somebody 2>/dev/null | grep -c secret)"
  nsenter --target="$pid" --mount touch /opt/written /etc/written /sys/written /var/written 2>/dev/null
  # Not as root or its group, which see all processes; as numbers, because some drop-ins hide /etc/passwd.
  ids="--reuid=$(id -u roce-exporter) --regid=$(id -g roce-exporter)"
  # shellcheck disable=SC2086  # two flags
  echo "$1.processes $(nsenter --target="$pid" --mount setpriv $ids --clear-groups ls /proc | grep -c '^[0-9]')"
  echo "$1.written $(ls /opt /etc /var | grep -c written)"
}

restart() {
  systemctl daemon-reload
  systemctl restart roce-exporter
}

mkdir -p "$drop_ins" /home/somebody
# in place of the device node, which systemd-nspawn does not have
touch /dev/kmsg
touch /root/secret /home/somebody/secret
tell core
for name in optics debugfs loopback owners kernel-log; do
  cp "/usr/share/doc/roce-exporter/drop-ins/$name.conf" "$drop_ins/"
  restart
  tell "$name"
done
rm "$drop_ins"/*

# shorter than the 30 s of the unit, to save time
printf '[Service]\nWatchdogSec=15s\nRestartSec=100ms\n' >"$drop_ins/hurry.conf"
restart
sleep 20
echo "alive.restarts $(systemctl show -P NRestarts roce-exporter)"
systemctl kill --signal=STOP --kill-whom=main roce-exporter
for _ in $(seq 1200); do
  [ "$(systemctl show -P NRestarts roce-exporter)" = 0 ] || break
  sleep 0.1
done
for _ in $(seq 1200); do
  [ "$(systemctl is-active roce-exporter)" != active ] || break
  sleep 0.1
done
echo "hung.restarts $(systemctl show -P NRestarts roce-exporter)"
echo "hung.active $(systemctl is-active roce-exporter)"

# a fault after which it cannot continue: it can start no thread
printf '[Service]\nLimitNPROC=1\nRestartSec=100ms\n' >"$drop_ins/hurry.conf"
systemctl daemon-reload
timeout 10 systemctl restart --no-block roce-exporter
for _ in $(seq 1200); do
  [ "$(systemctl show -P NRestarts roce-exporter)" -lt 2 ] || break
  sleep 0.1
done
echo "starved.status $(systemctl show -P ExecMainStatus roce-exporter)"
echo "starved.restarted $([ "$(systemctl show -P NRestarts roce-exporter)" -ge 2 ] && echo yes)"
echo "starved.said $(journalctl --unit=roce-exporter --output=cat | grep -c "RuntimeError: can't start new thread" | sed 's/[1-9][0-9]*/yes/')"
rm "$drop_ins"/*
restart
echo "fed.active $(systemctl is-active roce-exporter)"
echo "fed.ready $(curl --silent http://localhost:10123/-/ready)"

echo 'ROCE_EXPORTER_FLAGS="--no.such.flag"' >/etc/default/roce-exporter
restart
# on a busy machine the start has not failed yet
for _ in $(seq 600); do [ "$(systemctl is-active roce-exporter)" = activating ] || break; sleep 0.1; done
journalctl --sync
echo "unusable.active $(systemctl is-active roce-exporter)"
echo "unusable.status $(systemctl show -P ExecMainStatus roce-exporter)"
echo "unusable.restarts $(systemctl show -P NRestarts roce-exporter)"
echo "unusable.said $(journalctl --unit=roce-exporter --output=cat | grep -c 'unrecognized arguments: --no.such.flag')"
echo "end reached"
