// One dashboard on one page: Grafana's scenes for variables, layout, transformations and overrides; our panels; our annotations.
import 'uplot/dist/uPlot.min.css';
import './boot';
import {
  createTheme, EventBusSrv, LoadingState, PanelData, setTimeZoneResolver, standardEditorsRegistry, standardFieldConfigEditorRegistry, standardTransformers, standardTransformersRegistry, ThemeContext,
} from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import * as runtime from '@grafana/runtime';
import * as scenes from '@grafana/scenes';
import { GlobalStyles, PortalContainer } from '@grafana/ui';
import { createRoot } from 'react-dom/client';
import { BrowserRouter } from 'react-router-dom';
import { catchError, map, of } from 'rxjs';
import { load } from './annotations';
import { standardOptions } from './options';
import { PLUGINS } from './panels';
import { Prometheus } from './prometheus';

const drawn = (window as any).__drawn;
const asked = new URLSearchParams(location.search);
const chosen: Record<string, string | string[]> = JSON.parse(asked.get('variables')!);
const theme = createTheme({ colors: { mode: asked.get('theme') as any } });
const settings: any = {
  uid: 'prometheus', name: 'Prometheus', type: 'prometheus', id: 1, url: asked.get('prometheus'), isDefault: true, access: 'proxy', jsonData: {}, readOnly: true,
  meta: { id: 'prometheus', name: 'Prometheus', type: 'datasource', info: { logos: { small: '', large: '' } }, metrics: true },
};
const source = new Prometheus(settings);
let scene: scenes.EmbeddedScene;

function prepare() {
  (runtime.config as any).theme2 = theme;
  (runtime.config as any).theme = theme.v1;
  setTimeZoneResolver(() => 'utc');
  const editors = ['number', 'text', 'boolean', 'select', 'unit', 'color', 'thresholds', 'mappings', 'links', 'stats-picker', 'strings'];
  standardEditorsRegistry.setInit(() => editors.map((id) => ({ id, name: id, editor: () => null }) as any));
  standardFieldConfigEditorRegistry.setInit(standardOptions);
  const transformers = new Map(Object.values(standardTransformers).map((one: any) => [one.id, one]));
  standardTransformersRegistry.setInit(() => [...transformers.values()].map((one) => ({ id: one.id, name: one.name, description: '', editor: () => null, transformation: one }) as any));
  Object.assign(source, { meta: settings.meta, getRef: () => ({ type: 'prometheus', uid: 'prometheus' }) });
  runtime.setDataSourceSrv({ get: async () => source, getInstanceSettings: () => settings, getList: () => [settings], reload() {}, registerRuntimeDataSource() {} } as any);
  runtime.setPluginImportUtils({ importPanelPlugin: async (id: string) => PLUGINS[id], getPanelPluginFromCache: (id: string) => PLUGINS[id] } as any);
  runtime.setTemplateSrv({
    getVariables: () => [], containsTemplate: (text: any) => /\$/.test(text ?? ''), updateTimeRange() {},
    replace: (text: any, scoped: any, format: any) => scenes.sceneGraph.interpolate(scoped?.__sceneObject?.value?.valueOf?.() ?? scene, text, scoped, format),
  } as any);
  runtime.setRunRequest(((_: any, request: any) =>
    source.query(request).pipe(
      map((answer: any): PanelData => ({ state: answer.state, series: answer.data, errors: answer.errors, error: answer.errors?.[0], timeRange: request.range, request, structureRev: 1 })),
      catchError((error) => of({ state: LoadingState.Error, series: [], error: { message: String(error) }, timeRange: request.range }))
    )) as any);
  runtime.setEchoSrv({ flush() {}, addBackend() {}, addEvent() {} } as any);
  (runtime as any).setAppEvents?.(new EventBusSrv());
  runtime.setBackendSrv({ get: async () => ({}), fetch: () => of({ data: {} }), datasourceRequest: async () => ({}) } as any);
}

function variable(one: any) {
  const base = { name: one.name, hide: one.hide, label: one.label, description: one.description, isMulti: one.multi, includeAll: one.includeAll, allValue: one.allValue, skipUrlSync: true };
  if (one.type === 'datasource') return new scenes.DataSourceVariable({ ...base, pluginId: one.query, value: 'prometheus', text: 'Prometheus' });
  if (one.type === 'textbox') return new scenes.TextBoxVariable({ name: base.name, label: base.label, description: base.description, hide: base.hide, value: one.query, skipUrlSync: true });
  const value = chosen[one.name] ?? (one.includeAll ? '$__all' : '');
  const text = value === '$__all' ? 'All' : value;
  const start: any = one.multi ? { value: [value].flat(), text: [text].flat() } : { value, text };
  return new scenes.QueryVariable({ ...base, ...start, query: one.query, datasource: one.datasource, sort: one.sort, refresh: one.refresh });
}

