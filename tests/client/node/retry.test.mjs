// Deadlines, retries, several servers, and the revision that a client remembers.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import grpc from '@grpc/grpc-js';
import { Client, DeadlineExceeded, ResourceExhausted, Unavailable } from 'phimap';
import { typeOf } from '../lib/schema.js';
import {
  NO_BACKOFF,
  Phimapd,
  errorOf,
  folderOf,
  matrix,
  phimapd,
  refusal,
  revision,
  rowsOf,
  scriptedServer,
} from './support.mjs';

const ROWS = matrix(100, 3);
const SPEC = { spec: 'f2(landmarks=5)', kernel: 'rbf(gamma=1)' };
const FEATURES = {
  version: { name: 'scripted', number: 1, digest: 'd' },
  features: { rows: 1, columns: 1, float32Le: Buffer.alloc(4) },
};
const { UNAVAILABLE, RESOURCE_EXHAUSTED, INTERNAL, FAILED_PRECONDITION } = grpc.status;

/** Returns trailing metadata with details, as a server packs them. */
function details(reason, metadata = {}, retryDelay = null) {
  const packed = [['google.rpc.ErrorInfo', typeOf('phimap.rpc.ErrorInfo').encode({ reason, metadata })]];
  if (retryDelay) packed.push(['google.rpc.RetryInfo', typeOf('phimap.rpc.RetryInfo').encode({ retryDelay })]);
  const trailers = new grpc.Metadata();
  trailers.set(
    'grpc-status-details-bin',
    typeOf('phimap.rpc.Status')
      .encode({
        details: packed.map(([name, writer]) => ({ type_url: `type.googleapis.com/${name}`, value: writer.finish() })),
      })
      .finish(),
  );
  return trailers;
}

/** Starts a scripted server whose method `name` refuses with the errors in turn, and then answers. */
async function refusing(t, name, answer, ...errors) {
  const requests = [];
  const server = await scriptedServer(t, {
    [name]: (request) => {
      requests.push(request);
      if (requests.length <= errors.length) throw errors[requests.length - 1];
      return answer;
    },
  });
  return { ...server, requests };
}

test('a call is repeated while the server is unavailable, and no more often than the service config says', async (t) => {
  const lost = refusal(UNAVAILABLE, 'gone');
  const { address, requests } = await refusing(t, 'Transform', FEATURES, lost, lost, lost, lost, lost);
  const client = new Client(address, { serviceConfig: NO_BACKOFF });
  const error = await errorOf(client.transform('scripted', [1]));
  assert.ok(error instanceof Unavailable);
  assert.equal(error.message, `no answer from phimapd at ${address}: gone`);
  assert.equal(requests.length, 4);
  assert.equal((await client.transform('scripted', [1])).rows, 1);
  client.close();
});

test('a refusal with a delay is repeated after that delay, and other errors are not', async (t) => {
  const full = refusal(
    RESOURCE_EXHAUSTED,
    'the queue is full',
    details('QUEUE_FULL', { limit: '8' }, { seconds: 0, nanos: 300_000_000 }),
  );
  const { address, requests } = await refusing(
    t,
    'Transform',
    FEATURES,
    full,
    refusal(INTERNAL, 'a bug'),
    refusal(RESOURCE_EXHAUSTED, 'too large'),
    full,
  );
  const client = new Client(address, { serviceConfig: NO_BACKOFF });
  const began = performance.now();
  assert.equal((await errorOf(client.transform('scripted', [1]))).code, 'INTERNAL');
  assert.ok(performance.now() - began > 290); // timers may be a millisecond early
  assert.equal(requests.length, 2);
  const impatient = await errorOf(client.predict('scripted', [1], { timeoutMs: 200 }));
  assert.equal(impatient.code, 'UNIMPLEMENTED');
  const other = new Client((await refusing(t, 'Transform', FEATURES, full)).address, { serviceConfig: NO_BACKOFF });
  const error = await errorOf(other.transform('scripted', [1], { timeoutMs: 200 }));
  assert.ok(error instanceof ResourceExhausted);
  assert.deepEqual(
    [error.reason, error.limit, error.retryDelayMs, error.metadata],
    ['QUEUE_FULL', 8, 300, { limit: '8' }],
  );
  other.close();
  client.close();
});

