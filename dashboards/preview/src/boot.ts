// Grafana's libraries read this on load, so it is imported first.
const grafana = window as any;
grafana.grafanaBootData = {
  user: { id: 1, timezone: 'utc', weekStart: '', locale: 'en-US', language: 'en-US', theme: 'dark', permissions: {} },
  settings: { featureToggles: { newVizTooltips: true }, datasources: {}, buildInfo: { version: '12.4.10', edition: 'oss', env: 'production' }, regionalFormat: 'en-US' },
  navTree: [],
  themePaths: {},
};
grafana.__grafana_public_path__ = '/public/';
grafana.__grafanaPublicDashboardAccessToken = '';
grafana.__drawn = { queries: [], regions: 0, marks: 0, done: false };
