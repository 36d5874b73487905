// What alerts/generate.py and dashboards/boards/limits.py do with a threshold.
local units = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400, w: 604800, y: 31536000 };
local isDigit(char) = std.length(std.findSubstr(char, '0123456789')) > 0;

// The parts of a duration such as 1m30s: numbers and units in turn.
local parts(duration) = std.foldl(
  function(found, char)
    local last = std.length(found) - 1;
    if last >= 0 && isDigit(char) == isDigit(found[last][0])
    then found[:last] + [found[last] + char]
    else found + [char],
  std.stringChars(duration),
  []
);

local isDuration(value) =
  std.isString(value) && value != '' && (
    local found = parts(value);
    std.length(found) % 2 == 0
    && isDigit(found[0][0])
    && std.all([std.objectHas(units, found[i]) for i in std.range(0, std.length(found) - 1) if i % 2 == 1])
  );

local halfToEven(value) =
  local whole = std.floor(value), part = value - whole;
  if part > 0.5 || (part == 0.5 && whole % 2 == 1) then whole + 1 else whole;

{
  // A value in plain notation: 0.00001 and not 1e-05.
  text(value)::
    if std.isString(value) then std.stripChars(value, ' \t\r\n')
    else
      local size = std.abs(value), whole = std.floor(size);
      // apart, because '%.10f' of a great number would multiply it beyond what is exact
      local decimals = std.floor((size - whole) * 1e10 + 0.5);
      local digits = '%d.%010d' % (if decimals < 1e10 then [whole, decimals] else [whole + 1, 0]);
      (if value < 0 then '-' else '') + std.rstripChars(std.rstripChars(digits, '0'), '.'),

  // To this number of decimals.
  rounded(value, digits):: local shift = std.pow(10, digits); std.floor(value * shift + 0.5) / shift,

  // The steps of Grafana's thresholds, from the lowest value to the highest.
  ordered(steps):: std.sort(steps, function(step) [step.value, step.color]),

  isDuration:: isDuration,

  // The seconds of a duration such as 1m30s.
  seconds(duration)::
    local found = parts(duration);
    halfToEven(std.foldl(
      function(sum, i) sum + std.parseInt(found[2 * i]) * units[found[2 * i + 1]],
      std.range(0, std.length(found) / 2 - 1),
      0
    )),
}
