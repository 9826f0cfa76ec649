// Whether the rows that an alias serves are still like those that its version was built from.

import { bars, picture } from './charts.js';
import { el, facts } from './dom.js';
import { ago, count, countOf, number, percent, short, word } from './format.js';

// Evidence below this is what chance gives every few thousand rows.
const SOME = 0.5;

function nameOf(score) {
  const kind = word(score.kind, 'KIND_');
  if (score.name) return `${kind} ${score.name}`;
  return kind === 'direction' || kind === 'column' ? `${kind} ${number(score.index)}` : kind;
}

function finding(drift) {
  if (number(drift.evidence) >= 1) return ['poor', 'the served rows have drifted'];
  if (number(drift.rows) === 0) return ['none', 'no rows tested yet'];
  if (number(drift.evidence) >= SOME) return ['fair', 'some evidence, no alarm'];
  return drift.crossed_time ? ['fair', 'no evidence of drift any more'] : ['good', 'no evidence of drift'];
}

// The finding as a coloured word.
export function driftChip(drift) {
  if (!drift) return '–';
  const [kind, words] = drift.not_tested ? ['none', 'not tested'] : finding(drift);
  return el('span', { class: `chip ${kind}` }, words);
}

const NUMBER = (text) => ({ text, number: true });

export function driftView(name, drift) {
  const title = el('h3', {}, `${name}@${drift.alias} (version ${drift.version})`);
  if (drift.not_tested) return el('div', { class: 'part' }, title, el('p', {}, `Drift is not tested: ${drift.not_tested}.`));
  const scores = [{ name: 'all together', value: number(drift.evidence) },
    ...(drift.scores ?? []).map((score) => ({
      name: nameOf(score), value: Math.max(number(score.location), number(score.spread)),
      location: number(score.location), spread: number(score.spread),
    }))].map((score) => ({ ...score, text: short(score.value, 2) }));
  const columns = (drift.columns_beyond_range ?? []).map((column) => ({
    name: column.name || `column ${number(column.index)}`, value: number(column.share), text: percent(number(column.share)),
  }));
  const tested = number(drift.rows) > 0;
  return el('div', { class: 'part' }, title, el('p', {}, driftChip(drift)),
    facts([
      ['Evidence', `${short(number(drift.evidence), 2)}, of 1, after ${countOf(drift.rows, 'row')}`],
      ['Last reached 1', drift.crossed_time && ago(drift.crossed_time)],
      ['Promise', `without drift, a false alarm within ${count(drift.promised_rows)} rows has a probability of at most ${percent(drift.false_alarms)}`],
      ['Shift', drift.shift_scale > 0 && `the mean of F has moved by ${percent(number(drift.shift) / drift.shift_scale)} of the deviation of F`],
      ['Beyond the range', number(drift.counted_rows) > 0 && `${percent(number(drift.beyond_range_share))} of the numbers; without drift at most ${percent(number(drift.beyond_range_expected))}`],
      ['Not finite', number(drift.rows_not_finite) > 0 && countOf(drift.rows_not_finite, 'row')],
    ]),
    tested && el('div', { class: 'pictures' },
      picture(`Evidence for drift of ${drift.alias}`, 'The scores with most evidence. An alarm is where a bar reaches the dashed line at 1.',
        (width) => bars(width, 'Bars of evidence, with the alarm at 1', scores, { most: Math.max(1.2, ...scores.map((score) => score.value)), limit: 1 }),
        ['score', NUMBER('evidence'), NUMBER('has moved'), NUMBER('is spread differently')],
        scores.map((score) => [score.name, short(score.value), score.location === undefined ? '' : short(score.location), score.spread === undefined ? '' : short(score.spread)])),
      columns.length > 0 && picture(`Numbers beyond their range in ${drift.alias}`, `Share of the last ${countOf(drift.counted_rows, 'row')} whose number lies outside what the build saw.`,
        (width) => bars(width, 'Bars of shares by column', columns, { most: 1 }),
        ['column', NUMBER('share of rows')], columns.map((column) => [column.name, column.text]))));
}
