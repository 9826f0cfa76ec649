// Pictures in SVG, drawn for the width that there is. Each comes with its numbers as a table, so
// nothing is said by lengths and colours alone.

import { el, svg, table } from './dom.js';
import { short } from './format.js';

// A picture with its title, a note that says how to read it, and the table of its numbers. `draw` gets
// a width in pixels and returns an SVG.
export function picture(title, note, draw, columns, rows) {
  const holder = el('div');
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width === 0 || width === drawn) return;
    drawn = width;
    // Not in the observer itself, which would be told of the new height at once.
    requestAnimationFrame(() => holder.replaceChildren(draw(width)));
  }).observe(holder);
  return el('figure', {}, el('figcaption', {}, title), el('p', {}, note), holder,
    el('details', {}, el('summary', {}, 'Numbers', el('span', { class: 'unseen' }, ` of ${title}`)),
      table(title, columns, rows)));
}

const canvas = (width, height, label, ...children) =>
  svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label }, children);

const text = (x, y, anchor, words, kind) => svg('text', { x, y, 'text-anchor': anchor, class: kind }, words);

// Cuts a name so that it is about `room` pixels wide.
const cut = (name, room) => (name.length * 6.6 <= room ? name : `${name.slice(0, Math.max(3, Math.floor(room / 6.6) - 1))}…`);

// Bars that lie, a name above each: for a few numbers of one kind. A row has `name`, `value`, `text`,
// maybe `low` and `high`, the ends of an interval, and `second`, if its colour is the other one.
export function bars(width, label, rows, { most, limit } = {}) {
  const end = most ?? 1.05 * Math.max(...rows.flatMap((row) => [row.value, row.high ?? 0]), limit ?? 0, 1e-300);
  const X = (value) => (Math.min(Math.max(value, 0), end) / end) * (width - 4) + 2;
  const step = 40;
  const height = rows.length * step + 4;
  return canvas(width, height, label,
    rows.map((row, i) => {
      const y = i * step;
      return [
        text(2, y + 13, 'start', cut(row.name, width - row.text.length * 6.6 - 20)), text(width - 2, y + 13, 'end', row.text),
        svg('rect', { x: 2, y: y + 19, width: Math.max(1, X(row.value) - 2), height: 12, class: row.second ? 'bar2' : 'bar' }),
        row.low !== undefined && svg('path', {
          class: 'whisker', d: `M${X(row.low)} ${y + 25}H${X(row.high)}M${X(row.low)} ${y + 21}v8M${X(row.high)} ${y + 21}v8`,
        }),
      ];
    }),
    limit !== undefined && svg('path', { class: 'limit', d: `M${X(limit)} 16V${height}` }));
}

// Round numbers, about `wanted` of them, from `from` to `to`.
function ticksOf({ from, to, log }, wanted) {
  if (log) {
    const first = Math.ceil(Math.log10(from) - 1e-9);
    const last = Math.floor(Math.log10(to) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first + 1) / wanted));
    const powers = [];
    for (let power = first; power <= last; power += step) powers.push(10 ** power);
    return powers;
  }
  const rough = (to - from) / wanted;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * size).find((one) => one >= rough * 0.999) ?? rough;
  const round = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i) round.push(i * step);
  return round;
}

const scale = ({ from, to, log }, first, last) => {
  const at = log ? Math.log10 : (value) => value;
  return (value) => first + ((at(Math.min(Math.max(value, from), to)) - at(from)) / (at(to) - at(from) || 1)) * (last - first);
};

