// The report of a head in pictures: how well a version answers, measured on test rows that nothing was
// fitted on.

import { bars, confusion, picture, plot } from './charts.js';
import { el, facts, section, table } from './dom.js';
import { count, number, percent, short } from './format.js';

const NUMBER = (text) => ({ text, number: true });

// The error beside that of simpler learners, tested on the same rows.
function errorPicture(report, word, estimate, show) {
  const rows = [{ name: 'this version', value: number(estimate.value), low: number(estimate.low), high: number(estimate.high) },
    ...(report.baselines ?? []).map((one) => ({ name: one.name, value: number(one.error), second: true }))]
    .map((row) => ({ ...row, text: show(row.value) }));
  return picture(word, 'On test rows, beside something simpler on the same rows. The thin line is an interval for rows to come.',
    (width) => bars(width, `Bars of ${word}`, rows), ['learner', NUMBER(word), NUMBER('from'), NUMBER('to')],
    rows.map((row) => [row.name, row.text, row.low === undefined ? '' : show(row.low), row.high === undefined ? '' : show(row.high)]));
}

function confusionPicture(classes, names) {
  const counts = names.map(() => names.map(() => 0));
  for (const one of classes.confusion ?? []) counts[number(one.actual)][number(one.predicted)] = number(one.count);
  const pairs = (classes.confusion ?? []).map((one) => [number(one.actual), number(one.predicted), number(one.count)])
    .sort((a, b) => b[2] - a[2]);
  const missed = pairs.filter(([actual, called]) => actual !== called);
  const worst = missed[0];
  return picture('Confusion',
    `Rows of each actual class (down) by the class they were called (across). ${worst ? `Most often mistaken: ${names[worst[0]]} as ${names[worst[1]]} (${worst[2]}).` : 'None was mistaken.'}`,
    (width) => confusion(width, 'Squares of actual by called class; the numbers are in the table', names, counts),
    ['actual class', 'called', NUMBER('rows')], pairs.map(([actual, called, rows]) => [names[actual], names[called], count(rows)]));
}

function reliability(classes) {
  const bins = (classes.reliability ?? []).filter((bin) => number(bin.rows) > 0);
  if (bins.length === 0) return null;
  const most = Math.max(...bins.map((bin) => number(bin.rows)));
  const points = bins.map((bin) => [number(bin.mean_confidence), number(bin.correct) / number(bin.rows), number(bin.rows) / most]);
  const axis = { from: 0, to: 1, show: (value) => percent(value) };
  return picture('Reliability',
    'How often the answer was right where its probability was so large. On the dotted line, probabilities are honest; larger dots are more rows.',
    (width) => plot(width, 'Dots of share right over probability', { ...axis, name: 'probability' }, { ...axis, name: 'share right' },
      [{ kind: 'dots', points }], { ideal: true }),
    ['mean probability', NUMBER('rows'), NUMBER('right'), NUMBER('share right')],
    bins.map((bin, i) => [percent(points[i][0]), count(bin.rows), count(bin.correct), percent(points[i][1])]));
}

function roc(classes, names) {
  if (!classes.roc?.length) return null;
  const points = [[0, 0], ...classes.roc.map((one) => [number(one.false_positives), number(one.true_positives)]), [1, 1]];
  const axis = { from: 0, to: 1, show: (value) => percent(value) };
  return picture(`Threshold for ${names[1]}`,
    `Share of rows of ${names[1]} that are found, over the share of rows of ${names[0]} that are wrongly called so, as the threshold falls. Area ${short(classes.auc)}.`,
    (width) => plot(width, 'A curve from the lower left to the upper right', { ...axis, name: 'wrongly called' }, { ...axis, name: 'found' },
      [{ kind: 'curve', points }], { ideal: true }),
    ['threshold', NUMBER('wrongly called'), NUMBER('found')],
    classes.roc.map((one) => [short(number(one.threshold), 4), percent(number(one.false_positives)), percent(number(one.true_positives))]));
}

function coverage(report) {
  const list = report.coverage ?? [];
  if (list.length === 0) return null;
  const word = report.classes ? 'set' : 'interval';
  const rows = list.map((one) => ({ promised: number(one.confidence), held: number(one.covered) / number(one.rows), size: number(one.mean_size) }));
  return picture(`Promise of ${word}s`, `How often ${word}s of a promised confidence held the truth on test rows.`,
    (width) => bars(width, 'Bars of promised and measured shares', rows.flatMap((row) => [
      { name: `promised ${percent(row.promised)}`, value: row.promised, text: percent(row.promised), second: true },
      { name: 'held', value: row.held, text: percent(row.held) }]), { most: 1 }),
    ['promised', NUMBER('held'), NUMBER(report.classes ? 'classes in a set' : 'mean length')],
    rows.map((row) => [percent(row.promised), percent(row.held), short(row.size)]));
}

function quantiles(title, note, list, name) {
  if (!list?.length) return null;
  const points = list.map((value, i) => [Number(value), i / (list.length - 1)]);
  const [from, to] = [points[0][0], points.at(-1)[0]];
  if (!(to > from)) return null;
  return picture(title, note,
    (width) => plot(width, 'A rising curve', { from, to, name }, { from: 0, to: 1, name: 'share of rows below', show: (value) => percent(value) },
      [{ kind: 'curve', points }]),
    ['share of rows below', NUMBER(name)], points.filter((_, i) => i % 5 === 0).map(([value, share]) => [percent(share), short(value, 4)]));
}

