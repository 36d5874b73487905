// Queries of the panels, as Grafana's data source makes them, sent to Prometheus directly.
import { DataFrame, DataQueryRequest, DataQueryResponse, DataSourceApi, FieldType, LoadingState, ScopedVars, rangeUtil, renderLegendFormat, toDataFrame } from '@grafana/data';
import { getTemplateSrv } from '@grafana/runtime';
import { from, Observable } from 'rxjs';

const SCRAPE = 15;
const drawn = (window as any).__drawn;
type Found = { metric: Record<string, string>; values: Array<[number, string]> };

function escaped(value: unknown) {
  return String(value).replace(/\\/g, '\\\\').replace(/[$^*{}[\]'+?.()|]/g, '\\\\$&');
}

// Grafana escapes the values of multi-value variables
export function written(value: any, variable: any) {
  if (Array.isArray(value)) return value.length === 1 ? escaped(value[0]) : `(${value.map(escaped).join('|')})`;
  return variable.multi && value !== variable.allValue ? escaped(value) : String(value);
}

export function intervals(range: any, step: number): ScopedVars {
  const span = Math.round((range.to.valueOf() - range.from.valueOf()) / 1000);
  const text = (seconds: number) => ({ text: `${seconds}s`, value: `${seconds}s` });
  return { __interval: text(step), __rate_interval: text(Math.max(step + SCRAPE, 4 * SCRAPE)), __range: text(span) };
}

export class Prometheus extends DataSourceApi<any> {
  constructor(private settings: any) {
    super(settings);
  }

  async get(path: string, parameters: Record<string, string>) {
    const reply = await (await fetch(`${this.settings.url}${path}?${new URLSearchParams(parameters)}`)).json();
    if (reply.status !== 'success') throw new Error(reply.error);
    return reply.data;
  }

  async series(expr: string, range: any, step: number): Promise<Found[]> {
    const start = Math.floor(range.from.valueOf() / 1000 / step) * step;
    return (await this.get('/api/v1/query_range', { query: expr, start: `${start}`, end: `${range.to.valueOf() / 1000}`, step: `${step}` })).result;
  }

  async now(expr: string, range: any): Promise<Found[]> {
    const data = await this.get('/api/v1/query', { query: expr, time: `${range.to.valueOf() / 1000}` });
    if (data.resultType === 'scalar') return [{ metric: {}, values: [data.result] }];
    return data.result.map((one: any) => ({ metric: one.metric, values: [one.value] }));
  }

  query(request: DataQueryRequest<any>): Observable<DataQueryResponse> {
    return from(this.all(request));
  }

  private async all(request: DataQueryRequest<any>): Promise<DataQueryResponse> {
    const answers = await Promise.all(request.targets.filter((target) => target.expr).map((target) => this.one(target, request)));
    const errors = answers.flatMap((answer) => answer.errors);
    return { data: answers.flatMap((answer) => answer.frames), errors: errors.length ? errors : undefined, state: errors.length ? LoadingState.Error : LoadingState.Done };
  }

  private async one(target: any, request: DataQueryRequest<any>) {
    const step = Math.max(SCRAPE, rangeUtil.intervalToSeconds(request.interval ?? '15s'));
    const scoped = { ...request.scopedVars, ...intervals(request.range, step) };
    const expr = getTemplateSrv().replace(target.expr, scoped, written);
    const record: any = { expr };
    drawn.queries.push(record);
    try {
      const found = await (target.instant ? this.now(expr, request.range) : this.series(expr, request.range, step));
      const several = request.targets.length > 1;
      const frames = target.format === 'table' ? [asTable(found, target.refId, several)] : found.map((one) => asSeries(one, target, step));
      return { frames, errors: [] };
    } catch (error: any) {
      record.error = error.message;
      return { frames: [], errors: [{ message: error.message, refId: target.refId }] };
    }
  }

  async metricFindQuery(asked: any, options?: any) {
    const text = getTemplateSrv().replace(asked.query ?? asked, options?.scopedVars, written);
    const [, selector, label] = text.match(/^label_values\((.+), (\w+)\)$/s)!;
    return (await this.get(`/api/v1/label/${label}/values`, { 'match[]': selector })).map((value: string) => ({ text: value }));
  }

  async testDatasource() {
    return { status: 'success', message: '' };
  }
}

function asTable(found: Found[], refId: string, several: boolean): DataFrame {
  const labels = [...new Set(found.flatMap((one) => Object.keys(one.metric)))].sort();
  const name = several ? `Value #${refId}` : 'Value';
  const rows = found.flatMap((one) => one.values.map(([at, value]) => ({ at: at * 1000, value: Number(value), metric: one.metric })));
  if (!rows.length) return toDataFrame({ refId, fields: [] });
  return toDataFrame({
    refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: rows.map((row) => row.at) },
      ...labels.map((label) => ({ name: label, type: FieldType.string, values: rows.map((row) => row.metric[label] ?? '') })),
      { name, type: FieldType.number, values: rows.map((row) => row.value) },
    ],
  });
}

function asSeries({ metric, values }: Found, target: any, step: number): DataFrame {
  const { __name__, ...labels } = metric;
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const name = target.legendFormat === '__auto' ? `${__name__ ?? ''}{${pairs.join(', ')}}` : renderLegendFormat(target.legendFormat, metric);
  return toDataFrame({
    refId: target.refId,
    name,
    fields: [
      { name: 'Time', type: FieldType.time, config: { interval: step * 1000 }, values: values.map(([at]) => at * 1000) },
      { name: 'Value', type: FieldType.number, labels, config: { displayNameFromDS: name }, values: values.map(([, value]) => Number(value)) },
    ],
  });
}