// Lines, dots or standing bars between two axes. An axis has `from`, `to`, `name`, and maybe `log` and
// `show`, which writes a number. A series has `points`, pairs of numbers, and a `kind`: "curve",
// "curve2", "dots" (with a third number, the share of the largest dot) or "bars".
export function plot(width, label, x, y, series, { ideal } = {}) {
  const height = Math.round(Math.min(280, Math.max(200, width * 0.55)));
  const showX = x.show ?? ((value) => short(value));
  const showY = y.show ?? ((value) => short(value));
  const ticksY = ticksOf(y, 5);
  const left = 14 + 6.8 * Math.max(...ticksY.map((value) => showY(value).length), 2);
  const top = 20;
  const bottom = height - 36;
  const right = width - 22;
  const X = scale(x, left, right);
  const Y = scale(y, bottom, top);
  const floor = Y(y.from);
  const draw = ({ points, kind }) => {
    if (kind === 'dots') return points.map(([a, b, share = 0.25]) => svg('circle', { cx: X(a), cy: Y(b), r: 3 + 7 * Math.sqrt(share), class: 'bar' }));
    if (kind === 'bars') {
      const wide = Math.max(1, ((right - left) / Math.max(points.length, 1)) * 0.8);
      return points.map(([a, b]) => svg('rect', { x: X(a) - wide / 2, y: Y(b), width: wide, height: Math.max(0.5, floor - Y(b)), class: 'bar' }));
    }
    return svg('path', { class: kind, d: points.map(([a, b], i) => `${i ? 'L' : 'M'}${X(a).toFixed(1)} ${Y(b).toFixed(1)}`).join('') });
  };
  return canvas(width, height, label,
    ticksY.map((value) => [svg('path', { class: 'grid', d: `M${left} ${Y(value)}H${right}` }), text(left - 6, Y(value) + 4, 'end', showY(value), 'tick')]),
    ticksOf(x, Math.max(3, Math.floor((right - left) / 90))).map((value) => [
      svg('path', { class: 'axis', d: `M${X(value)} ${bottom}v4` }), text(X(value), bottom + 17, 'middle', showX(value), 'tick')]),
    svg('path', { class: 'axis', d: `M${left} ${bottom}H${right}` }),
    ideal && svg('path', { class: 'ideal', d: `M${X(Math.max(x.from, y.from))} ${Y(Math.max(x.from, y.from))}L${X(Math.min(x.to, y.to))} ${Y(Math.min(x.to, y.to))}` }),
    series.map(draw),
    text(2, 12, 'start', y.name, 'tick'), text(right, height - 3, 'end', x.name, 'tick'));
}

// Squares for pairs of an actual and a called class, the darker the larger their share of the actual
// class's rows. Names stand at the sides where there is room for them.
export function confusion(width, label, names, counts) {
  const n = names.length;
  const room = Math.min(130, width * 0.28, 10 + 6.8 * Math.max(...names.map((name) => name.length)));
  const side = Math.min(64, (width - room - 4) / n);
  const named = side >= 11;
  const topRoom = named ? 20 : 4;
  const totals = counts.map((row) => row.reduce((sum, one) => sum + one, 0));
  const nodes = [];
  for (let i = 0; i < n; ++i) {
    const y = topRoom + i * side;
    if (named) {
      nodes.push(text(room - 6, y + side / 2 + 4, 'end', cut(names[i], room - 8)));
      nodes.push(text(room + i * side + side / 2, 14, 'middle', cut(names[i], Math.max(side, 8)).slice(0, Math.max(1, Math.floor(side / 7))), 'tick'));
    }
    for (let j = 0; j < n; ++j) {
      const share = totals[i] === 0 ? 0 : counts[i][j] / totals[i];
      nodes.push(svg('rect', { x: room + j * side, y, width: side - 1, height: side - 1, class: 'ground', 'fill-opacity': 0.06 }));
      if (share === 0) continue;
      nodes.push(svg('rect', {
        x: room + j * side, y, width: side - 1, height: side - 1, class: i === j ? 'cell' : 'miss', 'fill-opacity': 0.12 + 0.6 * Math.sqrt(share),
      }, svg('title', {}, `${names[i]} called ${names[j]}: ${counts[i][j]}`)));
      if (side >= 34) nodes.push(text(room + j * side + side / 2, y + side / 2 + 4, 'middle', counts[i][j]));
    }
  }
  return canvas(width, topRoom + n * side + 4, label, nodes);
}
