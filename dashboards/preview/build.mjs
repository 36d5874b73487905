// Bundles src/ and Grafana's libraries into one script that a browser can load.
import { readFile } from 'node:fs/promises';
import esbuild from 'esbuild';

// @grafana/runtime and its router layer expect version 5 of the router, everything else version 6
const router = (build) =>
  build.onResolve({ filter: /^react-router-dom$/ }, (found) =>
    /v5-compat|@grafana\/runtime/.test(found.importer)
      ? build.resolve('rrd5', { resolveDir: process.cwd(), kind: found.kind })
      : undefined
  );

// the published schema of tables lacks a constant that @grafana/ui imports
const schema = (build) =>
  build.onLoad({ filter: /raw\/composable\/table\/panelcfg\/x\/types\.gen\.mjs$/ }, async ({ path }) => {
    const text = await readFile(path, 'utf8');
    const missing = /\bdefaultOptions\b/.test(text) ? '' : '\nexport const defaultOptions = {cellHeight: "sm", frameIndex: 0, showHeader: true, sortBy: []};';
    return { contents: text + missing, loader: 'js' };
  });

await esbuild.build({
  entryPoints: ['src/main.tsx'],
  bundle: true,
  outfile: 'www/bundle.js',
  format: 'iife',
  platform: 'browser',
  target: 'es2022',
  jsx: 'automatic',
  loader: { '.svg': 'text', '.png': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' },
  define: { 'process.env.NODE_ENV': '"production"', 'process.env': '{}', global: 'window' },
  logLevel: 'error',
  plugins: [{ name: 'router', setup: router }, { name: 'schema', setup: schema }],
});
