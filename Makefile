# Pictures of the dashboards, drawn with Grafana's libraries: needs node, chromium, prometheus and promtool, and a Python that has
# roce_exporter with its tests' packages. See dashboards/preview/README.md.
PYTHON ?= python3
.PHONY: pictures
pictures:
	$(PYTHON) dashboards/preview/pictures.py
