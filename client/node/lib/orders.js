// What a build and a training send first: specs.
import { buildIdOf } from './build_calls.js';
import { columnNamesHash } from './column_names.js';
import { countOf, seedField } from './numbers.js';
import { LabeledRows } from './labels.js';
import { METHODS, enumOf } from './schema.js';

const TASKS = enumOf('phimap.v1.HeadTask').values;

function textOf(name, value, fallback) {
  const text = value ?? fallback;
  if (typeof text !== 'string') throw new TypeError(`${name}: expected a text, got ${typeof text}`);
  return text;
}

/** Returns milliseconds as a Duration; undefined, which means that there is none, stays so. */
export function durationOf(name, ms) {
  if (ms === undefined || ms === null) return undefined;
  if (typeof ms !== 'number' || !Number.isFinite(ms) || Math.abs(ms) > 1e14)
    throw new RangeError(`${name}: expected milliseconds, got ${ms}`);
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: Math.round((ms - seconds * 1000) * 1e6) };
}

/** Returns a Date as a Timestamp; undefined stays so. */
export function timestampOf(name, date) {
  if (date === undefined || date === null) return undefined;
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) throw new TypeError(`${name}: expected a Date, got ${date}`);
  return durationOf(name, date.getTime());
}

/** Returns the BuildSpec of a build with these arguments. */
export function buildSpec(name, { spec, kernel, standardize = false, seed = 0, columnNames = [], ttlMs }, buildId) {
  columnNamesHash(columnNames);
  if (typeof standardize !== 'boolean')
    throw new TypeError(`standardize: expected true or false, got ${typeof standardize}`);
  return {
    name: textOf('name', name),
    buildId,
    spec: textOf('spec', spec),
    kernel: textOf('kernel', kernel, ''),
    standardize,
    seed: seedField(seed),
    columnNames,
    ttl: durationOf('ttlMs', ttlMs),
  };
}

/** An order (build_calls.js) for a build of unlabeled rows. */
export function buildOrder(name, options) {
  const buildId = buildIdOf(options.buildId);
  const spec = buildSpec(name, options, buildId);
  return {
    method: METHODS.Build,
    noun: 'build',
    verb: 'build',
    name,
    buildId,
    spec: () => spec,
    examples: (block) => block.examples(),
    checkCount() {},
  };
}

/**
 * An order for a training. `features` says what gets the head: a `reference` by number with its `expectedDigest`, so that a
 * training that is sent again does not find the version that it has made; or `build` or `tuning` of a mapping.
 */
function trainingOrder(verb, name, labels, { learner, task, seed = 0, buildId: given, ttlMs, ...options }, features) {
  const buildId = buildIdOf(given);
  const known = new LabeledRows(labels, options);
  const number = task === undefined || task === null ? 0 : TASKS[`HEAD_TASK_${String(task).toUpperCase()}`];
  if (number === undefined || task === 'unspecified')
    throw new TypeError(`task: expected "classes", "numbers" or nothing, got ${task}`);
  const spec = {
    buildId,
    learner: textOf('learner', learner, ''),
    task: number,
    seed: seedField(seed),
    ttl: durationOf('ttlMs', ttlMs),
    ...features,
  };
  return {
    method: METHODS.Train,
    noun: 'training',
    verb,
    name,
    buildId,
    spec: () => spec,
    examples: (block, begin) => ({ examples: block.examples(), ...known.slice(begin, begin + block.rows) }),
    checkCount: (rows) => known.checkCount(rows),
  };
}

/** Throws TypeError for options that only mean something with a spec. */
export function checkWithoutSpec({ kernel, standardize, learnScales }) {
  const given = Object.entries({ kernel, standardize, learnScales }).find(([, value]) => value);
  if (given) throw new TypeError(`${given[0]}: is of features that are built from these rows; give spec too`);
}

/** Trains a head on the features of a version. `version` is the reference by number and the digest. */
export function headOrder(name, version, labels, options) {
  return trainingOrder('train', name, labels, options, {
    ...version,
    columnNamesHash: columnNamesHash(options.columnNames),
  });
}

/** Builds features from the rows, and trains a head on them. */
export function buildAndHeadOrder(name, labels, options) {
  const { spec, kernel, standardize, seed, columnNames, learnScales = false } = options;
  return trainingOrder('train', name, labels, options, {
    build: buildSpec(name, { spec, kernel, standardize, seed, columnNames }, ''),
    learnScales,
  });
}

/** Chooses what to build, and trains a head on it. */
export function tuningOrder(name, labels, { budgetMs = 600_000, maxLandmarks = 0, seed, columnNames, ...options }) {
  if (!(budgetMs > 0)) throw new RangeError(`budgetMs: expected milliseconds over 0, got ${budgetMs}`);
  return trainingOrder(
    'tune',
    name,
    labels,
    { seed, ...options },
    {
      build: buildSpec(name, { spec: '', seed, columnNames }, ''),
      tuning: { budget: durationOf('budgetMs', budgetMs), maxLandmarks: countOf('maxLandmarks', maxLandmarks) },
    },
  );
}
