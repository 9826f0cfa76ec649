// Builds, against the artifacts that the command line builds from the same rows.
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import grpc from '@grpc/grpc-js';
import { Aborted, AlreadyExists, Client, DeadlineExceeded, NotFound, specText } from 'phimap';
import {
  NO_BACKOFF,
  errorOf,
  folderOf,
  matrix,
  phimap,
  phimapd,
  refusal,
  rowsOf,
  scriptedServer,
  writeCsv,
} from './support.mjs';

const ROWS = matrix(1000, 5);
const SPEC = { spec: 'f2(landmarks=30)', kernel: 'rbf(gamma=scale)', standardize: true };
// A build of some seconds, whose end no test awaits.
const LONG = { spec: 'f2(landmarks=5000)', kernel: 'rbf(gamma=scale)' };
const MANY_ROWS = matrix(6000, 5);

async function digestOfCommandLine(folder, seed) {
  const csv = writeCsv(join(folder, 'rows.csv'), rowsOf(ROWS));
  const artifact = join(folder, `${seed}.phimap`);
  await phimap(
    '',
    'build',
    '--local',
    '-o',
    artifact,
    `--input=${csv}`,
    `--spec=${SPEC.spec}`,
    `--kernel=${SPEC.kernel}`,
    '--standardize',
    `--seed=${seed}`,
    '--columns=x0,x1,x2,x3,x4',
  );
  return createHash('sha256').update(readFileSync(artifact)).digest('hex');
}

test('the artifact is that of the command line, for seeds of up to 64 bits', async (t) => {
  const folder = folderOf(t);
  const client = new Client((await phimapd(t)).address);
  const columnNames = ['x0', 'x1', 'x2', 'x3', 'x4'];
  for (const seed of [0, 7, 2n ** 53n + 1n, 2n ** 64n - 1n]) {
    const { ref, seed: told } = await client.build('seeds', ROWS, { ...SPEC, seed, columnNames });
    assert.equal(ref.digest, await digestOfCommandLine(folder, seed));
    assert.equal(told, BigInt(seed));
  }
  for (const seed of [-1, 0.5, 2 ** 53, 2n ** 64n, '7'])
    await assert.rejects(client.build('seeds', ROWS, { ...SPEC, seed }), RangeError);
  client.close();
});

test('rows may come from an async iterable, and every step is reported', async (t) => {
  const client = new Client((await phimapd(t)).address);
  async function* rows() {
    for (const row of rowsOf(ROWS)) yield row;
  }
  const steps = [];
  const version = await client.build('rows', rows(), { ...SPEC, progress: (step) => steps.push(step) });
  const whole = await client.build('rows', ROWS, { ...SPEC, progress: (step) => steps.push(step) });
  assert.equal(version.certificate.streamRows, 1000);
  assert.ok(version.createTime instanceof Date);
  assert.equal(version.ref.digest, whole.ref.digest);
  const [sent] = steps.filter(({ phase, rows: count }) => phase === 'sending' && count === 1000);
  assert.deepEqual([sent.totalRows, sent.fraction, sent.job], [null, null, null]);
  const computing = steps.filter(({ job }) => job?.state === 'computing');
  assert.ok(computing.length > 0 && computing.every(({ fraction }) => fraction >= 0 && fraction <= 1));
  const { buildId } = computing[0].job;
  assert.equal((await client.getBuild('rows', buildId)).state, 'done');
  assert.equal((await client.cancelBuild('rows', buildId)).state, 'done');
  await assert.rejects(client.build('rows', ROWS, { ...SPEC, seed: 1, buildId }), AlreadyExists);
  assert.deepEqual(
    (await client.listBuilds('rows')).map(({ state }) => state),
    ['done', 'done'],
  );
  client.close();
});

test('an aborted build throws the reason, and is cancelled on the server', async (t) => {
  const client = new Client((await phimapd(t)).address);
  const abort = new AbortController();
  const buildId = randomUUID();
  const reason = new Error('the user left');
  const building = client.build('long', MANY_ROWS, {
    ...LONG,
    buildId,
    signal: abort.signal,
    progress: ({ phase }) => phase === 'gram' && abort.abort(reason),
  });
  assert.equal(await errorOf(building), reason);
  const end = Date.now() + 30_000;
  let job;
  do {
    job = await client.getBuild('long', buildId);
    assert.ok(Date.now() < end, job.state);
    await sleep(5);
  } while (job.state !== 'cancelled');
  // Before the rows are all there, nothing is left of the build.
  const early = new AbortController();
  async function* rows() {
    yield { values: [...matrix(1, 5).values], columns: 5 };
    early.abort();
    yield { values: [...matrix(1, 5).values], columns: 5 };
  }
  assert.equal((await errorOf(client.build('early', rows(), { ...LONG, signal: early.signal }))).name, 'AbortError');
  await assert.rejects(client.build('early', ROWS, { ...LONG, signal: AbortSignal.abort() }), { name: 'AbortError' });
  client.close();
});

