import type { Readable, Writable } from 'node:stream';
import type {
  Advice, Alias, AuditEntry, BuildEstimate, BuildJob, Capabilities, Drift, Evaluation, Mapping, Matrix, Version, VersionRef,
} from './messages.js';

export * from './messages.js';

/** One row: a typed array of floats, or a list of numbers. A Uint8Array is not a row, but an example of bytes. */
export type Row = Float32Array | Float64Array | readonly number[];

/** Rows in one array, row by row. */
export interface MatrixInput {
  values: Float32Array | Float64Array | readonly number[];
  columns: number;
  rows?: number;
}

/** Rows in compressed sparse row form. */
export interface SparseInput {
  /** rows + 1 offsets into columnIndices, from 0 to their number. */
  rowOffsets: ArrayLike<number> | ArrayLike<bigint>;
  columnIndices: Int32Array | readonly number[];
  values: Float32Array | Float64Array | readonly number[];
  columns: number;
}

/**
 * Rows in memory. Float32Array travels as float32, Float64Array and lists of numbers as float64. Texts and Uint8Arrays (Buffers)
 * are examples for kernels of strings.
 */
export type Block = MatrixInput | SparseInput | Row | readonly Row[] | string | readonly string[] | Uint8Array | readonly Uint8Array[];

/** Rows in memory, or an iterable of rows or of blocks, which is read once, while the rows are sent. */
export type Rows = Block | AsyncIterable<Block> | Iterable<Block>;

/** A label of a row. A number is sent as the text that JavaScript writes, which is read back exactly. */
export type Label = string | number | bigint | boolean;

export interface CallOptions {
  /** Milliseconds for the whole call. Without it, the service config's timeout. */
  timeoutMs?: number;
  /** Ends the call, which then throws the signal's reason. A build is cancelled on the server too. */
  signal?: AbortSignal;
}

/** One step of a call. */
export interface Progress {
  /** "sending", "transforming" or "predicting", and then what a build is doing on the server: "queued", "gram", "factor", "learn" … */
  phase: string;
  /** Rows that were sent or answered so far; from 0 again if rows are sent again. */
  rows: number;
  /** Rows of the input; null if it is an iterable. */
  totalRows: number | null;
  /** Finished share of the phase, 0..1; null if it is not known. */
  fraction: number | null;
  /** The server's latest report on a build; null for other calls, and before the first report. */
  job: BuildJob | null;
}

export interface ProgressOptions {
  /** Called at each step. An error that it throws ends the call. */
  progress?: (progress: Progress) => void;
}

export interface SpecOptions {
  /** The family and its parameters, such as "f2(landmarks=500)"; see specText. */
  spec: string;
  /** The kernel's text, such as "rbf(gamma=scale)". Without it, the family's default. */
  kernel?: string;
  /** Shifts and scales each column to mean 0 and variance 1, as measured over the rows. */
  standardize?: boolean;
}

export interface VersionOptions {
  /** Seed of all random choices, 0..2^64-1: an integer that a number holds exactly, or a bigint. */
  seed?: number | bigint;
  /** A UUID; without it, one is drawn. If the server knows a build with this id, follows that build. */
  buildId?: string;
  /** How long the version lives after its last use, in milliseconds. Without it, for ever. */
  ttlMs?: number;
  /** Names of the columns, in their order. They are kept with the version. */
  columnNames?: readonly string[];
}

export interface BuildOptions extends SpecOptions, VersionOptions, CallOptions, ProgressOptions {}

export interface EstimateOptions extends SpecOptions, CallOptions {}

export interface RowOptions extends CallOptions, ProgressOptions {
  /** If set, a version with another digest is FailedPrecondition. */
  expectedDigest?: string;
  /** Names of the columns, in their order: InvalidArgument unless they are the version's, if it has any. */
  columnNames?: readonly string[];
}

export interface StreamOptions extends RowOptions {
  /** How many requests are sent ahead of the answers; 8 without it. */
  window?: number;
  /** Most rows of a request; without it, messages have about 1 MiB. */
  rowsPerRequest?: number;
}

export interface TransformOptions extends RowOptions {
  /** Whether to answer residuals and allowances too; for F2 only. */
  residual?: boolean;
}

/** The features of rows. The arrays belong to the caller. */
export interface Features {
  /** rows × columns numbers, row by row, in the version's serving type. */
  features: Float32Array | Float64Array;
  rows: number;
  columns: number;
  /** The version that answered. */
  version: VersionRef;
  /** If asked for, ρ(x) of each row: the part of K(x, x) that F2 cannot express. */
  residuals: Float64Array | null;
  /** If residuals were asked for, the allowance of each row for the rounding of its features. */
  allowances: Float64Array | null;
}

