// Package collector takes the place of windows_exporter's list of all collectors: only performancecounter runs without Windows.
package collector

import "github.com/prometheus-community/windows_exporter/internal/collector/performancecounter"

type Config struct {
	PerformanceCounter performancecounter.Config `yaml:"performancecounter"`
}
