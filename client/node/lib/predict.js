// What one call of predictions asks for, and how its answers are read.
import { Internal } from './errors.js';
import { columnNamesHash } from './column_names.js';
import { matrixOf, resultOf } from './results.js';
import { METHODS } from './schema.js';
import { joined } from './transform.js';

// The API's limit.
const MOST_CLASSES = 1000;
// Bytes of a label or a value in a message, and of what else belongs to a row, from above.
const ROW_BYTES = 16;
// Bytes of a class in a set: an index under 2^14 takes two.
const SET_BYTES = 2;

/** A row call; see row_calls.js. */
export class PredictCall {
  unary = METHODS.Predict;
  stream = METHODS.PredictStream;
  phase = 'predicting';
  // The server computes the features of a request that it cannot fold into the scores, so the features of 4,096 rows and not
  // the small answers limit a request.
  mostRows = 4096;
  #wanted;
  #hash;
  // In a stream, only the first answer has the version and the names of classes.
  #version = null;
  #classes = null;

  constructor({ scores = false, probabilities = false, confidence = 0, deviations = false, columnNames } = {}) {
    if (!(typeof confidence === 'number' && confidence >= 0 && confidence < 1)) {
      throw new RangeError(
        `confidence: expected a number in (0, 1), or nothing for neither sets nor intervals, got ${confidence}`,
      );
    }
    this.#wanted = {
      scores: Boolean(scores),
      probabilities: Boolean(probabilities),
      confidence,
      deviations: Boolean(deviations),
    };
    this.#hash = columnNamesHash(columnNames);
    this.kind = `predict ${JSON.stringify(this.#wanted)}`;
    this.firstRowBytes = this.#rowBytesOf(MOST_CLASSES);
  }

  request(target, examples) {
    const wanted = { ...this.#wanted, examples };
    return target === null
      ? wanted
      : { ...wanted, reference: target.reference, expectedDigest: target.expectedDigest, columnNamesHash: this.#hash };
  }

  take(answer, rows) {
    if (answer.version) {
      this.#version = resultOf(answer.version);
      this.#classes = answer.classNames.length > 0 ? answer.classNames : null;
    }
    if (this.#version === null) throw new Internal("the server's first answer has no version");
    const [wanted, classes] = [this.#wanted, this.#classes];
    const count = classes?.length ?? 0;
    const indices = classes ? columnOf(Int32Array, answer.labels, 'labels', rows) : null;
    if (indices?.some((index) => index < 0 || index >= count))
      throw new Internal(`the server answered a label that is not the index of one of ${count} classes`);
    const [lows, highs] =
      classes || !wanted.confidence
        ? [null, null]
        : [
            columnOf(Float64Array, answer.intervalLows, 'intervals', rows),
            columnOf(Float64Array, answer.intervalHighs, 'intervals', rows),
          ];
    return {
      version: this.#version,
      rows,
      classes,
      indices,
      labels: indices && Array.from(indices, (index) => classes[index]),
      values: classes ? null : columnOf(Float64Array, answer.values, 'values', rows),
      scores: wanted.scores ? ofRows(answer.scores, rows) : null,
      probabilities: wanted.probabilities ? ofRows(answer.probabilities, rows) : null,
      sets:
        classes && wanted.confidence
          ? columnOf(Array, answer.sets, 'sets', rows).map((set) => namesOf(set.classes, classes))
          : null,
      lows,
      highs,
      deviations: wanted.deviations ? columnOf(Float64Array, answer.deviations, 'deviations', rows) : null,
    };
  }

  rowBytes({ classes }) {
    return this.#rowBytesOf(classes?.length ?? 0);
  }

  gathered(results) {
    const [first] = results;
    if (results.length === 1) return first;
    const all = { ...first, rows: results.reduce((sum, { rows }) => sum + rows, 0) };
    for (const name of ['indices', 'values', 'lows', 'highs', 'deviations'])
      if (first[name]) all[name] = joined(results.map((each) => each[name]));
    for (const name of ['labels', 'sets']) if (first[name]) all[name] = results.flatMap((each) => each[name]);
    for (const name of ['scores', 'probabilities']) {
      if (first[name])
        all[name] = { ...first[name], rows: all.rows, values: joined(results.map((each) => each[name].values)) };
    }
    return all;
  }

  #rowBytesOf(classes) {
    const { scores, probabilities, confidence, deviations } = this.#wanted;
    return (
      ROW_BYTES +
      8 * Number(deviations) +
      8 * Math.max(classes, 1) * (Number(scores) + Number(probabilities)) +
      (confidence > 0 ? 16 + SET_BYTES * classes : 0)
    );
  }
}

function columnOf(Values, values, name, rows) {
  if (values.length !== rows)
    throw new Internal(`the server answered ${values.length} ${name} to a request of ${rows} rows`);
  return Values.from(values);
}

function ofRows(dense, rows) {
  const matrix = dense ? matrixOf(dense) : { rows: 0 };
  if (matrix.rows !== rows)
    throw new Internal(`the server answered numbers of ${matrix.rows} rows to a request of ${rows} rows`);
  return matrix;
}

function namesOf(indices, classes) {
  if (indices.some((index) => !(index in classes)))
    throw new Internal(`the server answered a set with an index that is not one of ${classes.length} classes`);
  return indices.map((index) => classes[index]);
}
