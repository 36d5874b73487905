# Pictures of the dashboards, drawn with Grafana's libraries: needs node, chromium, prometheus and promtool. See dashboards/preview/README.md.
.PHONY: pictures
pictures:
	python3 dashboards/preview/pictures.py
