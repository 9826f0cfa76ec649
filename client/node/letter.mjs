// Builds F2 from the rows of letter.csv on a phimapd and maps the first of them.
//   npm install --prefix client/node && node client/node/letter.mjs [SERVER]
import { readFileSync } from 'node:fs';
import { Client, referenceTo, specText } from 'phimap';

// The last column is the label, which no mapping sees.
const file = new URL('../../lab/data/letter.csv', import.meta.url);
const rows = readFileSync(file, 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => Float32Array.from(line.split(',').slice(0, -1), Number));

const client = new Client(process.argv[2]);
const version = await client.build('letters-node', rows, {
  spec: specText('f2', { landmarks: 100 }),
  kernel: 'rbf(gamma=scale)',
  standardize: true,
});
const { features, rows: count, columns } = await client.transform(referenceTo(version), rows.slice(0, 10));
console.log(`${referenceTo(version)}: ${count} rows × ${columns} features, the first`, features[0]);
client.close();
