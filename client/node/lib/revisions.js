// The newest revision that a client knows. Servers that share a store report their revision, and each call asks for at least
// the newest known one, so that after a change no server shows this client an older state.
import { Reason } from './errors.js';

const TOLD = 'phimap-revision';
const ASKED = 'phimap-min-revision';

export class Revisions {
  // As the server told it, ID:NUMBER, and the number; '' if none is known.
  #known = '';
  #number = 0n;
  // Number of histories that were left behind.
  #history = 0;

  /** Adds what a call asks for to its metadata. Returns the history that the call is of, for `learn`. */
  addTo(metadata) {
    if (this.#known !== '') metadata.set(ASKED, this.#known);
    return this.#history;
  }

  /**
   * Learns the revision in the trailing metadata of a successful call of `history`: it replaces the known one if its number is
   * larger, unless that history has been left behind since.
   */
  learn(trailers, history = this.#history) {
    const [told] = trailers?.get(TOLD) ?? [];
    if (told !== undefined && history === this.#history) this.#take(String(told));
  }

  #take(revision) {
    const found = /^.+:(\d+)$/.exec(revision);
    if (found === null || (this.#known !== '' && BigInt(found[1]) <= this.#number)) return;
    this.#known = revision;
    this.#number = BigInt(found[1]);
  }

  /**
   * If `error` refused the revision as one of another history, from before a failover or a restored backup, leaves that history
   * behind, and remembers the revision of the new one that the error tells.
   */
  note(error) {
    if (
      error.reason !== Reason.REVISION_HISTORY_MISMATCH ||
      this.#known === '' ||
      this.#known !== error.metadata.actual
    )
      return;
    this.#history += 1;
    this.#known = '';
    this.#take(error.metadata.expected ?? '');
  }
}
