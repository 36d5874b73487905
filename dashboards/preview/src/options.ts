// The standard field options of Grafana, with its own processors: without them defaults and overrides have no effect.
import {
  FieldConfigProperty as Property, ThresholdsMode, booleanOverrideProcessor, dataLinksOverrideProcessor, displayNameOverrideProcessor,
  identityOverrideProcessor, numberOverrideProcessor, thresholdsOverrideProcessor, unitOverrideProcessor, valueMappingsOverrideProcessor,
} from '@grafana/data';

const option = (id: string, process: any, defaultValue?: any): any => ({
  id, path: id, name: id, process, defaultValue, editor: () => null, override: () => null, settings: {}, shouldApply: () => true, category: ['Standard'],
});

export const standardOptions = () => [
  option(Property.DisplayName, displayNameOverrideProcessor),
  option(Property.Unit, unitOverrideProcessor),
  option(Property.Min, numberOverrideProcessor),
  option(Property.Max, numberOverrideProcessor),
  option(Property.Decimals, numberOverrideProcessor),
  option(Property.Thresholds, thresholdsOverrideProcessor, {
    mode: ThresholdsMode.Absolute,
    steps: [{ value: -Infinity, color: 'green' }, { value: 80, color: 'red' }],
  }),
  option(Property.Mappings, valueMappingsOverrideProcessor, []),
  option(Property.NoValue, displayNameOverrideProcessor),
  option(Property.Links, dataLinksOverrideProcessor, []),
  option('actions', identityOverrideProcessor, []),
  option(Property.Color, identityOverrideProcessor),
  option(Property.Filterable, booleanOverrideProcessor),
  option('fieldMinMax', booleanOverrideProcessor),
];

const CUSTOM: Record<string, any> = {
  drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: 0, gradientMode: 'none', showPoints: 'auto', pointSize: 5,
  stacking: { mode: 'none', group: 'A' }, axisPlacement: 'auto', axisLabel: '', axisColorMode: 'text', axisBorderShow: false,
  scaleDistribution: { type: 'linear' }, axisCenteredZero: false, hideFrom: { legend: false, tooltip: false, viz: false },
  thresholdsStyle: { mode: 'off' }, spanNulls: false, insertNulls: false, barAlignment: 0, barWidthFactor: 0.6,
};
const WITHOUT_DEFAULT = ['lineStyle', 'fillBelowTo', 'axisSoftMin', 'axisSoftMax', 'axisWidth', 'axisGridShow', 'transform', 'width', 'minWidth', 'align', 'cellOptions', 'inspect', 'filterable', 'hidden', 'wrapText', 'lineColor', 'fillColor', 'pointColor'];

export function customOptions(builder: any) {
  for (const id of [...Object.keys(CUSTOM), ...WITHOUT_DEFAULT]) {
    builder.addCustomEditor({ ...option(id, identityOverrideProcessor, CUSTOM[id]), category: ['Custom'] });
  }
}
