// The kinds of panels that the dashboards have: Grafana's published components, and our drawings of the two that are not published.
import {
  cacheFieldDisplayNames, FieldColorModeId, FieldConfigProperty, FieldDisplay, getFieldDisplayValues, PanelPlugin, PanelProps, renderMarkdown, VizOrientation,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, useTheme2, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { Annotations } from './annotations';
import { customOptions } from './options';
import { Heatmap, StateTimeline, StatusHistory } from './timeline';

// Grafana shows `noValue` here, otherwise its own message
function WithData({ Panel, ...props }: PanelProps<any> & { Panel: any }) {
  const empty = props.data.series.every((frame) => frame.length === 0);
  const text = props.fieldConfig.defaults.noValue || 'No data';
  if (!empty) return <Panel {...props} />;
  return <div data-empty={text} style={{ display: 'flex', alignItems: 'center', justifyContent: 'center', height: '100%' }}>{text}</div>;
}

function Graph({ data, options, timeRange, timeZone, width, height }: PanelProps<any>) {
  const theme = useTheme2();
  return (
    <TimeSeries frames={data.series} structureRev={data.structureRev} timeRange={timeRange} timeZone={timeZone} width={width} height={height} legend={options.legend} options={options}>
      {(config: any) => <Annotations config={config} theme={theme} />}
    </TimeSeries>
  );
}

function useValues({ data, fieldConfig, options, replaceVariables, timeZone }: PanelProps<any>): () => FieldDisplay[] {
  const theme = useTheme2();
  return () => getFieldDisplayValues({ fieldConfig, reduceOptions: options.reduceOptions, replaceVariables, theme, data: data.series, sparkline: options.graphMode !== 'none', timeZone });
}

// a stat without data is not empty: it shows `noValue`, in the colour of the lowest threshold
function Stat(props: PanelProps<any>) {
  const theme = useTheme2();
  const { options, width, height } = props;
  return (
    <VizRepeater getValues={useValues(props)} source={props.data} width={width} height={height} renderCounter={props.renderCounter} itemSpacing={3} autoGrid orientation={options.orientation}
      renderValue={({ value, width, height, count }: any) => (
        <BigValue value={value.display} count={count} sparkline={value.sparkline} colorMode={options.colorMode} graphMode={options.graphMode} justifyMode={options.justifyMode}
          textMode={count === 1 && options.textMode === 'auto' ? ('value' as any) : options.textMode} text={options.text} width={width} height={height} theme={theme} wideLayout={options.wideLayout} />
      )} />
  );
}

function Bars(props: PanelProps<any>) {
  const theme = useTheme2();
  const { options, width, height } = props;
  const longest = (texts: string[]) => texts.reduce((one, other) => (other.length > one.length ? other : one), '');
  return (
    <VizRepeater getValues={useValues(props)} source={props.data} width={width} height={height} minVizHeight={options.minVizHeight} minVizWidth={options.minVizWidth} itemSpacing={10} renderCounter={props.renderCounter}
      orientation={VizOrientation.Horizontal}
      getAlignmentFactors={(values: FieldDisplay[]) => ({ title: longest(values.map((value) => value.display.title ?? '')), text: longest(values.map((value) => value.display.text)) })}
      renderValue={({ value, width, height, alignmentFactors }: any) => (
        <BarGauge value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor?.(value.colIndex)} width={width} height={height} orientation={VizOrientation.Horizontal} theme={theme}
          itemSpacing={10} lcdCellWidth={12} displayMode={options.displayMode} valueDisplayMode={options.valueMode} alignmentFactors={alignmentFactors} showUnfilled={options.showUnfilled} namePlacement={options.namePlacement} isOverflow={false} />
      )} />
  );
}

function Table({ data, options, fieldConfig, timeRange, width, height }: PanelProps<any>) {
  cacheFieldDisplayNames(data.series);
  const more: any = { enableVirtualization: false, getActions: () => [] };
  return <TableNG data={data.series[0]} width={width} height={height} noHeader={!options.showHeader} cellHeight={options.cellHeight} initialSortBy={options.sortBy} timeRange={timeRange} structureRev={data.structureRev} fieldConfig={fieldConfig} {...more} />;
}

function Text({ options, replaceVariables }: PanelProps<any>) {
  return <div className="markdown-html" dangerouslySetInnerHTML={{ __html: renderMarkdown(replaceVariables(options.content)) }} />;
}

function plugin(id: string, Panel: any, color: string = FieldColorModeId.PaletteClassic): PanelPlugin {
  const standardOptions: any = { [FieldConfigProperty.Color]: { settings: { byValueSupport: true, bySeriesSupport: true }, defaultValue: { mode: color } } };
  const made = new PanelPlugin(Panel).useFieldConfig({ standardOptions, useCustomConfig: customOptions });
  made.meta = { id, name: id, type: 'panel', sort: 1, module: '', baseUrl: '', info: { logos: { small: '', large: '' }, author: { name: '' }, description: '', links: [], screenshots: [], updated: '', version: '' }, skipDataQuery: id === 'text' } as any;
  return made;
}

const filled = (Panel: any) => (props: PanelProps<any>) => <WithData Panel={Panel} {...props} />;
const { Thresholds } = FieldColorModeId;
export const PLUGINS: Record<string, PanelPlugin> = {
  timeseries: plugin('timeseries', filled(Graph)),
  stat: plugin('stat', Stat, Thresholds),
  bargauge: plugin('bargauge', filled(Bars), Thresholds),
  table: plugin('table', filled(Table), Thresholds),
  text: plugin('text', Text),
  'state-timeline': plugin('state-timeline', StateTimeline),
  'status-history': plugin('status-history', StatusHistory, Thresholds),
  heatmap: plugin('heatmap', Heatmap),
};
