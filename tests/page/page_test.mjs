// The page in Chromium, on a real server: what it shows, to whom, and that it only looks.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import process from 'node:process';
import { after, before, test } from 'node:test';
import zlib from 'node:zlib';
import { launch, Screen } from './browser.mjs';
import { HOSTILE, Server } from './server.mjs';

const work = process.env.WORK;
const source = process.env.PHIMAP_SOURCE;
const READER = 'reader-token-0123456789';
let server;
let guarded;
let browser;

before(async () => {
  browser = await launch();
  server = await Server.start(path.join(work, 'open'));
  await server.fill();
  // The test looks at no more than ten rows a second.
  await server.drift(10);
  fs.writeFileSync(path.join(work, 'tokens'), `reader ${READER}\nadmin admin-token-0123456789\n`, { mode: 0o600 });
  guarded = await Server.start(path.join(work, 'guarded'), [`--token_file=${path.join(work, 'tokens')}`]);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await guarded?.stop();
});

// Opens a screen of the open server, and has `use` look at it. Nothing may go wrong on the way.
async function on(hash, use, options) {
  const screen = await Screen.open(browser, options?.origin ?? server.origin, hash, options);
  try {
    await use(screen);
    assert.deepEqual(await screen.allFaults(), []);
    assert.deepEqual(screen.foreignRequests(), []);
  } finally {
    await screen.close();
  }
}

const SCREENS = [
  ['', 'Mappings'], ['#/offers', 'What this server can build'], ['#/m/letters', 'letters'], ['#/m/letters/2', 'letters@2'],
  ['#/m/letters/prod', 'letters@prod is version 2'], ['#/m/spam/1', 'spam@1'], ['#/m/turbines/1', 'turbines@1'], ['#/m/flowers/1', 'flowers@1'],
  ['#/m/waves/1', 'waves@1'], ['#/m/lines/1', 'lines@1'], ['#/m/hostile', 'hostile'], ['#/m/hostile/1', 'hostile@1'],
  ['#/m/hostile/1/try', 'hostile@1'], ['#/m/turbines/1/try', 'turbines@1'], ['#/m/lines/1/try', 'lines@1'], ['#/m/letters/prod/use', 'letters@prod'],
];
const LOOKS = [['light', { width: 1200 }], ['dark', { width: 1200, scheme: 'dark' }], ['narrow', { width: 360 }], ['narrow and dark', { width: 360, scheme: 'dark' }]];

