// State timelines, status histories and heatmaps, which Grafana does not publish: drawn here from Grafana's own display processors, colour modes and thresholds.
import {
  DataFrame, Field, FieldColorModeId, FieldType, GrafanaTheme2, PanelProps, formattedValueToString, getActiveThreshold, getFieldDisplayName, getValueFormat,
} from '@grafana/data';
import { useTheme2 } from '@grafana/ui';
import { interpolateOranges } from 'd3-scale-chromatic';

type Shown = { text: string; color?: string };
const AXIS = 22;

// With thresholds as colour mode and merged values Grafana shows the threshold's name instead of the value: mappings are not used.
function shownBy(field: Field, merged: boolean, theme: GrafanaTheme2): (value: any) => Shown {
  const steps = field.config.thresholds?.steps ?? [];
  if (!merged || field.config.color?.mode !== FieldColorModeId.Thresholds || !steps.length) {
    return (value) => ({ text: formattedValueToString(field.display!(value)), color: field.display!(value).color });
  }
  const format = getValueFormat(field.config.unit ?? '');
  const names = new Map(steps.map((step, place) => {
    const below = step.value === -Infinity && place < steps.length - 1;
    const bound = formattedValueToString(format(below ? steps[place + 1].value : step.value, field.config.decimals ?? undefined));
    return [step, below ? `< ${bound}` : `${bound}+`];
  }));
  return (value) => {
    const step = getActiveThreshold(value, steps);
    return { text: names.get(step)!, color: theme.visualization.getColorByName(step.color) };
  };
}

// a bar for each run of equal states; a step without a sample ends it
function bars(time: Field, field: Field, end: number, shown: (value: any) => Shown) {
  const step = time.config.interval ?? 15000;
  const found: Array<Shown & { from: number; to: number }> = [];
  field.values.forEach((value, place) => {
    const at = time.values[place];
    const state = shown(value);
    const last = found.at(-1);
    if (last && last.to >= at && last.text === state.text) last.to = Math.min(at + step, end);
    else found.push({ ...state, from: at, to: Math.min(at + step, end) });
  });
  return found;
}

function valueFields(series: DataFrame[]) {
  return series.flatMap((frame) => {
    const time = frame.fields.find((field) => field.type === FieldType.time);
    return time ? frame.fields.filter((field) => field.type === FieldType.number).map((field) => ({ frame, time, field })) : [];
  });
}

export function StateTimeline({ data, options, timeRange, width, height }: PanelProps<any>) {
  const theme = useTheme2();
  const rows = valueFields(data.series);
  if (!rows.length) return <div data-empty="timeline" style={{ textAlign: 'center' }}>Data does not have a time field</div>;
  const [from, to] = [timeRange.from.valueOf(), timeRange.to.valueOf()];
  const names = rows.map(({ frame, field }) => getFieldDisplayName(field, frame, data.series));
  const left = Math.min(width * 0.5, Math.max(...names.map((name) => name.length)) * 6.7 + 16);
  const tall = (height - AXIS) / rows.length;
  const x = (at: number) => left + ((Math.max(at, from) - from) / (to - from)) * (width - left);
  const font = { fontFamily: theme.typography.fontFamily, fontSize: Math.min(12, tall) };
  return (
    <svg width={width} height={height}>
      {rows.map(({ time, field }, row) => (
        <g key={row} transform={`translate(0 ${row * tall})`}>
          <text x={left - 8} y={tall / 2} textAnchor="end" dominantBaseline="central" fill={theme.colors.text.primary} style={font}>{names[row]}</text>
          {bars(time, field, to, shownBy(field, options.mergeValues, theme)).map((bar, place) => {
            const wide = Math.max(1, x(bar.to) - x(bar.from));
            const opacity = (field.config.custom?.fillOpacity ?? 70) / 100;
            return (
              <g key={place}>
                <rect data-state={bar.text} x={x(bar.from)} width={wide} y={(tall * (1 - options.rowHeight)) / 2} height={tall * options.rowHeight} fill={bar.color} fillOpacity={opacity} />
                {wide > bar.text.length * 7 + 8 && tall > 11 && <text x={x(bar.from) + 4} y={tall / 2} dominantBaseline="central" fill={theme.colors.getContrastText(bar.color ?? '#888')} style={font}>{bar.text}</text>}
              </g>
            );
          })}
        </g>
      ))}
      {[0, 0.25, 0.5, 0.75, 1].map((part) => (
        <text key={part} x={left + part * (width - left)} y={height - 5} textAnchor={part === 0 ? 'start' : part === 1 ? 'end' : 'middle'} fill={theme.colors.text.secondary} style={font}>
          {new Date(from + part * (to - from)).toISOString().slice(11, 16)}
        </text>
      ))}
    </svg>
  );
}

