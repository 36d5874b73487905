"""--host.recording=FIFO or a device: waits or reads for ever instead of refusing in one line."""
import os, subprocess, sys, tempfile
d = tempfile.mkdtemp(); os.mkfifo(d + "/fifo"); hung = []
for path in (d + "/fifo", "/dev/zero"):
    try:
        r = subprocess.run([sys.executable, "-m", "roce_exporter", "once", f"--host.recording={path}"], capture_output=True, text=True, timeout=100)
        print(os.path.basename(path), "exit", r.returncode, (r.stderr.strip().splitlines() or [""])[-1][:100])
        if r.returncode != 2: hung.append(path)
    except subprocess.TimeoutExpired: print(os.path.basename(path), "no end in 7 s"); hung.append(path)
print(f"FAULT: {len(hung)} of 2 are not refused" if hung else "OK: what is neither folder nor file is refused")
sys.exit(bool(hung))