for (const [hash, heading] of SCREENS) {
  test(`the screen /${hash} shows real data, and axe finds nothing, light, dark and narrow`, async () => {
    for (const [look, options] of LOOKS) {
      await on(hash, async (screen) => {
        await screen.heading(heading);
        if (hash.endsWith('/try') && !hash.includes('lines')) {
          await screen.click('button', 'Put in example rows');
          await screen.press();
        }
        await screen.page.evaluate(() => document.querySelectorAll('details').forEach((one) => { one.open = true; }));
        await new Promise((resolve) => setTimeout(resolve, 200));
        const seen = await screen.page.evaluate(() => ({
          figures: [...document.querySelectorAll('figure')].map((one) => [one.querySelector('svg') !== null, one.querySelectorAll('tbody tr').length > 0, one.textContent.match(/NaN|undefined|null|\[object/)?.[0] ?? 'no fault']),
          overflow: document.documentElement.scrollWidth - innerWidth,
          strange: document.querySelector('main').innerText.match(/NaN|undefined|\[object/)?.[0],
          ids: [...document.querySelectorAll('[id]')].map((one) => one.id),
        }));
        for (const figure of seen.figures) assert.deepEqual(figure, [true, true, 'no fault']);
        assert.equal(seen.strange, undefined, look);
        assert.ok(seen.overflow <= 0, `${look}: ${seen.overflow} pixels too wide`);
        assert.equal(new Set(seen.ids).size, seen.ids.length);
        assert.deepEqual(await screen.violations(), [], look);
      }, options);
    }
  });
}

test('the first screen names all mappings with verdict, size, age and aliases', () => on('', async (screen) => {
  await screen.page.waitForFunction(() => !document.querySelector('main').textContent.includes('…'));
  const rows = await screen.page.$$eval('main table:first-of-type tbody tr', (found) => found.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
  const letters = rows.find(([name]) => name === 'letters');
  assert.equal(rows.filter(([name]) => ['flowers', 'hostile', 'letters', 'lines', 'spam', 'turbines', 'waves'].includes(name)).length, 7);
  assert.equal(letters[1], '2');
  assert.match(letters[2], /^(good|fair|poor)$/);
  assert.equal(letters[3], '26 classes');
  assert.match(letters[4], /KiB$/);
  assert.match(letters[5], /ago$/);
  assert.match(letters[7], /canary → 2.*prod → 2/s);
}));

test('certificate and report are drawn with the numbers of the API', () => on('#/m/spam/1', async (screen) => {
  const version = await server.ask('GET', '/v1/mappings/spam/versions/1');
  const titles = await screen.page.$$eval('figcaption', (found) => found.map((one) => one.textContent));
  for (const title of ['Spectrum', 'Share of a row that is lost', 'Dimensions kept', 'Share of errors', 'Confusion', 'Reliability', 'Promise of sets', 'Choice of alpha']) {
    assert.ok(titles.includes(title), `${title} is missing among ${titles}`);
  }
  const tableOf = (title) => screen.page.$$eval('figure', (found, wanted) => [...found.find((one) => one.querySelector('figcaption').textContent === wanted)
    .querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)), title);
  const confusion = await tableOf('Confusion');
  const { classes } = version.head.report;
  assert.equal(confusion.reduce((sum, [, , rows]) => sum + Number(rows), 0), Number(classes.rows));
  const [, , right] = confusion.find(([actual, called]) => actual === 'spam' && called === 'spam');
  assert.equal(right, classes.classes[1].correct);
  assert.equal((await tableOf('Spectrum')).length, version.certificate.spectrum.eigenvalues.length);
  assert.equal((await tableOf('Reliability')).length, classes.reliability.length);
}));

test('drift of an alias is shown with its evidence', () => on('#/m/letters', async (screen) => {
  const { aliases } = await server.ask('GET', '/v1/mappings/letters/drift');
  assert.ok(aliases[0].evidence >= 1, `the rows of the load generator have evidence ${aliases[0].evidence}`);
  assert.match(await screen.text('main'), /the served rows have drifted/);
  const rows = await screen.page.$$eval('figure', (found) => [...found.find((one) => one.textContent.includes('Evidence for drift of prod'))
    .querySelectorAll('tbody th')].map((cell) => cell.textContent));
  assert.equal(rows[0], 'all together');
  assert.equal(rows.length, 1 + aliases[1].scores.length);
}));

test('hostile names arrive as text', async () => {
  for (const hash of ['#/m/hostile/1', '#/m/hostile/1/try']) {
    await on(hash, async (screen) => {
      if (hash.endsWith('try')) {
        await screen.click('button', 'Put in example rows');
        await screen.press();
      }
      const seen = await screen.page.evaluate(() => ({
        text: document.querySelector('main').textContent + (document.querySelector('#rows')?.value ?? ''),
        strangers: document.querySelectorAll('main img, main script, main style, body > script, [onerror], main iframe').length,
        scripts: [...document.scripts].map((one) => one.getAttribute('src')),
      }));
      for (const name of HOSTILE) assert.ok(seen.text.includes(name) || seen.text.includes(name.replaceAll('"', '""')), name);
      assert.equal(seen.strangers, 0);
      assert.deepEqual(seen.scripts, ['/page/main.js']);
    });
  }
  // A name in the address is as hostile as one from the server.
  for (const hash of [`#/m/${encodeURIComponent(HOSTILE[0])}`, `#/m/letters/${encodeURIComponent(HOSTILE[1])}`, '#/m/%ZZ', '#/javascript:alert(1)', '#/m/../../x']) {
    const screen = await Screen.open(browser, server.origin, hash);
    await screen.heading('This cannot be shown');
    // The browser itself notes a status of 400 or 404 as an error; nothing else may be there.
    assert.deepEqual((await screen.allFaults()).filter((fault) => !/Failed to load resource/.test(fault)), []);
    assert.equal(await screen.page.$$eval('main img, main script, main style', (found) => found.length), 0);
    assert.deepEqual(screen.foreignRequests(), []);
    await screen.close();
  }
});

test('the keyboard alone leads to an answer', () => on('', async (screen) => {
  const { page } = screen;
  // Presses Tab until the element with this text has the focus, which must be visible.
  async function reach(words) {
    for (let i = 0; i < 80; ++i) {
      await page.keyboard.press('Tab');
      const focus = await page.evaluate(() => {
        const node = document.activeElement;
        const style = getComputedStyle(node);
        return { text: node.textContent.trim(), marked: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 };
      });
      if (focus.text !== words) continue;
      assert.ok(focus.marked, `the focus on ${words} cannot be seen`);
      return;
    }
    assert.fail(`Tab does not reach ${words}`);
  }
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement.id === 'main');
  await screen.heading('Mappings');
  await reach('flowers');
  await page.keyboard.press('Enter');
  await screen.heading('flowers');
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1');
  await reach('1');
  await page.keyboard.press('Enter');
  await screen.heading('flowers@1');
  await reach('Numbers of Share of errors');
  await page.keyboard.press('Enter');
  assert.ok(await page.evaluate(() => document.activeElement.parentElement.open));
  await page.evaluate(() => { scrollTo(0, 0); document.querySelector('h1').focus(); });
  await reach('Try it');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#rows');
  await reach('Put in example rows');
  await page.keyboard.press('Enter');
  await reach('Compute');
  await page.keyboard.press('Enter');
  await page.waitForSelector('pre.answer');
  assert.match(await screen.text('#news'), /^4 rows answered$/);
}));

test('features and answers are those of the API', async () => {
  await on('#/m/spam/1/try', async (screen) => {
    await screen.click('button', 'Put in example rows');
    const csv = await screen.page.$eval('#rows', (area) => area.value);
    const rows = csv.split('\n').slice(1).map((line) => line.split(',').map(Number));
    assert.deepEqual(await screen.press(), await server.ask('POST', '/v1/mappings/spam@1:predict', { rows, probabilities: true, confidence: 0.9 }));
    assert.deepEqual(await screen.compute(csv, { wanted: 'features' }), await server.ask('POST', '/v1/mappings/spam@1:transform', { rows, residual: true }));
    const answer = await server.ask('POST', '/v1/mappings/spam@1:transform', { rows, residual: true });
    const cells = await screen.page.$$eval('form tbody tr', (found) => found.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(cells.map((row) => Number(row[4].replace('−', '-'))), answer.features.map((row) => Number(row[0].toPrecision(6))));
  });
  await on('#/m/turbines/1/try', async (screen) => {
    const rows = [[0.5, 0.25, 0.125], [0.1, 0.2, 0.3]];
    const expected = await server.ask('POST', '/v1/mappings/turbines@1:predict', { rows, deviations: true, confidence: 0.9 });
    assert.deepEqual(await screen.compute(JSON.stringify(rows)), expected);
    assert.deepEqual(await screen.compute('0.5 0.25 0.125\n0.1 0.2 0.3'), expected);
    assert.match(await screen.text('form table'), / to /);
    await assert.rejects(screen.compute('0.5,0.25,0.125\n0.1,,0.3'), /row 1, column heat: expected a number, got nothing/);
    await assert.rejects(screen.compute('0.5,0.25'), /expected 3 columns, got 2/);
  });
  await on('#/m/waves/1/try', async (screen) => {
    await screen.compute('1,2,3');
    assert.doesNotMatch(await screen.text('form table'), /residual/);
  }).catch((error) => assert.match(error.message, /status of 400/));  // The browser notes that there are no residuals.
  await on('#/m/lines/1/try', async (screen) => {
    const expected = await server.ask('POST', '/v1/mappings/lines@1:transform', { rows: ['ein Text', 'a "text", it is'], residual: true });
    assert.deepEqual(await screen.compute('ein Text\na "text", it is'), expected);
    await screen.page.type('#column', 'line');
    assert.deepEqual(await screen.compute('id,line\n1,ein Text\n2,"a ""text"", it is"'), expected);
  });
});

test('a CSV file can be dropped, with its columns in any order and others beside them', () => on('#/m/flowers/1/try', async (screen) => {
  const lines = fs.readFileSync(path.join(source, 'lab/data/iris.csv'), 'utf8').trim().split('\n').map((line) => line.split(','));
  const order = [4, 2, 0, 3, 1];
  const csv = lines.map((line) => order.map((i) => line[i]).join(';')).join('\r\n');
  await screen.page.evaluate((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], 'iris.csv', { type: 'text/csv' }));
    document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  }, csv);
  await screen.page.waitForFunction(() => document.querySelector('#rows').value !== '');
  const rows = lines.slice(1).map((line) => line.slice(0, 4).map(Number));
  const expected = await server.ask('POST', '/v1/mappings/flowers@1:predict', { rows, probabilities: true, confidence: 0.9 });
  assert.deepEqual(await screen.press(), expected);
  const right = expected.labels.filter((label, i) => expected.class_names[label] === lines[i + 1][4]).length;
  assert.ok((await screen.text('form section')).includes(`The column “label” agrees in ${right} of 150 rows.`));
  // The same by the button for files.
  const file = path.join(work, 'again.csv');
  fs.writeFileSync(file, csv);
  await screen.page.$eval('#rows', (area) => { area.value = ''; });
  await (await screen.page.$('#file')).uploadFile(file);
  await screen.page.waitForFunction(() => document.querySelector('#rows').value !== '');
  assert.deepEqual(await screen.press(), expected);
}));

