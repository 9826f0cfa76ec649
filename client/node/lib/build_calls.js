// Builds, trainings and evaluations: streams of rows that end with one result.
import { randomUUID } from 'node:crypto';
import { Aborted, DeadlineExceeded, Internal, Reason, ofStream } from './errors.js';
import { CallOptions, pause } from './connection.js';
import { elsewhere, nowhere } from './pins.js';
import { resultOf, wordOf } from './results.js';
import { MOST_ROWS, sourceOf } from './rows.js';
import { METHODS, enumOf } from './schema.js';

// Large enough that the cost per message is negligible, and small enough that a few queued messages take little memory.
const BLOCK_LIMITS = { rows: MOST_ROWS, bytes: 1 << 20 };
// For telling the server that a build was cancelled: the caller is waiting.
const CANCEL_TIMEOUT_MS = 5000;
// Errors after the server has itself repeated its calls to a kernel service.
const KERNEL_SERVICE_LOST = [Reason.KERNEL_SERVICE_UNAVAILABLE, Reason.KERNEL_SERVICE_TIMED_OUT];
const JOB_STATE = enumOf('phimap.v1.BuildJob.State');
const EVALUATE_STATE = enumOf('phimap.v1.EvaluateProgress.State');

/**
 * Opens a stream, sends `first`, passes each event to `take`, and sends the rows by `sendRows` once the first event came, which
 * says that the server has accepted the call. Throws what `sendRows` throws.
 */
async function converse(connection, method, asked, first, take, sendRows) {
  const stream = connection.open(method, asked);
  let failure = null;
  let sending = null;
  await stream.send(first);
  try {
    for (let event; (event = await stream.next()) !== null;) {
      take(event);
      sending ??= sendRows(stream).catch((error) => {
        failure = error;
        stream.cancel();
      });
    }
  } catch (error) {
    throw failure ?? error;
  } finally {
    if (!stream.over) stream.cancel();
  }
}

/**
 * Sends the blocks of `source` as `request(block)`, and then `finish()`. A block that is being read when the stream breaks is
 * left in `source.coming` to the next stream.
 */
async function sendAll(stream, source, request, finish) {
  for (;;) {
    source.coming ??= source.next(BLOCK_LIMITS);
    const block = await source.coming;
    if (stream.over) return;
    source.coming = null;
    if (block === null) break;
    if (!(await stream.send(request(block)))) return;
  }
  await stream.send(finish());
  stream.end();
}

/**
 * One build or training: the rows to send, and the server's events.
 *
 * All attempts have the same build id. A build that has received all its rows continues on the server even if the connection
 * breaks. A build that has not is lost then, and its rows are sent again if they can be read again.
 *
 * An order says what to make: its `method`, its `noun` and `verb` for messages, `name`, `buildId`, `spec()`, the first message's
 * spec; `examples(block, begin)`, the content of a message of rows; and `checkCount(rows)`.
 */
class Building {
  #connection;
  #order;
  #source;
  #asked;
  #retries;
  #progress;
  #rowsSent = 0;
  #attached = false;
  #furthest = 0;
  // True once all rows and `finish` are sent, or if the server already has all rows.
  #finishedSending = false;
  #version = null;

  constructor(connection, order, source, asked, progress) {
    if (source.rowCount !== null) order.checkCount(source.rowCount);
    this.#connection = connection;
    this.#order = order;
    this.#source = source;
    this.#asked = asked;
    this.#retries = connection.config.retries(order.method, asked.deadline);
    this.#progress = progress;
  }

