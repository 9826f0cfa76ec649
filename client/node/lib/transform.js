// What one call of features asks for, and how its answers are read.
import { Internal } from './errors.js';
import { matrixOf, resultOf } from './results.js';
import { METHODS } from './schema.js';
import { columnNamesHash } from './column_names.js';
import { MOST_ROWS } from './rows.js';

/** A row call; see row_calls.js. */
export class TransformCall {
  unary = METHODS.Transform;
  stream = METHODS.TransformStream;
  phase = 'transforming';
  mostRows = MOST_ROWS;
  firstRowBytes = null;
  kind = 'transform';
  #residual;
  #hash;
  // In a stream, only the first answer has the version.
  #version = null;

  constructor({ residual = false, columnNames } = {}) {
    this.#residual = Boolean(residual);
    this.#hash = columnNamesHash(columnNames);
  }

  request(target, examples) {
    const wanted = { examples, residual: this.#residual };
    return target === null
      ? wanted
      : { ...wanted, reference: target.reference, expectedDigest: target.expectedDigest, columnNamesHash: this.#hash };
  }

  take(answer, rows) {
    if (answer.version) this.#version = resultOf(answer.version);
    if (this.#version === null) throw new Internal("the server's first answer has no version");
    const { values: features, columns, rows: answered } = answer.features ? matrixOf(answer.features) : { rows: 0 };
    const { residuals, residualAllowances: allowances } = answer;
    const numbers = this.#residual ? rows : 0;
    if (answered !== rows || residuals.length !== numbers || allowances.length !== numbers) {
      throw new Internal(
        `the server answered ${answered} rows and ${residuals.length} residuals to a request of ${rows} rows`,
      );
    }
    return {
      features,
      rows,
      columns,
      version: this.#version,
      residuals: this.#residual ? Float64Array.from(residuals) : null,
      allowances: this.#residual ? Float64Array.from(allowances) : null,
    };
  }

  rowBytes({ columns, features }) {
    return columns * features.BYTES_PER_ELEMENT + (this.#residual ? 16 : 0);
  }

  gathered(results) {
    const [first] = results;
    if (results.length === 1) return first;
    return {
      ...first,
      features: joined(results.map(({ features }) => features)),
      rows: results.reduce((sum, { rows }) => sum + rows, 0),
      residuals: this.#residual ? joined(results.map(({ residuals }) => residuals)) : null,
      allowances: this.#residual ? joined(results.map(({ allowances }) => allowances)) : null,
    };
  }
}

/** Returns typed arrays of one class as one. */
export function joined(arrays) {
  const all = new arrays[0].constructor(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const each of arrays) {
    all.set(each, at);
    at += each.length;
  }
  return all;
}