test('builds show their progress while they run, and how they ended', async () => {
  const tuning = spawn(server.phimap, ['tune', 'tuned', `--input=${path.join(source, 'lab/data/spam.csv')}`, '--label=label', '--budget=120s'],
    { env: { ...process.env, PHIMAP_SERVER: server.grpc }, stdio: 'ignore' });
  const ended = new Promise((resolve) => tuning.on('exit', resolve));
  for (let builds = []; !builds.some((job) => job.state === 'STATE_COMPUTING');) ({ builds = [] } = await server.ask('GET', '/v1/builds'));
  await on('', async (screen) => {
    await screen.page.waitForSelector('progress[value]');
    const first = await screen.page.$eval('progress', (bar) => bar.value);
    await screen.page.waitForFunction((before) => document.querySelector('progress')?.value > before, { timeout: 60000 }, first);
    assert.deepEqual(await screen.violations(), []);
    tuning.kill('SIGINT');
    await ended;
    await screen.page.waitForFunction(() => document.querySelector('progress') === null && document.querySelector('main').textContent.includes('cancelled'), { timeout: 60000 });
    assert.match(await screen.text('main'), /letters@2/);
  });
});

test('a server with tokens asks for one, which stays in memory', async () => {
  // The browser notes a status of 401 as an error.
  const screen = await Screen.open(browser, guarded.origin);
  const { page } = screen;
  await screen.heading('This server asks for a token');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'token');
  assert.deepEqual(await screen.violations(), []);
  await page.keyboard.type('not-a-token-0123456789');
  await page.keyboard.press('Enter');
  await page.waitForSelector('[role=alert]');
  await page.keyboard.type(READER);
  await page.keyboard.press('Enter');
  await screen.heading('Mappings');
  const { body } = await page.evaluate(async () => ({ body: document.documentElement.outerHTML }));
  const kept = await page.evaluate(async () => JSON.stringify([
    { ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state, window.name, await indexedDB.databases(), await caches.keys().catch(() => []),
  ]));
  assert.ok(!body.includes(READER) && !kept.includes(READER), kept);
  const asked = screen.requests.filter(({ url }) => url.includes('/v1/'));
  assert.equal(asked.at(-1).headers.authorization, `Bearer ${READER}`);
  assert.ok(screen.requests.every(({ url }) => !url.includes(READER)));
  assert.deepEqual(screen.foreignRequests(), []);
  assert.deepEqual((await screen.allFaults()).filter((fault) => !/status of 401/.test(fault)), []);
  await page.reload({ waitUntil: 'networkidle0' });
  await screen.heading('This server asks for a token');
  await page.keyboard.type(READER);
  await page.keyboard.press('Enter');
  await screen.heading('Mappings');
  await screen.click('button', 'Forget the token');
  await screen.heading('This server asks for a token');
  await screen.close();
});

