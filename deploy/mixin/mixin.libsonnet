// The alerts, recording rules and dashboards of roce_exporter as a monitoring mixin; alerts/README.md describes it.
// `_config` is alerts/thresholds.yml. With its defaults, prometheusAlerts is alerts/roce.rules.yml, prometheusRules is
// dashboards/roce-dashboards.rules.yml, and grafanaDashboards are dashboards/*.json.
{
  _config+:: import 'generated/config.libsonnet',

  // With the recording rules that the alerts read, in their groups: the rules of a group are evaluated in order.
  prometheusAlerts+:: {
    groups+: (import 'groups.libsonnet')($._config, import 'generated/alerts.libsonnet'),
  },
  prometheusRules+:: {
    groups+: (import 'generated/rules.libsonnet')($._config.shared, $._config.limits, $._config.alerts),
  },
  grafanaDashboards+:: (import 'generated/dashboards.libsonnet')($._config.shared, $._config.limits, $._config.alerts),
}
