// Numbers, sizes and times as people read them. In the API's JSON a field that is zero is absent, and
// integers of 64 bits are texts.

export const number = (value) => Number(value ?? 0);

export const count = (value) => number(value).toLocaleString('en-US');

export const countOf = (value, word) => `${count(value)} ${word}${number(value) === 1 ? '' : 's'}`;

// A measured number, with a few digits.
export function short(value, digits = 3) {
  if (value === undefined || value === null) return '–';
  const given = Number(value);
  if (!Number.isFinite(given)) return given > 0 ? '∞' : given < 0 ? '−∞' : 'not a number';
  if (given === 0) return '0';
  const size = Math.abs(given);
  const text = size >= 1e7 || size < 1e-4 ? given.toExponential(digits - 1) : String(Number(given.toPrecision(digits)));
  return text.replace('-', '−').replace('e+', 'e').replace('e-', 'e−');
}

export const percent = (share, digits = 3) => (share === undefined || share === null ? '–' : `${short(100 * share, digits)} %`);

export function bytes(value) {
  let size = number(value);
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    ++unit;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

// A span of seconds in its largest unit.
export function span(seconds) {
  const units = [[86400 * 365, 'year'], [86400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']];
  const [size, word] = units.find(([least]) => seconds >= least) ?? units.at(-1);
  return countOf(Math.max(0, Math.floor(seconds / size)), word);
}

export const ago = (time) => `${span((Date.now() - Date.parse(time)) / 1000)} ago`;

// A value of an enum as a word: GRADE_NOT_JUDGED, with the prefix GRADE_, is "not judged".
export const word = (value, prefix) => (value ?? '').replace(prefix, '').toLowerCase().replaceAll('_', ' ');
