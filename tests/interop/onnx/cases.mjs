// Runs the models of `phimap export --format=onnx` in ONNX Runtime, and compares its numbers with the engine's: those of
// `phimap transform` and `phimap predict`, and those that an earlier release wrote down (tests/corpus).
//   node --test cases.mjs, with PHIMAP (the command), PHIMAP_CORPUS (a folder of tests/corpus) and PHIMAP_WORK (a folder
//   for files)
//
// No server takes part. rounding.mjs derives the bound e of each number. The engine and ONNX Runtime must each be within e
// of what the graph means, and so within 2e of each other; errors below are given in units of 2e.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import runtime from 'onnxruntime-node';
import { readCsv, readNpy, writeCsv, writeNpy } from './files.mjs';
import { readModel } from './model.mjs';
import { valuesOf } from './rounding.mjs';

const { PHIMAP: phimap, PHIMAP_CORPUS: corpus, PHIMAP_WORK: work } = process.env;
const COLUMNS = 5;
const NAMES = ['length', 'width', 'height', 'weight', 'age'];
const STREAM_ROWS = 150;
// The bound of a number in an ordinary row, at most: this share of the largest number of its column. A bound that says
// less would let wrong models pass.
const USEFUL = { float32: 1e-3, float64: 1e-11 };

const inWork = (name) => join(work, name);

function run(...words) {
  const { status, stdout, stderr } = spawnSync(phimap, ['--server=127.0.0.1:1', ...words], { encoding: 'utf8' });
  return { status, stdout, stderr };
}
function mustRun(...words) {
  const { status, stdout, stderr } = run(...words);
  assert.equal(status, 0, `phimap ${words.join(' ')}\n${stderr}`);
  return stdout;
}

// Multiples of 1/64 within ±2, which both types hold exactly.
let state = 1n;
function random() {
  state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
  return Number(state >> 56n) / 64 - 2;
}
const randomRows = (count) => Array.from({ length: count }, () => Array.from({ length: COLUMNS }, random));
const scaled = (rows, factor) => rows.map((row) => row.map((x) => x * factor));
const magnitudes = (rows) => rows.map((row) => row.map(Math.abs));

// All landmarks are rows of the stream.
const stream = randomRows(STREAM_ROWS);
const others = randomRows(30);
const zero = [Array(COLUMNS).fill(0)];

// Columns of the stream that are labels: two or three classes, named by words or integers, and a number.
const place = ([x, y]) => (x > 0 ? 1 : 0) + (x + y > 1 ? 1 : 0);
const LABELS = {
  'two words': { of: (row) => (place(row) ? 'yes' : 'no'), classes: ['no', 'yes'] },
  'three words': { of: (row) => ['one', 'two', 'fünf'][place(row)], classes: ['fünf', 'one', 'two'] },
  'two integers': { of: (row) => (place(row) ? 10 : -3), classes: [-3, 10] },
  'three integers': { of: (row) => [10, -3, 7][place(row)], classes: [-3, 7, 10] },
  number: { of: ([x, y, z]) => x * y - z },
};
const LABEL_NAMES = Object.keys(LABELS);
const labelled = (rows) => rows.map((row) => [...row, ...LABEL_NAMES.map((name) => LABELS[name].of(row))]);
writeCsv(inWork('stream.csv'), [...NAMES, ...LABEL_NAMES], labelled(stream));
writeCsv(inWork('magnitudes.csv'), [...NAMES, ...LABEL_NAMES], labelled(magnitudes(stream)));
writeNpy(inWork('stream.npy'), stream);

const session = (file) => runtime.InferenceSession.create(file, { intraOpNumThreads: 1, interOpNumThreads: 1 });
const tensorOf = (type, rows) => new runtime.Tensor(
  type, (type === 'float32' ? Float32Array : Float64Array).from(rows.flat()), [rows.length, rows[0].length]);

// How far `actual` is from `expected`, at most, in units of `times` times the bound `e`.
function worst(actual, expected, e, times) {
  assert.equal(actual.length, expected.length);
  let most = 0;
  for (let i = 0; i < e.length; ++i) {
    const distance = Math.abs(actual[i] - expected[i]);
    if (distance !== 0) most = Math.max(most, Number.isNaN(distance) ? Infinity : distance / (times * e[i]));
  }
  return most;
}