// One cell per sample in the field's own colour; Grafana refuses more points than half of the pixels, and has texts in cells only if they are shown.
export function StatusHistory({ data, options, timeRange, width, height }: PanelProps<any>) {
  const theme = useTheme2();
  const rows = valueFields(data.series);
  if (!rows.length) return <div data-empty="status history" style={{ textAlign: 'center' }}>No data</div>;
  const points = Math.max(...rows.map(({ time }) => time.values.length));
  if (points > width / 2) return <div data-empty="status history">Too many points to visualize properly. ({points} points received)</div>;
  const [from, to] = [timeRange.from.valueOf(), timeRange.to.valueOf()];
  const names = rows.map(({ frame, field }) => getFieldDisplayName(field, frame, data.series));
  const left = Math.min(width * 0.5, Math.max(...names.map((name) => name.length)) * 6.7 + 16);
  const legend = options.legend.showLegend ? AXIS : 0;
  const tall = (height - AXIS - legend) / rows.length;
  const x = (at: number) => left + ((at - from) / (to - from)) * (width - left);
  const font = { fontFamily: theme.typography.fontFamily, fontSize: 12 };
  const steps = rows[0].field.config.thresholds?.steps ?? [];
  const bound = getValueFormat(rows[0].field.config.unit ?? '');
  return (
    <svg width={width} height={height}>
      {rows.map(({ time, field }, row) => (
        <g key={row} transform={`translate(0 ${row * tall})`}>
          <text x={left - 8} y={tall / 2} textAnchor="end" dominantBaseline="central" fill={theme.colors.text.primary} style={font}>{names[row]}</text>
          {field.values.map((value, place) => {
            const step = time.config.interval ?? 15000;
            const wide = Math.max(1, (x(from + step) - x(from)) * options.colWidth);
            return value === null || time.values[place] < from ? null : (
              <rect key={place} x={x(time.values[place])} width={wide} y={(tall * (1 - options.rowHeight)) / 2} height={tall * options.rowHeight} fill={field.display!(value).color} fillOpacity={(field.config.custom?.fillOpacity ?? 70) / 100} />
            );
          })}
        </g>
      ))}
      {[0, 0.25, 0.5, 0.75, 1].map((part) => (
        <text key={part} x={left + part * (width - left)} y={height - legend - 5} textAnchor={part === 0 ? 'start' : part === 1 ? 'end' : 'middle'} fill={theme.colors.text.secondary} style={font}>
          {new Date(from + part * (to - from)).toISOString().slice(11, 16)}
        </text>
      ))}
      {legend > 0 && steps.filter((step) => step.value !== -Infinity).map((step, place) => (
        <g key={place} transform={`translate(${place * 90} ${height - 14})`}>
          <rect width="14" height="4" y="3" fill={theme.visualization.getColorByName(step.color)} />
          <text x="20" y="10" fill={theme.colors.text.secondary} style={font}>{`${formattedValueToString(bound(step.value))}+`}</text>
        </g>
      ))}
    </svg>
  );
}

// Prometheus' cumulative buckets minus the one below; one colour scale from 0 to the fullest cell.
export function Heatmap({ data, options, timeRange, width, height }: PanelProps<any>) {
  const theme = useTheme2();
  const rows = valueFields(data.series).sort((one, other) => Number(one.field.labels?.le) - Number(other.field.labels?.le));
  if (!rows.length) return <div data-empty="heatmap" style={{ textAlign: 'center' }}>No data</div>;
  const cells = rows.map(({ time, field }, row) => {
    const below = new Map(row ? rows[row - 1].time.values.map((at: number, place: number) => [at, rows[row - 1].field.values[place]]) : []);
    return field.values.map((value, place) => ({ at: time.values[place], count: Math.max(0, value - Number(below.get(time.values[place]) ?? 0)) }));
  });
  const most = Math.max(...cells.flat().map((cell) => cell.count), 1e-9);
  const least = options.filterValues?.le ?? 0;
  const [from, to, left] = [timeRange.from.valueOf(), timeRange.to.valueOf(), 60];
  const tall = (height - AXIS) / rows.length;
  const x = (at: number) => left + ((at - from) / (to - from)) * (width - left);
  const scale = (part: number) => interpolateOranges(theme.isDark ? 1 - part ** options.color.exponent : part ** options.color.exponent);
  const bound = getValueFormat(options.yAxis?.unit ?? '');
  return (
    <svg width={width} height={height}>
      {cells.map((row, place) => (
        <g key={place}>
          <text x={left - 6} y={height - AXIS - (place + 0.5) * tall} textAnchor="end" fontSize="11" fill={theme.colors.text.secondary}>{formattedValueToString(bound(Number(rows[place].field.labels?.le)))}</text>
          {row.filter((cell) => cell.count > least && cell.at >= from).map((cell) => (
            <rect key={cell.at} x={x(cell.at)} y={height - AXIS - (place + 1) * tall} width={Math.max(1, x(cell.at + 15000) - x(cell.at) - 1)} height={tall - 1} fill={scale(cell.count / most)} />
          ))}
        </g>
      ))}
    </svg>
  );
}
