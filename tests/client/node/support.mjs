// What the tests share: servers, the command line as the reference, rows, and a server that answers as a test says.
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import grpc from '@grpc/grpc-js';
import { METHODS } from '../lib/schema.js';

export const { PHIMAPD, PHIMAP, PHIMAP_SOURCE } = process.env;
const run = promisify(execFile);

/** Returns a new folder, which is removed when the test of `t` has ended. */
export function folderOf(t) {
  const folder = mkdtempSync(join(tmpdir(), 'phimap-node-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A phimapd, which a test may kill and start again. It also listens on a socket file, whose name stays the same. */
export class Phimapd {
  #flags;
  #process;

  constructor(folder, ...flags) {
    this.folder = folder;
    this.socket = `unix:${folder}/socket`;
    this.#flags = [
      `--data_dir=${folder}/store`,
      '--listen=127.0.0.1:0',
      `--unix_listen=${folder}/socket`,
      '--http=none',
      '--log_level=off',
      ...flags,
    ];
  }

  async start() {
    this.#process = spawn(PHIMAPD, this.#flags, { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: this.#process.stdout })) {
      const ready = /^phimapd ready: grpc=(\S+)/.exec(line);
      if (ready === null) throw new Error(`phimapd said: ${line}`);
      [, this.address] = ready;
      return this;
    }
    throw new Error('phimapd ended before it was ready');
  }

  async stop(signal = 'SIGKILL') {
    const ended = new Promise((resolve) => {
      this.#process.once('exit', resolve);
    });
    if (this.#process.exitCode === null && this.#process.signalCode === null && this.#process.kill(signal)) await ended;
  }
}

/** Starts a phimapd with a store of its own, which ends with the test. */
export async function phimapd(t, ...flags) {
  const folder = folderOf(t);
  const server = await new Phimapd(folder, ...flags).start();
  t.after(() => server.stop());
  return server;
}

/** Runs the command line and returns what it prints. */
export async function phimap(server, ...args) {
  const { stdout } = await run(PHIMAP, args, {
    env: { ...process.env, PHIMAP_SERVER: server, PHIMAP_TOKEN: '' },
    maxBuffer: 64 << 20,
  });
  return stdout;
}

/** Returns `count` rows of uniform numbers, as one array of class `Values`, by a congruential generator. */
export function matrix(count, columns, Values = Float64Array, seed = 1) {
  let state = BigInt(seed);
  const values = Values.from({ length: count * columns }, () => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number(state >> 11n) / 2 ** 53 - 0.5;
  });
  return { values, columns };
}

export function rowsOf({ values, columns }) {
  return Array.from({ length: values.length / columns }, (_, i) => values.slice(i * columns, (i + 1) * columns));
}

/** Writes rows to a CSV file, with a column `label` if there are labels. JavaScript's decimal forms are read back exactly. */
export function writeCsv(path, rows, labels) {
  const names = Array.from(rows[0], (_, i) => `x${i}`).concat(labels ? ['label'] : []);
  const lines = rows.map((row, i) => [...row, ...(labels ? [labels[i]] : [])].join(','));
  writeFileSync(path, `${[names.join(','), ...lines].join('\n')}\n`);
  return path;
}

/** Returns what the command line transforms rows into: the bytes of the features, and their number of columns. */
export async function transformed(server, reference, csv, ...flags) {
  const npy = `${csv}.features.npy`;
  await phimap(server, 'transform', reference, `--input=${csv}`, '-o', npy, ...flags);
  return npyContent(npy);
}

function npyContent(path) {
  const file = readFileSync(path);
  const begin = 10 + file.readUInt16LE(8);
  const header = file.toString('latin1', 10, begin);
  return {
    kind: /'descr': '([^']+)'/.exec(header)[1],
    columns: Number(/\(\d+, (\d+)\)/.exec(header)[1]),
    bytes: file.subarray(begin),
  };
}

export function bytesOf(values) {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}

/** Returns the error that a call throws. */
export async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('expected an error, got an answer');
}

/** The package's own retry policy, but with a backoff of 1 ms. */
export const NO_BACKOFF = {
  methodConfig: [
    {
      name: [{}],
      retryPolicy: {
        maxAttempts: 4,
        initialBackoff: '0.001s',
        maxBackoff: '0.001s',
        backoffMultiplier: 1,
        retryableStatusCodes: ['UNAVAILABLE'],
      },
    },
  ],
};

/**
 * Starts a server in this process that answers as `handlers` say, by the names of methods: a function of the request and the
 * metadata returns the answer, or throws an error of `refusal`. Streams get the call itself. `calls` has the names of all calls.
 */
export async function scriptedServer(t, handlers) {
  const server = new grpc.Server();
  const calls = [];
  const service = {};
  const implementation = {};
  for (const [name, handle] of Object.entries(handlers)) {
    const method = METHODS[name];
    const streams = ['Build', 'Train', 'Evaluate', 'TransformStream', 'PredictStream', 'Import'].includes(name);
    service[name] = {
      path: method.path,
      requestStream: streams,
      responseStream: streams || name === 'Export',
      requestDeserialize: (bytes) => method.request.decode(bytes),
      responseSerialize: (message) => method.answer.encode(message).finish(),
    };
    implementation[name] = (call, callback) => {
      calls.push({ name, metadata: call.metadata.getMap() });
      if (callback === undefined) {
        handle(call);
        return;
      }
      try {
        const { trailers, ...answer } = handle(call.request, call.metadata);
        callback(null, answer, trailers);
      } catch (error) {
        callback(error);
      }
    };
  }
  server.addService(service, implementation);
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', grpc.ServerCredentials.createInsecure());
  t.after(() => server.forceShutdown());
  return { address: `127.0.0.1:${port}`, calls };
}

/** Returns the error of a call, with trailing metadata. */
export function refusal(code, details = '', metadata = new grpc.Metadata()) {
  return Object.assign(new Error(details), { code, details, metadata });
}

/** Returns trailing metadata with the revision `text`. */
export function revision(text) {
  const trailers = new grpc.Metadata();
  trailers.set('phimap-revision', text);
  return trailers;
}
