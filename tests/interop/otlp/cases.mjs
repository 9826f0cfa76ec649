// Decodes the traces that phimapd sends, by the protobuf classes of OpenTelemetry's own package for JavaScript.
//   node --test cases.mjs, with PHIMAPD (the server) and PHIMAP_WORK (an empty folder)
//
// This process is the collector, and calls the server over HTTP, as an application does that traces its own calls.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';

// The package's entry exports serialisers of requests alone; what it decodes answers with is beside it.
const { opentelemetry } = createRequire(import.meta.url)('@opentelemetry/otlp-transformer/build/src/generated/root');
const { ExportTraceServiceRequest, ExportTraceServiceResponse } = opentelemetry.proto.collector.trace.v1;

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';
const hex = (bytes) => Buffer.from(bytes).toString('hex');

const requests = [];
let collector;
let server;
let api;

before(async () => {
  collector = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      requests.push({ url: request.url, headers: request.headers, bytes: Buffer.concat(chunks) });
      response.setHeader('Content-Type', 'application/x-protobuf');
      response.end(ExportTraceServiceResponse.encode({}).finish());
    });
  });
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
  // Only calls whose caller asks for it are traced.
  server = spawn(process.env.PHIMAPD, [
    `--data_dir=${process.env.PHIMAP_WORK}/data`, '--listen=127.0.0.1:0', '--http=none', '--api_http=127.0.0.1:0',
    '--log_level=warning', `--trace_endpoint=http://127.0.0.1:${collector.address().port}`, '--trace_ratio=0',
  ], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [ready] = await once(createInterface(server.stdout), 'line');
  api = `http://${/api_http=(\S+)/.exec(ready)[1]}`;
});

after(() => {
  server.kill('SIGKILL');
  collector.close();
});

test('the spans of traced calls are those of OTLP', async () => {
  const get = (path, flags) => fetch(api + path, { headers: { traceparent: `00-${TRACE}-${CALLER}-${flags}` } });
  const sentAt = BigInt(Date.now()) * 1_000_000n;
  assert.equal((await get('/v1/capabilities', '01')).status, 200);
  assert.equal((await get('/v1/mappings/nothing', '01')).status, 404);
  assert.equal((await get('/v1/capabilities', '00')).status, 200);
  assert.equal((await fetch(`${api}/v1/capabilities`)).status, 200);
  // The server sends what waits before it ends.
  server.kill('SIGTERM');
  assert.deepEqual(await once(server, 'exit'), [0, null]);

  const spans = [];
  for (const { url, headers, bytes } of requests) {
    assert.equal(url, '/v1/traces');
    assert.equal(headers['content-type'], 'application/x-protobuf');
    const { resourceSpans } = ExportTraceServiceRequest.toObject(ExportTraceServiceRequest.decode(bytes), {
      longs: String, enums: String, defaults: true,
    });
    for (const { resource, scopeSpans } of resourceSpans) {
      const attributes = new Map(resource.attributes.map(({ key, value }) => [key, value.stringValue]));
      assert.equal(attributes.get('service.name'), 'phimapd');
      assert.match(attributes.get('service.version'), /^\d+\.\d+\.\d+$/);
      for (const { scope, spans: batch } of scopeSpans) {
        assert.equal(scope.name, 'phimapd');
        spans.push(...batch);
      }
    }
  }
  // One for each call that its caller traces. Later releases may add the steps of a call, as its children.
  const calls = spans.filter(({ kind }) => kind === 'SPAN_KIND_SERVER');
  assert.deepEqual(calls.map(({ name }) => name).sort(), [
    'phimap.v1.MappingService/GetMapping', 'phimap.v1.MappingService/ListCapabilities',
  ]);
  assert.equal(new Set(spans.map(({ spanId }) => hex(spanId))).size, spans.length);
  for (const span of spans) {
    assert.equal(hex(span.traceId), TRACE);
    assert.equal(span.spanId.length, 8);
    assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano));
    // The two processes have the same clock, of which Date.now() drops the rest of a millisecond.
    assert.ok(BigInt(span.startTimeUnixNano) >= sentAt - 1_000_000n);
    assert.ok(BigInt(span.endTimeUnixNano) <= BigInt(Date.now() + 1) * 1_000_000n);
  }
  for (const call of calls) {
    assert.equal(hex(call.parentSpanId), CALLER);
    // Sampled, and known to have its parent in another process.
    assert.equal(call.flags, 0x301);
    const attributes = new Map(call.attributes.map(({ key, value }) => [key, value.stringValue || Number(value.intValue)]));
    const found = call.name.endsWith('ListCapabilities');
    assert.equal(attributes.get('rpc.system'), 'grpc');
    assert.equal(attributes.get('rpc.service'), 'phimap.v1.MappingService');
    assert.equal(attributes.get('rpc.grpc.status_code'), found ? 0 : 5);
    assert.equal(attributes.has('phimap.request_id'), !found);
  }
});
