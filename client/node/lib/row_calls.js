// Transforms and predictions: of rows that fit into one message, and over a stream.
import { Internal, InvalidArgument, Reason, ResourceExhausted, movedBy } from './errors.js';
import { CallOptions, pause } from './connection.js';
import { elsewhere, explained, nowhere, pinnedMeanwhile, referenceTo } from './pins.js';
import { MOST_ROWS, sourceOf } from './rows.js';

// Target size of a request, and of its answer: large enough to hide the cost per message, and small enough that a window of
// messages takes little memory.
const MESSAGE_BYTES = 1 << 20;
// Largest request for one call, without a stream.
const UNARY_BYTES = 4 << 20;
// Number of rows of the first request, before the width of the features is known: so few that even 65,536 doubles per row
// stay under a quarter of the message limit.
const FIRST_ROWS = 16;
const DEFAULT_WINDOW = 8;

/**
 * Bytes of a row of an answer when each reference was last used. They are guesses, from which the size of messages is chosen.
 *
 * A row call (transform.js, predict.js) says what is asked for: its methods `unary` and `stream`; the `phase` of progress; the
 * `mostRows` of a request; the `kind`, by which answers of one version have rows of one size; `firstRowBytes`, a bound from
 * above before any answer came, or null; `request(target, examples)`; `take(answer, rows)`, which returns the result of one
 * answer; `rowBytes(result)`; and `gathered(results, rowCount)`, which joins results.
 */
class Widths {
  #rowBytes = new Map();

  rowBytes(call, reference) {
    return this.#rowBytes.get(`${call.kind} ${reference}`) ?? call.firstRowBytes;
  }

  observe(call, { reference }, result) {
    for (const each of [reference, referenceTo(result.version)])
      this.#rowBytes.set(`${call.kind} ${each}`, call.rowBytes(result));
  }

  fitOneCall(call, { reference }, block) {
    const rowBytes = this.rowBytes(call, reference);
    const rows = rowBytes === null ? FIRST_ROWS : Math.min(Math.floor(UNARY_BYTES / rowBytes), call.mostRows);
    return block.rows <= rows && block.fitting(0, UNARY_BYTES) >= block.rows;
  }
}

export class RowCalls {
  #connection;
  #widths = new Widths();

  constructor(connection) {
    this.#connection = connection;
  }

