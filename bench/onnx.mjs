// Measures ONNX Runtime on the graphs of F1, F2, F3 and RFF, on one thread: the time of session.run minus the time of
// session.run on an identity graph of the same shapes.
//
//   node onnx.mjs --modules=FOLDER --json=FILE [--rounds=7] [--quick]
//
// FOLDER holds node_modules with onnxruntime-node (bench/setup).
import {writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {parseArgs} from 'node:util';
import {identityModel, mappingModel} from './onnx_graph.mjs';

const {values: options} = parseArgs({
  options: {
    modules: {type: 'string'},
    json: {type: 'string'},
    rounds: {type: 'string', default: '7'},
    quick: {type: 'boolean', default: false},
  },
});
const runtime = createRequire(resolve(options.modules, 'package.json'))('onnxruntime-node');

const INPUTS = 64;
const ROUND_MS = options.quick ? 1 : 20;
const ROUNDS = options.quick ? 1 : Number(options.rounds);
const LANDMARKS = options.quick ? [512] : [512, 2048, 4096];
const ROWS = options.quick ? [1, 32] : [1, 4, 16, 32, 256, 1024];

// F3 has an eighth as many features as landmarks, as in engine_bench.
const mappingsOf = (d) => [
  {mapping: 'F1', landmarks: d, outputs: d, w: 'none'},
  {mapping: 'F2', landmarks: d, outputs: d, w: 'triangular'},
  {mapping: 'F3', landmarks: d, outputs: d / 8, w: 'dense'},
  {mapping: 'RFF', landmarks: d, outputs: d, w: 'none', elementwise: 'cos'},
];

const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

function session(model) {
  return runtime.InferenceSession.create(model, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
  });
}

async function microsecondsOf(session, feeds, repeats) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < repeats; ++i) await session.run(feeds);
  return Number(process.hrtime.bigint() - start) / 1e3 / repeats;
}

async function repeatsOf(session, feeds) {
  await session.run(feeds);
  const once = await microsecondsOf(session, feeds, 3);
  return Math.max(1, Math.ceil((ROUND_MS * 1e3) / once));
}

const LEAST_LEFT = 2;

async function measure(shape) {
  const input = Float32Array.from({length: shape.rows * INPUTS}, () => Math.random() * 2 - 1);
  const feeds = {x: new runtime.Tensor('float32', input, [shape.rows, INPUTS])};
  const sessions = [await session(mappingModel(shape)), await session(identityModel(shape))];
  const repeats = [];
  for (const each of sessions) repeats.push(await repeatsOf(each, feeds));
  const times = [[], []];
  for (let round = 0; round < ROUNDS; ++round) {
    for (let i = 0; i < 2; ++i) {
      const turn = (i + round) % 2;
      await sessions[turn].run(feeds);
      times[turn].push(await microsecondsOf(sessions[turn], feeds, repeats[turn]));
    }
  }
  for (const each of sessions) await each.release();
  const [run_us, identity_us] = times.map(median);
  // The difference must be at least LEAST_LEFT times the subtracted time. Otherwise it would mostly show the noise of
  // that time.
  const left = run_us - identity_us;
  return {...shape, run_us, identity_us, onnx_us: left >= LEAST_LEFT * identity_us ? left : null};
}

const results = [];
console.log('ONNX Runtime, one thread    d  rows      run us identity us     onnx us');
for (const d of LANDMARKS) {
  for (const mapping of mappingsOf(d)) {
    for (const rows of ROWS) {
      const result = await measure({...mapping, rows, inputs: INPUTS});
      const columns = [result.run_us, result.identity_us, result.onnx_us].map(
          (us) => (us === null ? '-' : us.toFixed(2)).padStart(12));
      console.log(mapping.mapping.padEnd(23) + String(d).padStart(6) + String(rows).padStart(6) + columns.join(''));
      results.push({mapping: result.mapping, d, outputs: result.outputs, rows, run_us: result.run_us,
                    identity_us: result.identity_us, onnx_us: result.onnx_us});
    }
  }
}
if (options.json) writeFileSync(options.json, JSON.stringify({runtime: 'onnxruntime-node', results}, null, 1) + '\n');