test('a build whose time is up is followed by its id', async (t) => {
  const received = [];
  const { address } = await scriptedServer(t, {
    Build: (call) =>
      call.on('data', ({ spec, finish }) => {
        if (spec) received.push(spec.buildId);
        if (spec) call.write({ accepted: { buildId: spec.buildId } });
        if (finish && received.length === 2) call.write({ version: { ref: { name: 'late', number: 1, digest: 'd' } } });
        if (finish && received.length === 2) call.end();
      }),
  });
  const client = new Client(address);
  const error = await errorOf(client.build('late', ROWS, { ...SPEC, timeoutMs: 500 }));
  assert.ok(error instanceof DeadlineExceeded);
  assert.match(error.message, /build\(\) with buildId "/);
  assert.equal((await client.build('late', ROWS, { ...SPEC, buildId: error.metadata.buildId })).ref.number, 1);
  assert.deepEqual(received, [error.metadata.buildId, error.metadata.buildId]);
  client.close();
});

test('errors name the parameter', async (t) => {
  const client = new Client((await phimapd(t)).address);
  const error = await errorOf(client.build('wrong', ROWS, { ...SPEC, spec: 'f2(landmarks=none)' }));
  assert.deepEqual([error.code, error.field], ['INVALID_ARGUMENT', 'landmarks']);
  const estimate = await client.estimateBuild('wrong', 1000, 5, SPEC);
  assert.ok(estimate.peakMemoryBytes > 0 && estimate.flops > 0);
  await assert.rejects(client.estimateBuild('wrong', 0.5, 5, SPEC), RangeError);
  await assert.rejects(client.build('wrong', ROWS, {}), TypeError);
  await assert.rejects(client.build('wrong', ROWS, { ...SPEC, standardize: 'yes' }), TypeError);
  await assert.rejects(client.getBuild('wrong', randomUUID()), NotFound);
  client.close();
});

// Answers Build as a server whose connection breaks at the first two attempts: before it has all rows, and after. Then it knows
// the build.
function breaking(received, { ends }) {
  return {
    Build: (call) => {
      const attempt = { rows: 0, spec: null, finish: null };
      received.push(attempt);
      call.on('data', ({ spec, examples, finish }) => {
        if (spec) {
          attempt.spec = spec;
          call.write({ accepted: { buildId: spec.buildId, attached: received.length > 2 } });
          if (received.length > 2) {
            call.write({ version: { ref: { name: spec.name, number: 1, digest: 'd' } } });
            call.end();
          }
        }
        attempt.rows += examples?.dense.rows ?? 0;
        attempt.finish = finish ?? attempt.finish;
        if (received.length <= 2 && (received.length === 1 ? attempt.rows > 0 : finish))
          call.emit('error', refusal(grpc.status.UNAVAILABLE, ends));
      });
    },
  };
}

test('rows are sent again if the connection broke before the server had them, and then the build is followed by its id', async (t) => {
  const received = [];
  const { address } = await scriptedServer(t, breaking(received, { ends: 'broken' }));
  const client = new Client(address, { serviceConfig: NO_BACKOFF });
  const version = await client.build('again', ROWS, SPEC);
  assert.equal(version.ref.number, 1);
  assert.equal(received.length, 3);
  assert.equal(new Set(received.map(({ spec }) => spec.buildId)).size, 1);
  assert.equal(received[1].rows, 1000);
  assert.equal(Number(received[1].finish.rowCount), 1000);
  assert.equal(received[2].rows, 0);
  client.close();
});

test('rows of an iterable are not sent twice', async (t) => {
  let calls = 0;
  const { address } = await scriptedServer(t, {
    Build: (call) => {
      calls += 1;
      call.on('data', ({ spec, finish }) => {
        if (spec) call.write({ accepted: { buildId: spec.buildId } });
        if (finish) call.emit('error', refusal(grpc.status.UNAVAILABLE, 'broken'));
      });
    },
  });
  const client = new Client(address, { serviceConfig: NO_BACKOFF });
  // The server may have begun the build, so the client asks again, and learns that it has not.
  const error = await errorOf(client.build('once', new Set(rowsOf(ROWS)), SPEC));
  assert.ok(error instanceof Aborted);
  assert.match(error.message, /the rows came from an iterable/);
  assert.equal(calls, 2);
  client.close();
});

test('an iterable that gives nothing more does not hold up a call that ends', { timeout: 20_000 }, async (t) => {
  const { address } = await scriptedServer(t, {
    Build: (call) =>
      call.on('data', ({ spec, examples }) => {
        if (spec) call.write({ accepted: { buildId: spec.buildId } });
        if (examples) call.emit('error', refusal(grpc.status.UNAVAILABLE, 'broken'));
      }),
    TransformStream: () => {},
  });
  const client = new Client(address, { serviceConfig: NO_BACKOFF });
  async function* waiting() {
    yield { values: ROWS.values, columns: 5 };
    await new Promise(() => {});
  }
  assert.equal(
    (await errorOf(client.build('waiting', waiting(), SPEC))).message,
    'no answer from phimapd at ' + address + ': broken',
  );
  const signal = AbortSignal.timeout(300);
  assert.equal((await errorOf(client.transform('waiting', waiting(), { signal }))).name, 'TimeoutError');
  client.close();
});

test('a spec is composed of values that the server reads back exactly', () => {
  assert.equal(
    specText('f2', { landmarks: 500, policy: 'kmeans', held_out_rows: undefined }),
    'f2(landmarks=500, policy=kmeans)',
  );
  assert.equal(specText('rbf', { gamma: 1e-7 }), 'rbf(gamma=1e-7)');
  assert.equal(specText('rbf', { length_scales: Float64Array.of(0.1, 2) }), 'rbf(length_scales=[0.1, 2])');
  assert.throws(() => specText('f2', { policy: 'kmeans, seed=3' }), RangeError);
  assert.throws(() => specText('f2', { landmarks: NaN }), RangeError);
  assert.throws(() => specText('f2', { landmarks: {} }), TypeError);
});
