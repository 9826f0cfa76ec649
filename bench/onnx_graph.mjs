// Writes F1, F2 and F3 of an rbf kernel, and random Fourier features, as ONNX models, byte by byte. Has only the part
// of ONNX's protobuf that these models need. The names and numbers of fields in the comments below are those of
// onnx/onnx.proto in ONNX 1.12.

const FLOAT = 1;
const INT64 = 7;

function varint(number) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(number));
  while (rest >= 128n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

// Functions that encode a field: a number, or anything with a length.
const whole = (field, number) => Buffer.concat([varint(field << 3), varint(number)]);
const bytes = (field, value) => {
  const data = Buffer.from(value);
  return Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);
};
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));
const float32 = (field, number) => {
  const data = Buffer.alloc(4);
  data.writeFloatLE(number);
  return Buffer.concat([varint((field << 3) | 5), data]);
};

// A TensorProto among the initializers of a GraphProto (field 5). Its fields: dims 1, data_type 2, name 8, raw_data
// 9.
function tensor(name, dims, array) {
  const type = array instanceof Float32Array ? FLOAT : INT64;
  const raw = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  return message(5, ...dims.map((d) => whole(1, d)), whole(2, type), bytes(8, name), bytes(9, raw));
}

// An AttributeProto. Its fields: name 1, f 2, i 3, type 20 (FLOAT = 1, INT = 2).
const floatAttribute = (name, value) => message(5, bytes(1, name), float32(2, value), whole(20, 1));
const intAttribute = (name, value) => message(5, bytes(1, name), whole(3, value), whole(20, 2));

// A NodeProto (field 1 of the graph). Its fields: input 1, output 2, op_type 4, attribute 5.
function node(op, inputs, output, ...attributes) {
  return message(1, ...inputs.map((name) => bytes(1, name)), bytes(2, output), bytes(4, op), ...attributes);
}

// The ValueInfoProto of a float matrix. Its fields: name 1, type 2 { tensor_type 1 { elem_type 1, shape 2 { dim 1 {
// dim_value 1 }}}}.
function matrix(field, name, rows, columns) {
  const shape = message(2, message(1, whole(1, rows)), message(1, whole(1, columns)));
  return message(field, bytes(1, name), message(2, message(1, whole(1, FLOAT), shape)));
}

// A ModelProto. Its fields: ir_version 1, graph 7, opset_import 8 { version 2 }. Fields of the GraphProto: name 2,
// input 11, output 12.
function model(rows, inputs, outputs, ...parts) {
  const graph = [...parts, bytes(2, 'mapping'), matrix(11, 'x', rows, inputs), matrix(12, 'y', rows, outputs)];
  return Buffer.concat([whole(1, 7), message(7, ...graph), message(8, whole(2, 13))]);
}

function randomMatrix(rows, columns, scale, element = () => true) {
  const values = new Float32Array(rows * columns);
  for (let i = 0; i < rows; ++i) {
    for (let j = 0; j < columns; ++j) {
      if (element(i, j)) values[i * columns + j] = (Math.random() * 2 - 1) * Math.sqrt(3) * scale;
    }
  }
  return values;
}

// The features exp(−γ‖x − a_j‖²), then multiplied by W if there is one. The graph has as few nodes as possible. One
// Gemm computes 2γ x·a_j − γ‖a_j‖². The other nodes compute γ‖x‖², a subtraction, a clamp at 0 and the exponential.
export function mappingModel({rows, inputs, landmarks, outputs, w, elementwise}) {
  if (elementwise === 'cos') return cosineModel({rows, inputs, outputs});
  const gamma = 1 / inputs;
  const a = randomMatrix(landmarks, inputs, 1);
  const norms = new Float32Array(landmarks);
  for (let j = 0; j < landmarks; ++j) {
    let sum = 0;
    for (let k = 0; k < inputs; ++k) sum += a[j * inputs + k] ** 2;
    norms[j] = -gamma * sum;
  }
  const last = w === 'none' ? 'y' : 'z';
  const parts = [
    node('Gemm', ['x', 'a', 'norms'], 'products', floatAttribute('alpha', 2 * gamma), intAttribute('transB', 1)),
    node('Mul', ['x', 'x'], 'squares'),
    node('ReduceSum', ['squares', 'axis'], 'own', intAttribute('keepdims', 1)),
    node('Mul', ['own', 'gamma'], 'scaled'),
    node('Sub', ['products', 'scaled'], 'exponent'),
    node('Min', ['exponent', 'zero'], 'clamped'),
    node('Exp', ['clamped'], last),
    tensor('a', [landmarks, inputs], a),
    tensor('norms', [landmarks], norms),
    tensor('axis', [1], new BigInt64Array([1n])),
    tensor('gamma', [], new Float32Array([gamma])),
    tensor('zero', [], new Float32Array([0])),
  ];
  if (w !== 'none') {
    const element = w === 'triangular' ? (k, j) => k <= j : () => true;
    parts.push(node('MatMul', ['z', 'w'], 'y'));
    parts.push(tensor('w', [landmarks, outputs], randomMatrix(landmarks, outputs, 1 / Math.sqrt(landmarks), element)));
  }
  return model(rows, inputs, outputs, ...parts);
}

// The features cos(x·a_j), without W.
function cosineModel({rows, inputs, outputs}) {
  return model(rows, inputs, outputs, node('Gemm', ['x', 'a'], 'products', intAttribute('transB', 1)),
               node('Cos', ['products'], 'y'), tensor('a', [outputs, inputs], randomMatrix(outputs, inputs, 1)));
}

// A graph with equal input and output shapes and no arithmetic, whose time is the cost of a session.run by itself.
// The inputs are repeated until they are as long as the features, so that an output of that size is allocated and
// written here too.
export function identityModel({rows, inputs, outputs}) {
  const repeats = new BigInt64Array([1n, BigInt(outputs / inputs)]);
  return model(rows, inputs, outputs, node('Tile', ['x', 'repeats'], 'y'), tensor('repeats', [2], repeats));
}
