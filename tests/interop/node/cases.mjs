// Runs those test cases of gRPC's interoperability tests that apply to phimap's own calls. The client is grpc-js.
// tests/e2e/interop_test.py runs the same cases with grpcio as the client.
//   node --test cases.mjs, with PHIMAP_SERVER (its address, a fresh store) and PHIMAP_PROTOS (the folder of protos)
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const server = process.env.PHIMAP_SERVER;
const protos = ['mapping_service', 'transform_service'].map((name) => `phimap/v1/${name}.proto`);
const { v1 } = grpc.loadPackageDefinition(loader.loadSync(
  protos, { includeDirs: [process.env.PHIMAP_PROTOS], keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true })).phimap;

const COLUMNS = 16;
const LANDMARKS = 40;
// The largest allowed number of rows of a Transform. Here the request then has 4 MiB, and the answer 10 MiB.
const LARGE_ROWS = 65536;
const CONNECTIONS = 200;
// The timeout of every wait. The tests assert nothing else about time.
const PATIENCE_MS = 60000;
const { status } = grpc;

const options = { 'grpc.enable_http_proxy': 0, 'grpc.max_receive_message_length': 64 << 20,
  'grpc.max_send_message_length': 64 << 20, 'grpc.use_local_subchannel_pool': 1 };
const connect = (Service, more = {}) =>
  new Service(server, grpc.credentials.createInsecure(), { ...options, ...more });
const clients = [];
function client(Service, more) {
  clients.push(connect(Service, more));
  return clients.at(-1);
}
const mappings = client(v1.MappingService);
const transforms = client(v1.TransformService);
after(() => clients.forEach((each) => each.close()));

// Returns small integers that are not all equal.
function numbers(rows, columns) {
  return Float32Array.from({ length: rows * columns }, (_, i) => ((i * 2654435761) % 1009) / 1009 - 0.5);
}
function dense(values, columns = COLUMNS) {
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return { dense: { rows: values.length / columns, columns, float32_le: bytes } };
}
const rows = numbers(64, COLUMNS);
const row = (i) => dense(rows.subarray(i * COLUMNS, (i + 1) * COLUMNS));

// Returns the answer of a unary call. If the call fails, throws its error.
function unary(stub, method, request, metadata = new grpc.Metadata(), callOptions = {}) {
  return new Promise((resolve, reject) => stub[method](
    request, metadata, { deadline: Date.now() + PATIENCE_MS, ...callOptions },
    (error, answer) => (error ? reject(error) : resolve(answer))));
}
async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('expected an error, got an answer');
}
// Reads a stream to its end, ignoring the answers. Returns the status.
function statusOf(call) {
  call.on('error', () => {});
  return new Promise((resolve) => { call.on('status', resolve); });
}
async function answersOf(call) {
  const answers = [];
  for await (const answer of call) answers.push(answer);
  return answers;
}

const transform = (values, ...more) => unary(transforms, 'Transform', { reference: 'one', examples: dense(values) }, ...more);
const spec = (name, buildId, text) =>
  ({ spec: { name, build_id: buildId, spec: text, kernel: 'linear()' } });

// Sends all messages of a build and ends the request stream before it reads anything.
async function build(name, count, text, columns = COLUMNS) {
  const call = mappings.Build({ deadline: Date.now() + PATIENCE_MS });
  call.write(spec(name, randomUUID(), text));
  const data = numbers(count, columns);
  for (let begin = 0; begin < count; begin += 500) {
    call.write({ examples: dense(data.subarray(begin * columns, Math.min(count, begin + 500) * columns), columns) });
  }
  call.write({ finish: { row_count: count } });
  call.end();
  const events = await answersOf(call);
  assert.ok(events[0].accepted);
  return events.at(-1).version;
}

// Waits until the server has noticed the end of the stream, and has dropped the build.
async function awaitNoBuild(name, buildId) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(5)) {
    try {
      await unary(mappings, 'GetBuild', { name, build_id: buildId });
    } catch (error) {
      assert.equal(error.code, status.NOT_FOUND);
      return;
    }
  }
  assert.fail(`the build ${buildId} of a stream that ended is still there`);
}

