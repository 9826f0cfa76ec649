// Numbers on their way through messages: 64-bit ones, and bytes of floats.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnNamesHash } from '../lib/column_names.js';
import { InvalidArgument } from '../lib/errors.js';
import { bytesOf, safeNumber, seedField, valuesOf } from '../lib/numbers.js';
import { matrixOf, resultOf } from '../lib/results.js';
import { sourceOf } from '../lib/rows.js';
import { METHODS, typeOf } from '../lib/schema.js';

const VERSION = typeOf('phimap.v1.Version');

/** Returns a message with one field, a varint, as the wire has it. */
function varint(field, value) {
  const bytes = [field << 3];
  for (let rest = value; ; rest >>= 7n) {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    if (rest <= 0x7fn) return Buffer.from(bytes);
  }
}

test('a count is a number while that is exact, and refused beyond', () => {
  const size = (value) => resultOf(VERSION.decode(varint(2, value))).artifactSizeBytes;
  assert.equal(size(2n ** 53n - 1n), 2 ** 53 - 1);
  assert.equal(size(0n), 0);
  assert.throws(() => size(2n ** 53n), RangeError);
  assert.throws(() => size(2n ** 63n - 1n), RangeError);
  assert.equal(size((1n << 64n) - 5n), -5);
  assert.throws(() => safeNumber(2 ** 53, 'rows'), /rows: 9007199254740992 is beyond/);
});

test('a seed keeps its 64 bits in both directions', () => {
  for (const seed of [0n, 1n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n]) {
    assert.equal(resultOf(VERSION.decode(varint(12, seed))).seed, seed);
    const written = METHODS.Build.serialize({ spec: { seed: seedField(seed) } });
    assert.ok(Buffer.from(written).includes(varint(6, seed)), String(seed));
  }
  assert.equal(resultOf(VERSION.decode(Buffer.alloc(0))).seed, null);
});

test('the hash of column names is that of the definition', () => {
  // The first 8 bytes of SHA-256 of 01 00 00 00 'a' 02 00 00 00 'é' in UTF-8, by sha256sum.
  const field = columnNamesHash(['a', 'é']);
  assert.equal((BigInt(field.high) << 32n) | BigInt(field.low), HASH);
  assert.deepEqual(columnNamesHash([]), { low: 0, high: 0, unsigned: true });
  assert.throws(() => columnNamesHash('ab'), TypeError);
});
const HASH = Buffer.from('05a519c01404d241', 'hex').readBigUInt64LE();

test('floats are little-endian on every processor, whatever their alignment', () => {
  const floats = Float32Array.of(1, -2.5);
  const bytes = Buffer.from('0000803f000020c0', 'hex');
  assert.deepEqual(Buffer.from(bytesOf(floats)), bytes);
  const unaligned = Buffer.concat([Buffer.alloc(1), bytes]).subarray(1);
  assert.deepEqual(valuesOf(unaligned, Float32Array), floats);
  assert.deepEqual(valuesOf(Buffer.from('000000000000f03f', 'hex'), Float64Array), Float64Array.of(1));
  // A big-endian processor has the bytes of each number the other way round.
  const swapped = new Float32Array(Uint8Array.from(Buffer.from('3f800000c0200000', 'hex')).buffer);
  assert.deepEqual(bytesOf(swapped, false), bytes);
  assert.deepEqual(bytesOf(valuesOf(bytes, Float32Array, false)), Buffer.from('3f800000c0200000', 'hex'));
});

test('a matrix that does not have the values that it states is refused', () => {
  const dense = typeOf('phimap.v1.DenseRows');
  assert.throws(
    () => matrixOf(dense.create({ rows: 2, columns: 1, float32Le: Buffer.alloc(4) })),
    /2 × 1 numbers in 4 bytes/,
  );
  assert.throws(() => matrixOf(dense.create({ rows: 2, columns: 1 })), /in 0 bytes of nothing/);
});

test('rows are divided by bytes and by rows, and none is lost', async () => {
  const blocks = async (rows, limits) => {
    const source = sourceOf(rows);
    const counts = [];
    for (let block; (block = await source.next(limits)) !== null;) counts.push(block.rows);
    return counts;
  };
  const matrix = { values: new Float64Array(70), columns: 7 };
  assert.deepEqual(await blocks(matrix, { rows: 4, bytes: 1e6 }), [4, 4, 2]);
  assert.deepEqual(await blocks(matrix, { rows: 100, bytes: 3 * 56 + 55 }), [3, 3, 3, 1]);
  assert.deepEqual(await blocks(matrix, { rows: 100, bytes: 1 }), Array(10).fill(1));
  assert.deepEqual(await blocks(['a', 'bc', 'def'], { rows: 100, bytes: 20 }), [2, 1]);
  const sparse = { rowOffsets: [0, 2, 2, 5], columnIndices: [0, 1, 0, 1, 2], values: new Float32Array(5), columns: 3 };
  assert.deepEqual(await blocks(sparse, { rows: 100, bytes: 32 }), [2, 1]);
  assert.deepEqual(
    await blocks([matrix, Float32Array.of(1), [2], matrix].values(), { rows: 6, bytes: 1e6 }),
    [6, 4, 2, 6, 4],
  );
  await assert.rejects(blocks(new Set([7]), { rows: 1, bytes: 1 }), TypeError);
  assert.throws(() => sourceOf({ values: new Float32Array(7), columns: 2 }), InvalidArgument);
  assert.throws(() => sourceOf({ ...sparse, rowOffsets: [0, 2, 2, 4] }), InvalidArgument);
  assert.throws(() => sourceOf(['a', 7]), InvalidArgument);
  assert.throws(() => sourceOf(7), TypeError);
});

test('a divided block of sparse rows has the offsets of its own entries', async () => {
  const source = sourceOf({
    rowOffsets: [0, 2, 2, 5],
    columnIndices: [0, 1, 0, 1, 2],
    values: [1, 2, 3, 4, 5],
    columns: 3,
  });
  await source.next({ rows: 2, bytes: 1e6 });
  const { sparse } = (await source.next({ rows: 2, bytes: 1e6 })).examples();
  assert.deepEqual([...valuesOf(sparse.rowOffsetsLe, BigInt64Array)], [0n, 3n]);
  assert.deepEqual([...valuesOf(sparse.columnIndicesLe, Int32Array)], [0, 1, 2]);
  assert.deepEqual([...valuesOf(sparse.float64Le, Float64Array)], [3, 4, 5]);
});