function panel(one: any) {
  const runner = one.targets?.length ? new scenes.SceneQueryRunner({ datasource: one.datasource, queries: one.targets, maxDataPoints: one.maxDataPoints }) : undefined;
  const data = runner && one.transformations?.length ? new scenes.SceneDataTransformer({ $data: runner, transformations: one.transformations }) : runner;
  const body = new scenes.VizPanel({
    key: `panel-${one.id}`, title: one.title, description: one.description, pluginId: one.type, pluginVersion: '12.4.10',
    options: one.options ?? {}, fieldConfig: one.fieldConfig ?? { defaults: {}, overrides: [] }, hoverHeader: !one.title, $data: data,
  } as any);
  return new scenes.SceneGridItem({ x: one.gridPos.x, y: one.gridPos.y, width: one.gridPos.w, height: one.gridPos.h, body });
}

function rows(dashboard: any) {
  const children: any[] = [];
  for (const one of dashboard.panels) {
    if (one.type === 'row') {
      const closed = one.collapsed && !asked.get('open');
      children.push(new scenes.SceneGridRow({ title: one.title, isCollapsed: closed, y: one.gridPos.y, children: (one.panels ?? []).map(panel) }));
    } else {
      children.at(-1).setState({ children: [...children.at(-1).state.children, panel(one)] });
    }
  }
  return children;
}

function controls(dashboard: any) {
  return [new scenes.VariableValueSelectors({}), new scenes.SceneControlsSpacer(), new scenes.SceneTimePicker({ isOnCanvas: true })];
}

function Switches({ dashboard }: { dashboard: any }) {
  const shown = dashboard.annotations.list.filter((one: any) => !one.hide);
  const text = (one: string, place: number) => <span key={place} style={{ marginRight: 16, color: theme.colors.text.secondary, fontSize: 12 }}>{one}</span>;
  return <div style={{ marginBottom: 8 }}>{shown.map((one: any, place: number) => text(`${one.enable ? '◉' : '○'} ${one.name}`, place))}{dashboard.links.map((one: any, place: number) => text(`▸ ${one.title}`, 100 + place))}</div>;
}

const pause = (milliseconds: number) => new Promise((ready) => setTimeout(ready, milliseconds));

// "drawn" means that no query was sent for a while, and all results are on the page
async function quiet() {
  for (let count = -1, still = 0; still < 8; await pause(150)) {
    still = drawn.queries.length === count ? still + 1 : 0;
    count = drawn.queries.length;
  }
}

async function draw() {
  await initPluginTranslations('grafana').catch(() => undefined);
  const dashboard = await (await fetch(asked.get('dashboard')!)).json();
  prepare();
  scene = new scenes.EmbeddedScene({
    $timeRange: new scenes.SceneTimeRange({ from: asked.get('from')!, to: asked.get('to')!, timeZone: 'utc' }),
    $variables: new scenes.SceneVariableSet({ variables: dashboard.templating.list.map(variable) }),
    controls: controls(dashboard),
    body: new scenes.SceneGridLayout({ isLazy: false, children: rows(dashboard) }),
  });
  const menu = Number(asked.get('menu') ?? 0);
  const page = (
    <BrowserRouter>
      <ThemeContext.Provider value={theme}>
        <GlobalStyles isExtensionSidebarOpen={false as any} />
        <div style={{ padding: 16, paddingLeft: 16 + menu }}>
          <h3 style={{ margin: '0 0 8px' }}>{dashboard.title}</h3>
          <Switches dashboard={dashboard} />
          <scene.Component model={scene} />
        </div>
        <PortalContainer />
      </ThemeContext.Provider>
    </BrowserRouter>
  );
  const root = createRoot(document.getElementById('root')!);
  root.render(page);
  await quiet();
  const range = scenes.sceneGraph.getTimeRange(scene).state.value;
  await load(dashboard, source, range, (text, scoped, format) => scenes.sceneGraph.interpolate(scene, text, scoped, format));
  await pause(500);
  drawn.done = true;
}

draw();
