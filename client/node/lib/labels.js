// What is known of each row beside its values: labels, weights, groups and parts.
import { InvalidArgument } from './errors.js';
import { enumOf } from './schema.js';

const PARTS = enumOf('phimap.v1.TrainingPart').values;

/** The labels of rows, as the texts that the server takes. InvalidArgument, with the row, if one is missing. */
export class Labels {
  #texts;

  constructor(labels) {
    this.#texts = listOf('labels', labels).map((label, row) => {
      if (isMissing(label))
        throw ofRow(
          'labels',
          row,
          `row ${row} has no label: got ${JSON.stringify(label)}; leave the row out, or give it a label of its own, for example "unknown"`,
        );
      return String(label);
    });
  }

  slice(begin, end) {
    if (end > this.#texts.length) throw this.#wrong(`${end} or more`);
    return this.#texts.slice(begin, end);
  }

  checkCount(rows) {
    if (rows !== this.#texts.length) throw this.#wrong(rows);
  }

  get length() {
    return this.#texts.length;
  }

  #wrong(rows) {
    return new InvalidArgument(`labels: expected one for each row, got ${this.#texts.length} labels and ${rows} rows`, {
      field: 'labels',
    });
  }
}

/** Labels, and what a training may know of rows beside them. */
export class LabeledRows {
  #labels;
  #others;

  constructor(labels, { weights, groups, parts }) {
    this.#labels = new Labels(labels);
    this.#others = {
      weights: listOf('weights', weights ?? [], weightOf),
      groups: listOf('groups', groups ?? [], (group) => (isMissing(group) ? '' : String(group))),
      parts: listOf('parts', parts ?? [], partOf),
    };
    for (const [name, given] of Object.entries({ weights, groups, parts })) {
      const count = this.#others[name].length;
      if (given !== undefined && count !== this.#labels.length) {
        throw new InvalidArgument(
          `${name}: expected one for each row, got ${count} ${name} and ${this.#labels.length} labels`,
          { field: name },
        );
      }
    }
  }

  /** Returns what is known of some rows. */
  slice(begin, end) {
    const others = Object.entries(this.#others).map(([name, list]) => [name, list.slice(begin, end)]);
    return { labels: this.#labels.slice(begin, end), ...Object.fromEntries(others) };
  }

  checkCount(rows) {
    this.#labels.checkCount(rows);
  }
}

function listOf(name, values, map = (value) => value) {
  if (typeof values === 'string' || typeof values?.[Symbol.iterator] !== 'function')
    throw new TypeError(`${name}: expected one for each row, got ${typeof values}`);
  return Array.from(values, map);
}

function isMissing(label) {
  return (
    label === null || label === undefined || Number.isNaN(label) || (typeof label === 'string' && label.trim() === '')
  );
}

function weightOf(weight, row) {
  if (!(typeof weight === 'number' && Number.isFinite(weight) && weight > 0)) {
    throw ofRow('weights', row, `expected a finite number over 0, got ${weight}; leave out rows that shall not count`);
  }
  return weight;
}

function partOf(part, row) {
  if (part === null || part === undefined) return PARTS.TRAINING_PART_UNSPECIFIED;
  const number = PARTS[`TRAINING_PART_${String(part).toUpperCase().replaceAll('-', '_')}`];
  if (!number)
    throw ofRow(
      'parts',
      row,
      `expected "train", "validate", "calibrate-link", "calibrate-sets", "test" or null, got ${JSON.stringify(part)}`,
    );
  return number;
}

function ofRow(name, row, text) {
  return new InvalidArgument(`${name}[${row}]: ${text}`, { field: `${name}[${row}]`, row });
}
