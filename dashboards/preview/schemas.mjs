// Writes the facts of Grafana's own schemas that the tests compare the dashboards with: node schemas.mjs > ../../tests/dashboards/grafana_schemas.json
// Needs typescript and the packages `schema10` to `schema13` (npm aliases of @grafana/schema@10 to @13) below the working directory.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import ts from 'typescript';

const KINDS = { timeseries: 'timeseries', stat: 'stat', bargauge: 'bargauge', table: 'table', 'state-timeline': 'statetimeline', 'status-history': 'statushistory' };
const CORE = ['Dashboard', 'Panel', 'AnnotationQuery', 'VariableModel', 'DashboardLink', 'DataTransformerConfig', 'FieldConfig', 'ThresholdsConfig', 'GridPos', 'FieldColor'];
const DEPTH = 3;

const first = (...patterns) => patterns.flatMap((pattern) => (existsSync(pattern) ? [pattern] : [])).at(0);

const types = (folder) => `${folder}/${readdirSync(folder).find((name) => name.endsWith('types.gen.d.ts'))}`;

function literals(type) {
  const parts = type.isUnion() ? type.types : [type];
  return parts.every((part) => part.isLiteral()) ? parts.map((part) => part.value).sort() : undefined;
}

// a name of a basic type, a list of the values that are allowed, or the properties of an object
function described(checker, type, depth) {
  const real = checker.getNonNullableType(type);
  const values = literals(real);
  if (values) return values;
  if (real.flags & ts.TypeFlags.StringLike) return 'string';
  if (real.flags & ts.TypeFlags.NumberLike) return 'number';
  if (real.flags & ts.TypeFlags.BooleanLike) return 'boolean';
  if (checker.isArrayType(real)) return 'array';
  if (real.isUnion() || real.flags & ts.TypeFlags.Any || depth === 0 || checker.getIndexInfosOfType(real).length) return 'any';
  const found = checker.getPropertiesOfType(real).map((one) => [one.name, described(checker, checker.getTypeOfSymbol(one), depth - 1)]);
  if (!found.length) return 'any';
  return Object.fromEntries(found.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function major(number) {
  const root = `node_modules/schema${number}`;
  const dist = existsSync(`${root}/dist/types/raw`) ? `${root}/dist/types` : `${root}/dist/esm`;
  const index = first(`${root}/dist/types/index.d.ts`, `${root}/dist/esm/index.d.ts`, `${root}/dist/index.d.ts`);
  const places = Object.entries(KINDS).map(([kind, folder]) => [kind, types(`${dist}/raw/composable/${folder}/panelcfg/x`)]);
  const program = ts.createProgram([index, ...places.map(([, place]) => place)], {
    noEmit: true, strict: true, skipLibCheck: true, moduleResolution: ts.ModuleResolutionKind.Bundler, module: ts.ModuleKind.ESNext, baseUrl: '.', paths: { '@grafana/schema': [index] },
  });
  const checker = program.getTypeChecker();
  const exported = (place) => new Map(checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(place))).map((one) => [one.name, one]));
  const shape = (symbol) => (symbol ? described(checker, checker.getDeclaredTypeOfSymbol(symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol), DEPTH) : {});
  const core = exported(index);
  const found = Object.fromEntries(CORE.map((name) => [name, shape(core.get(name))]));
  for (const [kind, place] of places) {
    const own = exported(place);
    found[`${kind}.options`] = shape(own.get('Options'));
    const custom = own.get('FieldConfig') ?? core.get({ timeseries: 'GraphFieldConfig', table: 'TableFieldOptions' }[kind]);
    found[`${kind}.custom`] = shape(custom);
  }
  return [JSON.parse(readFileSync(`${root}/package.json`, 'utf8')).version, found];
}

const section = ([name, facts]) => `  ${JSON.stringify(name)}: ${JSON.stringify(facts)}`;
const versions = [10, 11, 12, 13].map(major).map(([version, found]) => ` ${JSON.stringify(version)}: {\n${Object.entries(found).map(section).join(',\n')}\n }`);
console.log(`{\n${versions.join(',\n')}\n}`);
