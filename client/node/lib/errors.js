// Errors that a server reports: a class for each canonical gRPC code, and the server's own details.
import grpc from '@grpc/grpc-js';
import { enumOf, typeOf } from './schema.js';

const STATUS = typeOf('phimap.rpc.Status');
const DETAILS = new Map(
  ['BadRequest', 'ErrorInfo', 'RetryInfo'].map((name) => [`google.rpc.${name}`, typeOf(`phimap.rpc.${name}`)]),
);

/** Reasons that errors may have, as texts: `Reason.ALIAS_NOT_FOUND` is 'ALIAS_NOT_FOUND'. */
export const Reason = Object.freeze(
  Object.fromEntries(
    Object.keys(enumOf('phimap.v1.ErrorReason').values)
      .map((name) => name.replace('ERROR_REASON_', ''))
      .filter((name) => name !== 'UNSPECIFIED')
      .map((name) => [name, name]),
  ),
);

/** An error of a call. The types (index.d.ts) describe its properties. */
export class PhimapError extends Error {
  static code = 'UNKNOWN';

  constructor(message, { code, reason = '', field = null, row = null, metadata = {}, retryDelayMs = null } = {}) {
    super(message);
    this.code = code ?? this.constructor.code;
    this.reason = reason;
    this.field = field;
    this.metadata = { ...metadata };
    this.retryDelayMs = retryDelayMs;
    this.row = row ?? placeIn(metadata, ['stream_row', 'row'], /\brows\[(\d+)\]/, field);
    this.column = placeIn(metadata, ['column'], /\bcolumns\[(\d+)\]/, field);
    this.limit = limitOf(metadata.limit);
  }

  get name() {
    return this.constructor.name;
  }
}

export class Cancelled extends PhimapError {
  static code = 'CANCELLED';
}
export class InvalidArgument extends PhimapError {
  static code = 'INVALID_ARGUMENT';
}
export class DeadlineExceeded extends PhimapError {
  static code = 'DEADLINE_EXCEEDED';
}
export class NotFound extends PhimapError {
  static code = 'NOT_FOUND';
}
export class AlreadyExists extends PhimapError {
  static code = 'ALREADY_EXISTS';
}
export class PermissionDenied extends PhimapError {
  static code = 'PERMISSION_DENIED';
}
export class ResourceExhausted extends PhimapError {
  static code = 'RESOURCE_EXHAUSTED';
}
export class FailedPrecondition extends PhimapError {
  static code = 'FAILED_PRECONDITION';
}
export class Aborted extends PhimapError {
  static code = 'ABORTED';
}
export class OutOfRange extends PhimapError {
  static code = 'OUT_OF_RANGE';
}
export class Unimplemented extends PhimapError {
  static code = 'UNIMPLEMENTED';
}
export class Internal extends PhimapError {
  static code = 'INTERNAL';
}
export class Unavailable extends PhimapError {
  static code = 'UNAVAILABLE';
}
export class DataLoss extends PhimapError {
  static code = 'DATA_LOSS';
}
export class Unauthenticated extends PhimapError {
  static code = 'UNAUTHENTICATED';
}

const CLASSES = new Map(
  [
    Cancelled,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
  ].map((kind) => [kind.code, kind]),
);

function placeIn(metadata, keys, pattern, field) {
  const key = keys.find((each) => /^\d+$/.test(metadata[each] ?? ''));
  const text = key !== undefined ? metadata[key] : pattern.exec(field ?? '')?.[1];
  return text === undefined ? null : Number(text);
}

