// Uses each method with its types. It is compiled with --strict, and not run.
import {
  Client, InvalidArgument, PhimapError, Reason, referenceTo, specText,
  type Certificate, type Features, type Matrix, type Prediction, type Rows, type Version, type VersionRef,
} from 'phimap';

declare const rows: AsyncIterable<Float32Array>;
const client = new Client(['127.0.0.1:7450'], { token: 't', tls: { caFile: 'ca.pem' }, channels: 2 });
const abort = new AbortController();

const version: Version = await client.build('letters', rows, {
  spec: specText('f2', { landmarks: 500 }), kernel: 'rbf(gamma=scale)', standardize: true, seed: 2n ** 63n, ttlMs: 60_000, signal: abort.signal,
  progress: ({ phase, fraction, job }) => console.log(phase, fraction ?? 0, job?.secondsLeft),
});
const ref: VersionRef | null = version.ref;
const certificate: Certificate | null = version.certificate;
const error: number | undefined = certificate?.kernelError?.mean;
const seed: bigint | null = version.seed;
const created: Date | null = version.createTime;
const columns: Matrix | undefined | null = certificate?.selfCheck?.rows;
const grade: string | undefined = certificate?.verdict?.grade;
const reference: string = referenceTo(version);

const { features, residuals }: Features = await client.transform(reference, [[1, 2, 3]], { residual: true, timeoutMs: 1000 });
const total: number = (features[0] ?? 0) + (residuals?.[0] ?? 0);
for await (const block of client.transformStream(reference, [new Float32Array(3)], { window: 2 })) console.log(block.rows);
for await (const block of client.predictStream(reference, 'a text', { probabilities: true })) console.log(block.labels);
const prediction: Prediction = await client.predict(reference, [Buffer.from('bytes')], { confidence: 0.9 });
const trained: Version = await client.train(reference, rows, ['a', 1], { task: 'classes', weights: [1, 2], parts: ['train', null] });
const tuned: Version = await client.tune('letters', rows, ['a'], { budgetMs: 1000 });
const { errorLow } = await client.evaluate(reference, rows, ['a'], { folds: 3 });
const memory: number = (await client.estimateBuild('letters', 100, 3, { spec: 'f2', kernel: 'linear' })).peakMemoryBytes;
const states: string[] = (await client.listBuilds()).map(({ state }) => state);
const job = await client.getBuild('letters', 'id');
const ended: boolean = (await client.cancelBuild('letters', job.buildId)).state === 'cancelled';
const aliases: string[] = (await client.getMapping('letters')).aliases.map(({ name }) => name);
const names: string[] = (await client.listMappings()).map(({ name }) => name);
const numbers: (number | undefined)[] = (await client.listVersions('letters')).map((each) => each.ref?.number);
const shift: number | null | undefined = (await client.getDrift('letters')).aliases[0]?.shift;
const healthy: boolean = await client.checkHealth('phimap.v1.TransformService', { timeoutMs: 100 });
const advice: string = (await client.advise({ margin: 0.1, error: 0.1, confidence: 0.9 })).toDo;
const least: number | null | undefined = (await client.listCapabilities()).families[0]?.parameters[0]?.least;
const moved: number = (await client.setAlias('letters@1', 'prod', { etag: 'none' })).version;
await client.rollBackAlias('letters', 'prod');
await client.keepVersion('letters@1', { ttlMs: 60_000 });
await client.deleteAlias('letters', 'prod', { etag: '*' });
await client.deleteVersion('letters@1', { giveUpRollback: true });
await client.deleteMapping('letters', { onlyIfEmpty: true });
await client.export('letters@1', new URL('file:///tmp/artifact'));
await client.import('letters', new Uint8Array(3));
client.unpin('letters');
const pinned: Map<string, VersionRef> = client.pinned;
const target: string = client.server;
const sparse: Rows = { rowOffsets: [0, 1], columnIndices: [0], values: [1], columns: 3 };

try {
  client.close();
} catch (failure) {
  if (failure instanceof InvalidArgument && failure.reason === Reason.COLUMNS_MISMATCH) console.log(failure.field, failure.row, failure.metadata.expected);
  if (failure instanceof PhimapError && failure.code === 'UNAVAILABLE') console.log(failure.retryDelayMs);
}

// What the types must refuse.
// @ts-expect-error a build needs a spec
await client.build('letters', rows, { kernel: 'linear' });
// @ts-expect-error rows are not a number
await client.transform('letters', 7);
// @ts-expect-error a code that gRPC does not have
const wrong: boolean = (null as unknown as PhimapError).code === 'LOST';
// @ts-expect-error a task that there is not
await client.train('letters', rows, ['a'], { task: 'ranks' });
// @ts-expect-error a certificate may be absent
const certain: number = version.certificate.landmarks;

export { advice, aliases, certain, columns, created, ended, error, errorLow, grade, healthy, least, memory, moved, names, numbers, pinned, prediction, ref, seed, shift, sparse, states, target, total, trained, tuned, wrong };
