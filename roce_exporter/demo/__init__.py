"""`roce-exporter demo`: the exporter on a simulated host, with Prometheus and Alertmanager where they are installed."""

from roce_exporter.demo.run import run_demo

__all__ = ["run_demo"]