// A limit that is not a number, such as "5m", stays a text.
function limitOf(text) {
  if (text === undefined) return null;
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Returns the error for a call to `server` that ended with gRPC's `error`. Ignores details that are unknown or malformed. */
export function errorOf(error, server) {
  if (error instanceof PhimapError || !(error?.metadata instanceof grpc.Metadata)) return error;
  const code = grpc.status[error.code] ?? 'UNKNOWN';
  const known = detailsIn(error.metadata.get('grpc-status-details-bin')[0]);
  let message = inCallersWords(error.details ?? '', known);
  if (code === 'UNAVAILABLE' && known === NO_DETAILS) {
    message = `no answer from phimapd at ${server}: ${message}`;
  } else if (code === 'DEADLINE_EXCEEDED' && message.startsWith('Deadline exceeded')) {
    message =
      `phimapd at ${server} had not answered when the time was up; timeoutMs of a call, or else the service config, ` +
      'says how long it may take';
  }
  return new (CLASSES.get(code) ?? PhimapError)(message, { ...known, code });
}

const NO_DETAILS = Object.freeze({});

function detailsIn(packed) {
  if (!Buffer.isBuffer(packed)) return NO_DETAILS;
  const known = {};
  try {
    for (const { type_url: url, value } of STATUS.decode(packed).details) {
      // Our messages have the wire format of the canonical ones that the URL names.
      const name = url.slice(url.lastIndexOf('/') + 1);
      const detail = DETAILS.get(name)?.decode(value);
      if (name === 'google.rpc.BadRequest' && detail.fieldViolations.length > 0) {
        known.field = detail.fieldViolations[0].field;
      } else if (name === 'google.rpc.ErrorInfo') {
        known.reason = detail.reason;
        known.metadata = { ...detail.metadata };
      } else if (name === 'google.rpc.RetryInfo' && detail.retryDelay) {
        known.retryDelayMs = Math.max(0, Number(detail.retryDelay.seconds) * 1000 + detail.retryDelay.nanos / 1e6);
      }
    }
  } catch {
    return known;
  }
  return known;
}

// Makes the field in `known` the caller's argument, or the parameter in its text, that the request carried in its spec.
// Returns the message with that name.
function inCallersWords(message, known) {
  const outer = ['spec.build.', 'spec.tuning.', 'spec.'].find((each) => known.field?.startsWith(each));
  if (outer === undefined) return message;
  known.field = known.field.slice(outer.length);
  return message.startsWith(outer) ? message.slice(outer.length) : message;
}

/** Returns an error like `error` with another message and other properties. */
function changed(error, message, { field = error.field, row = null, metadata }) {
  const { code, reason, retryDelayMs } = error;
  return new error.constructor(message, { code, reason, field, row, metadata, retryDelayMs });
}

/**
 * Returns `error` with its row counted in the input, which callers know. The server counts rows within a request of the
 * stream, and `rows` rows of the input precede that request.
 */
export function movedBy(error, rows) {
  const { request, ...metadata } = error.metadata;
  let message = request === undefined ? error.message : error.message.replace(`request ${request}: `, '');
  let { row, field } = error;
  if (row !== null && !('stream_row' in metadata)) {
    const ofMessage = `rows[${row}]`;
    row += rows;
    if (message.includes(ofMessage)) message = message.replace(ofMessage, `rows[${row}]`);
    else if (rows > 0) message = `row ${row} of the input: ${message}`;
    field = field?.replace(ofMessage, `rows[${row}]`) ?? null;
    metadata.row = String(row);
  }
  return changed(error, message, { field, row, metadata });
}

/** Returns `error` with its row counted in the stream: the server counts rows within a message, and adds the row of the stream. */
export function ofStream(error) {
  const row = error.metadata.stream_row ?? '';
  if (!/^\d+$/.test(row)) return error;
  const ofMessage = `rows[${error.metadata.row ?? row}]`;
  let message = error.message.replace(ofMessage, `rows[${row}]`);
  if (message.includes(`rows[${row}]`)) message = message.replace(`row ${row} of the stream: `, '');
  const field = error.field?.replace(ofMessage, `rows[${row}]`) ?? null;
  return changed(error, message, { field, metadata: { ...error.metadata, row } });
}
