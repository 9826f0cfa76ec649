// The hash that stands for the names of columns in a request (TransformRequest.column_names_hash).
import { createHash } from 'node:crypto';
import { unsignedField } from './numbers.js';

/** Returns the hash as a field; 0, with which nothing is checked, if there are no names. */
export function columnNamesHash(names = []) {
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string'))
    throw new TypeError('columnNames: expected a list of texts');
  if (names.length === 0) return unsignedField(0n);
  const hash = createHash('sha256');
  for (const name of names) {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(Buffer.byteLength(name));
    hash.update(length).update(name);
  }
  return unsignedField(hash.digest().readBigUInt64LE() || 1n);
}
