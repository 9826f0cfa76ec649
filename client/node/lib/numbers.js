// Numbers of 64 bits, and arrays of floats as the bytes of messages.
import { endianness } from 'node:os';

const LITTLE_ENDIAN = endianness() === 'LE';

/** Returns a signed 64-bit field of a message as a number. RangeError if a number cannot hold it exactly. */
export function safeNumber(value, name) {
  const number = typeof value === 'number' ? value : value.toNumber();
  if (!Number.isSafeInteger(number))
    throw new RangeError(`${name}: ${value} is beyond the integers that a number holds exactly`);
  return number;
}

/** Returns an unsigned 64-bit field of a message as a bigint. */
export function bigintOf(value) {
  return BigInt(value.toString());
}

/** Returns a bigint of 0..2^64-1 as protobufjs takes it for a field. */
export function unsignedField(value) {
  return { low: Number(value & 0xffffffffn), high: Number(value >> 32n), unsigned: true };
}

/** Returns the argument `seed` as a field. RangeError if it is not an integer of 0..2^64-1 that the argument holds exactly. */
export function seedField(seed) {
  const exact = typeof seed === 'bigint' || Number.isSafeInteger(seed);
  if (!exact || seed < 0 || BigInt(seed) >= 1n << 64n) {
    throw new RangeError(`seed: expected an integer from 0 to 2^53 - 1, or a bigint up to 2^64 - 1, got ${seed}`);
  }
  return unsignedField(BigInt(seed));
}

/** Returns the argument `name` as a count. RangeError if it is not a safe integer of at least `least`. */
export function countOf(name, value, least = 0) {
  if (!Number.isSafeInteger(value) || value < least)
    throw new RangeError(`${name}: expected an integer of at least ${least}, got ${value}`);
  return value;
}

/** Returns the little-endian bytes of a typed array: its own memory where the processor is little-endian, else a copy. */
export function bytesOf(values, littleEndian = LITTLE_ENDIAN) {
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return littleEndian ? bytes : swapped(Buffer.from(bytes), values.BYTES_PER_ELEMENT);
}

/**
 * Returns a typed array of class `Values` with the numbers in little-endian `bytes`, copied once: in a message they are
 * seldom aligned, and a view would keep the whole message in memory.
 */
export function valuesOf(bytes, Values, littleEndian = LITTLE_ENDIAN) {
  const values = new Values(bytes.length / Values.BYTES_PER_ELEMENT);
  const own = Buffer.from(values.buffer);
  own.set(bytes);
  if (!littleEndian) swapped(own, Values.BYTES_PER_ELEMENT);
  return values;
}

function swapped(bytes, size) {
  return size === 8 ? bytes.swap64() : bytes.swap32();
}