// The largest error and the largest bound of each group of cases, which are printed in the end.
const report = new Map();
after(() => {
  for (const [group, { error, bound }] of report) {
    console.log(`${group.padEnd(26)} largest error ${error.toFixed(3)} of 2e, largest e ${bound.toExponential(1)} of the numbers`);
  }
});

// Checks numbers of the engine and of ONNX Runtime. `value` is what the graph means, row by row; the first `ordinary` rows
// have ordinary numbers. Returns the largest bound in those, as a share of the largest number of its column.
function checkNumbers(group, engine, onnx, value, ordinary) {
  const { v, e, type } = value;
  const width = value.shape[1] ?? 1;
  assert.ok(e.every(Number.isFinite), 'every number has a bound');
  const error = worst(onnx, engine, e, 2);
  assert.ok(error <= 1, `ONNX Runtime and the engine differ by ${error} times 2e`);
  // v itself errs as much as e if the type is float64.
  const times = type === 'float64' ? 2 : 1;
  assert.ok(worst(onnx, v, e, times) <= 1, 'ONNX Runtime computes what the graph means');
  assert.ok(worst(engine, v, e, times) <= 1, 'the engine computes what the graph means');

  // From the other side: the bound is small, and numbers that are moved by three bounds fail, each of them.
  let share = 0;
  for (let k = 0; k < width; ++k) {
    let largest = 0;
    for (let i = 0; i < ordinary; ++i) largest = Math.max(largest, Math.abs(v[i * width + k]));
    for (let i = 0; i < ordinary; ++i) share = Math.max(share, e[i * width + k] / (largest || 1));
  }
  for (let i = 0; i < e.length; ++i) {
    for (const moved of [engine[i] - 6 * e[i], engine[i] + 6 * e[i]]) {
      assert.ok(e[i] === 0 || worst([onnx[i]], [moved], [e[i]], 2) > 1, 'a number that is moved by three bounds fails');
    }
  }
  const before = report.get(group) ?? { error: 0, bound: 0 };
  report.set(group, { error: Math.max(before.error, error), bound: Math.max(before.bound, share) });
  return share;
}

// Runs all rows at once, one alone and three: the number of rows is free, and what a row gets does not depend on others.
// `meant` are the values of the outputs.
async function runAll(runner, type, rows, meant) {
  const all = await runner.run({ rows: tensorOf(type, rows) });
  for (const name of runner.outputNames) assert.deepEqual(all[name].dims, meant[name].shape);
  for (const count of [1, 3]) {
    const few = await runner.run({ rows: tensorOf(type, rows.slice(0, count)) });
    for (const name of runner.outputNames) {
      assert.deepEqual(few[name].dims, [count, ...meant[name].shape.slice(1)]);
      if (name === 'label') continue;
      const size = few[name].data.length;
      assert.ok(worst(few[name].data, all[name].data.slice(0, size), meant[name].e.slice(0, size), 2) <= 1);
    }
  }
  return all;
}

// What every model states, whatever the map.
function checkModel(model, runner, { type, columns, names, outputs, facts }) {
  assert.deepEqual(model.opsets.map(({ domain = '', version }) => [domain, version]), [['', 13]]);
  assert.equal(model.irVersion, 7);
  assert.equal(model.metadata['phimap.columns'], names?.join('\n'));
  for (const [key, fact] of Object.entries(facts)) assert.equal(model.metadata[`phimap.${key}`], fact);
  const shown = (all) => all.map(({ name, type: kind, shape }) => [name, kind, ...shape]);
  assert.deepEqual(shown(runner.inputMetadata), [['rows', type, 'n', columns]]);
  assert.deepEqual(shown(runner.outputMetadata), outputs);
}

// Rows that a case is run on: those of the stream, with all landmarks, others, and then those that are not ordinary: a row
// of zeros, and large ones, unless the kernel is not defined there or overflows.
function rowsOf({ positive, hasZero = true, large = 1e4 }) {
  const rows = [...stream, ...others, ...(hasZero ? zero : []), ...scaled(others.slice(0, 5), large)];
  return { rows: positive ? magnitudes(rows) : rows, ordinary: stream.length + others.length };
}

