// Names, versions, aliases and artifacts.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { Aborted, Client, DataLoss, FailedPrecondition, NotFound, Reason } from 'phimap';
import { crc32c } from '../lib/crc32c.js';
import { errorOf, folderOf, matrix, phimap, phimapd, scriptedServer } from './support.mjs';

const ROWS = matrix(100, 3);
const SPEC = { spec: 'f2(landmarks=5)', kernel: 'rbf(gamma=1)' };

test('aliases move, on a condition and back', async (t) => {
  const client = new Client((await phimapd(t)).address);
  const first = await client.build('names', ROWS, SPEC);
  await client.build('names', ROWS, { ...SPEC, seed: 1 });
  const alias = await client.setAlias('names@1', 'prod', { etag: 'none' });
  assert.deepEqual([alias.version, alias.previousVersion, alias.digest], [1, 0, first.ref.digest]);
  assert.ok(alias.moveTime instanceof Date);
  await assert.rejects(client.rollBackAlias('names', 'prod'), FailedPrecondition);
  await assert.rejects(client.rollBackAlias('names', 'test'), NotFound);
  const refused = await errorOf(client.setAlias('names@2', 'prod', { etag: 'none' }));
  assert.ok(refused instanceof Aborted);
  assert.equal(refused.metadata.etag, alias.etag);
  assert.equal((await client.setAlias('names@2', 'prod', { etag: alias.etag })).version, 2);
  assert.equal((await client.transform('names@prod', ROWS)).version.number, 2);
  assert.equal((await client.rollBackAlias('names', 'prod')).version, 1);
  assert.equal((await client.transform('names@prod', ROWS)).version.number, 1);
  assert.equal((await client.getDrift('names')).aliases[0].alias, 'prod');
  const [mapping] = await client.listMappings();
  assert.deepEqual(
    [mapping.name, mapping.newestVersion, mapping.versionCount, mapping.aliases.length],
    ['names', 2, 2, 1],
  );

  await assert.rejects(client.deleteVersion('names@2'), FailedPrecondition);
  await client.deleteVersion('names@2', { giveUpRollback: true });
  assert.deepEqual(
    (await client.listVersions('names')).map(({ ref }) => ref.number),
    [1],
  );
  await client.deleteAlias('names', 'prod');
  assert.deepEqual((await client.getMapping('names')).aliases, []);
  await assert.rejects(client.deleteMapping('names', { onlyIfEmpty: true }), FailedPrecondition);
  await client.deleteMapping('names');
  await assert.rejects(client.getMapping('names'), NotFound);
  client.close();
});

test('a bare name is pinned to the version that it meant first, and found by its digest', async (t) => {
  const client = new Client((await phimapd(t)).address);
  const first = await client.build('pinned', ROWS, SPEC);
  await client.transform('pinned', ROWS);
  await client.build('pinned', ROWS, { ...SPEC, seed: 1 });
  assert.equal((await client.transform('pinned', ROWS)).version.number, 1);
  assert.equal((await client.getVersion('pinned')).ref.number, 1);
  assert.equal(client.pinned.get('pinned').digest, first.ref.digest);
  const other = await errorOf(client.transform('pinned', ROWS, { expectedDigest: 'f'.repeat(64) }));
  assert.equal(other.reason, Reason.DIGEST_MISMATCH);
  // The same artifact gets another number.
  const file = join(folderOf(t), 'artifact');
  await client.export('pinned', file);
  await client.deleteVersion('pinned@1').catch(() => {});
  const again = new Client(client.server);
  assert.equal((await again.import('pinned', file)).ref.number, 3);
  again.close();
  const survivor = new Client(client.server);
  await survivor.transform('pinned@2', ROWS);
  survivor.close();
  client.unpin('pinned');
  assert.equal((await client.transform('pinned', ROWS)).version.number, 3);
  client.close();
});

test('a pinned version whose number is gone is requested by its digest', async (t) => {
  const { address } = await phimapd(t);
  const [client, admin] = [new Client(address), new Client(address)];
  const file = join(folderOf(t), 'artifact');
  await admin.build('moved', ROWS, SPEC);
  const { features } = await client.transform('moved', ROWS);
  await admin.export('moved', file);
  await admin.deleteVersion('moved@1');
  const gone = await errorOf(client.transform('moved', ROWS));
  assert.equal(gone.reason, Reason.VERSION_NOT_FOUND);
  assert.match(gone.message, /"moved" is pinned to moved@1/);
  assert.equal((await admin.import('moved', file)).ref.number, 2);
  const found = await client.transform('moved', ROWS);
  assert.equal(found.version.number, 2);
  assert.deepEqual(found.features, features);
  assert.equal((await client.getVersion('moved')).ref.number, 2);
  client.close();
  admin.close();
});

