// Bounds how far a runtime's numbers can be from those that a graph means: a running error analysis (Higham, Accuracy and
// Stability of Numerical Algorithms, 2002, section 3.3).
//
// Each value of the graph is computed here in float64, as v, together with a bound e: whoever computes the graph in the
// types that it states gets a number within v ± e. The rules for one operation, with the unit round-off u of its type
// (2⁻²⁴ for float32, 2⁻⁵³ for float64) and operands v₁ ± e₁ and v₂ ± e₂:
//
//   one rounding          a result r becomes r(1 + δ) with |δ| ≤ u, or is lost below the least normal number
//   v₁ ± v₂               e₁ + e₂, and one rounding
//   v₁ − v₂, conversion   of numbers without error: none, because IEEE 754 leaves one result, which v is then
//   v₁·v₂                 |v₁|e₂ + |v₂|e₁ + e₁e₂, and one rounding
//   a sum of k terms      in any order, with or without fused multiply-add: nu/(1 − nu)·Σ(|term| + error), n = k + 1 (ibid.,
//                         section 3.1)
//   a function f          the most that f moves within v₁ ± e₁, and 8u of the result: four units in the last place, which
//                         is the largest error that the vector library of the engine states for its functions; ONNX
//                         Runtime's are taken to be no worse
//   a decision            none of the error, if it is the same within ± e; otherwise the result is unknown: e is infinite
//
// The engine computes the same formulas from the same weights, so its numbers obey the same bound; the engine and ONNX
// Runtime can differ by 2e. Three things are not the same in both. Numbers that the exporter computes in float64 from
// landmarks, and rounds once, the engine computes in its serving type when it loads an artifact: squared norms, which
// are sums of as many terms as there are columns, and factors of landmarks, whose error is that of the factor of an equal
// row. Constants such as 2π are rounded in the graph alone. And phases of cosines are taken modulo whole turns: within
// ± e the two may take off different whole numbers, which changes no cosine, so that rounding to a whole turn is exact.
//
// v itself is computed in float64. Its own error is 2⁻²⁹ of e for float32; for float64 it obeys the same bound e.
const UNIT = { float32: 2 ** -24, float64: 2 ** -53 };
const LEAST = { float32: 2 ** -126, float64: 2 ** -1022 };
const FUNCTION_ROUNDINGS = 8;

const sizeOf = (shape) => shape.reduce((product, side) => product * side, 1);
function spliced(shape, at, removed, ...added) {
  const out = [...shape];
  out.splice(at, removed, ...added);
  return out;
}
const known = (e) => (Number.isNaN(e) ? Infinity : e); // where both v and e overflowed

// A value of a graph: numbers v, and their bounds e.
class Value {
  constructor(shape, type, v, e = new Float64Array(v.length)) {
    Object.assign(this, { shape, type, v, e });
  }

  static empty(shape, type) { return new Value(shape, type, new Float64Array(sizeOf(shape))); }

  shaped(shape) { return new Value(shape, this.type, this.v, this.e); }

  // Sets element i to a result and the error that comes from its operands, rounded `roundings` times. A 0 without error is
  // not rounded.
  set(i, v, e, roundings = 1) {
    this.v[i] = v;
    if (!UNIT[this.type] || roundings === 0 || (v === 0 && e === 0)) this.e[i] = known(e);
    else this.e[i] = known(e + roundings * (UNIT[this.type] * (Math.abs(v) + e) + LEAST[this.type]));
  }
}

// Calls f(i of the result, i of each operand) for all elements of operands whose shapes are broadcast.
function broadcast(operands, f) {
  const rank = Math.max(...operands.map(({ shape }) => shape.length));
  const shapes = operands.map(({ shape }) => [...Array(rank - shape.length).fill(1), ...shape]);
  const shape = Array.from({ length: rank }, (_, k) => Math.max(...shapes.map((each) => each[k])));
  const steps = shapes.map((each) => {
    let step = 1;
    const out = Array(rank);
    for (let k = rank - 1; k >= 0; --k) {
      out[k] = each[k] === 1 ? 0 : step;
      step *= each[k];
    }
    return out;
  });
  const visit = f(shape);
  const places = Array(operands.length);
  for (let i = 0; i < sizeOf(shape); ++i) {
    places.fill(0);
    for (let k = rank - 1, rest = i; k >= 0; --k) {
      const at = rest % shape[k];
      rest = (rest - at) / shape[k];
      for (let n = 0; n < places.length; ++n) places[n] += at * steps[n][k];
    }
    visit(i, ...places);
  }
}

