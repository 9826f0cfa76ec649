// Rows as callers give them, and their blocks as messages carry them.
import { InvalidArgument } from './errors.js';
import { bytesOf } from './numbers.js';

/** The API's limit of rows in a message. */
export const MOST_ROWS = 65536;

const EXPECTED =
  'rows: expected { values, columns }, a list of rows, texts or Buffers, { rowOffsets, columnIndices, values, columns }, ' +
  'or an iterable of these';

const isRow = (value) => isFloats(value) || (Array.isArray(value) && typeof value[0] === 'number');
const isFloats = (value) =>
  ArrayBuffer.isView(value) &&
  !(value instanceof DataView) &&
  !(value instanceof Uint8Array) &&
  !(value instanceof BigInt64Array) &&
  !(value instanceof BigUint64Array);
const isExample = (value) => typeof value === 'string' || value instanceof Uint8Array;

class DenseBlock {
  constructor(values, rows, columns) {
    this.values = values;
    this.rows = rows;
    this.columns = columns;
  }

  slice(begin, end) {
    return new DenseBlock(this.values.subarray(begin * this.columns, end * this.columns), end - begin, this.columns);
  }

  /** Returns how many rows from `begin` have at most so many bytes. */
  fitting(begin, bytes) {
    return Math.min(this.rows - begin, Math.floor(bytes / Math.max(1, this.columns * this.values.BYTES_PER_ELEMENT)));
  }

  examples() {
    const kind = this.values instanceof Float32Array ? 'float32Le' : 'float64Le';
    return { dense: { rows: this.rows, columns: this.columns, [kind]: bytesOf(this.values) } };
  }
}

class SparseBlock {
  constructor(offsets, indices, values, columns) {
    this.offsets = offsets;
    this.indices = indices;
    this.values = values;
    this.columns = columns;
    this.rows = offsets.length - 1;
  }

  slice(begin, end) {
    const [from, to] = [this.offsets[begin], this.offsets[end]];
    return new SparseBlock(
      this.offsets.slice(begin, end + 1).map((offset) => offset - from),
      this.indices.subarray(from, to),
      this.values.subarray(from, to),
      this.columns,
    );
  }

  fitting(begin, bytes) {
    const ofEntry = this.indices.BYTES_PER_ELEMENT + this.values.BYTES_PER_ELEMENT;
    let end = begin;
    while (end < this.rows && (this.offsets[end + 1] - this.offsets[begin]) * ofEntry + (end + 1 - begin) * 8 <= bytes)
      end += 1;
    return end - begin;
  }

  examples() {
    const kind = this.values instanceof Float32Array ? 'float32Le' : 'float64Le';
    return {
      sparse: {
        rows: this.rows,
        columns: this.columns,
        rowOffsetsLe: bytesOf(BigInt64Array.from(this.offsets, BigInt)),
        columnIndicesLe: bytesOf(this.indices),
        [kind]: bytesOf(this.values),
      },
    };
  }
}

class StringsBlock {
  constructor(values) {
    this.values = values;
    this.rows = values.length;
    this.areTexts = typeof values[0] === 'string';
  }

  slice(begin, end) {
    return new StringsBlock(this.values.slice(begin, end));
  }

  fitting(begin, bytes) {
    let end = begin;
    let left = bytes;
    while (end < this.rows && (left -= Buffer.byteLength(this.values[end]) + 8) >= 0) end += 1;
    return end - begin;
  }

  examples() {
    return this.areTexts ? { text: { values: this.values } } : { bytes: { values: this.values } };
  }
}

/** Returns the block that `rows` is: one row, a list of rows or of examples, or a matrix. null if it is none. */
function blockOf(rows) {
  if (isExample(rows)) return stringsOf([rows]);
  if (isRow(rows)) return denseOf([rows]);
  if (Array.isArray(rows)) return isExample(rows[0]) ? stringsOf(rows) : denseOf(rows);
  if (rows?.rowOffsets !== undefined) return sparseOf(rows);
  return typeof rows?.values === 'object' ? matrixBlock(rows) : null; // values() of a Set or a Map is a function
}

function stringsOf(values) {
  const odd = values.findIndex((value) => !isExample(value) || typeof value !== typeof values[0]);
  if (odd >= 0)
    throw ofRow(
      odd,
      `expected ${typeof values[0] === 'string' ? 'a text' : 'bytes'}, as in row 0, got ${said(values[odd])}`,
    );
  return new StringsBlock(values);
}

// Rows of one Float32Array each stay float32; all others become float64.
function denseOf(rows) {
  const columns = rows[0]?.length ?? 0;
  const Values = rows.every((row) => row instanceof Float32Array) ? Float32Array : Float64Array;
  const values = new Values(rows.length * columns);
  rows.forEach((row, i) => {
    if (!isRow(row)) throw ofRow(i, `expected numbers, got ${said(row)}`);
    if (row.length !== columns) throw ofRow(i, `expected ${columns} columns, as in row 0, got ${row.length}`);
    if (Array.isArray(row)) checkNumbers(row, i);
    values.set(row, i * columns);
  });
  return new DenseBlock(values, rows.length, columns);
}

function checkNumbers(row, i) {
  const odd = row.findIndex((value) => typeof value !== 'number');
  if (odd >= 0)
    throw new InvalidArgument(`rows[${i}].columns[${odd}]: expected a number, got ${said(row[odd])}`, {
      field: `rows[${i}].columns[${odd}]`,
    });
}