export interface PredictOptions extends RowOptions {
  scores?: boolean;
  /** Whether to answer a probability of each class. */
  probabilities?: boolean;
  /** A number in (0, 1): answers a set of classes or an interval for each row, which holds the truth with at least this probability. */
  confidence?: number;
  /** Whether to answer standard deviations; for numbers by ridge on F2. */
  deviations?: boolean;
}

/** What a head answers to rows. What was not asked for, and what the head does not have, is null. */
export interface Prediction {
  version: VersionRef;
  rows: number;
  /** For classes: their names, in the order of the columns of scores and probabilities. */
  classes: string[] | null;
  /** For classes: the name of each row's class. */
  labels: string[] | null;
  /** For classes: the place of each row's class among `classes`. */
  indices: Int32Array | null;
  /** For numbers: one a row, in the target's units. */
  values: Float64Array | null;
  /** One column for two classes, where over 0 means the second, and for numbers; else a column a class. */
  scores: Matrix<Float64Array> | null;
  /** A column a class. Each row adds up to 1. */
  probabilities: Matrix<Float64Array> | null;
  /** For classes, with a confidence: the names of the classes in each row's set. */
  sets: string[][] | null;
  /** For numbers, with a confidence: the ends of each row's interval. */
  lows: Float64Array | null;
  highs: Float64Array | null;
  /** The standard deviation of an observation of the target at each row. */
  deviations: Float64Array | null;
}

export interface EvaluateOptions extends RowOptions {
  /** Such as "linear_svm(C=1)". Without it, the server's default. */
  learner?: string;
  /** Share of the rows that is held out for the test. */
  heldOut?: number;
  /** Number of folds of a cross-validation, which together test every row. */
  folds?: number;
  seed?: number | bigint;
  /** Confidence of the error's interval and of the margins for future rows; 0.95 without it. */
  confidence?: number;
}

export type Part = 'train' | 'validate' | 'calibrate-link' | 'calibrate-sets' | 'test';

export interface LearnOptions extends VersionOptions, CallOptions, ProgressOptions {
  /** Such as "ridge(alpha=auto)", "logistic(C=1)" or "svr(C=1, epsilon=0.1)". */
  learner?: string;
  /** Without it, the labels tell, or it is InvalidArgument. */
  task?: 'classes' | 'numbers';
  /** A weight of each row, over 0. */
  weights?: Iterable<number>;
  /** Rows of equal groups are in one part. */
  groups?: Iterable<Label | null>;
  /** What each row is used for. */
  parts?: Iterable<Part | null>;
}

export interface TrainOptions extends LearnOptions, Partial<SpecOptions> {
  /** With `spec`: whether a length scale of each column is learned from the labels. */
  learnScales?: boolean;
  expectedDigest?: string;
}

export interface TuneOptions extends LearnOptions {
  /** Milliseconds for all trials and the version; ten minutes without it. */
  budgetMs?: number;
  maxLandmarks?: number;
}

/** Settings of TLS. PEM texts are given themselves, or as the paths of their files. */
export interface Tls {
  /** Authorities that may sign the server's TLS certificate. Without them, those of Node.js. */
  ca?: string | Uint8Array;
  caFile?: string;
  /** The client's own TLS certificate and key, for a server that requires them. */
  cert?: string | Uint8Array;
  certFile?: string;
  key?: string | Uint8Array;
  keyFile?: string;
  /** Host name that the server's TLS certificate must match, in place of the address's. */
  serverName?: string;
}

export interface ClientOptions {
  /** Sent with each call. Without it, PHIMAP_TOKEN of the environment. Refused unless the connection uses TLS or stays on this machine. */
  token?: string;
  /** A file with the token, which may change while the client runs. */
  tokenFile?: string;
  /** Without it, PHIMAP_TLS_CA, PHIMAP_TLS_CERTIFICATE, PHIMAP_TLS_KEY and PHIMAP_TLS_SERVER_NAME of the environment. */
  tls?: Tls;
  /** Number of connections, 1..64. */
  channels?: number;
  /** Timeouts and retries of all calls, as a gRPC service config. Without it, lib/service_config.json of the package. */
  serviceConfig?: string | object;
  /** Further options of gRPC's channels. */
  channelOptions?: Record<string, string | number>;
}

/**
 * A client of one phimapd, or of several with the same versions.
 *
 * A bare name ("letters") is pinned: as long as the client lives, it means the version that it meant first. "letters@3" is version
 * 3, "letters@sha256:0123456…" the version whose artifact has this digest (at least 7 digits), and "letters@prod" the version that
 * the alias names when the call is made.
 *
 * Calls throw PhimapError. A call that may be repeated is repeated as the service config says; a change carries an id, so that it
 * is made once, however often it is sent.
 */
