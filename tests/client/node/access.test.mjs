// Tokens, TLS and addresses.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, PermissionDenied, Unauthenticated } from 'phimap';
import { accessOf, targetOf } from '../lib/access.js';
import { errorOf, folderOf, matrix, phimapd } from './support.mjs';

const ADMIN = 'a'.repeat(20);
const READER = 'r'.repeat(20);

/** Starts a server that requires TLS and tokens. */
async function guarded(t) {
  const folder = folderOf(t);
  const [cert, key, tokens] = ['certificate.pem', 'key.pem', 'tokens'].map((name) => join(folder, name));
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-keyout',
      key,
      '-out',
      cert,
      '-subj',
      '/CN=phimap.test',
      '-addext',
      'subjectAltName=DNS:phimap.test',
    ],
    { stdio: 'ignore' },
  );
  writeFileSync(tokens, `admin ${ADMIN}\nreader ${READER}\n`, { mode: 0o600 }); // phimapd refuses a file that others may read
  const server = await phimapd(t, `--tls_certificate=${cert}`, `--tls_key=${key}`, `--token_file=${tokens}`);
  return { address: server.address, folder, tls: { caFile: cert, serverName: 'phimap.test' } };
}

test('a token is admitted over TLS with its role, and another is refused', async (t) => {
  const { address, tls, folder } = await guarded(t);
  const admin = new Client(address, { tls, token: ADMIN });
  await admin.build('guarded', matrix(50, 3), { spec: 'f2(landmarks=5)', kernel: 'linear()' });
  const reader = new Client(address, {
    tls: { ca: readFileSync(tls.caFile), serverName: tls.serverName },
    token: READER,
  });
  assert.equal((await reader.transform('guarded', matrix(2, 3))).rows, 2);
  assert.ok((await errorOf(reader.setAlias('guarded@1', 'prod'))) instanceof PermissionDenied);
  const stranger = new Client(address, { tls, token: 'x'.repeat(20) });
  assert.ok((await errorOf(stranger.listMappings())) instanceof Unauthenticated);
  assert.ok(
    (await errorOf(
      (async () => {
        for await (const part of stranger.transformStream('guarded', matrix(2, 3))) assert.ok(part);
      })(),
    )) instanceof Unauthenticated,
  );

  // A file's token may change while the client runs; it is read again after a second.
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, `${READER}\n`);
  const rotating = new Client(address, { tls, tokenFile });
  await rotating.listMappings();
  writeFileSync(tokenFile, 'x'.repeat(20));
  await sleep(1100);
  assert.ok((await errorOf(rotating.listMappings())) instanceof Unauthenticated);
  [admin, reader, stranger, rotating].forEach((client) => client.close());
});

test('a server is not believed whose TLS certificate nobody signed, or that has another name', async (t) => {
  const { address, tls } = await guarded(t);
  const once = { methodConfig: [] };
  for (const wrong of [{}, { caFile: tls.caFile }]) {
    const client = new Client(address, { tls: wrong, token: READER, serviceConfig: once });
    const error = await errorOf(client.listMappings());
    assert.equal(error.code, 'UNAVAILABLE');
    assert.match(error.message, /^no answer from phimapd at 127\.0\.0\.1:/);
    client.close();
  }
});

test('the environment gives what the arguments do not', async (t) => {
  const { address, tls } = await guarded(t);
  const before = { ...process.env };
  Object.assign(process.env, {
    PHIMAP_SERVER: address,
    PHIMAP_TOKEN: READER,
    PHIMAP_TLS_CA: tls.caFile,
    PHIMAP_TLS_SERVER_NAME: tls.serverName,
  });
  t.after(() => {
    process.env = before;
  });
  const client = new Client();
  assert.equal(client.server, address);
  assert.deepEqual(await client.listMappings(), []);
  client.close();
});

test('a token leaves this machine only encrypted', () => {
  for (const target of ['localhost:1', '127.0.0.9:1', '[::1]:1', 'unix:/socket', 'ipv4:127.0.0.1:1,127.0.0.2:1'])
    accessOf(target, { token: READER });
  for (const target of [
    '10.0.0.1:1',
    'example.com:1',
    'dns:///localhost.example.com:1',
    'ipv4:127.0.0.1:1,10.0.0.1:1',
  ]) {
    assert.throws(() => accessOf(target, { token: READER }), /token: it would be sent to .* unencrypted/);
    accessOf(target, { token: READER, tls: {} });
  }
});

test('addresses, tokens and settings of TLS that are malformed are refused', () => {
  assert.equal(targetOf(['127.0.0.1:1', '127.0.0.2:2']), 'ipv4:127.0.0.1:1,127.0.0.2:2');
  assert.equal(targetOf(['[::1]:1']), 'ipv6:[::1]:1');
  assert.equal(targetOf('dns:///phimap:7450'), 'dns:///phimap:7450');
  for (const server of [
    'phimap',
    'http://phimap:7450',
    'phimap:0',
    'phimap:65536',
    'unix:',
    'a:1,b:1',
    [],
    ['a:1'],
    ['127.0.0.1'],
    ['127.0.0.1:1', '[::1]:1'],
    7,
  ]) {
    assert.throws(() => targetOf(server), TypeError, JSON.stringify(server));
  }
  for (const token of ['a b', 'a\n', 'ä'])
    assert.throws(() => accessOf('localhost:1', { token }), /token: expected letters, digits/);
  assert.throws(() => accessOf('localhost:1', { token: READER, tokenFile: '/token' }), /not both/);
  assert.throws(() => accessOf('localhost:1', { tls: { cert: 'c' } }), /must be given together/);
  assert.throws(() => accessOf('localhost:1', { tls: { caFile: '/nowhere.pem' } }), { code: 'ENOENT' });
  assert.throws(() => new Client('localhost:1', { channels: 65 }), RangeError);
  assert.throws(() => new Client('localhost:1', { serviceConfig: '{' }), TypeError);
});
