// The groups of alerts/roce.rules.yml from the templates of generated/alerts.libsonnet: what alerts/generate.py does.
local values = import 'values.libsonnet';

local severities = ['critical', 'warning', 'info'];
local former = { page: 'critical', ticket: 'warning' };
local ofRule = ['severity', 'for', 'keep_firing_for', 'enabled'];
local patient = 900;

local withSeconds(shared) =
  local bad = [
    key
    for key in ['short', 'medium', 'long', 'slow_interval', 'rare_interval']
    if !values.isDuration(std.get(shared, key))
  ];
  assert bad == [] : '_config.shared: %s must be a duration such as 5m' % std.join(', ', bad);
  shared { [key + '_seconds']: values.seconds(shared[key]) for key in ['short', 'medium', 'long'] };

// The sum that identifies these limits, as the exporters serve it: sum_of() of alerts/generate.py.
local limitsSum(limits) = std.md5(std.join('\n', std.sort([
  '%s.%s=%s' % [name, key, values.text(if values.isDuration(value) then values.seconds(value) else value)]
  for name in std.objectFields(limits)
  for key in std.objectFields(limits[name])
  if key != 'severity'
  for value in [limits[name][key]]
])));

local checked(name, own) =
  local where = '_config.alerts.%s: ' % name;
  local bad = [key for key in ['for', 'keep_firing_for'] if std.objectHas(own, key) && !values.isDuration(own[key])];
  local unused = [key for key in std.objectFields(own) if !std.member(ofRule, key)];
  local severity = std.get(own, 'severity');
  assert !(std.isString(severity) && std.objectHas(former, severity)) : where + 'severity %s is now %s' % [severity, former[severity]];
  assert std.member(severities, severity) : where + 'severity must be one of ' + std.join(', ', severities);
  assert bad == [] : where + std.join(', ', bad) + ' must be a duration such as 5m';
  assert unused == [] : where + std.join(', ', unused) + ' has no effect';
  own;

// As `_pace` of alerts/generate.py: what is critical is evaluated always, a warning slowly, what notifies no one or waits long anyway rarely.
local pace(rule, own) =
  if own == null then rule.every
  else if own.severity == 'info' then 'rare'
  else if rule.every == 'fast' then ''
  else if rule.every != '' then rule.every
  else if own.severity == 'critical' then ''
  else if values.seconds(std.get(own, 'for', '0s')) >= patient then 'rare'
  else 'slow';

local recording(rule, shared) = {
  record: rule.record(shared),
  expr: rule.expr(shared),
  [if std.objectHas(rule, 'labels') then 'labels']: rule.labels,
};

local alert(rule, own, given) =
  {
    alert: rule.alert,
    expr: rule.expr(given),
    [if std.get(own, 'for', '0s') != '0s' then 'for']: own['for'],
    [if std.get(own, 'keep_firing_for', '0s') != '0s' then 'keep_firing_for']: own.keep_firing_for,
    labels: { severity: own.severity, scope: rule.scope },
    annotations: {
      summary: rule.summary(given),
      description: rule.description(given),
      runbook_url: rule.runbook_url(given),
      dashboard_url: rule.dashboard_url(given),
    },
  };

// `rules` are those of one file below alerts/rules/. Locals, since Jsonnet computes a field again at each use.
local ofFile(name, rules, shared, alerts) =
  local owned = [
    [rule, if std.objectHas(rule, 'alert') then checked(rule.alert, alerts[rule.alert])]
    for rule in rules
  ];
  local made = [
    [
      pace(pair[0], pair[1]),
      if pair[1] == null then recording(pair[0], shared) else alert(pair[0], pair[1], shared),
    ]
    for pair in owned
    if pair[1] == null || std.get(pair[1], 'enabled', true)
  ];
  [
    {
      name: std.join('-', [part for part in ['roce', name, wanted] if part != '']),
      [if wanted != '' then 'interval']: shared[wanted + '_interval'],
      rules: [pair[1] for pair in made if pair[0] == wanted],
    }
    for wanted in ['', 'slow', 'rare']
    if std.length([pair for pair in made if pair[0] == wanted]) > 0
  ];

function(config, files)
  local shared = withSeconds(config.shared) + config.limits + { limits_sum: limitsSum(config.limits) };
  local known = [rule.alert for file in files for rule in file.rules if std.objectHas(rule, 'alert')];
  local unknown = [name for name in std.objectFields(config.alerts) if !std.member(known, name)];
  assert unknown == [] : '_config.alerts: no such alert: ' + std.join(', ', unknown);
  std.flattenArrays([ofFile(file.name, file.rules, shared, config.alerts) for file in files])
