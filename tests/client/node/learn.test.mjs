// Heads: training, predictions and evaluations, against the command line.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, FailedPrecondition, InvalidArgument, Reason, referenceTo } from 'phimap';
import { errorOf, folderOf, matrix, phimap, phimapd, rowsOf, writeCsv } from './support.mjs';

const ROWS = matrix(900, 4);
const LIST = rowsOf(ROWS);
// Three classes that the rows tell apart, and numbers.
const CLASSES = LIST.map(([a, b]) => (a > 0.1 ? 'right' : b > 0 ? 'top' : 'rest'));
const NUMBERS = LIST.map(([a, b]) => 3 * a - b);
const SPEC = { spec: 'f2(landmarks=40)', kernel: 'rbf(gamma=2)' };

/** Returns the cells of what the command line predicts, without the header. */
async function predicted(server, reference, csv, ...flags) {
  await phimap(server, 'predict', reference, `--input=${csv}`, '-o', `${csv}.answers.csv`, ...flags);
  return readFileSync(`${csv}.answers.csv`, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(','));
}

test('predictions of classes are those of the command line, in one call and over a stream', async (t) => {
  const { address } = await phimapd(t);
  const csv = writeCsv(join(folderOf(t), 'rows.csv'), LIST);
  const client = new Client(address);
  const version = await client.train('classes', ROWS, CLASSES, SPEC);
  assert.deepEqual([version.head.task, version.head.classNames], ['classes', ['rest', 'right', 'top']]);
  assert.ok(version.head.report.classes.error.value < 0.2);
  assert.equal(version.head.report.numbers, null);

  const wanted = { probabilities: true, scores: true, confidence: 0.9 };
  const answer = await client.predict('classes', ROWS, wanted);
  const cells = await predicted(address, 'classes@1', csv, '--probabilities');
  assert.deepEqual(
    answer.labels,
    cells.map(([label]) => label),
  );
  // The command line writes numbers that are read back exactly.
  assert.deepEqual(
    [...answer.probabilities.values],
    cells.flatMap((row) => row.slice(1, 4).map(Number)),
  );
  assert.deepEqual(
    [...answer.indices].map((index) => answer.classes[index]),
    answer.labels,
  );
  assert.deepEqual(
    [answer.scores.rows, answer.scores.columns, answer.sets.length, answer.values, answer.lows],
    [900, 3, 900, null, null],
  );
  // Each class of a row that is predicted rightly with a probability near 1 is in its set.
  assert.ok(answer.sets.every((set) => set.every((name) => answer.classes.includes(name))));

  const parts = [];
  for await (const part of client.predictStream('classes', LIST, { ...wanted, rowsPerRequest: 100 })) parts.push(part);
  assert.equal(parts.length, 9);
  assert.deepEqual(
    parts.flatMap(({ labels }) => labels),
    answer.labels,
  );
  assert.deepEqual(
    parts.flatMap(({ sets }) => sets),
    answer.sets,
  );
  assert.deepEqual(
    parts.flatMap(({ probabilities }) => [...probabilities.values]),
    [...answer.probabilities.values],
  );
  const gathered = await client.predict('classes', new Set(LIST), wanted);
  assert.deepEqual({ ...gathered, version: null }, { ...answer, version: null });

  await assert.rejects(client.predict('classes', ROWS, { confidence: 1 }), RangeError);
  const missing = await errorOf(client.predict('classes', ROWS, { deviations: true }));
  assert.deepEqual([missing.code, missing.reason], ['FAILED_PRECONDITION', Reason.OUTPUT_NOT_AVAILABLE]);
  client.close();
});

