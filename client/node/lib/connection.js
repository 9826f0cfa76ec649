// Channels to one server, or to several with the same versions, and calls on them.
import { setTimeout as sleep } from 'node:timers/promises';
import grpc from '@grpc/grpc-js';
import { accessOf, namesSeveralServers, targetOf } from './access.js';
import { PhimapError, errorOf } from './errors.js';
import { Pins } from './pins.js';
import { Deadline, ServiceConfig } from './retry.js';
import { Revisions } from './revisions.js';
import { HEALTH, METHODS } from './schema.js';

const MAX_MESSAGE_BYTES = 64 << 20;
const MAX_CHANNELS = 64;
// The API's limit.
const PAGE_SIZE = 1000;
// Status of grpc.health.v1.HealthCheckResponse.
const SERVING = 1;

function channelOptions(target) {
  return {
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
    // Proxies of the environment are for the web and cannot reach a loopback address.
    'grpc.enable_http_proxy': 0,
    'grpc.primary_user_agent': 'phimap-node',
    // gRPC's own retries know neither the delays that the server asks for nor which calls it did not begin. It still repeats
    // calls that left no trace on any server.
    'grpc.service_config': JSON.stringify({
      loadBalancingConfig: [{ [namesSeveralServers(target) ? 'round_robin' : 'pick_first']: {} }],
    }),
    // Without this, channels with equal options share one connection.
    'grpc.use_local_subchannel_pool': 1,
    // A server that keeps gRPC's defaults hangs up on clients that ping more often than every 5 minutes.
    'grpc.keepalive_time_ms': 360_000,
    'grpc.keepalive_timeout_ms': 20_000,
    // Calls come back to a restarted server by their own backoff, so the connection's must not be slower.
    'grpc.initial_reconnect_backoff_ms': 200,
    'grpc.max_reconnect_backoff_ms': 5_000,
  };
}

/** What the caller says of one call: how long it may take, and the signal that ends it. */
export class CallOptions {
  constructor({ timeoutMs, signal } = {}) {
    this.deadline = new Deadline(timeoutMs);
    this.signal = signal;
    signal?.throwIfAborted();
  }
}

export class Connection {
  #channels;
  #turn = 0;
  #giveToken;
  #closed = false;
  #revisions = new Revisions();
  pins = new Pins();

  constructor({ server, channels = 1, serviceConfig, channelOptions: extra = {}, ...access }) {
    if (!Number.isInteger(channels) || channels < 1 || channels > MAX_CHANNELS)
      throw new RangeError(`channels: expected 1..${MAX_CHANNELS}, got ${channels}`);
    this.server = targetOf(server);
    this.config = new ServiceConfig(serviceConfig);
    const { credentials, options, giveToken } = accessOf(this.server, access);
    this.#giveToken = giveToken;
    this.#channels = Array.from(
      { length: channels },
      () => new grpc.Client(this.server, credentials, { ...channelOptions(this.server), ...options, ...extra }),
    );
  }

  close() {
    this.#closed = true;
    this.#channels.forEach((channel) => channel.close());
  }

  /** Makes a unary call with its retries, on the next channel in turn, and returns the answer. */
  async call(method, request, { deadline, signal } = new CallOptions()) {
    return this.repeated(method, { deadline, signal }, (timeoutMs) =>
      this.#attempt(method, request, timeoutMs, signal),
    );
  }

  /** Asks the standard health service, in one attempt. */
  async serves(service, { deadline, signal }) {
    const { status } = await this.#attempt(HEALTH, { service }, deadline.remainingMs(), signal, true);
    return status === SERVING;
  }

  /** Returns the items of all pages of a list. `field` is the field of the answer that has them. */
  async pages(method, request, field, options) {
    const items = [];
    for (let pageToken = ''; ;) {
      const page = await this.call(method, { ...request, pageSize: PAGE_SIZE, pageToken }, options);
      items.push(...page[field]);
      pageToken = page.nextPageToken;
      if (pageToken === '') return items;
    }
  }

  /** Repeats `attempt`, which gets the milliseconds that are left, as the service config says and while `mayRepeat()`. */
  async repeated(method, { deadline, signal }, attempt, mayRepeat = () => true) {
    const limited = deadline.orElse(this.config.timeoutMs(method));
    const retries = this.config.retries(method, limited);
    for (;;) {
      try {
        return await attempt(limited.remainingMs());
      } catch (error) {
        const waitMs = error instanceof PhimapError && mayRepeat() ? retries.waitAfter(error, { spread: true }) : null;
        if (waitMs === null) throw error;
        await pause(waitMs, signal);
      }
    }
  }

  async #attempt(method, request, timeoutMs, signal, free = false) {
    const { metadata, history } = this.#asked(free);
    try {
      const { answer, trailers } = await new Promise((resolve, reject) => {
        let answered;
        const call = this.#channel().makeUnaryRequest(
          method.path,
          method.serialize,
          method.deserialize,
          request,
          metadata,
          deadlineIn(timeoutMs),
          (error, answer) => (error ? reject(error) : (answered = answer)),
        );
        // The status comes after the answer.
        call.on('status', (status) => resolve({ answer: answered, trailers: status.metadata }));
        cancelOn(signal, call, (stop) => call.on('status', stop));
      });
      this.#revisions.learn(trailers, history);
      return answer;
    } catch (error) {
      signal?.throwIfAborted();
      throw this.noted(error);
    }
  }

  /** Opens a stream. `timeoutMs` is that of the service config if the caller gave no deadline. */
  open(method, { deadline, signal }, timeoutMs = deadline.remainingMs() ?? this.config.timeoutMs(method)) {
    // A Build and an Import depend on no earlier change.
    const { metadata, history } = this.#asked(method === METHODS.Build || method === METHODS.Import);
    const call = this.#channel().makeBidiStreamRequest(
      method.path,
      method.serialize,
      method.deserialize,
      metadata,
      deadlineIn(timeoutMs),
    );
    return new StreamCall(
      call,
      signal,
      (error) => this.noted(error),
      (trailers) => this.#revisions.learn(trailers, history),
    );
  }

  /** Returns the error for one of gRPC's. */
  noted(error) {
    const known = errorOf(error, this.server);
    this.#revisions.note(known);
    return known;
  }

  #channel() {
    if (this.#closed) throw new Error('this client is closed: make another one');
    this.#turn = (this.#turn + 1) % this.#channels.length;
    return this.#channels[this.#turn];
  }

  #asked(free) {
    const metadata = new grpc.Metadata();
    const token = this.#giveToken();
    if (token !== '') metadata.set('authorization', `Bearer ${token}`);
    return { metadata, history: free ? undefined : this.#revisions.addTo(metadata) };
  }
}