function choice(given) {
  const points = (given?.candidates ?? []).map((one) => [number(one.value), number(one.loss)]).filter(([value]) => value > 0).sort((a, b) => a[0] - b[0]);
  if (points.length < 2) return null;
  const losses = points.map(([, loss]) => loss);
  const [least, most] = [Math.min(...losses), Math.max(...losses)];
  const pad = (most - least || Math.abs(most) || 1) * 0.05;
  return picture(`Choice of ${given.parameter}`, `Loss on rows of their own (${given.loss}) of each value that was tried; ${given.parameter} = ${short(number(given.chosen))} was taken.`,
    (width) => plot(width, 'A curve of the loss over the values', { from: points[0][0], to: points.at(-1)[0], log: true, name: given.parameter },
      { from: Math.max(0, least - pad), to: most + pad, name: 'loss' }, [{ kind: 'curve', points }, { kind: 'dots', points: points.map(([a, b]) => [a, b, 0.02]) }]),
    [given.parameter, NUMBER('loss')], points.map(([value, loss]) => [short(value), short(loss, 4)]));
}

function trials(report) {
  const list = (report.trials ?? []).filter((one) => one.error !== undefined && one.microseconds > 0);
  if (list.length < 2) return null;
  const points = list.map((one) => [one.microseconds, one.error]);
  const times = points.map(([time]) => time);
  const show = report.classes ? (value) => percent(value) : (value) => short(value);
  return picture('What tuning tried', 'The error of each version that was tried, over the time of one row.',
    (width) => plot(width, 'Dots of error over time', { from: Math.min(...times) / 1.2, to: Math.max(...times) * 1.2, log: true, name: 'µs a row' },
      { from: 0, to: Math.max(...points.map(([, error]) => error)) * 1.1, name: 'error', show }, [{ kind: 'dots', points: points.map(([a, b]) => [a, b, 0.1]) }]),
    ['version', 'learner', NUMBER('µs a row'), NUMBER('error')], list.map((one) => [one.spec, one.learner, short(one.microseconds), show(one.error)]));
}

const share = (part, all) => (number(all) === 0 ? '–' : percent(number(part) / number(all)));

function classTable(classes, names) {
  return section('Classes', table('Classes', ['class', NUMBER('tested'), NUMBER('recall'), NUMBER('precision')],
    (classes.classes ?? []).map((one, i) => [names[i], count(one.rows), share(one.correct, one.rows), share(one.correct, one.predicted)])));
}

// Returns nodes; none for a version without a head.
export function reportView(head) {
  if (!head?.report) return [];
  const { report } = head;
  const { classes, numbers, parts = {} } = report;
  const names = head.class_names ?? [];
  const between = (estimate, show = short) => `${show(number(estimate.value))} (${show(number(estimate.low))} to ${show(number(estimate.high))})`;
  const pictures = classes ? [
    errorPicture(report, 'Share of errors', classes.error ?? {}, percent), confusionPicture(classes, names), reliability(classes),
    roc(classes, names), coverage(report), choice(report.choice), trials(report),
    quantiles('Margins', 'How far test rows are on the right side of the learner; below 0 they are mistaken.', classes.margin_quantiles, 'margin'),
  ] : [
    errorPicture(report, 'Root mean square error', numbers?.rmse ?? {}, short),
    quantiles('Residuals', 'Target less answer, on test rows.', numbers?.residual_quantiles, 'residual'),
    coverage(report), choice(report.choice), trials(report),
  ];
  return [section('Report',
    el('p', {}, classes
      ? `${count(classes.errors)} of ${count(classes.rows)} test rows were called a class not theirs; nothing was fitted on them.`
      : `Measured on ${count(numbers?.rows)} test rows; nothing was fitted on them.`),
    (report.notes ?? []).map((note) => el('p', { class: 'warning' }, note)),
    facts([
      ['Learner', head.learner],
      ['Rows', `${count(parts.train)} trained on, ${count(parts.validate)} chose, ${count(number(parts.calibrate_link) + number(parts.calibrate_sets))} calibrated, ${count(parts.test)} tested`],
      ['Share of errors', classes && between(classes.error ?? {}, percent)],
      ['Balanced accuracy', classes && percent(number(classes.balanced_accuracy))],
      ['Log loss', classes?.log_loss !== undefined && short(classes.log_loss)],
      ['Probabilities are off by', classes?.calibration_error !== undefined && `${percent(classes.calibration_error)} on average`],
      ['RMSE', numbers?.rmse && between(numbers.rmse)],
      ['Mean absolute error', numbers?.mae && between(numbers.mae)],
      ['R²', numbers?.r_squared && between(numbers.r_squared)],
      ['Error over deviation', numbers?.standardised_error !== undefined && `${short(numbers.standardised_error)}; 1 is right`],
    ]),
    el('div', { class: 'pictures' }, pictures.filter(Boolean)),
    report.premise && el('p', { class: 'quiet' }, `Intervals hold with ${percent(report.confidence)}; this ${report.premise}.`)),
  classes && classTable(classes, names)];
}