test('predictions of numbers are those of the command line, with intervals and deviations', async (t) => {
  const { address } = await phimapd(t);
  const csv = writeCsv(join(folderOf(t), 'rows.csv'), LIST);
  const client = new Client(address);
  await client.build('numbers', ROWS, SPEC);
  const unready = await errorOf(client.predict('numbers', ROWS));
  assert.ok(unready instanceof FailedPrecondition);
  assert.equal(unready.reason, Reason.HEAD_MISSING);
  const version = await client.train('numbers', ROWS, NUMBERS, {
    task: 'numbers',
    weights: NUMBERS.map(() => 2),
    groups: NUMBERS.map((_, i) => i % 90),
  });
  assert.equal(referenceTo(version), 'numbers@2');
  const { values, lows, highs, deviations, labels } = await client.predict('numbers@2', ROWS, {
    confidence: 0.9,
    deviations: true,
  });
  assert.deepEqual(
    [...values],
    (await predicted(address, 'numbers@2', csv)).map(([value]) => Number(value)),
  );
  assert.ok(values.every((value, i) => lows[i] <= value && value <= highs[i] && deviations[i] > 0));
  assert.equal(labels, null);
  client.close();
});

test('what is known of rows is checked, with the row', async (t) => {
  const client = new Client((await phimapd(t)).address);
  for (const [labels, options, row, field] of [
    [CLASSES.map((label, i) => (i === 7 ? null : label)), {}, 7, 'labels[7]'],
    [CLASSES, { weights: CLASSES.map((_, i) => (i === 9 ? -1 : 1)) }, 9, 'weights[9]'],
    [CLASSES, { parts: CLASSES.map((_, i) => (i === 5 ? 'tested' : null)) }, 5, 'parts[5]'],
    [CLASSES.slice(1), {}, null, 'labels'],
    [CLASSES, { groups: ['a'] }, null, 'groups'],
  ]) {
    const error = await errorOf(client.train('checked', ROWS, labels, { ...SPEC, ...options }));
    assert.ok(error instanceof InvalidArgument, error.stack);
    assert.deepEqual([error.row, error.field], [row, field]);
  }
  await assert.rejects(client.train('checked', ROWS, CLASSES, { kernel: 'linear()' }), TypeError);
  await assert.rejects(client.train('checked', ROWS, CLASSES, { ...SPEC, task: 'ranks' }), TypeError);
  client.close();
});

test('an evaluation is that of the command line, and the parts of rows are kept', async (t) => {
  const { address } = await phimapd(t);
  const csv = writeCsv(join(folderOf(t), 'rows.csv'), LIST, CLASSES);
  const client = new Client(address);
  await client.build('judged', ROWS, SPEC);
  const phases = new Set();
  const evaluation = await client.evaluate('judged', ROWS, CLASSES, {
    folds: 3,
    seed: 5,
    progress: ({ phase }) => phases.add(phase),
  });
  const expected = JSON.parse(
    await phimap(address, 'evaluate', 'judged@1', `--input=${csv}`, '--label=label', '--folds=3', '--seed=5', '--json'),
  );
  assert.equal(evaluation.errors, Number(expected.errors ?? 0));
  assert.deepEqual(evaluation.marginQuantiles, expected.marginQuantiles ?? expected.margin_quantiles);
  assert.equal(evaluation.seed, 5n);
  assert.ok(phases.has('sending'));
  const parts = CLASSES.map((_, i) => ['train', 'validate', 'calibrate-link', 'calibrate-sets', 'test'][i % 5]);
  const { head } = await client.train('judged', ROWS, CLASSES, { parts });
  assert.deepEqual(head.report.parts, {
    train: 180,
    validate: 180,
    calibrateLink: 180,
    calibrateSets: 180,
    test: 180,
    unused: 0,
  });
  client.close();
});

test('a version is tuned', async (t) => {
  const client = new Client((await phimapd(t)).address);
  const version = await client.tune('tuned', ROWS, CLASSES, { budgetMs: 3000, maxLandmarks: 60 });
  assert.ok(version.head.report.trials.length > 0);
  await assert.rejects(client.tune('tuned', ROWS, CLASSES, { budgetMs: 0 }), RangeError);
  client.close();
});