  /** Maps all rows, in one call if rows and answers fit into a message, else over a stream. Returns one result. */
  async map(call, reference, rows, options = {}) {
    const asked = new CallOptions(options);
    const source = sourceOf(rows);
    if (source.rowCount === 0) throw noRows();
    const { pins } = this.#connection;
    for (;;) {
      const target = pins.resolve(reference, options.expectedDigest);
      let result = null;
      if (source.block && this.#widths.fitOneCall(call, target, source.block))
        result = await this.#mapOnce(call, target, source.block, asked, options);
      if (result === null) {
        const results = [];
        for await (const each of this.#stream(call, target, source, asked, options)) results.push(each);
        if (results.length === 0) throw noRows();
        result = call.gathered(results, source.rowCount);
      }
      if (pins.observe(reference, result.version)) return result;
      if (!source.rewind()) throw pinnedMeanwhile(reference);
    }
  }

  /** Maps rows over a stream. Yields the results of blocks of rows in order. */
  async *stream(call, reference, rows, options = {}) {
    const { window, rowsPerRequest } = options;
    if (window !== undefined && !(Number.isInteger(window) && window >= 1))
      throw new RangeError(`window: expected at least 1, got ${window}`);
    if (
      rowsPerRequest !== undefined &&
      !(Number.isInteger(rowsPerRequest) && rowsPerRequest >= 1 && rowsPerRequest <= MOST_ROWS)
    ) {
      throw new RangeError(`rowsPerRequest: expected 1..${MOST_ROWS}, got ${rowsPerRequest}`);
    }
    const { pins } = this.#connection;
    const target = pins.resolve(reference, options.expectedDigest);
    for await (const result of this.#stream(call, target, sourceOf(rows), new CallOptions(options), options)) {
      if (!pins.observe(reference, result.version)) throw pinnedMeanwhile(reference);
      yield result;
    }
  }

  // Makes one call without a stream. Returns null if a stream should be tried instead.
  async #mapOnce(call, target, block, asked, { progress }) {
    let answer;
    try {
      answer = await this.#connection.call(call.unary, call.request(target, block.examples()), asked);
    } catch (error) {
      if (tooLarge(error) || elsewhere(target.reference, target.expectedDigest, error) !== null) return null;
      throw explained(error, target);
    }
    const result = call.take(answer, block.rows);
    this.#widths.observe(call, target, result);
    progress?.({ phase: call.phase, rows: block.rows, totalRows: block.rows, fraction: 1, job: null });
    return result;
  }

  // Maps over a stream, with all attempts.
  async *#stream(call, target, source, asked, { window = DEFAULT_WINDOW, rowsPerRequest = null, progress }) {
    const retries = this.#connection.config.retries(call.stream, asked.deadline);
    const session = new Session(
      call,
      target,
      source,
      retries,
      this.#widths.rowBytes(call, target.reference),
      window,
      rowsPerRequest,
    );
    try {
      while (await session.hasMore()) {
        try {
          for await (const result of this.#streamOnce(session, asked)) {
            this.#widths.observe(call, target, result);
            const { rowsDone } = session;
            const totalRows = source.rowCount;
            progress?.({
              phase: call.phase,
              rows: rowsDone,
              totalRows,
              fraction: totalRows === null ? null : rowsDone / totalRows,
              job: null,
            });
            yield result;
          }
        } catch (error) {
          await pause(session.waitAfter(error), asked.signal);
        }
      }
    } finally {
      await source.close();
    }
  }

  // Opens a stream, sends what has no answer yet and new requests, and yields the answers meanwhile.
  async *#streamOnce(session, asked) {
    const stream = this.#connection.open(session.call.stream, asked);
    let failure = null;
    const sending = session.send(stream).catch((error) => {
      failure = error;
      stream.cancel();
    });
    try {
      for (;;) {
        let answer;
        try {
          answer = await stream.next();
        } catch (error) {
          if (failure !== null) throw new SenderFailed(failure);
          if (session.finished) return; // all answers came, so the status no longer matters
          throw error;
        }
        if (answer === null && session.finished) return;
        yield session.take(answer);
      }
    } finally {
      if (!session.finished) stream.cancel();
      session.changed();
      if (session.finished) await sending;
    }
  }
}

/** Wraps what the caller's own rows threw, which is no error of the call. */
class SenderFailed {
  constructor(error) {
    this.error = error;
  }
}

/**
 * The state of one call over a stream: its unanswered requests, and the version that answers them.
 *
 * After a stream breaks, the next one begins with the first unanswered request, on the version that answered before. The call
 * changes nothing, so this is always safe. A refusal with a retry delay is handled in the same way.
 */
class Session {
  #target;
  #source;
  #retries;
  #rowBytes;
  #window;
  #rowsPerRequest;
  #unanswered = [];
  #ended = false;
  #answeredHere = 0;
  #version = null;
  // The error that refused the version's number, if the version was then requested by its digest.
  #refused = null;
  #wake = () => {};
  rowsDone = 0;

  constructor(call, target, source, retries, rowBytes, window, rowsPerRequest) {
    this.call = call;
    this.#target = target;
    this.#source = source;
    this.#retries = retries;
    this.#rowBytes = rowBytes;
    this.#window = window;
    this.#rowsPerRequest = rowsPerRequest;
  }

  get finished() {
    return this.#ended && this.#unanswered.length === 0;
  }