// Applies rule(v₁, e₁, v₂, e₂), which returns [v, e], to all pairs.
function pairs(a, b, rule, roundings = 1, type = a.type) {
  let out;
  broadcast([a, b], (shape) => {
    out = Value.empty(shape, type);
    return (i, j, k) => out.set(i, ...rule(a.v[j], a.e[j], b.v[k], b.e[k]), roundings);
  });
  return out;
}
// Applies rule(v₁, e₁) to all elements.
function each(a, rule, roundings = FUNCTION_ROUNDINGS) {
  const out = Value.empty(a.shape, a.type);
  for (let i = 0; i < a.v.length; ++i) out.set(i, ...rule(a.v[i], a.e[i]), roundings);
  return out;
}
// The rule of a monotonous function that is defined from `least` on.
const monotonous = (f, least = -Infinity) => (v, e) => {
  const result = f(v);
  return [result, Math.max(Math.abs(f(v + e) - result), Math.abs(result - f(Math.max(v - e, least))))];
};
const exponential = (v, e) => [Math.exp(v), e < 1 ? Math.exp(v) * Math.expm1(e) : Math.exp(v + e)];
const logistic = (v, e) => { // its slope is at most that of an exponential, relative to the result
  const result = 1 / (1 + Math.exp(-v));
  return [result, Math.min(1, result * Math.expm1(Math.min(e, 700)))];
};
// Sines and cosines move no faster than their argument, and no further than 2. What is near 0 may err as 1 does.
const wave = (f, u) => (v, e) => [f(v), Math.min(2, e) + FUNCTION_ROUNDINGS * u];
// Whether v₁ and v₂ are equal.
const equality = (v, e, w, g) => [v === w ? 1 : 0, Math.abs(v - w) > e + g || (v === w && e + g === 0) ? 0 : Infinity];
const excess = (v, e, w, g) => [v > w ? 1 : 0, Math.abs(v - w) > e + g || e + g === 0 ? 0 : Infinity];

// Sums count terms: for i = 0 … size − 1, term(i, k) returns [v, e] of term k.
function sums(shape, type, count, term) {
  const out = Value.empty(shape, type);
  const nu = (count + 1) * UNIT[type];
  for (let i = 0; i < out.v.length; ++i) {
    let [v, e, magnitude] = [0, 0, 0];
    for (let k = 0; k < count; ++k) {
      const [w, g] = term(i, k);
      v += w;
      e += g;
      magnitude += Math.abs(w) + g;
    }
    out.set(i, v, magnitude === 0 ? 0 : e + (nu / (1 - nu)) * magnitude + count * LEAST[type], 0);
  }
  return out;
}
function product(a, b) {
  const [n, count, m] = [a.shape[0], a.shape[1], b.shape[1]];
  return sums([n, m], a.type, count, (i, k) => {
    const [x, y] = [Math.floor(i / m) * count + k, k * m + (i % m)];
    return [a.v[x] * b.v[y], Math.abs(a.v[x]) * b.e[y] + Math.abs(b.v[y]) * a.e[x] + a.e[x] * b.e[y]];
  });
}
function reduced(a, axis, keep) {
  const count = a.shape[axis];
  const inner = sizeOf(a.shape.slice(axis + 1));
  const shape = spliced(a.shape, axis, 1, ...(keep ? [1] : []));
  return sums(shape, a.type, count, (i, k) => {
    const place = (Math.floor(i / inner) * count + k) * inner + (i % inner);
    return [a.v[place], a.e[place]];
  });
}

// Picks elements: places(i) is the operand and the element of it that element i of the result is.
function picked(shape, type, places) {
  const size = sizeOf(shape);
  const out = new Value(shape, type, type === 'string' ? Array(size) : new Float64Array(size), new Float64Array(size));
  for (let i = 0; i < size; ++i) {
    const [from, at] = places(i);
    out.v[i] = from.v[at];
    out.e[i] = from.e[at];
  }
  return out;
}
// All matrices of `parts` beside each other.
function beside(parts) {
  const width = parts.reduce((sum, { shape }) => sum + shape[1], 0);
  return picked([parts[0].shape[0], width], parts[0].type, (i) => {
    let column = i % width;
    const part = parts.find(({ shape }) => (column < shape[1] ? true : ((column -= shape[1]), false)));
    return [part, Math.floor(i / width) * part.shape[1] + column];
  });
}
const columns = (a, places) =>
  picked([a.shape[0], places.length], a.type, (i) => [a, Math.floor(i / places.length) * a.shape[1] + places[i % places.length]]);