function matrixBlock({ values, columns, rows = values.length / columns }) {
  if (!Number.isSafeInteger(columns) || columns < 1 || rows * columns !== values.length || !Number.isInteger(rows)) {
    throw new InvalidArgument(
      `rows: expected rows × columns values, got ${values.length} values and ${columns} columns`,
      { field: 'rows' },
    );
  }
  return new DenseBlock(floatsOf(values), rows, columns);
}

function sparseOf({ rowOffsets, columnIndices, values, columns }) {
  const offsets = Array.from(rowOffsets, Number);
  if (offsets[0] !== 0 || offsets.at(-1) !== columnIndices.length || columnIndices.length !== values.length) {
    throw new InvalidArgument(
      `rows: expected rowOffsets from 0 to the number of columnIndices and of values, got ${offsets[0]} to ` +
        `${offsets.at(-1)}, ${columnIndices.length} and ${values.length}`,
      { field: 'rows' },
    );
  }
  const indices = columnIndices instanceof Int32Array ? columnIndices : Int32Array.from(columnIndices);
  return new SparseBlock(offsets, indices, floatsOf(values), columns);
}

function floatsOf(values) {
  if (values instanceof Float32Array || values instanceof Float64Array) return values;
  if (Array.isArray(values)) checkNumbers(values, 0);
  if (!Array.isArray(values) && !ArrayBuffer.isView(values))
    throw new InvalidArgument(`rows: expected an array of numbers as values, got ${said(values)}`, { field: 'rows' });
  return Float64Array.from(values);
}

function ofRow(row, text) {
  return new InvalidArgument(`rows[${row}]: ${text}`, { field: `rows[${row}]`, row });
}

function said(value) {
  return value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? (value.constructor?.name ?? 'an object')
        : typeof value;
}

/** Rows in memory, which can be read again. */
class MemorySource {
  rewinds = true;
  // The next block while it is being read, by who reads it.
  coming = null;
  #at = 0;

  constructor(block) {
    this.block = block;
    this.rowCount = block.rows;
  }

  /** Returns the next block of at most `rows` rows and, beyond the first row, at most `bytes` bytes; null at the end. */
  async next({ rows, bytes }) {
    const { block } = this;
    if (this.#at >= block.rows) return null;
    const begin = this.#at;
    this.#at += Math.max(1, Math.min(rows, block.fitting(begin, bytes)));
    return this.#at - begin === block.rows ? block : block.slice(begin, this.#at);
  }

  rewind() {
    this.#at = 0;
    this.coming = null;
    return true;
  }

  async close() {}
}

/**
 * Rows of an iterable, which can be read once. Single rows are gathered into blocks; a block is divided if it is too large, and
 * never joined with the next.
 */
class IterableSource {
  rowCount = null;
  block = null;
  rewinds = false;
  coming = null;
  #iterator;
  #current = null;
  // An item that was read before it was known that it begins the next block.
  #held;
  #state = 'idle';

  constructor(iterable) {
    this.#iterator = (iterable[Symbol.asyncIterator] ?? iterable[Symbol.iterator]).call(iterable);
  }

  async next(limits) {
    for (;;) {
      const block = await this.#current?.next(limits);
      if (block) return block;
      const read = await this.#read(limits);
      if (read === null) return null;
      this.#current = new MemorySource(read);
    }
  }

  rewind() {
    return false;
  }

  /** Lets the iterable end. One that is being read ends when it has given what it was asked for, which may take for ever. */
  async close() {
    if (this.#state === 'ended') return;
    const ended = Promise.resolve(this.#iterator.return?.());
    if (this.#state === 'reading') ended.catch(() => {});
    else await ended;
  }

  // Returns the next item that is a block, or as many single rows as fit into one; null at the end.
  async #read({ rows, bytes }) {
    const gathered = [];
    let left = bytes;
    while (gathered.length < rows && left > 0) {
      const item = await this.#item();
      if (item === undefined) break;
      if (!isExample(item) && !isRow(item)) {
        if (gathered.length > 0) {
          this.#held = item;
          break;
        }
        const block = blockOf(item);
        if (block === null) throw new TypeError(`${EXPECTED}, got an iterable of ${said(item)}`);
        return block;
      }
      gathered.push(item);
      left -= typeof item === 'string' ? Buffer.byteLength(item) : (item.byteLength ?? item.length * 8);
    }
    if (gathered.length === 0) return null;
    return isExample(gathered[0]) ? stringsOf(gathered) : denseOf(gathered);
  }

  async #item() {
    if (this.#held !== undefined) {
      const item = this.#held;
      this.#held = undefined;
      return item;
    }
    this.#state = 'reading';
    try {
      const { done, value } = await this.#iterator.next();
      this.#state = done ? 'ended' : 'idle';
      return done ? undefined : value;
    } catch (error) {
      this.#state = 'ended';
      throw error;
    }
  }
}

/** Returns the source of the argument `rows` of a call. */
export function sourceOf(rows) {
  const block = blockOf(rows);
  if (block !== null) return new MemorySource(block);
  if (typeof (rows?.[Symbol.asyncIterator] ?? rows?.[Symbol.iterator]) !== 'function')
    throw new TypeError(`${EXPECTED}, got ${said(rows)}`);
  return new IterableSource(rows);
}