export declare class Client {
  /**
   * `server` is "HOST:PORT" or "unix:PATH"; without it, PHIMAP_SERVER of the environment, or 127.0.0.1:7450. Several servers are a
   * list of ADDRESS:PORT, or "dns:///HOST:PORT", and take the calls in turn. Proxies of the environment are ignored.
   */
  constructor(server?: string | readonly string[], options?: ClientOptions);
  /** The target, in gRPC's syntax. */
  readonly server: string;
  /** Closes the connections. Later calls fail. */
  close(): void;

  /** Builds a version of the mapping `name` from unlabeled rows, and returns it with its certificate. */
  build(name: string, rows: Rows, options: BuildOptions): Promise<Version>;
  /** Estimates the cost of a `build` from so many rows and columns. */
  estimateBuild(name: string, rows: number, columns: number, options: EstimateOptions): Promise<BuildEstimate>;
  getBuild(name: string, buildId: string, options?: CallOptions): Promise<BuildJob>;
  /** Cancels a build or a training and returns it. One that has finished is returned unchanged. */
  cancelBuild(name: string, buildId: string, options?: CallOptions): Promise<BuildJob>;
  /** Returns the builds that the server knows, newest first: of one mapping, or of all. */
  listBuilds(name?: string, options?: CallOptions): Promise<BuildJob[]>;

  /** Returns the features of `rows`. More rows than fit into one message are sent over one stream; one version maps all. */
  transform(reference: string, rows: Rows, options?: TransformOptions): Promise<Features>;
  /** Yields the features of `rows` block by block, in order. Rows are read while the features are consumed, up to `window` requests ahead. */
  transformStream(reference: string, rows: Rows, options?: TransformOptions & StreamOptions): AsyncGenerator<Features, void, undefined>;

  /** Trains a learner on labeled rows mapped by one version, tests it on others, and measures margins. Nothing is stored. */
  evaluate(reference: string, rows: Rows, labels: Iterable<Label>, options?: EvaluateOptions): Promise<Evaluation>;
  /**
   * Trains a head on a version, and returns the next version of the same name: the same features and the head, with which `predict`
   * answers. With `spec`, builds the features first, from those of these rows that are trained on.
   */
  train(reference: string, rows: Rows, labels: Iterable<Label>, options?: TrainOptions): Promise<Version>;
  /** Chooses kernel, length scales, landmarks and learner by labeled rows, and returns the version that is trained with them. */
  tune(name: string, rows: Rows, labels: Iterable<Label>, options?: TuneOptions): Promise<Version>;
  /** Returns the classes or numbers that a version with a head answers to `rows`. */
  predict(reference: string, rows: Rows, options?: PredictOptions): Promise<Prediction>;
  /** Yields the predictions of `rows` block by block, in order. */
  predictStream(reference: string, rows: Rows, options?: PredictOptions & StreamOptions): AsyncGenerator<Prediction, void, undefined>;
  /** Forgets which version a name means: the next call finds the newest. */
  unpin(name: string): void;
  /** The names that were used, each with the version that it is pinned to. */
  readonly pinned: Map<string, VersionRef>;

  listMappings(options?: CallOptions): Promise<Mapping[]>;
  getMapping(name: string, options?: CallOptions): Promise<Mapping>;
  /** Returns all versions of a mapping, newest first, without certificates. */
  listVersions(name: string, options?: CallOptions): Promise<Version[]>;
  /** Returns one version with its certificate. A bare name that is not pinned means the newest, and is not pinned by this call. */
  getVersion(reference: string, options?: CallOptions): Promise<Version>;
  /** Returns the families, kernels, policies and learners that the server offers, each with its parameters. */
  listCapabilities(options?: CallOptions): Promise<Capabilities>;
  /** Returns, for each alias of a mapping, the evidence that served rows differ from those that its version was built from. */
  getDrift(name: string, options?: CallOptions): Promise<Drift>;
  /**
   * Returns who changed what and what was refused, newest first: of one mapping or of all, by one caller or by anyone, from
   * `startTime` and before `endTime`. Needs the role admin.
   */
  listAuditEntries(
    options?: { name?: string; principal?: string; startTime?: Date; endTime?: Date } & CallOptions,
  ): Promise<AuditEntry[]>;
  /** Returns whether the server serves `service`, or, without it, anything. Not repeated. */
  checkHealth(service?: string, options?: CallOptions): Promise<boolean>;
  /** Returns the landmarks and dimensions that suffice, by every theorem of the papers. */
  advise(request: {
    margin: number; error: number; confidence: number; alpha?: number; points?: number; classes?: number; distortion?: number; kernelError?: number;
  }, options?: CallOptions): Promise<Advice>;