test('a change is repeated with its id, each change has its own, and an import is not repeated', async (t) => {
  const { address, requests } = await refusing(
    t,
    'SetAlias',
    { name: 'prod', version: 1 },
    refusal(UNAVAILABLE),
    refusal(UNAVAILABLE),
  );
  const client = new Client(address, { serviceConfig: NO_BACKOFF });
  await client.setAlias('scripted@1', 'prod');
  await client.setAlias('scripted@1', 'prod');
  const ids = requests.map(({ operationId }) => operationId);
  assert.match(ids[0], /^[0-9a-f-]{36}$/);
  assert.deepEqual(ids.slice(0, 3), [ids[0], ids[0], ids[0]]);
  assert.notEqual(ids[3], ids[0]);
  client.close();

  const imports = await scriptedServer(t, { Import: (call) => call.emit('error', refusal(UNAVAILABLE)) });
  const importing = new Client(imports.address, { serviceConfig: NO_BACKOFF });
  await assert.rejects(importing.import('scripted', Buffer.alloc(3)), Unavailable);
  assert.equal(imports.calls.length, 1);
  importing.close();
});

test('a stream that breaks goes on at the first request without an answer', async (t) => {
  const seen = [];
  const { address } = await scriptedServer(t, {
    TransformStream: (call) => {
      let answered = 0;
      const here = [];
      seen.push(here);
      call.on('data', ({ reference, expectedDigest, examples }) => {
        here.push([reference, expectedDigest, examples.dense.rows]);
        if (answered === 2 && seen.length === 1) {
          call.emit('error', refusal(UNAVAILABLE, 'broken'));
          return;
        }
        answered += 1;
        const { rows } = examples.dense;
        call.write({
          version: answered === 1 ? FEATURES.version : null,
          features: { rows, columns: 1, float32Le: examples.dense.float32Le.subarray(0, 4 * rows) },
        });
      });
      call.on('end', () => call.end());
    },
  });
  const client = new Client(address, { serviceConfig: NO_BACKOFF });
  const rows = { values: Float32Array.from({ length: 5 }, (_, i) => i), columns: 1 };
  const parts = [];
  for await (const { features } of client.transformStream('scripted', rows, { rowsPerRequest: 1, window: 1 }))
    parts.push(...features);
  assert.deepEqual(parts, [0, 1, 2, 3, 4]);
  assert.deepEqual(
    seen.map((here) => here.length),
    [3, 3],
  );
  assert.deepEqual(seen[0][0], ['scripted', '', 1]);
  assert.deepEqual(seen[1][0], ['scripted@1', 'd', 1]); // by the version that answered before
  client.close();
});

test('a server that restarts loses no call', async (t) => {
  const server = new Phimapd(folderOf(t));
  t.after(() => server.stop());
  await server.start();
  const client = new Client(server.socket);
  await client.build('restarted', ROWS, SPEC);
  const { features } = await client.transform('restarted', ROWS);
  await server.stop();
  const meanwhile = client.transform('restarted', ROWS);
  await server.start();
  assert.deepEqual((await meanwhile).features, features);
  client.close();
});

test('several servers take the calls in turn, and one that dies loses none', async (t) => {
  const [first, second] = [await phimapd(t), await phimapd(t)];
  const file = join(folderOf(t), 'artifact');
  const one = new Client(first.address);
  await one.build('both', ROWS, SPEC);
  await one.export('both', file);
  const other = new Client(second.address);
  await other.import('both', file);
  [one, other].forEach((client) => client.close());
  const client = new Client([first.address, second.address]);
  const { features } = await client.transform('both', ROWS);
  for (let i = 0; i < 40; i += 1) {
    if (i === 10) await first.stop();
    assert.deepEqual((await client.transform('both', ROWS)).features, features);
  }
  client.close();
});