// Elements of `a` by an index for each row, which may be unknown.
function looked(a, index) {
  const out = picked(index.shape, a.type, (i) => [a, index.v[i]]);
  index.e.forEach((e, i) => { if (e > 0) out.e[i] = Infinity; });
  return out;
}
function chosen(condition, a, b) {
  let out;
  broadcast([condition, a, b], (shape) => {
    out = Value.empty(shape, a.type);
    return (i, c, j, k) => out.set(i, condition.v[c] ? a.v[j] : b.v[k],
      condition.e[c] > 0 ? Infinity : condition.v[c] ? a.e[j] : b.e[k], 0);
  });
  return out;
}
// Row by row: f(scores, errors) returns [[v, e], …].
function byRow(a, width, type, f) {
  const count = a.shape[1];
  const out = Value.empty(width === 0 ? [a.shape[0]] : [a.shape[0], width], type);
  for (let i = 0; i < a.shape[0]; ++i) {
    f(a.v.subarray(i * count, (i + 1) * count), a.e.subarray(i * count, (i + 1) * count))
      .forEach(([v, e], k) => out.set(i * Math.max(width, 1) + k, v, e, width === 0 ? 0 : count + FUNCTION_ROUNDINGS));
  }
  return out;
}
function highest(v, e) {
  const best = v.indexOf(Math.max(...v));
  return [[best, v.every((w, k) => k === best || v[best] - w > e[best] + e[k]) ? 0 : Infinity]];
}
function softmax(v, e) {
  const top = Math.max(...v);
  const powers = Array.from(v, (w) => Math.exp(w - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  // Each score may move by the largest error, in either direction, and the difference of two is rounded.
  const moved = 2 * (Math.max(...e) + UNIT.float64 * (Math.max(...v.map(Math.abs)) + Math.max(...e)));
  return powers.map((power) => [power / sum, Math.min(1, (power / sum) * Math.expm1(Math.min(moved, 700)))]);
}
const nearestIn = (type, v) => (type === 'float32' ? Math.fround(v) : v);
function difference(a, b) {
  let out;
  broadcast([a, b], (shape) => {
    out = Value.empty(shape, a.type);
    return (i, j, k) => {
      const e = a.e[j] + b.e[k];
      const v = a.v[j] - b.v[k];
      out.set(i, e === 0 ? nearestIn(a.type, v) : v, e, e === 0 ? 0 : 1);
    };
  });
  return out;
}
function converted(a, type) {
  const out = Value.empty(a.shape, type);
  const rounds = a.type === 'float64' && type === 'float32';
  for (let i = 0; i < a.v.length; ++i) {
    if (rounds && a.e[i] === 0) out.set(i, Math.fround(a.v[i]), 0, 0);
    else out.set(i, a.v[i], a.e[i], rounds ? 1 : 0);
  }
  return out;
}
function power(v, e, n) {
  const result = v ** n;
  return [result, (Math.abs(v) + e) ** n - Math.abs(result)];
}

const OPERATIONS = {
  Identity: ([a]) => a,
  Cast: ([a], { to }) => converted(a, { 1: 'float32', 7: 'int64', 11: 'float64' }[to]),
  Add: ([a, b]) => pairs(a, b, (v, e, w, g) => [v + w, e + g]),
  Sub: ([a, b]) => difference(a, b),
  Mul: ([a, b]) => pairs(a, b, (v, e, w, g) => [v * w, Math.abs(v) * g + Math.abs(w) * e + e * g]),
  Div: ([a, b]) => pairs(a, b, (v, e, w, g) => [v / w, Math.abs(w) > g ? (e + Math.abs(v / w) * g) / (Math.abs(w) - g) : Infinity]),
  Max: ([a, b]) => pairs(a, b, (v, e, w, g) => [Math.max(v, w), Math.max(e, g)], 0),
  Min: ([a, b]) => pairs(a, b, (v, e, w, g) => [Math.min(v, w), Math.max(e, g)], 0),
  Abs: ([a]) => each(a, (v, e) => [Math.abs(v), e], 0),
  Neg: ([a]) => each(a, (v, e) => [-v, e], 0),
  Round: ([a]) => each(a, (v) => [Math.round(v), 0], 0),
  Equal: ([a, b]) => pairs(a, b, equality, 0, 'bool'),
  Greater: ([a, b]) => pairs(a, b, excess, 0, 'bool'),
  Less: ([a, b]) => pairs(b, a, excess, 0, 'bool'),
  LessOrEqual: ([a, b]) => pairs(a, b, (v, e, w, g) => [v <= w ? 1 : 0, excess(v, e, w, g)[1]], 0, 'bool'),
  Where: ([condition, a, b]) => chosen(condition, a, b),
  Exp: ([a]) => each(a, exponential),
  Log: ([a]) => each(a, monotonous(Math.log, 0)),
  Tanh: ([a]) => each(a, monotonous(Math.tanh)),
  Sqrt: ([a]) => each(a, monotonous(Math.sqrt, 0), 1),
  Reciprocal: ([a]) => each(a, (v, e) => [1 / v, Math.abs(v) > e ? e / Math.abs(v) / (Math.abs(v) - e) : Infinity], 1),
  Sigmoid: ([a]) => each(a, logistic),
  Sin: ([a]) => each(a, wave(Math.sin, UNIT[a.type]), 0),
  Cos: ([a]) => each(a, wave(Math.cos, UNIT[a.type]), 0),
  // By squaring, or by exp and log of the library: at most n roundings, or those of a function.
  Pow: ([a, n]) => each(a, (v, e) => power(v, e, n.v[0]), n.v[0] + FUNCTION_ROUNDINGS),
  MatMul: ([a, b]) => product(a, b),
  ReduceSum: ([a, axes], { keepdims }) => reduced(a, axes.v[0], keepdims === 1),
  Unsqueeze: ([a, axes]) => a.shaped(spliced(a.shape, axes.v[0], 0, 1)),
  Squeeze: ([a, axes]) => a.shaped(spliced(a.shape, axes.v[0], 1)),
  Concat: (parts) => beside(parts),
  Slice: ([a, [from], [to]]) => columns(a, Array.from({ length: to - from }, (_, k) => from + k)),
  Gather: ([a, index], { axis }) => (axis === 1 ? columns(a, index.v) : looked(a, index)),
  ArgMax: ([a]) => byRow(a, 0, 'int64', highest),
  Softmax: ([a]) => byRow(a, a.shape[1], a.type, softmax),
};

// What the engine's numbers may differ by from a weight of the graph (see above), as an operand of `op` beside `other`.
function weightOf({ shape, type, numbers }, op, other, inputColumns) {
  const weight = new Value(shape, type, numbers, new Float64Array(numbers.length));
  if (type !== 'float32' && type !== 'float64') return weight;
  const u = UNIT[type];
  if (numbers.length === 1) weight.e[0] = Number.isInteger(numbers[0]) ? 0 : u * Math.abs(numbers[0]);
  else if (op === 'Add') numbers.forEach((w, i) => { weight.e[i] = (inputColumns + 1) * u * Math.abs(w); });
  else if (op === 'MatMul') numbers.forEach((w, i) => { weight.e[i] = u * Math.abs(w); });
  else if (op === 'Mul' && other.shape.length === 2 && other.shape[1] === 1) {
    // f(a_j) beside f(x_i): landmarks are among the rows, and the row whose factor is nearest is an equal one.
    numbers.forEach((w, j) => {
      let nearest = 0;
      other.v.forEach((v, i) => { if (Math.abs(v - w) < Math.abs(other.v[nearest] - w)) nearest = i; });
      weight.e[j] = 2 * other.e[nearest] + u * Math.abs(w);
    });
  }
  return weight;
}

// Returns the value { shape, type, v, e } of each output of a model (model.mjs) for n × columns rows.
export function valuesOf(model, rows, columnCount, type, outputs) {
  const values = new Map([['rows', new Value([rows.length / columnCount, columnCount], type, rows)]]);
  for (const { op, inputs, output, attributes } of model.nodes) {
    if (!OPERATIONS[op]) throw new Error(`no rule for ${op}`);
    const operands = inputs.map((name, k) => values.get(name) ??
      weightOf(model.weights.get(name), op, values.get(inputs[1 - k]), columnCount));
    const plain = op === 'Slice' ? [operands[0], operands[1].v, operands[2].v] : operands;
    values.set(output, OPERATIONS[op](plain, attributes));
  }
  return Object.fromEntries(outputs.map((name) => [name, values.get(name)]));
}