  async run() {
    try {
      for (;;) {
        try {
          return await this.#once();
        } catch (error) {
          if (error.metadata === undefined) throw error; // of the caller's rows, or of the signal
          await pause(this.#waitAfter(error), this.#asked.signal);
        }
      }
    } catch (error) {
      if (this.#asked.signal?.aborted) await this.#cancel();
      throw error;
    } finally {
      await this.#source.close();
    }
  }

  async #once() {
    const order = this.#order;
    try {
      await converse(
        this.#connection,
        order.method,
        this.#asked,
        { spec: order.spec() },
        (event) => this.#take(event),
        (stream) => this.#send(stream),
      );
    } catch (error) {
      // A version that has arrived is stored permanently, even if the stream broke afterwards.
      if (this.#version === null) throw error;
    }
    if (this.#version === null) throw new Internal(`the server ended the ${order.noun} without a version`);
    return this.#version;
  }

  async #send(stream) {
    if (this.#attached) return stream.end();
    this.#finishedSending = false;
    if (this.#rowsSent > 0 && !this.#source.rewind()) {
      throw new Aborted(
        'the connection broke, the server no longer knows the build, and the rows came from an iterable, which is read only ' +
          'once: start the build again',
      );
    }
    this.#rowsSent = 0;
    return sendAll(
      stream,
      this.#source,
      (block) => {
        const begin = this.#rowsSent;
        this.#rowsSent += block.rows;
        const request = { examples: this.#order.examples(block, begin) };
        this.#report(
          'sending',
          this.#rowsSent,
          this.#source.rowCount === null ? null : this.#rowsSent / this.#source.rowCount,
        );
        return request;
      },
      () => {
        this.#order.checkCount(this.#rowsSent);
        this.#finishedSending = true;
        return { finish: { rowCount: this.#rowsSent } };
      },
    );
  }

  #take({ accepted, progress: job, version }) {
    if (accepted) {
      this.#attached = accepted.attached;
      this.#finishedSending ||= this.#attached;
    } else if (job) {
      // A repeated build may do work again. Only progress beyond that of earlier attempts counts attempts anew.
      if (this.#finishedSending && job.fraction > this.#furthest) this.#retries.progressed();
      this.#furthest = Math.max(this.#furthest, job.fraction);
      this.#report(
        job.phase || wordOf(JOB_STATE, job.state),
        this.#rowsSent || Number(job.rowsReceived),
        job.fraction,
        job,
      );
    } else if (version) {
      this.#version = version;
    }
  }

  #report(phase, rows, fraction, job = null) {
    this.#progress?.({ phase, rows, totalRows: this.#source.rowCount, fraction, job: job && resultOf(job) });
  }

  #waitAfter(error) {
    // The server may notice a broken stream later than this client does, and holds the build id until then.
    const stillHeld = error instanceof Aborted && this.#retries.attempt > 1;
    const canGoOn =
      (this.#finishedSending || this.#source.rewinds || this.#rowsSent === 0) &&
      !KERNEL_SERVICE_LOST.includes(error.reason);
    const waitMs = canGoOn ? this.#retries.waitAfter(error, { also: stillHeld }) : null;
    if (waitMs !== null) return waitMs;
    if (error instanceof DeadlineExceeded && this.#finishedSending) {
      const { verb, buildId } = this.#order;
      error.metadata.buildId = buildId;
      error.message += `; the server goes on: ${verb}() with buildId "${buildId}" and the same arguments follows it, cancelBuild() ends it`;
    }
    throw ofStream(error);
  }

  // Cancels the build on the server. Before `finish` there is nothing to cancel: the broken stream leaves no trace.
  async #cancel() {
    if (!this.#finishedSending) return;
    const { name, buildId } = this.#order;
    const options = new CallOptions({ timeoutMs: CANCEL_TIMEOUT_MS });
    await this.#connection.call(METHODS.CancelBuild, { name, buildId }, options).catch(() => {}); // the caller gets the signal's reason
  }
}

/** Builds or trains, with all attempts. Returns the version, a message. If the signal is aborted, cancels the build on the server too. */
export async function build(connection, order, rows, options) {
  return new Building(connection, order, sourceOf(rows), new CallOptions(options), options.progress).run();
}

/** Returns the argument `buildId`, or draws one. */
export function buildIdOf(buildId = randomUUID()) {
  return String(buildId);
}

/**
 * Evaluates in one attempt: nothing is stored, and a broken connection is an error. The call is repeated only if the server
 * refuses it before taking rows: because of a revision of another history, or because the number of a pinned version is gone;
 * then the version is requested by its digest.
 */
export async function evaluate(connection, spec, labels, rows, options) {
  const source = sourceOf(rows);
  const asked = new CallOptions(options);
  const { progress } = options;
  if (source.rowCount !== null) labels.checkCount(source.rowCount);
  let rowsSent = 0;
  let evaluation = null;
  let refused = null;
  let forgotHistory = false;
  const report = (phase, fraction) =>
    progress?.({ phase, rows: rowsSent, totalRows: source.rowCount, fraction, job: null });
  const take = (event) => {
    evaluation = event.evaluation ?? evaluation;
    const state = event.progress ? wordOf(EVALUATE_STATE, event.progress.state) : '';
    if (state === 'queued' || state === 'computing') report(state, event.progress.fraction);
  };
  const send = (stream) =>
    sendAll(
      stream,
      source,
      (block) => {
        const begin = rowsSent;
        rowsSent += block.rows;
        const request = { examples: { examples: block.examples(), labels: labels.slice(begin, rowsSent) } };
        report('sending', source.rowCount === null ? null : rowsSent / source.rowCount);
        return request;
      },
      () => {
        labels.checkCount(rowsSent);
        return { finish: { rowCount: rowsSent } };
      },
    );
  try {
    for (;;) {
      try {
        await converse(connection, METHODS.Evaluate, asked, { spec }, take, send);
        if (evaluation === null) throw new Internal('the server ended the evaluation without a result');
        return evaluation;
      } catch (error) {
        if (rowsSent > 0 || error.metadata === undefined) throw error;
        if (error.reason === Reason.REVISION_HISTORY_MISMATCH && !forgotHistory) {
          forgotHistory = true;
          continue;
        }
        if (refused !== null && nowhere(error)) throw refused;
        const found = elsewhere(spec.reference, spec.expectedDigest, error);
        if (found === null) throw error;
        spec = { ...spec, reference: found };
        refused = error;
      }
    }
  } finally {
    await source.close();
  }
}
