// What the server's description is for: it passes a linter, types a client, and says what the server answers.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { createConfig, lint } from '@redocly/openapi-core';
import Ajv from 'ajv/dist/2020.js';

const { PHIMAP, PHIMAP_HTTP, PHIMAP_SERVER, ROWS } = process.env;
const url = `http://${PHIMAP_HTTP}`;
const run = promisify(execFile);
const rows = readFileSync(ROWS, 'utf8').trim().split('\n').slice(1, 8).map((line) => line.split(',').slice(0, 5).map(Number));
let ajv;
let description;
let mappings;
let CallError;

const tsc = (...args) => run('node_modules/.bin/tsc', args);

before(async () => {
  const answer = await fetch(`${url}/openapi.json`);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'application/json');
  const text = await answer.text();
  description = JSON.parse(text);
  writeFileSync('openapi.json', text);
  await run('node_modules/.bin/openapi-typescript', ['openapi.json', '-o', 'api.d.ts']);
  await tsc();
  const client = await import('./client.js');
  CallError = client.CallError;
  mappings = new client.Mappings(url);
});

/** Returns what checks an answer of an operation with a status: members that the schema does not name are wrong. */
function validatorOf(path, verb, status) {
  if (ajv === undefined) {
    const closed = JSON.parse(JSON.stringify(description), (_, value) =>
      value?.type === 'object' && value.additionalProperties === undefined ? { ...value, additionalProperties: false } : value);
    ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true }).addSchema(closed, 'api');
  }
  const response = description.paths[path][verb].responses[status];
  const at = response.$ref ?? `#/${['paths', path, verb, 'responses', status].map((part) => part.replaceAll('/', '~1')).join('/')}`;
  return ajv.getSchema(`api${encodeURI(`${at}/content/application~1json/schema`)}`);
}

async function check(verb, path, target, status = 200, body = undefined) {
  const answer = await fetch(url + target, {
    method: verb.toUpperCase(),
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  assert.equal(answer.status, status, target);
  const validate = validatorOf(path, verb, status === 200 ? '200' : `${Math.floor(status / 100)}XX`);
  const said = await answer.json();
  assert.ok(validate(said), `${target}: ${JSON.stringify(validate.errors)}`);
  return said;
}

test('the linter has nothing to say under its recommended rules', async () => {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lint({ ref: 'openapi.json', config });
  assert.deepEqual(problems.map((problem) => `${problem.severity} ${problem.ruleId}: ${problem.message}`), []);
  // The linter reads the description: it misses the summary of a call.
  const worse = structuredClone(description);
  delete worse.paths['/v1/advice'].post.summary;
  writeFileSync('worse.json', JSON.stringify(worse));
  assert.equal((await lint({ ref: 'worse.json', config }))[0].ruleId, 'operation-summary');
});

test('a description that did not change is not sent again', async () => {
  const etag = (await fetch(`${url}/openapi.json`)).headers.get('etag');
  assert.equal((await fetch(`${url}/openapi.json`, { headers: { 'if-none-match': etag } })).status, 304);
});

test('a field that is named wrongly does not compile, in a request or in an answer', async () => {
  await assert.rejects(tsc('--project', 'planted.json'), (error) => {
    const wrong = error.stdout.trim().split('\n').filter((line) => line.startsWith('planted.ts'));
    assert.equal(wrong.length, 2, error.stdout);
    assert.match(wrong[0], /'row' does not exist/);
    assert.match(wrong[1], /Property 'mapping' does not exist/);
    return true;
  });
});

test('names and versions are listed and got', async () => {
  assert.deepEqual(await mappings.names(), ['first', 'second']);
  const version = await mappings.version('first', '1');
  assert.equal(version.ref.number, '1');
  assert.equal(version.input_columns, 5);
  assert.equal((await mappings.setAlias('first@1', 'prod')).version, '1');
  assert.equal((await mappings.version('first', 'prod')).ref.digest, version.ref.digest);
  assert.ok((await mappings.estimate('first')) > 0n);
});

test('features have the bits of those of the command line', async () => {
  writeFileSync('few.csv', ['a,b,c,d,e', ...rows.map((row) => row.join(','))].join('\n') + '\n');
  await run(PHIMAP, ['transform', 'first@1', '--input=few.csv', '-o', 'few.npy'], { env: { ...process.env, PHIMAP_SERVER } });
  const file = readFileSync('few.npy');
  const data = file.subarray(10 + file.readUInt16LE(8));
  const features = await mappings.transform('first@1', rows);
  const bits = Buffer.from(Float32Array.from(features.flat()).buffer);
  assert.ok(bits.length > 0 && bits.equals(data));
  // Nothing was rounded to get these bits.
  assert.ok(features.flat().every((number) => Math.fround(number) === number));
});

test('classes are predicted', async () => {
  const classes = await mappings.predict('second', rows);
  assert.equal(classes.length, rows.length);
  assert.ok(classes.every((name) => name === 'low' || name === 'high'));
});

test('errors are typed', async () => {
  await assert.rejects(mappings.transform('first@1', [[1, 2]]), (error) => {
    assert.ok(error instanceof CallError);
    assert.deepEqual([error.status, error.reason, error.fields], [400, 'COLUMNS_MISMATCH', ['examples.dense.columns']]);
    return true;
  });
  await assert.rejects(mappings.version('third', '1'), (error) => error.status === 404 && error.reason === 'MAPPING_NOT_FOUND');
});

test('answers are what the description says', async () => {
  const version = await check('get', '/v1/mappings/{name}/versions/{version}', '/v1/mappings/first/versions/1');
  assert.ok(version.certificate.self_check.features.float32_le);
  const headed = await check('get', '/v1/mappings/{name}/versions/{version}', '/v1/mappings/second/versions/2');
  assert.ok(headed.head.report.classes);
  await check('get', '/v1/mappings', '/v1/mappings');
  await check('get', '/v1/mappings/{name}', '/v1/mappings/first');
  await check('get', '/v1/mappings/{name}/versions', '/v1/mappings/first/versions');
  await check('get', '/v1/mappings/{name}/builds', '/v1/mappings/first/builds');
  await check('get', '/v1/mappings/{name}/drift', '/v1/mappings/first/drift');
  await check('get', '/v1/capabilities', '/v1/capabilities');
  await check('post', '/v1/advice', '/v1/advice', 200, { margin: 0.1, error: 0.1, confidence: 0.95, points: '1000' });
  await check('post', '/v1/mappings/{reference}:transform', '/v1/mappings/first@1:transform', 200, { rows, residual: true });
  await check('post', '/v1/mappings/{reference}:predict', '/v1/mappings/second:predict', 200,
    { rows, scores: true, probabilities: true, confidence: 0.9 });
  await check('post', '/v1/mappings/{reference}:keep', '/v1/mappings/first@1:keep', 200, {});
  await check('get', '/v1/mappings/{name}', '/v1/mappings/third', 404);
  await check('post', '/v1/mappings/{reference}:transform', '/v1/mappings/first@1:transform', 400, { row: rows });
});