  /** Returns whether there is a request to send, for which it may have to read rows. */
  async hasMore() {
    if (this.#unanswered.length > 0) return true;
    if (this.#ended) return false;
    this.#source.coming ??= this.#source.next(this.#limits());
    if ((await this.#source.coming) === null) this.#ended = true;
    return !this.#ended;
  }

  /** Wakes `send`, because an answer came or the stream is over. */
  changed() {
    this.#wake();
  }

  /** Sends the unanswered requests again, and then new ones, a window ahead of the answers. */
  async send(stream) {
    this.#answeredHere = 0;
    let first = true;
    const message = (block) => {
      const request = this.call.request(first ? this.#target : null, block.examples());
      first = false;
      return request;
    };
    for (const block of [...this.#unanswered]) if (!(await stream.send(message(block)))) return;
    while (!this.#ended) {
      const woken = new Promise((resolve) => {
        this.#wake = resolve;
      });
      if (stream.over) return;
      const limits = this.#limits();
      if (limits === null) {
        await woken;
        continue;
      }
      this.#source.coming ??= this.#source.next(limits);
      const block = await this.#source.coming;
      if (stream.over) return;
      this.#source.coming = null;
      if (block === null) {
        this.#ended = true;
      } else {
        this.#unanswered.push(block);
        if (!(await stream.send(message(block)))) return;
      }
    }
    stream.end();
  }

  // The limits of the next request; null while the window is full.
  #limits() {
    const known = this.#rowBytes !== null || this.#rowsPerRequest !== null;
    if (this.#unanswered.length >= (known ? this.#window : 1)) return null;
    if (this.#rowsPerRequest !== null) return { rows: this.#rowsPerRequest, bytes: Infinity };
    const fitting = this.#rowBytes === null ? FIRST_ROWS : Math.max(1, Math.floor(MESSAGE_BYTES / this.#rowBytes));
    return { rows: Math.min(fitting, this.call.mostRows), bytes: MESSAGE_BYTES };
  }

  /** Returns the result of the answer to the first unanswered request; null is the end of the stream. */
  take(answer) {
    if (answer === null)
      throw new Internal(`the server ended the stream and left ${this.#unanswered.length} requests unanswered`);
    const [block] = this.#unanswered;
    const result = this.call.take(answer, block.rows);
    if (this.#version === null) {
      this.#version = result.version;
      this.#target = {
        asked: this.#target.asked,
        reference: referenceTo(this.#version),
        expectedDigest: this.#version.digest,
      };
    }
    this.#unanswered.shift();
    this.#answeredHere += 1;
    this.rowsDone += block.rows;
    this.#rowBytes = this.call.rowBytes(result);
    this.#retries.progressed();
    this.changed();
    return { ...result, version: this.#version };
  }

  /** Returns the milliseconds to wait before the stream is opened again. Throws the error if it must not be. */
  waitAfter(failed) {
    if (failed instanceof SenderFailed) throw failed.error;
    if (!failed.metadata) throw failed;
    const error = this.#inInput(failed);
    const found = elsewhere(this.#target.reference, this.#target.expectedDigest, error);
    if (found !== null) {
      // The digest pins the version, so no row has been mapped by another one.
      this.#refused = explained(error, this.#target);
      this.#target = { ...this.#target, reference: found };
      return 0;
    }
    const waitMs = this.#retries.waitAfter(error);
    if (waitMs !== null) return waitMs;
    // No version has the digest either, so the error says why the number was refused.
    if (this.#refused !== null && nowhere(error)) throw this.#refused;
    throw explained(error, this.#target);
  }

  // The error with its row counted in the input: the server counts rows within a request, and requests within a stream.
  #inInput(error) {
    const index = /^\d+$/.test(error.metadata.request ?? '') ? Number(error.metadata.request) - this.#answeredHere : 0;
    const between = this.#unanswered.slice(0, Math.max(index, 0)).reduce((rows, block) => rows + block.rows, 0);
    return movedBy(error, this.rowsDone + between);
  }
}

// A request or its answer exceeds a limit of messages. gRPC gives no reason if it is this client's own limit.
function tooLarge(error) {
  return error.reason === Reason.MESSAGE_TOO_LARGE || (error instanceof ResourceExhausted && error.reason === '');
}

function noRows() {
  return new InvalidArgument('rows: expected at least 1, got none');
}