// Builds a map, and checks the model of its features.
async function checkFeatures(group, spec, kernel, more = {}) {
  const { standardize = false, named = true, positive = false, useful } = more;
  const map = inWork('map.phimap');
  const input = positive ? 'magnitudes.csv' : named ? 'stream.csv' : 'stream.npy';
  const flags = [...(named ? LABEL_NAMES.map((name) => `--exclude=${name}`) : []), ...(standardize ? ['--standardize'] : [])];
  const version = JSON.parse(mustRun('build', '--local', '-o', map, `--input=${inWork(input)}`, ...flags,
    `--spec=${spec}`, ...(kernel ? [`--kernel=${kernel}`] : []), '--json'));
  mustRun('export', map, '--format=onnx', '-o', inWork('map.onnx'));

  const { rows, ordinary } = rowsOf(more);
  if (named) writeCsv(inWork('rows.csv'), NAMES, rows);
  else writeNpy(inWork('rows.npy'), rows);
  mustRun('transform', map, `--input=${inWork(named ? 'rows.csv' : 'rows.npy')}`, '-o', inWork('features.npy'));
  const engine = readNpy(inWork('features.npy'));

  const model = readModel(inWork('map.onnx'));
  const runner = await session(inWork('map.onnx'));
  const { type } = engine;
  checkModel(model, runner, { type, columns: COLUMNS, names: named ? NAMES : undefined,
    outputs: [['features', type, 'n', engine.shape[1]]],
    facts: { digest: version.ref.digest, spec: version.spec_text, kernel: version.kernel_text, classes: undefined, learner: undefined } });
  const meant = valuesOf(model, Float64Array.from(rows.flat()), COLUMNS, type, ['features']);
  const { features } = await runAll(runner, type, rows, meant);
  const value = meant.features;
  const share = checkNumbers(group, engine.numbers, features.data, value, ordinary);
  assert.ok(share <= (useful ?? USEFUL)[type], `the bound is ${share} of the largest number`);
  return { model, runner, engine, value, rows, ordinary };
}

const RBF = 'rbf(gamma=scale)';
// Of each mapping, with the parameters that change what its graph has.
const MAPPINGS = [
  ['f1', 'f1(landmarks=12)', RBF],
  ['f2', 'f2(landmarks=12)', RBF],
  ['f2', 'f2(landmarks=12)', '0.3*rbf(gamma=0.3)'],
  ['f2', 'f2(landmarks=12, policy=kmeans)', RBF, { standardize: true }],
  ['f2', 'f2(landmarks=12, input_dimensions=4)', RBF, { standardize: true }],
  ['f3', 'f3(landmarks=12, dimensions=6)', RBF],
  ['f3', 'f3(landmarks=12, dimensions=6, projection=sign)', RBF, { standardize: true }],
  ['random_projection', 'random_projection(dimensions=8)', ''],
  ['random_projection', 'random_projection(dimensions=8, projection=sparse)', '2*linear()', { standardize: true }],
  ['fourier', 'fourier(dimensions=8)', RBF],
  ['fourier', 'fourier(dimensions=8, form=phase)', 'laplacian(gamma=0.5)', { standardize: true }],
  ['fourier', 'fourier(dimensions=8, orthogonal=true)', 'matern()'],
  // Angles without a digit behind the point, whose cosines are 0.
  ['fourier', 'fourier(dimensions=8)', RBF, { large: 1e20 }],
  ['fourier', 'fourier(dimensions=8, form=phase)', '2*rbf(gamma=0.3)', { large: 1e20 }],
  ['kpca', 'kpca(landmarks=12, dimensions=4)', RBF, { standardize: true }],
  ['kpca', 'kpca(landmarks=12, dimensions=4, centred=false)', RBF],
  ['multiclass', 'multiclass(classes=3, dimensions=4)', '', { standardize: true }],
  ['polynomial', 'polynomial(dimensions=60)', 'poly(degree=2, gamma=0.5, coef0=1)'],
  ['polynomial', 'polynomial(dimensions=60)', 'poly(degree=3)', { standardize: true }],
  ['positive', 'positive(dimensions=8)', 'exp(linear())', { large: 2 }],
];
// The distance of two equal rows is 0, and its error becomes a root of the error where the kernel takes a root.
const ROOT = { useful: { float32: 0.05, float64: 1e-5 } };
// Of each kernel, and the ways to combine kernels. Those of histograms take no negative numbers.
const HISTOGRAM = { positive: true };
const KERNELS = [
  ['linear()'],
  ['poly(degree=3, gamma=0.5, coef0=1)'],
  ['sigmoid(gamma=0.1, coef0=0.2)'],
  ['rbf(gamma=0.3, scales=[1, 2, 0.5, 1, 3])'],
  ['rbf(gamma=0.5, columns=1:4)'],
  ['laplacian(gamma=0.5)'],
  ['laplacian(gamma=0.5, columns=0:2)*delta(columns=4)'],
  ['matern(nu=0.5)'],
  ['matern(nu=1.5, length_scale=2)', ROOT],
  ['matern(nu=2.5)', ROOT],
  ['rational_quadratic()'],
  ['rational_quadratic(alpha=3, length_scale=2)'],
  ['additive_chi2()', HISTOGRAM],
  ['chi2(gamma=0.5)', HISTOGRAM],
  ['histogram_intersection()', HISTOGRAM],
  ['delta()'],
  ['cosine()'],
  ['bilinear(diagonal=[1, 2, 0.5, 1, 1])'],
  ['bilinear(matrix=[2,1,0,0,0; 1,2,1,0,0; 0,1,2,1,0; 0,0,1,2,1; 0,0,0,1,2])'],
  ['weight(norm_power=-1)*linear()', { hasZero: false }],
  ['weight(gaussian=0.1)*weight(constant=2)*rbf(gamma=1)'],
  ['exp(0.1*linear())', { large: 5 }],
  ['normalize(poly(degree=2, coef0=1))'],
  ['0.5*cosine() + 2*rbf(gamma=0.2)*linear()'],
];

