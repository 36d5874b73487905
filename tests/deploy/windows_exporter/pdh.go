// Package pdh takes the place of windows_exporter's package of the same name, which calls pdh.dll. Values are from the JSON file
// that PDH_VALUES names: object, counter, instance, value; null is a value that is not valid. Its rules are those of the
// real package, version 0.31.8: an unknown counter leaves the whole query without data, an instance has a row as soon as one counter has
// a valid value for it, and the other fields of that row are 0.
package pdh

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

type CounterType string

const (
	CounterTypeRaw       CounterType = "raw"
	CounterTypeFormatted CounterType = "formatted"

	InstanceEmpty = "------"
	InstanceTotal = "_Total"
)

var (
	ErrNoData                           = errors.New("no data to return")
	ErrPerformanceCounterNotInitialized = errors.New("performance counter not initialized")
	ErrNoCounter                        = errors.New("the specified counter could not be found")
)

type values map[string]map[string]map[string]*float64

type Collector struct {
	counters map[string]map[string]*float64
	ready    bool
}

func load() (values, error) {
	text, err := os.ReadFile(os.Getenv("PDH_VALUES"))
	if err != nil {
		return nil, err
	}
	found := values{}
	return found, json.Unmarshal(text, &found)
}

func NewCollectorWithReflection(_ CounterType, object string, _ []string, row reflect.Type) (*Collector, error) {
	known, err := load()
	if err != nil {
		return nil, err
	}
	collector := &Collector{counters: map[string]map[string]*float64{}}
	var errs []error
	for _, field := range reflect.VisibleFields(row) {
		counter, ok := field.Tag.Lookup("perfdata")
		if !ok {
			continue
		}
		instances, ok := find(known, object, counter)
		if !ok {
			errs = append(errs, fmt.Errorf(`failed to add counter \%s(*)\%s: %w`, object, counter, ErrNoCounter))
			continue
		}
		collector.counters[counter] = instances
	}
	collector.ready = len(errs) == 0
	return collector, errors.Join(errs...)
}

// find ignores case, as Windows does.
func find(known values, object, counter string) (map[string]*float64, bool) {
	for one, counters := range known {
		for name, instances := range counters {
			if strings.EqualFold(one, object) && strings.EqualFold(name, counter) {
				return instances, true
			}
		}
	}
	return nil, false
}

func (c *Collector) Collect(destination any) error {
	if c == nil || !c.ready {
		return ErrPerformanceCounterNotInitialized
	}
	rows := reflect.ValueOf(destination).Elem()
	rows.Set(reflect.MakeSlice(rows.Type(), 0, 0))
	index := map[string]int{}
	for i := range rows.Type().Elem().NumField() {
		counter, ok := rows.Type().Elem().Field(i).Tag.Lookup("perfdata")
		if !ok {
			continue
		}
		for instance, value := range c.counters[counter] {
			if value == nil || strings.HasSuffix(instance, InstanceTotal) {
				continue
			}
			at, ok := index[instance]
			if !ok {
				at = rows.Len()
				index[instance] = at
				row := reflect.New(rows.Type().Elem()).Elem()
				if name := row.FieldByName("Name"); name.IsValid() {
					name.SetString(instance)
				}
				row.FieldByName("MetricType").Set(reflect.ValueOf(prometheus.GaugeValue))
				rows.Set(reflect.Append(rows, row))
			}
			rows.Index(at).Field(i).SetFloat(*value)
		}
	}
	if rows.Len() == 0 {
		return ErrNoData
	}
	return nil
}

func (c *Collector) Close() {}