  /**
   * Points an alias at a version, "letters@3" or "letters@sha256:…". `etag`: "*" only if the alias exists, "none" only if it does
   * not, another text only if the alias has that etag; else Aborted, with the current etag in `metadata.etag`.
   */
  setAlias(reference: string, alias: string, options?: CallOptions & { etag?: string }): Promise<Alias>;
  /** Points an alias back at its previous version; a second call undoes the first. */
  rollBackAlias(name: string, alias: string, options?: CallOptions): Promise<Alias>;
  /** Lets a version live for ever or, with `ttlMs`, for that time after its last use. */
  keepVersion(reference: string, options?: CallOptions & { ttlMs?: number }): Promise<Version>;
  deleteAlias(name: string, alias: string, options?: CallOptions & { etag?: string }): Promise<void>;
  /** Deletes one version; its number is never used again. */
  deleteVersion(reference: string, options?: CallOptions & { giveUpRollback?: boolean }): Promise<void>;
  /** Deletes a mapping with all its versions. */
  deleteMapping(name: string, options?: CallOptions & { onlyIfEmpty?: boolean }): Promise<void>;

  /** Writes a version's artifact, checked against its digest. A file at a path appears only if it is complete. */
  export(reference: string, file: string | URL | Writable, options?: CallOptions): Promise<VersionRef>;
  /** Stores an exported artifact as a new version of the mapping `name`. */
  import(name: string, file: string | URL | Uint8Array | Readable | AsyncIterable<Uint8Array>, options?: CallOptions): Promise<Version>;
}

export type Code =
  'CANCELLED' | 'UNKNOWN' | 'INVALID_ARGUMENT' | 'DEADLINE_EXCEEDED' | 'NOT_FOUND' | 'ALREADY_EXISTS' | 'PERMISSION_DENIED' | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION' | 'ABORTED' | 'OUT_OF_RANGE' | 'UNIMPLEMENTED' | 'INTERNAL' | 'UNAVAILABLE' | 'DATA_LOSS' | 'UNAUTHENTICATED';

/** An error of a call, with the server's own details. */
export declare class PhimapError extends Error {
  constructor(message: string, details?: {
    code?: Code; reason?: string; field?: string | null; row?: number | null; metadata?: Record<string, string>; retryDelayMs?: number | null;
  });
  /** The name of the canonical gRPC code. */
  readonly code: Code;
  /** A stable text for programs to switch on, such as Reason.ALIAS_NOT_FOUND; '' if the server gave none. */
  readonly reason: string;
  /** The argument at fault, or the parameter in its text ("gamma", "landmarks"), or its path in the request. */
  readonly field: string | null;
  /** Position in the input as it was given, from 0, over all messages. Without a row, `column` is a position in the text of `field`, from 1. */
  readonly row: number | null;
  readonly column: number | null;
  /** The limit that was exceeded: a number, or the server's text for it. */
  readonly limit: number | string | null;
  /** The numbers of the message in machine-readable form. */
  readonly metadata: Record<string, string>;
  /** Milliseconds after which the same call may succeed; null if waiting does not help. */
  readonly retryDelayMs: number | null;
}
export declare class Cancelled extends PhimapError {}
export declare class InvalidArgument extends PhimapError {}
export declare class DeadlineExceeded extends PhimapError {}
export declare class NotFound extends PhimapError {}
export declare class AlreadyExists extends PhimapError {}
export declare class PermissionDenied extends PhimapError {}
export declare class ResourceExhausted extends PhimapError {}
export declare class FailedPrecondition extends PhimapError {}
export declare class Aborted extends PhimapError {}
export declare class OutOfRange extends PhimapError {}
export declare class Unimplemented extends PhimapError {}
export declare class Internal extends PhimapError {}
export declare class Unavailable extends PhimapError {}
export declare class DataLoss extends PhimapError {}
export declare class Unauthenticated extends PhimapError {}

/** Returns text such as "letters@3" for a version, or for its `ref`. */
export declare function referenceTo(version: Version | VersionRef): string;

/** A value in the text of a spec: a number, which the server reads back exactly, a word, or a list of numbers. */
export type SpecValue = number | bigint | boolean | string | readonly number[] | Float32Array | Float64Array;

/** Returns the text of a spec, a kernel or a learner: "f2(landmarks=500, policy=kmeans)". What is undefined or null is left out. */
export declare function specText(name: string, parameters?: Record<string, SpecValue | null | undefined>): string;
