// Transforms, against the features that the command line writes.
import assert from 'node:assert/strict';
import { before, after, test } from 'node:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, InvalidArgument, NotFound, Reason } from 'phimap';
import { Phimapd, bytesOf, errorOf, matrix, rowsOf, transformed, writeCsv } from './support.mjs';

const COLUMNS = 5;
const folder = mkdtempSync(join(tmpdir(), 'phimap-node-'));
const server = new Phimapd(folder);
const rows32 = matrix(300, COLUMNS, Float32Array, 1);
const rows64 = matrix(300, COLUMNS, Float64Array, 2);
let client;

before(async () => {
  await server.start();
  client = new Client(server.address);
  await client.build('single', rows32, { spec: 'f2(landmarks=40)', kernel: 'rbf(gamma=0.5)', standardize: true });
  await client.build('double', rows64, { spec: 'f2(landmarks=40, serving_type=float64)', kernel: 'rbf(gamma=0.5)' });
});
after(async () => {
  client?.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

for (const [name, rows, Values, kind] of [
  ['single', rows32, Float32Array, '<f4'],
  ['double', rows64, Float64Array, '<f8'],
]) {
  test(`the features of ${Values.name}s are those of the command line, bit by bit`, async () => {
    const expected = await transformed(
      server.address,
      `${name}@1`,
      writeCsv(join(folder, `${name}.csv`), rowsOf(rows)),
    );
    const { features, columns, version, residuals, ...counts } = await client.transform(`${name}@1`, rows);
    assert.equal(kind, expected.kind);
    assert.ok(features instanceof Values);
    assert.deepEqual({ columns, rows: counts.rows }, { columns: expected.columns, rows: 300 });
    assert.ok(bytesOf(features).equals(expected.bytes));
    assert.deepEqual([version.name, version.number, residuals], [name, 1, null]);
  });
}

test('rows have the same features in every form, over a stream and alone', async () => {
  const { features: all, columns } = await client.transform('single', rows32);
  const list = rowsOf(rows32);
  const forms = {
    'a list of Float32Arrays': list,
    'a list of lists': list.map((row) => [...row]),
    'a matrix of a list': { values: [...rows32.values], columns: COLUMNS },
    'an iterable of rows': new Set(list),
    'an async iterable of blocks': (async function* blocks() {
      yield list.slice(0, 7);
      yield { values: rows32.values.subarray(7 * COLUMNS), columns: COLUMNS };
    })(),
    'sparse rows': {
      rowOffsets: Array.from({ length: 301 }, (_, i) => i * COLUMNS),
      columnIndices: Int32Array.from(rows32.values, (_, i) => i % COLUMNS),
      values: rows32.values,
      columns: COLUMNS,
    },
  };
  for (const [form, rows] of Object.entries(forms)) {
    assert.ok(bytesOf((await client.transform('single', rows)).features).equals(bytesOf(all)), form);
  }
  const { features: one } = await client.transform('single', list[7]);
  assert.deepEqual(one, all.subarray(7 * columns, 8 * columns));
});

test('a view into the middle of an array is sent as it is, at any offset', async () => {
  const { features } = await client.transform('single', rows32);
  const shifted = new Float32Array(rows32.values.length + 1);
  shifted.set(rows32.values, 1);
  assert.deepEqual(
    (await client.transform('single', { values: shifted.subarray(1), columns: COLUMNS })).features,
    features,
  );
});

test('a stream yields blocks in order, all by one version, and reads no further than its window', async () => {
  const { features } = await client.transform('single', rows32);
  let read = 0;
  async function* blocks() {
    for (const row of rowsOf(rows32)) {
      read += 1;
      yield { values: row, columns: COLUMNS };
    }
  }
  const parts = [];
  for await (const part of client.transformStream('single', blocks(), { window: 4 })) {
    parts.push(...part.features);
    // The requests without an answer, and the block that is read meanwhile.
    assert.ok(
      read <= parts.length / part.columns + 4 + 1,
      `${read} rows were read before answer ${parts.length / part.columns}`,
    );
    assert.equal(part.version.number, 1);
  }
  assert.deepEqual(Float32Array.from(parts), features);
});

test('a stream that its reader leaves ends its iterable', async () => {
  let closed = false;
  async function* endless() {
    try {
      for (;;) yield rowsOf(rows32);
    } finally {
      closed = true;
    }
  }
  for await (const part of client.transformStream('single', endless())) {
    assert.equal(part.rows, 300);
    break;
  }
  assert.ok(closed);
});

test('a slow iterable gets the answers to what it gave before it gives more', async () => {
  let answered;
  async function* inTurn() {
    for (let i = 0; i < 3; i += 1) {
      const answer = new Promise((resolve) => {
        answered = resolve;
      });
      yield { values: rowsOf(rows32)[i], columns: COLUMNS };
      await answer;
    }
  }
  let count = 0;
  for await (const part of client.transformStream('single', inTurn())) {
    count += part.rows;
    answered();
  }
  assert.equal(count, 3);
});

test('answers of more than 4 MiB come in one call and over a stream', async () => {
  // 65,536 rows of 40 floats have 10 MiB.
  const large = {
    values: Float32Array.from({ length: 65536 * COLUMNS }, (_, i) => rows32.values[i % rows32.values.length]),
    columns: COLUMNS,
  };
  const { features: small } = await client.transform('single', rows32);
  const { features } = await client.transform('single', large);
  assert.equal(features.byteLength, 65536 * 40 * 4);
  assert.ok(features.every((value, i) => value === small[i % small.length]));
  let blocks = 0;
  for await (const part of client.transformStream('single', large, { rowsPerRequest: 65536 })) {
    blocks += 1;
    assert.deepEqual(part.features, features);
  }
  assert.equal(blocks, 1);
});

test('residuals are those of the command line', async () => {
  const csv = writeCsv(join(folder, 'residual.csv'), rowsOf(rows64));
  const expected = await transformed(server.address, 'double@1', csv, '--residual');
  const { features, columns, residuals, allowances } = await client.transform('double', rows64, { residual: true });
  const both = Float64Array.from({ length: 300 * expected.columns }, (_, i) => {
    const [row, column] = [Math.floor(i / expected.columns), i % expected.columns];
    return column < columns ? features[row * columns + column] : residuals[row];
  });
  assert.equal(expected.columns, columns + 1);
  assert.ok(bytesOf(both).equals(expected.bytes));
  assert.equal(allowances.length, 300);
  const parts = [];
  for await (const part of client.transformStream('double', rows64, { residual: true, rowsPerRequest: 64 }))
    parts.push(...part.residuals);
  assert.deepEqual(Float64Array.from(parts), residuals);
});

test('texts and bytes are mapped', async () => {
  const texts = ['a kernel', 'a kennel', 'a colonel', 'the corner', 'the core', 'no kernel'];
  await client.build('texts', texts, { spec: 'f2(landmarks=3)', kernel: 'normalize(spectrum(n=2))' });
  const { features } = await client.transform('texts', texts);
  assert.equal(features.length / texts.length, 3);
  assert.deepEqual((await client.transform('texts', texts[2])).features, features.subarray(6, 9));
  const buffers = texts.map((text) => Buffer.from(text));
  await client.build('bytes', buffers, { spec: 'f2(landmarks=3)', kernel: 'normalize(spectrum(n=2, unit=byte))' });
  assert.deepEqual((await client.transform('bytes', buffers)).features, features);
  assert.deepEqual((await client.transform('bytes', new Set(buffers))).features, features);
});

test('names of columns are checked', async () => {
  const names = ['α', 'b', 'c', 'd', 'e'];
  const version = await client.build('named', rows32, {
    spec: 'f2(landmarks=5)',
    kernel: 'rbf(gamma=1)',
    columnNames: names,
  });
  assert.deepEqual(version.columnNames, names);
  await client.transform('named', rows32, { columnNames: names });
  const error = await errorOf(client.transform('named', rows32, { columnNames: ['b', 'α', 'c', 'd', 'e'] }));
  assert.equal(error.reason, Reason.COLUMN_NAMES_MISMATCH);
});

test('wrong rows are typed errors, with the place in the input', async () => {
  const columns = await errorOf(client.transform('single', matrix(3, COLUMNS + 1)));
  assert.ok(columns instanceof InvalidArgument);
  assert.deepEqual(
    [columns.name, columns.code, columns.reason, columns.field],
    ['InvalidArgument', 'INVALID_ARGUMENT', 'COLUMNS_MISMATCH', 'examples.dense.columns'],
  );
  assert.deepEqual(columns.metadata, { expected: '5', actual: '6' });

  const odd = matrix(300, COLUMNS);
  odd.values[250 * COLUMNS + 3] = NaN;
  for (const options of [{}, { rowsPerRequest: 100 }]) {
    const error = await errorOf(
      (async () => {
        for await (const part of client.transformStream('single', odd, options)) assert.ok(part);
      })(),
    );
    assert.deepEqual([error.code, error.row, error.column], ['INVALID_ARGUMENT', 250, 3]);
  }
  const ragged = await errorOf(
    client.transform('single', [
      [1, 2, 3, 4, 5],
      [1, 2],
    ]),
  );
  assert.deepEqual([ragged.code, ragged.row], ['INVALID_ARGUMENT', 1]);
  const text = await errorOf(
    client.transform('single', [
      [1, 2, 3, 4, 5],
      [1, 2, 3, '4', 5],
    ]),
  );
  assert.deepEqual([text.code, text.row, text.column], ['INVALID_ARGUMENT', 1, 3]);
  assert.equal((await errorOf(client.transform('single', []))).message, 'rows: expected at least 1, got none');
  assert.ok((await errorOf(client.transform('nothing', rows32))) instanceof NotFound);
  await assert.rejects(client.transform('single', 7), TypeError);
  await assert.rejects(client.transform({ name: 'single' }, rows32), TypeError);
});

test('what an iterable throws is thrown, and is no error of the call', async () => {
  async function* broken() {
    yield rowsOf(rows32);
    throw new Error('the file is damaged');
  }
  await assert.rejects(client.transform('single', broken()), { message: 'the file is damaged' });
  await assert.rejects(client.build('broken', broken(), { spec: 'f2(landmarks=5)', kernel: 'rbf(gamma=1)' }), {
    message: 'the file is damaged',
  });
});