test('snippets have the address and the name, and run', () => on('#/m/turbines/1/use', async (screen) => {
  const snippets = await screen.page.$$eval('.snippet', (found) => Object.fromEntries(found.map((one) => [one.querySelector('h3').textContent, one.querySelector('code').textContent])));
  assert.deepEqual(Object.keys(snippets), ['Python', 'curl', 'Node.js', 'Command line']);
  for (const [title, text] of Object.entries(snippets)) {
    assert.ok(text.includes(title === 'curl' ? server.http : server.grpc), title);
    assert.ok(text.includes('turbines@1'), title);
  }
  const said = await new Promise((resolve, reject) => {
    const shell = spawn('bash', ['-c', snippets.curl], { env: { ...process.env, no_proxy: '127.0.0.1' } });
    let out = '';
    shell.stdout.on('data', (bytes) => { out += bytes; });
    shell.on('exit', (code) => (code === 0 ? resolve(out) : reject(new Error(`curl: ${code}`))));
  });
  assert.deepEqual(JSON.parse(said), await server.ask('POST', '/v1/mappings/turbines@1:predict', { rows: [[0, 0, 0]] }));
  const rows = path.join(work, 'rows.csv');
  fs.writeFileSync(rows, 'hours,heat,load\n0,0,0\n');
  const shell = spawn('bash', ['-ce', snippets['Command line'].replace('rows.csv', rows).replace('answers.csv', path.join(work, 'answers.csv'))],
    { env: { ...process.env, PATH: `${path.dirname(server.phimap)}:${process.env.PATH}` }, stdio: 'ignore' });
  assert.equal(await new Promise((resolve) => shell.on('exit', resolve)), 0);
  assert.match(fs.readFileSync(path.join(work, 'answers.csv'), 'utf8'), /predicted\n-?\d/);
  await screen.click('button', 'Copy');
  await screen.page.waitForFunction(() => /^Python (copied|selected)$/.test(document.querySelector('#news').textContent));
}));

