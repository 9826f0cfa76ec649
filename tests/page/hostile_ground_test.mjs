// A stranger's page in the reader's browser: it cannot read this server, change anything on it, or show
// its page in a frame. It may do what any page may: have a link to it.

import assert from 'node:assert/strict';
import http from 'node:http';
import path from 'node:path';
import process from 'node:process';
import { after, before, test } from 'node:test';
import { launch, Screen } from './browser.mjs';
import { Server } from './server.mjs';

let server;
let browser;
let stranger;

before(async () => {
  browser = await launch();
  server = await Server.start(path.join(process.env.WORK, 'stranger'));
  await server.cli('build', 'letters', '--input=lab/data/letter.csv', '--label=label', '--spec=f1(landmarks=10)', '--kernel=rbf(gamma=0.1)');
  await server.cli('alias', 'set', 'letters@prod', '1');
  stranger = http.createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>stranger</title><h1>stranger</h1><div id="ground"></div>');
  });
  await new Promise((resolve) => stranger.listen(0, '127.0.0.1', resolve));
});

after(async () => {
  await browser?.close();
  await server?.stop();
  stranger?.close();
});

const state = async () => JSON.stringify([await server.ask('GET', '/v1/mappings'), await server.ask('GET', '/v1/mappings/letters'),
  (await server.ask('GET', '/v1/mappings/letters/versions')).versions, await server.ask('GET', '/v1/builds')]);

// Has a page of the stranger do `attack`, which gets the origin of the server. Returns what it
// returned, and the statuses with which the server answered, by method and path.
async function attackFrom(host, attack) {
  const screen = await Screen.open(browser, `http://${host}:${stranger.address().port}`);
  const answers = [];
  screen.page.on('response', (response) => {
    const { origin, pathname } = new URL(response.url());
    if (origin === server.origin) answers.push([`${response.request().method()} ${pathname}`, response.status()]);
  });
  // Of an answer that the stranger's page may not see, Chromium tells no more than the status.
  const network = await screen.page.createCDPSession();
  await network.send('Network.enable');
  const sent = new Map();
  const statuses = [];
  network.on('Network.requestWillBeSent', ({ requestId, request }) => sent.set(requestId, `${request.method} ${request.url}`));
  network.on('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) => statuses.push([requestId, statusCode]));
  const result = await screen.page.evaluate(attack, server.origin);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const frames = await Promise.all(screen.page.frames().slice(1).map((frame) => frame.evaluate(() => document.body?.innerText ?? '').catch(() => '')));
  await screen.close();
  for (const [requestId, status] of statuses) {
    const request = sent.get(requestId) ?? '';
    if (request.includes(server.origin)) answers.push([request, status]);
  }
  return { result, answers, frames };
}

// Of the same host with another port, and of another site.
for (const host of ['127.0.0.1', 'localhost']) {
  test(`a page of ${host} with another port reads nothing and changes nothing`, async () => {
    const before = await state();
    const { result, answers, frames } = await attackFrom(host, async (origin) => {
      const said = {};
      const attempt = async (name, path, options) => {
        try {
          const answer = await fetch(origin + path, options);
          said[name] = `${answer.type} ${answer.status} ${await answer.text()}`;
        } catch {
          said[name] = 'refused';
        }
      };
      const body = '{"alias": "stolen"}';
      const action = '/v1/mappings/letters@1:setAlias';
      await attempt('read', '/v1/mappings', {});
      await attempt('read the page', '/', {});
      await attempt('read a module', '/page/api.js', {});
      await attempt('read the address', '/page/server.json', {});
      await attempt('read without CORS', '/v1/mappings', { mode: 'no-cors', credentials: 'include' });
      await attempt('change as JSON', action, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
      await attempt('change as text', action, { method: 'POST', body, mode: 'no-cors', headers: { 'content-type': 'text/plain' } });
      await attempt('change as text by CORS', action, { method: 'POST', body, headers: { 'content-type': 'text/plain' } });
      await attempt('change without a type', action, { method: 'POST', body: new Blob([body]), mode: 'no-cors' });
      await attempt('delete', '/v1/mappings/letters', { method: 'DELETE' });
      said.beacon = navigator.sendBeacon(origin + action, body);
      const ground = document.getElementById('ground');
      const put = (tag, attributes) => {
        const node = ground.appendChild(document.createElement(tag));
        return new Promise((resolve) => {
          node.onload = node.onerror = resolve;
          Object.assign(node, attributes);
          setTimeout(resolve, 2000);
        });
      };
      await Promise.all([
        put('img', { src: `${origin}/page/icon.svg` }), put('img', { src: `${origin}/v1/mappings` }), put('script', { src: `${origin}/v1/mappings?callback=x` }),
        put('script', { type: 'module', src: `${origin}/page/api.js` }), put('link', { rel: 'stylesheet', href: `${origin}/page/page.css` }),
        put('iframe', { src: `${origin}/` }), put('iframe', { src: `${origin}/v1/mappings` }), put('iframe', { name: 'sink' }),
      ]);
      for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
        const form = ground.appendChild(document.createElement('form'));
        Object.assign(form, { method: 'POST', action: origin + action, enctype, target: 'sink' });
        const field = form.appendChild(document.createElement('input'));
        Object.assign(field, { name: '{"alias": "stolen", "x": "', value: '"}' });
        form.submit();
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
      return said;
    });
    for (const [name, said] of Object.entries(result)) {
      if (name === 'beacon') continue;
      assert.match(said, /^(refused|opaque 0 )$/, name);
    }
    assert.ok(answers.length >= 12, `only ${answers.length} requests arrived: ${JSON.stringify(answers)}`);
    for (const [request, status] of answers) assert.ok([403, 415].includes(status), `${request} got ${status}`);
    for (const text of frames) assert.doesNotMatch(text, /letters|Mappings/);
    assert.equal(await state(), before);
  });
}

test('a link of another site opens the page, and nothing else of the server', async () => {
  for (const [target, method, expected] of [['/', 'GET', 200], ['/#/m/letters', 'GET', 200], ['/v1/mappings', 'GET', 403], ['/page/main.js', 'GET', 403], ['/', 'POST', 403], ['/v1/mappings/letters@1:setAlias', 'POST', 403]]) {
    const before = await state();
    const screen = await Screen.open(browser, `http://localhost:${stranger.address().port}`);
    const [answer] = await Promise.all([
      screen.page.waitForNavigation({ waitUntil: 'networkidle0' }),
      screen.page.evaluate((url, how) => {
        const form = document.body.appendChild(document.createElement('form'));
        Object.assign(form, { action: url, method: how, enctype: 'text/plain' });
        const anchor = document.body.appendChild(document.createElement('a'));
        anchor.href = url;
        if (how === 'GET') anchor.click();
        else form.submit();
      }, server.origin + target, method),
    ]);
    assert.equal(answer.status(), expected, `${method} ${target}`);
    if (expected === 200) await screen.heading(target === '/' ? 'Mappings' : 'letters');
    await screen.close();
    assert.equal(await state(), before);
  }
});

test('the page that a stranger opens in a window is out of his reach', async () => {
  const screen = await Screen.open(browser, `http://localhost:${stranger.address().port}`);
  const opened = new Promise((resolve) => screen.page.once('popup', resolve));
  await screen.page.evaluate((url) => { window.held = window.open(`${url}/`); }, server.origin);
  const popup = await opened;
  await popup.waitForSelector('h1');
  assert.equal(await popup.evaluate(() => window.opener), null);
  assert.equal(await screen.page.evaluate(() => window.held.closed), true);
  await screen.close();
});
