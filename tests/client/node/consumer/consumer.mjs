// A program that uses the installed package, without types. Prints one line.
import { Client, NotFound, referenceTo } from 'phimap';

const client = new Client();
const rows = { values: Float64Array.from({ length: 200 }, (_, i) => Math.sin(i)), columns: 2 };
const version = await client.build('consumer', rows, { spec: 'f2(landmarks=7)', kernel: 'rbf(gamma=1)' });
const { features, columns } = await client.transform(referenceTo(version), rows);
const missing = await client.getMapping('nothing').catch((error) => error);
console.log(
  referenceTo(version),
  columns,
  features.length,
  features instanceof Float32Array,
  missing instanceof NotFound,
);
client.close();
