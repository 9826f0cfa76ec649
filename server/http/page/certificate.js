// The certificate of a version in pictures: what of the kernel the features keep, measured on rows that
// were held out of the build.

import { bars, picture, plot } from './charts.js';
import { el, facts, section } from './dom.js';
import { count, number, percent, short, word } from './format.js';

// The verdict as a coloured word.
export function verdictChip(verdict) {
  const grade = word(verdict?.grade, 'GRADE_') || 'not judged';
  return el('span', { class: `chip ${grade === 'not judged' ? 'none' : grade}` }, grade);
}

function spectrum({ eigenvalues = [], trace, rows }) {
  const shares = eigenvalues.map((value) => value / trace).filter((share) => share > 0);
  if (shares.length < 2) return null;
  return picture('Spectrum',
    `The ${shares.length} largest eigenvalues of the kernel on ${count(rows)} held-out rows, as shares of their sum. The faster they fall, the fewer features suffice.`,
    (width) => plot(width, `Bars that fall from ${percent(shares[0])} to ${percent(shares.at(-1))}`,
      { from: 0, to: shares.length + 1, name: 'eigenvalue' },
      { from: 10 ** Math.floor(Math.log10(Math.max(shares.at(-1), 1e-12)) - 0.01), to: 1, log: true, name: 'share of the sum', show: (value) => percent(value) },
      [{ kind: 'bars', points: shares.map((share, i) => [i + 1, share]) }]),
    ['eigenvalue', { text: 'value', number: true }, { text: 'share', number: true }],
    shares.map((share, i) => [i + 1, short(eigenvalues[i], 4), percent(share, 4)]));
}

function dimensions({ effective_dimensions: list = [], trace }) {
  if (list.length === 0) return null;
  const named = list.map((one) => ({ ...one, over: percent(one.lambda / trace) }));
  return picture('Dimensions kept',
    'How many directions of the kernel are larger than a share of the trace (above), and how many of them the features keep (below, in the other colour). The smaller the share, the finer the detail.',
    (width) => bars(width, 'Pairs of bars: dimensions of the kernel, and those kept',
      named.flatMap((one) => [
        { name: `over ${one.over}: kernel`, value: number(one.kernel), text: short(one.kernel) },
        { name: `over ${one.over}: kept`, value: number(one.mapping), text: short(one.mapping), second: true },
      ])),
    ['over', { text: 'kernel', number: true }, { text: 'kept', number: true }],
    named.map((one) => [one.over, short(one.kernel, 4), short(one.mapping, 4)]));
}

function shares(certificate) {
  const share = certificate.residual_share;
  if (!share) return null;
  const mass = certificate.residual_mass;
  const rows = [
    { name: 'median of rows', value: number(share.median) },
    { name: '95 % of rows are below', value: number(share.quantile_95) },
    { name: 'all rows together', value: number(certificate.held_out_trace_residual), low: mass && number(mass.low), high: mass && number(mass.high) },
  ].map((row) => ({ ...row, text: percent(row.value) }));
  return picture('Share of a row that is lost',
    `The part of a row, ρ(x)/K(x, x), that the landmarks do not span, over ${count(share.rows)} held-out rows. A row near 100 % is unlike those of the build. The thin line is a 95 % interval.`,
    (width) => bars(width, 'Bars of shares from 0 to 100 %', rows, { most: 1 }),
    ['rows', { text: 'share', number: true }, { text: 'from', number: true }, { text: 'to', number: true }],
    rows.map((row) => [row.name, percent(row.value, 4), percent(row.low), percent(row.high)]));
}

function fidelity({ smoothers = [], rows }) {
  if (smoothers.length === 0) return null;
  const list = smoothers.map((one) => ({ name: `ridge at λ = ${short(one.lambda)}`, value: number(one.distance), text: percent(number(one.distance)) }));
  return picture('Difference to the kernel itself',
    `How far predictions by ridge on the features are from those on the kernel, over ${count(rows)} held-out rows. The verdict rests on the two smaller λ: up to 10 % is good, up to 25 % fair.`,
    (width) => bars(width, 'Bars of differences', list, { most: Math.max(1, ...list.map((one) => one.value)) }),
    ['learner', { text: 'difference', number: true }], list.map((one) => [one.name, one.text]));
}

// Returns nodes; none for a version without a certificate.
export function certificateView(certificate) {
  if (!certificate) return [];
  const error = certificate.kernel_error;
  const bound = error?.pair_bound;
  const verdict = certificate.verdict ?? {};
  const pictures = [
    certificate.spectrum && spectrum(certificate.spectrum), shares(certificate),
    certificate.spectrum && dimensions(certificate.spectrum), certificate.fidelity && fidelity(certificate.fidelity),
  ].filter(Boolean);
  return [section('Certificate',
    el('p', {}, verdictChip(verdict), verdict.reason ?? '', verdict.advice ? `; ${verdict.advice}` : ''),
    (certificate.warnings ?? []).map((warning) => el('p', { class: 'warning' }, warning)),
    facts([
      ['Rows of the build', count(certificate.stream_rows)],
      ['Held out to measure on', count(certificate.held_out_rows)],
      ['Landmarks', number(certificate.landmarks) > 0 && `${count(certificate.landmarks)}${certificate.rank ? `, of which ${count(certificate.rank)} are independent` : ''}`],
      ['Chosen by', certificate.policy],
      ['Error of a kernel value', error && `${short(number(error.mean))} on average, at most ${short(error.max)}; values go up to ${short(error.scale)}`],
      ['For rows to come', bound && `at most ${percent(bound.share)} of pairs err by more than ${short(number(bound.largest))} (95 %)`],
    ]),
    el('div', { class: 'pictures' }, pictures),
    certificate.theorem && el('p', { class: 'quiet' }, 'Theorem: ', certificate.theorem),
    certificate.theorem_scope && el('p', { class: 'quiet' }, 'Holds for: ', certificate.theorem_scope))];
}
