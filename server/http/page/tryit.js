// Tries a version: rows are pasted or dropped, and come back with features, or with answers and what is
// known of each. Nothing is sent before the button is pressed, and nothing is kept.

import * as api from './api.js';
import { announce, el, section, table, trouble } from './dom.js';
import { count, countOf, number, percent, short } from './format.js';
import { exampleRows, readRows } from './rows.js';

const MOST_ROWS = 1000;
const SHOWN_ROWS = 100;
const SHOWN_FEATURES = 8;
const SHOWN_BESIDE = 3;
// Of a file no more is read.
const MOST_BYTES = 8 << 20;

const NUMBER = (text) => ({ text, number: true });

// Asks for residuals too, which not every version has.
async function transform(reference, rows, signal) {
  try {
    return await api.transform(reference, { rows, residual: true }, signal);
  } catch (error) {
    if (error.reason !== 'RESIDUAL_NOT_AVAILABLE') throw error;
    return api.transform(reference, { rows }, signal);
  }
}

// The columns of residuals: ρ(x), and its share of K(x, x) = ρ(x) + |F(x)|².
function residualColumns(answer, certificate) {
  if (!answer.residuals) return [];
  const shares = answer.residuals.map((residual, i) => {
    const norm = answer.features[i].reduce((sum, value) => sum + value * value, 0);
    return number(residual) / (number(residual) + norm || 1);
  });
  const usual = certificate?.residual_share?.quantile_95;
  return [
    [NUMBER('residual'), answer.residuals.map((value) => short(number(value)))],
    [NUMBER('share lost'), shares.map((share) => percent(share))],
    ...(usual === undefined ? [] : [['like the build’s rows?', shares.map((share) => (share <= usual
      ? el('span', { class: 'chip good' }, 'yes') : el('span', { class: 'chip poor', title: `over ${percent(usual)}, below which 95 % of held-out rows are` }, 'unusual')))]]),
  ];
}

function featureColumns(answer) {
  const width = answer.features[0].length;
  const shown = Math.min(width, SHOWN_FEATURES);
  return [
    ...Array.from({ length: shown }, (_, i) => [NUMBER(`F${i}`), answer.features.map((row) => short(row[i], 6))]),
    ...(shown < width ? [[`${count(width - shown)} more`, answer.features.map(() => '…')]] : []),
  ];
}

function answerColumns(answer, confidence) {
  const names = answer.class_names ?? [];
  const columns = [];
  if (answer.labels) columns.push(['class', answer.labels.map((label) => el('strong', {}, names[label]))]);
  if (answer.values) columns.push([NUMBER('answer'), answer.values.map((value) => short(number(value), 6))]);
  if (answer.probabilities) columns.push([NUMBER('probability'), answer.probabilities.map((row, i) => percent(number(row[answer.labels[i]])))]);
  if (answer.sets) {
    columns.push([`set of ${percent(confidence)}`, answer.sets.map(({ classes = [] }) => (classes.length === names.length && names.length > 2
      ? 'any class' : classes.map((index) => names[index]).join(', ') || 'empty'))]);
  }
  if (answer.interval_lows) columns.push([NUMBER(`interval of ${percent(confidence)}`), answer.interval_lows.map((low, i) => `${short(low, 4)} to ${short(answer.interval_highs[i], 4)}`)]);
  if (answer.deviations) columns.push([NUMBER('deviation'), answer.deviations.map((value) => short(number(value)))]);
  return columns;
}

// If a column beside the rows holds classes: how many of them are the answers.
function agreement(answer, beside) {
  const names = answer.class_names ?? [];
  const truth = answer.labels && beside.find(({ values }) => values.every((value) => names.includes(value)));
  if (!truth) return '';
  const right = truth.values.filter((value, i) => value === names[answer.labels[i]]).length;
  return ` The column “${truth.name}” agrees in ${count(right)} of ${countOf(truth.values.length, 'row')}.`;
}

function resultView({ read, texts, columns, version, words, milliseconds }) {
  const shown = Math.min(read.rows.length, SHOWN_ROWS);
  const all = [['row', read.rows.map((_, i) => i)], ...read.beside.slice(0, SHOWN_BESIDE).map(({ name, values }) => [name, values]), ...columns];
  const limits = [
    read.total > read.rows.length && `only the first ${count(read.rows.length)} of ${count(read.total)} rows were sent`,
    shown < read.rows.length && `the first ${shown} are shown`,
  ].filter(Boolean).join('; ');
  return section('Result',
    el('p', {}, `${countOf(read.rows.length, 'row')} answered by ${version.name}@${number(version.number)} in ${Math.round(milliseconds)} ms.${words}`, limits && ` Here ${limits}.`),
    all.some(([head]) => String(head).startsWith('set of')) && el('p', { class: 'quiet' }, 'A set holds all classes that a row may well be of. It may have several, and it is empty where the row fits none.'),
    table('Result', all.map(([head]) => head), Array.from({ length: shown }, (_, i) => all.map(([, values]) => values[i]))),
    texts.map(([call, text]) => el('details', {}, el('summary', {}, `The answer of ${call} as JSON`),
      el('pre', { class: 'answer', tabindex: 0, role: 'region', 'aria-label': `Answer of ${call}` }, el('code', {}, text.length > 200000 ? `${text.slice(0, 200000)}…` : text)))));
}

