// Builds F2 from the rows of letter.csv on a phimapd and maps the first of them.
//   npm install --prefix client/node && node client/node/letter.mjs [SERVER]
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const root = fileURLToPath(new URL('../..', import.meta.url));
const protos = ['mapping_service', 'transform_service'].map((name) => `phimap/v1/${name}.proto`);
const { v1 } = grpc.loadPackageDefinition(
  loader.loadSync(protos, { includeDirs: [`${root}/proto`], keepCase: true, longs: Number, oneofs: true })).phimap;

const server = process.argv[2] ?? '127.0.0.1:7450';
const options = { 'grpc.enable_http_proxy': 0, 'grpc.max_receive_message_length': 64 << 20 };
const mappings = new v1.MappingService(server, grpc.credentials.createInsecure(), options);
const transforms = new v1.TransformService(server, grpc.credentials.createInsecure(), options);

// The last column is the label, which no mapping sees.
const rows = readFileSync(`${root}/lab/data/letter.csv`, 'utf8').trim().split('\n').slice(1)
  .map((line) => Float32Array.from(line.split(',').slice(0, -1), Number));

// Returns rows as bytes of float32, little-endian as on every processor that Node.js runs on.
function dense(block) {
  const values = Buffer.concat(block.map((row) => Buffer.from(row.buffer)));
  return { dense: { rows: block.length, columns: block[0].length, float32_le: values } };
}

// Returns the text of a spec, in which the server reads back exactly these numbers.
function specText(family, parameters) {
  return `${family}(${Object.entries(parameters).map(([name, value]) => `${name}=${value}`).join(', ')})`;
}

const version = await new Promise((resolve, reject) => {
  const call = mappings.Build();
  call.on('data', (event) => event.version && resolve(event.version));
  call.on('error', reject);
  call.on('end', () => reject(new Error('the server ended the build without a version')));
  call.write({ spec: { name: 'letters-node', build_id: randomUUID(), spec: specText('f2', { landmarks: 100 }),
    kernel: 'rbf(gamma=scale)', standardize: true } });
  for (let i = 0; i < rows.length; i += 5000) call.write({ examples: dense(rows.slice(i, i + 5000)) });
  call.write({ finish: { row_count: rows.length } });
  call.end();
});

const request = { reference: `letters-node@${version.ref.number}`, examples: dense(rows.slice(0, 10)) };
const { features } = await new Promise((resolve, reject) => {
  transforms.Transform(request, (error, answer) => (error ? reject(error) : resolve(answer)));
});
const bytes = Buffer.from(features.float32_le);
console.log(`letters-node@${version.ref.number}: ${features.rows} rows × ${features.columns} features, the first`,
  bytes.readFloatLE(0));