before(async () => {
  // The case "empty unary": as there are no mappings, the answer is an empty message.
  assert.deepEqual(await unary(mappings, 'ListMappings', {}), { mappings: [], next_page_token: '' });
  await build('one', 500, `f1(landmarks=${LANDMARKS})`);
});

test('large unary', async () => {
  const small = (await transform(rows)).features;
  const copies = LARGE_ROWS / 64;
  const large = (await transform(Float32Array.from({ length: LARGE_ROWS * COLUMNS }, (_, i) => rows[i % rows.length]))).features;
  assert.equal(large.rows, LARGE_ROWS);
  assert.ok(large.float32_le.equals(Buffer.concat(Array(copies).fill(small.float32_le))));
});

test('client streaming and half-close', async () => {
  const version = await build('streamed', 2000, 'f1(landmarks=8)');
  assert.equal(version.ref.number, 1);
  assert.equal(version.certificate.stream_rows, 2000);
});

test('client stream that is answered once', async () => {
  const chunks = await answersOf(mappings.Export({ reference: 'one' }));
  const digest = createHash('sha256').update(Buffer.concat(chunks.map(({ data }) => data))).digest('hex');
  const imported = await new Promise((resolve, reject) => {
    const call = mappings.Import((error, answer) => (error ? reject(error) : resolve(answer)));
    call.write({ name: 'imported' });
    for (const { offset_bytes, data, crc32c } of chunks) call.write({ chunk: { offset_bytes, data, crc32c } });
    call.write({ digest });
    call.end();
  });
  assert.equal(imported.ref.digest, digest);
});

test('server streaming, with a reader that stops and goes on', async () => {
  // The artifact has 16 MB. This is far more than a connection's flow-control windows and the server's buffers hold.
  await build('large', 4400, 'f1(landmarks=4000)', 1000);
  const call = mappings.Export({ reference: 'large' });
  const ended = statusOf(call);
  const received = [];
  let stop = true;
  let offset = 0;
  call.on('data', (chunk) => {
    assert.equal(chunk.offset_bytes, offset);
    offset += chunk.data.length;
    received.push(chunk);
    if (stop) call.pause();
    stop = false;
  });
  await once(call, 'pause');
  // Other calls on the same connection are answered although the artifact is not read.
  for (let i = 0; i < 100; ++i) await unary(mappings, 'GetMapping', { name: 'one' });
  assert.equal(received.length, 1);
  call.resume();
  assert.equal((await ended).code, status.OK);
  const artifact = Buffer.concat(received.map(({ data }) => data));
  assert.ok(artifact.length > 12 << 20);
  assert.equal(artifact.length, received[0].artifact_size_bytes);
  assert.equal(createHash('sha256').update(artifact).digest('hex'), received[0].version.digest);
});

test('ping-pong', async () => {
  const expected = (await transform(rows)).features.float32_le;
  const call = transforms.TransformStream();
  const ended = statusOf(call);
  const got = [];
  for (let i = 0; i < 64; ++i) {
    call.write({ reference: i ? '' : 'one', examples: row(i) });
    const [answer] = await once(call, 'data');
    got.push(answer.features.float32_le);
  }
  call.end();
  assert.equal((await ended).code, status.OK);
  assert.ok(Buffer.concat(got).equals(expected));
});

test('empty stream', async () => {
  const call = transforms.TransformStream();
  const ended = statusOf(call);
  call.end();
  assert.deepEqual(await answersOf(call), []);
  assert.equal((await ended).code, status.OK);
});

test('cancel after begin', async () => {
  const call = transforms.TransformStream();
  const ended = statusOf(call);
  // If a call is cancelled before it begins, grpc-js still opens a stream for it, and leaves the stream open.
  await new Promise((resolve) => { call.write({ reference: 'one', examples: row(0) }, resolve); });
  call.cancel();
  assert.equal((await ended).code, status.CANCELLED);
  assert.equal((await transform(rows)).features.rows, 64);
});