test('calls are divided among servers', async (t) => {
  const servers = [await refusing(t, 'Transform', FEATURES), await refusing(t, 'Transform', FEATURES)];
  const client = new Client(servers.map(({ address }) => address));
  // Until both are connected, one takes all calls.
  for (let i = 0; servers.some(({ requests }) => requests.length === 0); i += 1)
    await client.transform('scripted', [i]);
  servers.forEach(({ requests }) => requests.splice(0));
  for (let i = 0; i < 20; i += 1) await client.transform('scripted', [i]);
  assert.deepEqual(
    servers.map(({ requests }) => requests.length),
    [10, 10],
  );
  client.close();
});

test('the time of a call includes its repetitions, and a server that never answers does not hold it up', async (t) => {
  const sockets = [];
  const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  t.after(() => {
    sockets.forEach((socket) => socket.destroy());
    silent.close();
  });
  await once(silent, 'listening');
  const client = new Client(`127.0.0.1:${silent.address().port}`);
  const began = performance.now();
  const error = await errorOf(client.transform('nothing', [1], { timeoutMs: 300 }));
  assert.ok(error instanceof DeadlineExceeded || error instanceof Unavailable, error.stack);
  assert.ok(performance.now() - began < 10_000);
  await assert.rejects(client.transform('nothing', [1], { timeoutMs: 0 }), RangeError);
  const reason = new Error('enough');
  const abort = new AbortController();
  setTimeout(() => abort.abort(reason), 50);
  assert.equal(await errorOf(client.transform('nothing', [1], { signal: abort.signal })), reason);
  client.close();
});

test('a call asks for the newest revision that the client knows, and a build does not', async (t) => {
  const told = ['s:5', 's:3', 's:9007199254740993', 'malformed'];
  const { address, calls } = await scriptedServer(t, {
    SetAlias: () => ({ name: 'prod', version: 1, trailers: revision(told.shift()) }),
    Build: (call) => {
      call.write({ version: { ref: { name: 'b', number: 1, digest: 'd' } } });
      call.end();
    },
  });
  const client = new Client(address);
  for (let i = 0; i < 4; i += 1) await client.setAlias('scripted@1', 'prod');
  await client.build('b', ROWS, SPEC);
  await client.setAlias('scripted@1', 'prod').catch(() => {});
  assert.deepEqual(
    calls.map(({ metadata }) => metadata['phimap-min-revision']),
    [undefined, 's:5', 's:5', 's:9007199254740993', undefined, 's:9007199254740993'],
  );
  client.close();
});

test('a revision of another history is left behind, at once', async (t) => {
  let history = 'old';
  const { address, calls } = await scriptedServer(t, {
    GetMapping: (_, metadata) => {
      const [asked] = metadata.get('phimap-min-revision');
      if (asked?.startsWith('old') && history === 'new') {
        throw refusal(
          FAILED_PRECONDITION,
          'another history',
          details('REVISION_HISTORY_MISMATCH', { actual: asked, expected: 'new:2' }),
        );
      }
      return { name: 'scripted', trailers: revision(`${history}:${history === 'old' ? 7 : 2}`) };
    },
  });
  const client = new Client(address);
  await client.getMapping('scripted');
  history = 'new';
  await client.getMapping('scripted');
  await client.getMapping('scripted');
  assert.deepEqual(
    calls.map(({ metadata }) => metadata['phimap-min-revision']),
    [undefined, 'old:7', 'new:2', 'new:2'],
  );
  client.close();
});

test('many calls at once are answered, each with its own rows', async (t) => {
  const client = new Client((await phimapd(t)).address, { channels: 4 });
  await client.build('many', ROWS, SPEC);
  const { features, columns } = await client.transform('many', ROWS);
  const answers = await Promise.all(rowsOf(ROWS).map((row) => client.transform('many', row)));
  answers.forEach((answer, i) => assert.deepEqual(answer.features, features.subarray(i * columns, (i + 1) * columns)));
  client.close();
});