for (const [group, spec, kernel, more] of MAPPINGS) {
  for (const type of ['float32', 'float64']) {
    test(`${spec} of ${kernel || 'its kernel'}, ${type}`, async () => {
      await checkFeatures(`${group} ${type}`, spec.replace(')', `, serving_type=${type})`), kernel, more);
    });
  }
}
for (const [kernel, more = {}] of KERNELS) {
  for (const type of ['float32', 'float64']) {
    test(`F1 of ${kernel}, ${type}`, async () => {
      await checkFeatures(`kernels ${type}`, `f1(landmarks=12, serving_type=${type})`, kernel, more);
    });
  }
}

test('a map without names of columns', async () => {
  await checkFeatures('f2 float32', 'f2(landmarks=12, serving_type=float32)', RBF, { named: false, standardize: true });
});

test('features that are not the map\'s fail', async () => {
  const own = await checkFeatures('f2 float32', 'f2(landmarks=12, serving_type=float32)', RBF, { standardize: true });
  const plain = await checkFeatures('f2 float32', 'f2(landmarks=12, serving_type=float32)', RBF);
  const { features } = await own.runner.run({ rows: tensorOf('float32', own.rows) });
  assert.ok(worst(features.data, own.engine.numbers, own.value.e, 2) <= 1);
  assert.ok(worst(features.data, plain.engine.numbers, own.value.e, 2) > 100, 'features without the standardisation');
  const turned = Float64Array.from(own.engine.numbers, (_, i) => own.engine.numbers[i ^ 1]);
  assert.ok(worst(features.data, turned, own.value.e, 2) > 100, 'features in another order');
});

test('rows of another width or type are refused by ONNX Runtime', async () => {
  const { runner, rows } = await checkFeatures('f2 float32', 'f2(landmarks=12, serving_type=float32)', RBF);
  await assert.rejects(runner.run({ rows: tensorOf('float32', rows.map((row) => row.slice(1))) }), /dimension/i);
  await assert.rejects(runner.run({ rows: tensorOf('float64', rows) }), /type/i);
});