test('an artifact travels by path, stream and buffer, with the bytes of the command line', async (t) => {
  const { address } = await phimapd(t);
  const folder = folderOf(t);
  const client = new Client(address);
  // More than two chunks of 1 MiB.
  await client.build('large', matrix(150, 6000), { spec: 'f1(landmarks=100)', kernel: 'linear()' });
  await phimap(address, 'export', 'large@1', '-o', join(folder, 'expected'));
  const expected = readFileSync(join(folder, 'expected'));
  assert.ok(expected.length > 2 << 20);
  const ref = await client.export('large', join(folder, 'artifact'));
  assert.ok(readFileSync(join(folder, 'artifact')).equals(expected));
  for (const source of [
    join(folder, 'artifact'),
    expected,
    Readable.from([expected.subarray(0, 10), expected.subarray(10)]),
  ]) {
    assert.equal((await client.import('copy', source)).ref.digest, ref.digest);
  }
  assert.deepEqual(
    (await client.listVersions('copy')).map(({ imported }) => imported),
    [true],
  );
  await assert.rejects(client.import('copy', join(folder, 'nowhere')), { code: 'ENOENT' });
  await assert.rejects(client.export('nothing', join(folder, 'nothing')), NotFound);
  assert.deepEqual(readdirSync(folder).sort(), ['artifact', 'expected']);
  client.close();
});

test('a damaged artifact is noticed, and no file is left', async (t) => {
  const folder = folderOf(t);
  const data = Buffer.from('123456789');
  for (const [chunk, what] of [
    [{ data, crc32c: 7 }, /CRC-32C/],
    [{ data, crc32c: 0xe3069283 }, /SHA-256/],
    [{ data, offsetBytes: 1, crc32c: 0xe3069283 }, /at byte 0/],
  ]) {
    const { address } = await scriptedServer(t, {
      GetVersion: () => ({ ref: { name: 'damaged', number: 1, digest: 'a'.repeat(64) } }),
      Export: (call) => {
        call.write(chunk);
        call.end();
      },
    });
    const client = new Client(address);
    const error = await errorOf(client.export('damaged', join(folder, 'artifact')));
    assert.ok(error instanceof DataLoss);
    assert.match(error.message, what);
    client.close();
  }
  assert.deepEqual(readdirSync(folder), []);
});

test('the checksum is that of RFC 3720', () => {
  assert.equal(crc32c(Buffer.from('123456789')), 0xe3069283);
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa);
  assert.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43);
  assert.equal(crc32c(Buffer.from(Array.from({ length: 32 }, (_, i) => i))), 0x46dd794e);
  assert.equal(crc32c(Buffer.alloc(0)), 0);
});

test('a version lives as long as it is told', async (t) => {
  const client = new Client((await phimapd(t)).address);
  const version = await client.build('living', ROWS, { ...SPEC, ttlMs: 90_500 });
  assert.equal(version.ttlMs, 90_500);
  assert.ok(version.expireTime.getTime() > Date.now());
  assert.equal((await client.keepVersion('living', { ttlMs: 86_400_000 })).ttlMs, 86_400_000);
  const kept = await client.keepVersion('living@1');
  assert.deepEqual([kept.ttlMs, kept.expireTime], [null, null]);
  await assert.rejects(client.keepVersion('living', { ttlMs: Infinity }), RangeError);
  client.close();
});

test('capabilities, advice and health are answered', async (t) => {
  const client = new Client((await phimapd(t)).address);
  const { families, learners } = await client.listCapabilities();
  const landmarks = families.find(({ name }) => name === 'f2').parameters.find(({ name }) => name === 'landmarks');
  assert.deepEqual(
    [landmarks.type, landmarks.least, learners.some(({ isDefault }) => isDefault)],
    ['integer', 1, true],
  );
  const { lines } = await client.advise({ margin: 0.2, error: 0.1, confidence: 0.9 });
  assert.ok(lines.some(({ subject, landmarks: count }) => subject === 'f2' && count > 0));
  assert.ok(lines.some(({ dimensions }) => dimensions === null));
  assert.equal(await client.checkHealth(), true);
  assert.equal(await client.checkHealth('phimap.v1.TransformService'), true);
  await assert.rejects(client.checkHealth('nothing'), NotFound);
  client.close();
  await assert.rejects(client.checkHealth(), /this client is closed/);
});