async function compute(version, reference, read, wanted, confidence, signal) {
  const started = performance.now();
  if (wanted === 'features') {
    const { body, text } = await transform(reference, read.rows, signal);
    return { read, texts: [[':transform', text]], columns: [...residualColumns(body, version.certificate), ...featureColumns(body)],
      version: body.version, words: '', milliseconds: performance.now() - started };
  }
  const [answer, features] = await Promise.all([
    api.predict(reference, { rows: read.rows, probabilities: version.head.has_probabilities, deviations: version.head.has_deviations, confidence }, signal),
    transform(reference, read.rows, signal)]);
  return { read, texts: [[':predict', answer.text]],
    columns: [...answerColumns(answer.body, confidence), ...residualColumns(features.body, version.certificate)],
    version: answer.body.version, words: agreement(answer.body, read.beside), milliseconds: performance.now() - started };
}

// Names of columns for people, who need not see all of a thousand.
function columnsText(version) {
  const names = version.column_names ?? [];
  if (!version.input_columns) return 'Each line is a text.';
  const said = `Each line is a row of ${countOf(version.input_columns, 'number')}, as in CSV; JSON will do too.`;
  if (names.length === 0) return said;
  return `${said} If the first line names the columns, they may be in any order, and others may stand beside them. They are: ${names.slice(0, 12).join(', ')}${names.length > 12 ? ` and ${names.length - 12} more` : ''}.`;
}

export function tryView(version, reference, signal) {
  const example = exampleRows(version);
  const input = el('textarea', { id: 'rows', spellcheck: 'false', 'aria-describedby': 'rows-form', autocomplete: 'off' });
  const file = el('input', { type: 'file', id: 'file', accept: '.csv,.tsv,.txt,.json', change: () => file.files[0] && take(file.files[0]) });
  const wanted = el('select', { id: 'wanted' }, version.head && el('option', { value: 'answers' }, version.head.task === 'HEAD_TASK_NUMBERS' ? 'Numbers' : 'Classes'), el('option', { value: 'features' }, 'Features'));
  const confidence = el('select', { id: 'confidence' }, [0.9, 0.8, 0.95, 0.99].map((one) => el('option', { value: one }, percent(one))), el('option', { value: 0 }, 'none'));
  const column = el('input', { id: 'column', autocomplete: 'off' });
  const result = el('div');
  const said = el('p', { class: 'quiet' });

  async function take(dropped) {
    let text = await dropped.slice(0, MOST_BYTES).text();
    const isCut = dropped.size > MOST_BYTES;
    if (isCut) text = text.slice(0, text.lastIndexOf('\n'));
    input.value = text;
    said.textContent = `${dropped.name} is read${isCut ? ', its first 8 MiB' : ''}.`;
    announce(said.textContent);
  }
  async function run(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      const read = readRows(input.value, version, column.value.trim(), MOST_ROWS);
      const computed = await compute(version, reference, read, wanted.value, Number(confidence.value), signal);
      result.replaceChildren(resultView(computed));
      announce(`${countOf(read.rows.length, 'row')} answered`);
    } catch (error) {
      if (!signal.aborted) result.replaceChildren(trouble(error instanceof SyntaxError ? new Error(`this is no JSON: ${error.message}`) : error));
    } finally {
      button.disabled = false;
    }
  }
  const button = el('button', { type: 'submit', class: 'main' }, 'Compute');
  const drop = el('div', {
    class: 'drop',
    dragover: (event) => {
      event.preventDefault();
      drop.classList.add('over');
    },
    dragleave: () => drop.classList.remove('over'),
    drop: (event) => {
      event.preventDefault();
      drop.classList.remove('over');
      if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
      else input.value = event.dataTransfer.getData('text/plain');
    },
  },
  el('label', { for: 'rows' }, 'Rows: paste them, or drop a CSV file here'), el('p', { class: 'quiet', id: 'rows-form' }, columnsText(version)), input,
  el('div', { class: 'fields' }, el('div', {}, el('label', { for: 'file' }, 'Or open a file'), file),
    example && el('button', { type: 'button', click: () => { input.value = example; } }, 'Put in example rows')), said);
  return el('form', { submit: run }, drop,
    el('div', { class: 'fields' },
      el('div', {}, el('label', { for: 'wanted' }, 'Answer'), wanted),
      version.head && el('div', {}, el('label', { for: 'confidence' }, version.head.task === 'HEAD_TASK_NUMBERS' ? 'Intervals that hold' : 'Sets that hold'), confidence),
      !version.input_columns && el('div', {}, el('label', { for: 'column' }, 'Column of the texts, if these are cells of CSV'), column),
      button), result);
}