// Asks by plain HTTP, and returns status, headers and bytes.
function raw(target, headers = {}, method = 'GET') {
  return new Promise((resolve, reject) => {
    http.request(server.origin + target, { method, headers }, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, bytes: Buffer.concat(parts) }));
    }).on('error', reject).end();
  });
}

test('the bundle is small, compressed, guarded, and asked for again only if it has changed', async () => {
  let total = 0;
  const files = fs.readdirSync(path.join(source, 'server/http/page'));
  for (const target of ['/', ...files.map((file) => `/page/${file}`)]) {
    const zipped = await raw(target, { 'accept-encoding': 'br, gzip' });
    const plain = await raw(target);
    assert.equal(zipped.headers['content-encoding'], 'gzip');
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.deepEqual(zlib.gunzipSync(zipped.bytes), plain.bytes);
    assert.deepEqual(plain.bytes, fs.readFileSync(path.join(source, 'server/http/page', target === '/' ? 'index.html' : path.basename(target))));
    total += target === '/' ? 0 : zipped.bytes.length;
    for (const { headers } of [zipped, plain]) {
      const policy = headers['content-security-policy'];
      for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]) {
        assert.ok(policy.split('; ').includes(rule), rule);
      }
      assert.doesNotMatch(policy, /unsafe|\*|http|data:/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['cache-control'], 'no-cache');
    }
    assert.notEqual(zipped.headers.etag, plain.headers.etag);
    const same = await raw(target, { 'if-none-match': plain.headers.etag });
    assert.deepEqual([same.status, same.bytes.length], [304, 0]);
    const head = await raw(target, {}, 'HEAD');
    assert.deepEqual([head.status, head.bytes.length, head.headers['content-length']], [200, 0, String(plain.bytes.length)]);
  }
  assert.ok(total <= 200 * 1024, `${total} bytes`);
  console.log(`the bundle has ${files.length} files and ${total} bytes when compressed`);
  for (const target of ['/page/', '/page/none.js', '/page/..%2fv1%2fmappings', '/page/%69ndex.html', '//', '/index.html']) assert.equal((await raw(target)).status, 404, target);
  assert.equal((await raw('/', {}, 'POST')).status, 404);
  assert.equal((await raw('/', { host: 'stranger.example' })).status, 421);
  assert.equal((await raw('/page/main.js', { host: 'stranger.example' })).status, 421);
});

test('the bundle has no script or style in its document, and no resource from elsewhere', () => {
  for (const file of fs.readdirSync(path.join(source, 'server/http/page'))) {
    const text = fs.readFileSync(path.join(source, 'server/http/page', file), 'utf8');
    assert.doesNotMatch(text.replaceAll('http://www.w3.org/2000/svg', ''), /https?:\/\/\w|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage|sessionStorage|document\.cookie/, file);
    if (file.endsWith('.html')) assert.doesNotMatch(text, /<style|style=|<script>|\son\w+=/, file);
  }
});