/** Waits. Throws the signal's reason if it is aborted meanwhile. */
export async function pause(delayMs, signal) {
  try {
    await sleep(delayMs, undefined, { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

function deadlineIn(timeoutMs) {
  return timeoutMs === null ? {} : { deadline: Date.now() + timeoutMs };
}

function cancelOn(signal, call, whenOver) {
  if (signal === undefined) return;
  const cancel = () => call.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  whenOver(() => signal.removeEventListener('abort', cancel));
}

/** One stream of requests and answers. */
class StreamCall {
  #call;
  #signal;
  #noted;
  #learn;
  #error = null;
  #ended = false;
  #wake = () => {};
  // Fulfilled when nothing more can be sent.
  #over;
  over = false;

  constructor(call, signal, noted, learn) {
    this.#call = call;
    this.#signal = signal;
    this.#noted = noted;
    this.#learn = learn;
    this.#over = new Promise((resolve) => {
      call.on('status', (status) => {
        this.over = true;
        if (status.code === grpc.status.OK) this.#learn(status.metadata);
        resolve();
      });
    });
    call.on('readable', () => this.#wake());
    call.on('end', () => {
      this.#ended = true;
      this.#wake();
    });
    call.on('error', (error) => {
      this.#error = error;
      this.over = true;
      this.#wake();
    });
    cancelOn(signal, call, (stop) => call.on('status', stop));
    if (signal?.aborted) call.cancel();
  }

  /** Sends a message, and waits until the network takes more. Returns false if the call is over. */
  async send(message) {
    if (this.over) return false;
    if (!this.#call.write(message)) {
      await Promise.race([
        this.#over,
        new Promise((resolve) => {
          this.#call.once('drain', resolve);
        }),
      ]);
    }
    return !this.over;
  }

  /** Ends the requests. */
  end() {
    this.#call.end();
  }

  /** Ends the call, at once. */
  cancel() {
    this.over = true;
    this.#call.cancel();
    this.#wake();
  }

  /** Returns the next answer; null at the end. Answers that came before an error are returned before it is thrown. */
  async next() {
    for (;;) {
      const woken = new Promise((resolve) => {
        this.#wake = resolve;
      });
      const answer = this.#call.read();
      if (answer !== null) return answer;
      if (this.#error !== null) {
        this.#signal?.throwIfAborted();
        throw this.#noted(this.#error);
      }
      if (this.#ended) return null;
      await woken;
    }
  }
}
