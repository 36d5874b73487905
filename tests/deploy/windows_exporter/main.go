// Runs the real configuration parser and the real collector performancecounter once, and prints what a scrape would return.
package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus-community/windows_exporter/internal/collector/performancecounter"
	"github.com/prometheus-community/windows_exporter/internal/config"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// once is a collector that is collected as windows_exporter's own handler does it: an error leaves the other metrics as they are.
type once struct {
	collector *performancecounter.Collector
}

func (o once) Describe(chan<- *prometheus.Desc) {}

func (o once) Collect(metrics chan<- prometheus.Metric) {
	if err := o.collector.Collect(metrics); err != nil {
		fmt.Fprintln(os.Stderr, "collect:", err)
	}
}

func main() {
	app := kingpin.New("windows_exporter", "")
	app.Flag("config.file", "").String()
	enabled := app.Flag("collectors.enabled", "").Default("").String()
	collector := performancecounter.NewWithFlags(app)
	if err := config.Parse(app, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "configuration:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "enabled:", *enabled)
	if err := collector.Build(slog.Default(), nil); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(once{collector})
	families, err := registry.Gather()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gather:", err)
		os.Exit(2)
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(os.Stdout, family); err != nil {
			panic(err)
		}
	}
}