// Trains a head, and checks the model of its answers.
async function checkAnswers(spec, label, learner, { kernel = RBF, useful = 1e-2, folded = true, input = 'stream.csv', flags = [] } = {}) {
  const map = inWork('head.phimap');
  const skipped = LABEL_NAMES.filter((name) => name !== label).map((name) => `--exclude=${name}`);
  const version = JSON.parse(mustRun('train', '--local', '-o', map, `--input=${inWork(input)}`, `--label=${label}`, ...skipped, ...flags,
    `--spec=${spec}`, `--kernel=${kernel}`, '--standardize', `--learner=${learner}`, '--json'));
  const { head } = version;
  assert.equal(head.folded, folded);
  mustRun('export', map, '--format=onnx', '-o', inWork('head.onnx'));
  const { rows, ordinary } = rowsOf({});
  writeCsv(inWork('rows.csv'), NAMES, rows);
  const { classes } = LABELS[label];
  mustRun('predict', map, `--input=${inWork('rows.csv')}`, ...(classes ? ['--scores'] : []),
    ...(head.has_probabilities ? ['--probabilities'] : []), '-o', inWork('answers.csv'));
  const answers = readCsv(inWork('answers.csv'));

  const type = spec.includes('float64') ? 'float64' : 'float32';
  const model = readModel(inWork('head.onnx'));
  const runner = await session(inWork('head.onnx'));
  const facts = { digest: version.ref.digest, spec: version.spec_text, kernel: version.kernel_text, learner: head.learner,
    classes: classes?.join('\n') };
  const meant = valuesOf(model, Float64Array.from(rows.flat()), COLUMNS, type, runner.outputNames);
  const group = `${folded ? 'heads' : 'heads, not folded'} ${type}`;
  // The columns of the CSV file whose names begin so, row by row.
  const engineNumbers = (prefix) => {
    const columns = Object.keys(answers).filter((name) => name.startsWith(prefix)).map((name) => answers[name]);
    return { width: columns.length, numbers: Float64Array.from(rows.flatMap((_, i) => columns.map((column) => Number(column[i])))) };
  };
  assert.ok(head.learner.startsWith(learner.split('(')[0]));

  if (!classes) {
    checkModel(model, runner, { type, columns: COLUMNS, names: NAMES, outputs: [['value', 'float64', 'n', 1]], facts });
    const { value } = await runAll(runner, type, rows, meant);
    const share = checkNumbers(group, engineNumbers('predicted').numbers, value.data, meant.value, ordinary);
    assert.ok(share <= useful, `the bound is ${share} of the largest number`);
    return;
  }
  const scoreCount = classes.length === 2 ? 1 : classes.length;
  const integers = typeof classes[0] === 'number';
  checkModel(model, runner, { type, columns: COLUMNS, names: NAMES, facts, outputs: [
    ['label', integers ? 'int64' : 'string', 'n'], ['scores', 'float64', 'n', scoreCount],
    ...(head.has_probabilities ? [['probabilities', 'float64', 'n', classes.length]] : [])] });
  const out = await runAll(runner, type, rows, meant);
  for (const [name, prefix] of [['scores', 'score'], ['probabilities', 'probability']]) {
    if (!out[name]) continue;
    const { width, numbers } = engineNumbers(prefix);
    assert.equal(width, meant[name].shape[1]);
    const share = checkNumbers(group, numbers, out[name].data, meant[name], ordinary);
    assert.ok(share <= useful, `the bound of ${name} is ${share} of the largest`);
  }
  // Labels are compared where the bound decides them, which it does for nearly all rows.
  let decided = 0;
  rows.forEach((_, i) => {
    if (meant.label.e[i] === Infinity) return;
    ++decided;
    assert.equal(String(out.label.data[i]), answers.predicted[i]);
    assert.ok(classes.map(String).includes(answers.predicted[i]));
  });
  assert.ok(decided >= 0.95 * rows.length, `${decided} of ${rows.length} labels are decided`);
  assert.deepEqual([...new Set(Array.from(out.label.data, String))].sort(), classes.map(String).sort());
}

