// Timeouts and retries of calls: the service config, and the retries that gRPC leaves to its users.
import { readFileSync } from 'node:fs';
import { Reason, ResourceExhausted, Unavailable } from './errors.js';

const DEFAULT_CONFIG = JSON.parse(readFileSync(new URL('service_config.json', import.meta.url), 'utf8'));
// How often a call is repeated at once because its revision is of another history. Once is enough, unless the history
// changes again meanwhile.
const HISTORIES_LEFT = 3;
// Calls without a retryPolicy: only those that the server reports as not begun are repeated.
const NOT_BEGUN = { maxAttempts: 5, initialBackoffMs: 200, maxBackoffMs: 5000, multiplier: 2, codes: new Set() };
const NEVER = { ...NOT_BEGUN, maxAttempts: 1 };

function milliseconds(duration) {
  const found = /^(\d+(?:\.\d+)?)s$/.exec(duration);
  if (found === null) throw new TypeError(`expected a duration such as "0.2s", got ${JSON.stringify(duration)}`);
  return Number(found[1]) * 1000;
}

function policyOf({ maxAttempts, initialBackoff, maxBackoff, backoffMultiplier, retryableStatusCodes }) {
  return {
    maxAttempts,
    initialBackoffMs: milliseconds(initialBackoff),
    maxBackoffMs: milliseconds(maxBackoff),
    multiplier: backoffMultiplier,
    codes: new Set(retryableStatusCodes),
  };
}

/** A gRPC service config, as an object or as JSON text; without one, that of the package. TypeError if it is malformed. */
export class ServiceConfig {
  #entries;

  constructor(config) {
    try {
      const parsed = typeof config === 'string' ? JSON.parse(config) : (config ?? DEFAULT_CONFIG);
      this.#entries = (parsed.methodConfig ?? []).map(({ name, timeout, retryPolicy }) => ({
        names: name.map(({ service = '', method = '' }) => `${service}/${method}`),
        timeoutMs: timeout === undefined ? null : milliseconds(timeout),
        policy: retryPolicy ? policyOf(retryPolicy) : NOT_BEGUN,
      }));
    } catch (cause) {
      throw new TypeError(`serviceConfig: expected a gRPC service config: ${cause.message}`, { cause });
    }
  }

  /** Returns the timeout of one call in milliseconds; null if there is no limit. */
  timeoutMs(method) {
    return this.#entryOf(method)?.timeoutMs ?? null;
  }

  retries(method, deadline) {
    // The chunks of an Import are read from a file while they are sent.
    return new Retries(method.name === 'Import' ? NEVER : (this.#entryOf(method)?.policy ?? NOT_BEGUN), deadline);
  }

  // The entry that gRPC would choose: that of the method, or else that of its service, or else that of all.
  #entryOf({ service, name }) {
    const wanted = [`${service}/${name}`, `${service}/`, '/'];
    return wanted
      .map((each) => this.#entries.find(({ names }) => names.includes(each)))
      .find((entry) => entry !== undefined);
  }
}

/**
 * The deadline of a call with all its attempts. Without a timeout there is none, and that of the service config applies: to a
 * unary call with all its attempts, to a stream each time it is opened.
 */
export class Deadline {
  #end = null;

  constructor(timeoutMs) {
    if (timeoutMs === undefined || timeoutMs === null) return;
    if (!(typeof timeoutMs === 'number' && timeoutMs > 0))
      throw new RangeError(`timeoutMs: expected milliseconds over 0, got ${timeoutMs}`);
    this.#end = performance.now() + timeoutMs;
  }

  /** Returns the milliseconds that are left; null if there is no deadline. */
  remainingMs() {
    return this.#end === null ? null : Math.max(this.#end - performance.now(), 0);
  }

  orElse(timeoutMs) {
    return this.#end === null ? new Deadline(timeoutMs) : this;
  }

  allows(delayMs) {
    return this.#end === null || this.remainingMs() > delayMs;
  }
}

/** Decides whether a failed call is repeated. */
class Retries {
  #policy;
  #deadline;
  #refused = 0;
  attempt = 1;

  constructor(policy, deadline) {
    this.#policy = policy;
    this.#deadline = deadline;
  }

  /** Counts attempts anew. */
  progressed() {
    this.attempt = 1;
    this.#refused = 0;
  }

  /**
   * Returns the milliseconds to wait before the next attempt, and counts that attempt; null if the call is not repeated.
   *
   * Repeats calls that the server did not begin. If the policy has codes, also errors with these codes and refusals with a
   * retry delay; with `also`, any error. With `spread`, varies the backoff by a fifth, for calls that many clients may make
   * at the same moment.
   */
  waitAfter(error, { also = false, spread = false } = {}) {
    if (error.reason === Reason.REVISION_HISTORY_MISMATCH && this.#refused < HISTORIES_LEFT) {
      this.#refused += 1;
      return 0;
    }
    const { maxAttempts, initialBackoffMs, maxBackoffMs, multiplier } = this.#policy;
    if (!(also || this.#canHelp(error)) || this.attempt >= maxAttempts) return null;
    const backoffMs = Math.min(maxBackoffMs, initialBackoffMs * multiplier ** (this.attempt - 1));
    this.attempt += 1;
    const waitMs = Math.max(backoffMs * (spread ? 0.8 + 0.4 * Math.random() : 1), error.retryDelayMs ?? 0);
    return this.#deadline.allows(waitMs) ? waitMs : null;
  }

  #canHelp(error) {
    const { codes } = this.#policy;
    const refused = codes.size > 0 && error instanceof ResourceExhausted && error.retryDelayMs !== null;
    return codes.has(error.code) || refused || wasNotBegun(error);
  }
}

function wasNotBegun(error) {
  return (
    error instanceof Unavailable &&
    (error.reason === Reason.SERVER_SHUTTING_DOWN || error.reason === Reason.REVISION_NOT_REACHED)
  );
}
