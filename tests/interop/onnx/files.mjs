// Writes and reads the files that phimap takes and gives.
import { readFileSync, writeFileSync } from 'node:fs';

// Rows as CSV, with a header. Cells are numbers or texts without commas.
export function writeCsv(file, header, rows) {
  writeFileSync(file, [header, ...rows].map((row) => `${row.join(',')}\n`).join(''));
}

// Returns the columns of a CSV file by name, as texts.
export function readCsv(file) {
  const [header, ...rows] = readFileSync(file, 'utf8').trimEnd().split('\n').map((line) => line.split(','));
  return Object.fromEntries(header.map((name, k) => [name, rows.map((row) => row[k])]));
}

// Rows as npy, in float64.
export function writeNpy(file, rows) {
  const text = `{'descr': '<f8', 'fortran_order': False, 'shape': (${rows.length}, ${rows[0].length}), }`;
  const header = `${text.padEnd(117)}\n`; // with the 10 bytes before it, a multiple of 64 bytes
  const begin = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length, 0]);
  writeFileSync(file, Buffer.concat([begin, Buffer.from(header), Buffer.from(Float64Array.from(rows.flat()).buffer)]));
}

// Returns { type, shape, numbers } of an npy file of float32 or float64, which phimap writes.
export function readNpy(file) {
  const bytes = readFileSync(file);
  const end = 10 + bytes.readUInt16LE(8);
  const header = bytes.subarray(10, end).toString();
  const numbers = new Uint8Array(bytes.subarray(end)).buffer;
  const narrow = header.includes("'<f4'");
  return {
    type: narrow ? 'float32' : 'float64',
    shape: /\((\d+), (\d+)\)/.exec(header).slice(1).map(Number),
    numbers: narrow ? Float64Array.from(new Float32Array(numbers)) : new Float64Array(numbers),
  };
}
