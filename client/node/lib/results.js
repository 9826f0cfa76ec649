// Messages of the API as the plain objects that calls return. tools/write_types.js writes their types by the same rules.
import { Internal } from './errors.js';
import { bigintOf, safeNumber, valuesOf } from './numbers.js';

/** Returns the name of a field in results: in camel case, with the unit of a duration. */
export function resultName(field) {
  const name = field.name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  return field.resolvedType?.fullName === '.google.protobuf.Duration' ? `${name}Ms` : name;
}

/** Returns the word for a value of an enum: "data set" for SUBJECT_DATA_SET, '' for the unspecified value. */
export function wordOf(type, number) {
  const value = type.valuesById[number];
  if (value === undefined) return String(number); // of a newer server
  const prefix = `${type.name.replace(/(?<!^)(?=[A-Z])/g, '_').toUpperCase()}_`;
  const word = value.replace(prefix, '').toLowerCase().replaceAll('_', ' ');
  return word === 'unspecified' ? '' : word;
}

/** Returns whether null stands for the field where the message does not have it. */
export function mayBeNull(field) {
  return !field.repeated && (field.partOf !== null || field.resolvedType?.fields !== undefined);
}

/**
 * Returns a message as a plain object: an enum is a word, a time a Date, a duration milliseconds, a signed integer of 64 bits a
 * number, which must be safe, and an unsigned one a bigint. What was not measured is null, never 0.
 */
export function resultOf(message) {
  const result = {};
  for (const field of message.$type.fieldsArray) {
    const value = message[field.name];
    const absent = !Object.hasOwn(message, field.name) || value === null;
    if (absent && mayBeNull(field)) result[resultName(field)] = null;
    else result[resultName(field)] = field.repeated ? value.map((each) => valueOf(field, each)) : valueOf(field, value);
  }
  return result;
}

function valueOf(field, value) {
  if (field.resolvedType?.values) return wordOf(field.resolvedType, value);
  switch (field.resolvedType?.fullName) {
    case undefined:
      break;
    case '.google.protobuf.Timestamp':
      return new Date(safeNumber(value.seconds, field.name) * 1000 + value.nanos / 1e6);
    case '.google.protobuf.Duration':
      return safeNumber(value.seconds, field.name) * 1000 + value.nanos / 1e6;
    case '.phimap.v1.DenseRows':
      return matrixOf(value);
    default:
      return resultOf(value);
  }
  if (field.type === 'int64') return safeNumber(value, field.name);
  if (field.type === 'uint64') return bigintOf(value);
  return value;
}

/** Returns DenseRows as a matrix. Internal unless it has as many values as it says. */
export function matrixOf({ rows, columns, values: kind, float32Le, float64Le }) {
  const [bytes, Values] = kind === 'float32Le' ? [float32Le, Float32Array] : [float64Le, Float64Array];
  if ((kind !== 'float32Le' && kind !== 'float64Le') || bytes.length !== rows * columns * Values.BYTES_PER_ELEMENT) {
    throw new Internal(
      `the server answered ${rows} × ${columns} numbers in ${bytes?.length ?? 0} bytes of ${kind ?? 'nothing'}`,
    );
  }
  return { rows, columns, values: valuesOf(bytes, Values) };
}
