#!/usr/bin/env python3
"""`translate` says what a translated expression cannot do any more. Needs the extra `translate`.

1 An alert on `increase(x) > 0` of a series that our default set begins with the first event never sees that event; absent() of it fires at once.
  Good: the expression is rewritten so that it fires, the place is left (exit 1), or the default set serves the series from the start.
2 Matchers and joins on labels of the other exporter's target select nothing with ours. Good: adapted, or the report names them.
3 Names of exporters that it does not know are not a success. Good: exit 1 and a line that names them.
4 A place that is left because two exporters share a name says so and names --from."""
import json
from xcommon import check, done, folder, run

d = folder()
std = {l.split("{")[0].split(" ")[0] for l in run("once", "--host.simulate=quiet").stdout.splitlines() if not l.startswith("#")}
def one(expr, kind="rules"):
    f = d / ("r.yml" if kind == "rules" else "b.json")
    f.write_text(json.dumps({"groups": [{"name": "g", "rules": [{"alert": "A", "expr": expr}]}]} if kind == "rules" else {"title": "t", "panels": [{"type": "timeseries", "title": "p", "targets": [{"expr": expr}]}]}))
    p = run("translate", "--report=json", f); rep = json.loads(p.stderr[p.stderr.find("{"):])["files"][0]
    return p.returncode, p.stdout.replace("\\\"", "\""), rep
for theirs, ours in (("node_infiniband_symbol_error_total", "roce_port_symbol_errors_total"), ("node_infiniband_local_ack_timeout_errors_total", "roce_transport_ack_timeouts_total"), ("rdma_local_ack_timeout_err_total", "roce_transport_ack_timeouts_total")):
    rc, out, rep = one(f"increase({theirs}[5m]) > 0")
    plain = f"increase({ours}[5m]) > 0" in out
    check(not plain or ours in std or rc != 0, f"1 first event: {theirs}: exit {rc}, {'translated word for word' if plain else 'not word for word'}, {'in' if ours in std else 'not in'} the default set before the first event")
rc, out, rep = one("absent(node_infiniband_symbol_error_total)")
check("absent(roce_port_symbol_errors_total)" not in out or "roce_port_symbol_errors_total" in std or rc != 0, f"1 absent(): exit {rc}, fires on every healthy host")
for name, expr, kept in (("job", 'rate(node_infiniband_port_data_received_bytes_total{job="node"}[5m])', 'job="node"'), ("9100", 'rate(node_infiniband_port_data_received_bytes_total{instance="$hostname:9100"}[5m])', ":9100"),
                         ("node_uname_info", "rate(node_infiniband_port_data_received_bytes_total[5m]) * on(instance) group_left(nodename) node_uname_info", "node_uname_info")):
    rc, out, rep = one(expr, "board"); told = any(name in json.dumps(x) for x in rep["left"] + rep["notes"])
    check(told or kept not in out, f"2 {name}: exit {rc}, {'kept' if kept in out else 'changed'}, {'reported' if told else 'not a word'}")
rc, out, rep = one("rate(my_efa_tx_bytes[5m])", "board")  # AWS' own exporter is known now
check(rc == 1 and "my_efa_tx_bytes" in json.dumps(rep["left"]), f"3 unknown exporter: exit {rc}, translated {rep['translated']}, left {len(rep['left'])}")
rc, out, rep = one('rate(rdma_rp_cnp_ignored_total{job="$job", device=~"$device", port=~"$port"}[5m])', "board")
check(not rep["left"] or "--from" in json.dumps(rep["left"]), f"4 a name of two exporters: {json.dumps(rep['left'])[:170]}")
done()
