// Package mi takes the place of windows_exporter's access to Windows Management Infrastructure.
package mi

type Session struct{}
