// Reads an ONNX model into objects, by the field numbers of the ONNX format (https://onnx.ai, onnx.proto). ONNX Runtime
// shows neither the opset nor the metadata nor the weights of a model, and the test needs all three.
import { readFileSync } from 'node:fs';

const one = (key, kind) => ({ key, kind, many: false });
const many = (key, kind) => ({ key, kind, many: true });

// The fields that are read of each message, by number.
const FIELDS = {
  model: { 1: one('irVersion', 'integer'), 7: one('graph', 'graph'), 8: many('opsets', 'opset'), 14: many('metadata', 'entry') },
  opset: { 1: one('domain', 'text'), 2: one('version', 'integer') },
  entry: { 1: one('key', 'text'), 2: one('value', 'text') },
  graph: { 1: many('nodes', 'node'), 5: many('weights', 'tensor') },
  node: { 1: many('inputs', 'text'), 2: many('outputs', 'text'), 4: one('op', 'text'), 5: many('attributes', 'attribute') },
  attribute: { 1: one('name', 'text'), 3: one('integer', 'integer') },
  tensor: { 1: many('shape', 'integers'), 2: one('type', 'integer'), 6: many('texts', 'text'), 8: one('name', 'text'), 9: one('raw', 'bytes') },
};
const TYPES = { 1: 'float32', 7: 'int64', 8: 'string', 11: 'float64' };

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  get done() { return this.at === this.bytes.length; }

  integer() {
    let number = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      number |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(BigInt.asIntN(64, number));
    }
  }

  piece(size) {
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }
}

function valueOf(kind, wire) {
  if (typeof wire === 'number') return kind === 'integers' ? [wire] : wire;
  if (kind === 'bytes') return wire;
  if (kind === 'text') return wire.toString();
  if (kind !== 'integers') return messageOf(kind, wire);
  const reader = new Reader(wire);
  const integers = [];
  while (!reader.done) integers.push(reader.integer());
  return integers;
}

function messageOf(kind, bytes) {
  const fields = FIELDS[kind];
  const message = {};
  for (const { key, many: repeated } of Object.values(fields)) if (repeated) message[key] = [];
  const reader = new Reader(bytes);
  while (!reader.done) {
    const tag = reader.integer();
    const wireType = tag & 7;
    let wire;
    if (wireType === 0) wire = reader.integer();
    else if (wireType === 2) wire = reader.piece(reader.integer());
    else wire = reader.piece(wireType === 1 ? 8 : 4);
    const field = fields[tag >> 3];
    if (!field) continue;
    const value = valueOf(field.kind, wire);
    if (field.many) message[field.key] = message[field.key].concat(value);
    else message[field.key] = value;
  }
  return message;
}

function numbersOf({ type, raw, texts }) {
  if (TYPES[type] === 'string') return texts;
  const bytes = new Uint8Array(raw).buffer; // a copy, which begins where numbers of 8 bytes may
  if (TYPES[type] === 'float32') return Float64Array.from(new Float32Array(bytes));
  if (TYPES[type] === 'float64') return new Float64Array(bytes);
  return Array.from(new BigInt64Array(bytes), Number);
}

// Returns { irVersion, opsets, metadata, nodes, weights }: metadata by key; nodes in the order of the file with their
// attributes by name; weights by name as { shape, type, numbers }.
export function readModel(file) {
  const { irVersion, opsets, metadata, graph } = messageOf('model', readFileSync(file));
  return {
    irVersion,
    opsets,
    metadata: Object.fromEntries(metadata.map(({ key, value }) => [key, value])),
    nodes: graph.nodes.map(({ op, inputs, outputs, attributes }) => ({
      op, inputs, output: outputs[0], attributes: Object.fromEntries(attributes.map(({ name, integer }) => [name, integer ?? 0])) })),
    weights: new Map(graph.weights.map((tensor) =>
      [tensor.name, { shape: tensor.shape, type: TYPES[tensor.type], numbers: numbersOf(tensor) }])),
  };
}