test('cancel after the first answer', async () => {
  const buildId = randomUUID();
  const call = mappings.Build();
  const ended = statusOf(call);
  call.write(spec('cancelled', buildId, 'f1(landmarks=8)'));
  const [first] = await once(call, 'data');
  assert.equal(first.accepted.build_id, buildId);
  assert.equal((await unary(mappings, 'GetBuild', { name: 'cancelled', build_id: buildId })).state, 'STATE_RECEIVING');
  call.cancel();
  assert.equal((await ended).code, status.CANCELLED);
  await awaitNoBuild('cancelled', buildId);
});

test('timeout of a stream that sleeps', async () => {
  const buildId = randomUUID();
  const call = mappings.Build({ deadline: Date.now() + 200 });
  const ended = statusOf(call);
  call.on('data', () => {});
  call.write(spec('slept', buildId, 'f1(landmarks=8)'));
  assert.equal((await ended).code, status.DEADLINE_EXCEEDED);
  await awaitNoBuild('slept', buildId);
});

test('custom metadata', async () => {
  const metadata = new grpc.Metadata();
  metadata.set('x-grpc-test-echo-initial', 'test_initial_metadata_value');
  metadata.set('x-grpc-test-echo-trailing-bin', Buffer.from('0a0b0a0b0a0b', 'hex'));
  metadata.set('x-empty-bin', Buffer.alloc(0));
  metadata.add('x-all-bin', Buffer.from(Array.from({ length: 256 }, (_, i) => i)));
  metadata.add('x-all-bin', Buffer.alloc(1));
  assert.equal((await transform(rows, metadata)).features.rows, 64);
  const error = await errorOf(unary(mappings, 'GetMapping', { name: 'nobody' }, metadata));
  assert.equal(error.code, status.NOT_FOUND);
  assert.match(error.metadata.get('phimap-request-id')[0], /^[0-9a-f]{16}$/);
  const [details] = error.metadata.get('grpc-status-details-bin');
  assert.ok(details.includes('type.googleapis.com/google.rpc.ErrorInfo'));
  assert.ok(details.includes(error.details));
});

test('special status message', async () => {
  // In the error message, control characters are escaped. All other characters are unchanged.
  for (const [name, shown] of [['größe', 'größe'], ['% 100%20%', '% 100%20%'], ['☺ and 😈', '☺ and 😈'],
    ['\t\ntest with whitespace\r\nand BMP ☺\t\n', '\\t\\ntest with whitespace\\r\\nand BMP ☺\\t\\n']]) {
    const error = await errorOf(unary(mappings, 'GetMapping', { name: name }));
    assert.equal(error.code, status.INVALID_ARGUMENT);
    assert.ok(error.details.endsWith(`got "${shown}"`), error.details);
  }
});

test('unimplemented method and service', async () => {
  const nothing = { serialize: () => Buffer.alloc(0), deserialize: (bytes) => bytes };
  for (const path of ['/phimap.v1.TransformService/UnimplementedCall', '/phimap.v1.Unimplemented/Transform']) {
    const error = await errorOf(new Promise((resolve, reject) => transforms.makeUnaryRequest(
      path, nothing.serialize, nothing.deserialize, {}, (failed, answer) => (failed ? reject(failed) : resolve(answer)))));
    assert.equal(error.code, status.UNIMPLEMENTED);
    assert.ok(error.details.includes(path), error.details);
  }
});

test('compressed requests are refused in words', async () => {
  for (const [algorithm, name] of [[1, 'deflate'], [2, 'gzip']]) {
    const compressing = client(v1.TransformService, { 'grpc.default_compression_algorithm': algorithm });
    const error = await errorOf(unary(compressing, 'Transform', { reference: 'one', examples: dense(rows) }));
    assert.equal(error.code, status.UNIMPLEMENTED);
    assert.ok(error.details.includes(`grpc-encoding: expected identity, got "${name}"`), error.details);
  }
});

test('many connections', async () => {
  const expected = (await transform(rows)).features.float32_le;
  const many = Array.from({ length: CONNECTIONS }, () => client(v1.TransformService));
  for (let turn = 0; turn < 2; ++turn) { // the second turn uses connections that are already open
    const answers = await Promise.all(many.map((each) => unary(each, 'Transform', { reference: 'one', examples: dense(rows) })));
    answers.forEach(({ features }) => assert.ok(features.float32_le.equals(expected)));
  }
});