const F2 = 'f2(landmarks=12)';
for (const learner of ['perceptron', 'winnow', 'linear_svm', 'logistic', 'ridge']) {
  for (const label of LABEL_NAMES.filter((name) => LABELS[name].classes)) {
    test(`${learner}, ${label}`, () => checkAnswers(F2, label, learner));
  }
}
for (const learner of ['svr', 'ridge']) test(`${learner} of numbers`, () => checkAnswers(F2, 'number', learner));
for (const spec of ['f1(landmarks=12)', 'f3(landmarks=12, dimensions=6)', 'kpca(landmarks=12, dimensions=6)', 'fourier(dimensions=8)',
  'f2(landmarks=12, serving_type=float64)', 'fourier(dimensions=8, serving_type=float64)']) {
  test(`logistic on ${spec}`, () => checkAnswers(spec, 'three words', 'logistic'));
  test(`ridge of numbers on ${spec}`, () => checkAnswers(spec, 'number', 'ridge'));
}

// W is so large here that W·V would lose digits, so the engine multiplies features with V, and so does the model. The bound
// grows with W too.
test('a head that is not folded', async () => {
  const more = { kernel: 'rbf(gamma=0.01)', folded: false, useful: 0.2 };
  await checkAnswers('f2(landmarks=60, serving_type=float32)', 'number', 'ridge(alpha=1e-6)', more);
});

test('a head without probabilities', async () => {
  const parts = labelled(stream).map((row, i) => [...row, i % 5 === 0 ? 'test' : 'train']); // none to calibrate with
  writeCsv(inWork('parts.csv'), [...NAMES, ...LABEL_NAMES, 'part'], parts);
  const more = { input: 'parts.csv', flags: ['--parts=part'], folded: false }; // nor to measure whether it folds
  for (const label of ['two words', 'three integers']) await checkAnswers(F2, label, 'ridge(alpha=1)', more);
  const { outputNames } = await session(inWork('head.onnx'));
  assert.deepEqual([...outputNames], ['label', 'scores']);
});

test('the features of a map with a head', async () => {
  await checkAnswers(F2, 'three words', 'ridge');
  const { rows, ordinary } = rowsOf({});
  mustRun('export', inWork('head.phimap'), '--format=onnx', '--outputs=features', '-o', inWork('features.onnx'));
  mustRun('transform', inWork('head.phimap'), `--input=${inWork('rows.csv')}`, '-o', inWork('features.npy'));
  const runner = await session(inWork('features.onnx'));
  assert.deepEqual([...runner.outputNames], ['features']);
  const { features } = await runner.run({ rows: tensorOf('float32', rows) });
  const value = valuesOf(readModel(inWork('features.onnx')), Float64Array.from(rows.flat()), COLUMNS, 'float32', ['features']).features;
  checkNumbers('f2 float32', readNpy(inWork('features.npy')).numbers, features.data, value, ordinary);
});

// The engine refuses these rows; a model has no errors, and says NaN.
test('negative numbers of a kernel of histograms are no numbers', async () => {
  for (const type of ['float32', 'float64']) {
    for (const kernel of ['additive_chi2()', 'chi2()', 'histogram_intersection()', 'normalize(histogram_intersection())']) {
      const { runner, rows } = await checkFeatures(`kernels ${type}`, `f1(landmarks=12, serving_type=${type})`, kernel, { positive: true, hasZero: false });
      const negative = [-0.5, ...rows[0].slice(1)];
      writeCsv(inWork('rows.csv'), NAMES, [negative]);
      const { status, stderr } = run('transform', inWork('map.phimap'), `--input=${inWork('rows.csv')}`, '-o', inWork('features.npy'));
      assert.equal(status, 2);
      assert.ok(stderr.includes('negative'), stderr);
      const { features } = await runner.run({ rows: tensorOf(type, [negative, rows[0]]) });
      features.data.forEach((number, i) => assert.equal(Number.isNaN(number), i < 12));
    }
  }
});

