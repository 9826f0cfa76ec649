// The Node.js client of phimapd: kernels as explicit features, built from a stream and served.
export { Client } from './client.js';
export {
  Aborted,
  AlreadyExists,
  Cancelled,
  DataLoss,
  DeadlineExceeded,
  FailedPrecondition,
  Internal,
  InvalidArgument,
  NotFound,
  OutOfRange,
  PermissionDenied,
  PhimapError,
  Reason,
  ResourceExhausted,
  Unauthenticated,
  Unavailable,
  Unimplemented,
} from './errors.js';
export { referenceTo } from './pins.js';
export { specText } from './spec_text.js';
