// Takes pictures: node take.mjs PROMETHEUS LIST, where LIST is a JSON file of {dashboard, variables, from, to, theme, width, height, file}.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright-core';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };
const [prometheus, list] = process.argv.slice(2);
const wanted = JSON.parse(await readFile(list, 'utf8'));

const server = createServer(async (request, answer) => {
  const name = decodeURIComponent(request.url.split('?')[0]);
  const place = name.startsWith('/file/') ? name.slice('/file'.length) : path.join('www', name === '/' ? 'index.html' : name);
  try {
    const text = await readFile(place);
    answer.writeHead(200, { 'content-type': TYPES[path.extname(place)] ?? 'application/octet-stream' }).end(text);
  } catch {
    answer.writeHead(404).end();
  }
}).listen(0, '127.0.0.1');
await new Promise((ready) => server.once('listening', ready));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
let failed = 0;
for (const one of wanted) {
  const page = await browser.newPage({ viewport: { width: one.width, height: one.height ?? 1080 } });
  await page.clock.setFixedTime(new Date(one.to)); // relative times count from the end of the recorded history
  page.on('pageerror', (error) => console.log('page error:', String(error.stack).slice(0, 600)));
  const query = new URLSearchParams({ ...one, prometheus, dashboard: `/file${path.resolve(one.dashboard)}`, variables: JSON.stringify(one.variables ?? {}) });
  await page.goto(`${origin}/?${query}`);
  await page.waitForFunction(() => window.__drawn?.done, null, { timeout: 120_000 });
  await page.screenshot({ path: one.file, fullPage: !one.height });
  const found = await page.evaluate(() => ({
    queries: window.__drawn.queries.length,
    errors: window.__drawn.queries.filter((query) => query.error).map((query) => `${query.error}: ${query.expr}`),
    regions: window.__drawn.regions,
    marks: window.__drawn.marks,
    empty: [...document.querySelectorAll('[data-empty]')].map((panel) => panel.dataset.empty),
    states: [...new Set([...document.querySelectorAll('[data-state]')].map((bar) => `${bar.dataset.state} ${bar.getAttribute('fill')}`))],
    cut: [...document.querySelectorAll('[data-testid*="Panel header"] h2')].filter((title) => title.scrollWidth > title.clientWidth).map((title) => title.textContent),
    wide: [...document.querySelectorAll('.rdg, [role="grid"]')].filter((table) => table.scrollWidth > table.clientWidth + 1).map((table) => `${table.scrollWidth} of ${table.clientWidth} px`),
  }));
  if (process.env.VERBOSE) console.log(await page.evaluate(() => window.__drawn.queries.map((query) => query.expr).slice(0, 3).join('\n')));
  failed += found.errors.length;
  console.log(path.basename(one.file), JSON.stringify(found));
  await page.close();
}
await browser.close();
server.close();
process.exitCode = failed ? 1 : 0;