// Of one column, where a vector of scales is a single number, and of many, whose sums have an order.
test('a map of one column, and one of many', async () => {
  for (const type of ['float32', 'float64']) {
    for (const width of [1, 150]) {
      const rows = Array.from({ length: 60 }, () => Array.from({ length: width }, random));
      writeNpy(inWork('width.npy'), rows);
      mustRun('build', '--local', '-o', inWork('width.phimap'), `--input=${inWork('width.npy')}`, '--standardize',
        `--spec=f1(landmarks=6, input_dimensions=${Math.ceil(width / 2)}, serving_type=${type})`, '--kernel=poly(degree=2, gamma=0.3, coef0=1)');
      mustRun('export', inWork('width.phimap'), '--format=onnx', '-o', inWork('width.onnx'));
      mustRun('transform', inWork('width.phimap'), `--input=${inWork('width.npy')}`, '-o', inWork('features.npy'));
      const { features } = await (await session(inWork('width.onnx'))).run({ rows: tensorOf(type, rows) });
      const value = valuesOf(readModel(inWork('width.onnx')), Float64Array.from(rows.flat()), width, type, ['features']).features;
      const share = checkNumbers(`${width} columns ${type}`, readNpy(inWork('features.npy')).numbers, features.data, value, rows.length);
      assert.ok(share <= USEFUL[type], `the bound is ${share} of the largest number`);
    }
  }
});

// What a release's engine computed of the corpus's rows, in the serving type: `features` and the number in hexadecimal.
function recordedFeatures(name) {
  const text = readFileSync(join(corpus, `${name}.txt`), 'utf8');
  const type = /^columns .*, (\w+)$/m.exec(text)[1];
  const digits = [...text.matchAll(/^features (.*)$/gm)].flatMap(([, line]) => line.split(' '));
  const numbers = digits.map((hex) => (type === 'float32' ? Buffer.from(hex, 'hex').readFloatBE() : Buffer.from(hex, 'hex').readDoubleBE()));
  return { type, numbers };
}
const CORPUS_NAMES = readdirSync(corpus).filter((name) => name.endsWith('.phimap')).map((name) => name.slice(0, -7));
// Kinds of the corpus that no ONNX model says, and the reason that is given.
const REASONS = [
  [/-(texts|bytes)$/, 'no ONNX model says what a kernel of strings is'],
  [/-service/, 'no ONNX model says how to ask for the values of a remote kernel'],
  [/-gram$/, 'no ONNX model says what a precomputed kernel is, whose values the caller computes'],
];
const reasonOf = (name) => REASONS.findLast(([kind]) => kind.test(name))?.[1];

test('features of the corpus are those that a release recorded', async () => {
  const rows = readFileSync(join(corpus, 'rows.csv'), 'utf8').trimEnd().split('\n').map((line) => line.split(',').map(Number));
  const said = CORPUS_NAMES.filter((name) => !reasonOf(name));
  assert.ok(said.length >= 50);
  for (const name of said) {
    mustRun('export', join(corpus, `${name}.phimap`), '--format=onnx', '-o', inWork('corpus.onnx'));
    const { type, numbers } = recordedFeatures(name);
    const { features } = await (await session(inWork('corpus.onnx'))).run({ rows: tensorOf(type, rows) });
    const value = valuesOf(readModel(inWork('corpus.onnx')), Float64Array.from(rows.flat()), COLUMNS, type, ['features']).features;
    try {
      checkNumbers(`corpus ${type}`, numbers, features.data, value, rows.length);
    } catch (error) {
      error.message = `${name}: ${error.message}`;
      throw error;
    }
  }
});

test('what ONNX cannot say is refused with the reason', () => {
  const refused = CORPUS_NAMES.filter(reasonOf);
  for (const [kind] of REASONS) assert.ok(refused.some((name) => kind.test(name)));
  for (const name of refused) {
    const { status, stderr } = run('export', join(corpus, `${name}.phimap`), '--format=onnx', '-o', inWork('refused.onnx'));
    assert.equal(status, 5, name);
    assert.ok(stderr.includes(reasonOf(name)), `${name}: ${stderr}`);
    assert.ok(!existsSync(inWork('refused.onnx')), 'no file is left');
  }
});

test('answers of a map without a head are refused', () => {
  const { status, stderr } = run('export', join(corpus, 'f2-rbf.phimap'), '--format=onnx', '--outputs=answers', '-o', inWork('refused.onnx'));
  assert.equal(status, 5);
  assert.ok(stderr.includes('no head'), stderr);
  assert.ok(!existsSync(inWork('refused.onnx')));
});
