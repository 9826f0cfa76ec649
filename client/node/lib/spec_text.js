// Specs, kernels and learners as text, of values.

// What a text may be as a value: a word, a number, a range, a list, or a call with simple values such as auto(residual=0.1).
const VALUE = /^(?:[\w.+:-]+|\[[\w.+,;\s-]*\]|[A-Za-z_]\w*\([^()]*\))$/;

export function specText(name, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  return `${name}(${given.map(([key, value]) => `${key}=${wordOf(key, value)}`).join(', ')})`;
}

function wordOf(name, value) {
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView)))
    return `[${Array.from(value, (each) => wordOf(name, each)).join(', ')}]`;
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new RangeError(`${name}: expected a finite number, got ${value}`);
    return String(value);
  }
  if (typeof value !== 'string') throw new TypeError(`${name}: expected a number or a name, got ${typeof value}`);
  if (!VALUE.test(value.trim()))
    throw new RangeError(`${name}: expected one value, such as a word or a number, got ${JSON.stringify(value)}`);
  return value.trim();
}
