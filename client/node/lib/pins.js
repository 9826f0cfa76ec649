// Pins: within a client, a name always means the version that it first resolved to.
import { Aborted, FailedPrecondition, NotFound, Reason } from './errors.js';

// Errors about a version that no longer exists, or that another has replaced.
const GONE = [Reason.VERSION_NOT_FOUND, Reason.DIGEST_MISMATCH];
const REFERENCE = /^(?<name>[^@]*)(?:@(?:(?<number>\d+)|(?<alias>.*)))?$/;

/** Returns text such as "letters@3" for a version, or for its `ref`. */
export function referenceTo(version) {
  const { name, number } = version.ref ?? version;
  return `${name}@${number}`;
}

/** Returns the reference by digest for a reference by number, whose number is valid on one server only; null for any other. */
export function byDigest(reference, digest) {
  const found = REFERENCE.exec(reference);
  return found?.groups.number === undefined || digest === '' ? null : `${found.groups.name}@sha256:${digest}`;
}

/** Returns the reference by digest for a version whose number the server refused with `error`; null if there is none to try. */
export function elsewhere(reference, digest, error) {
  return GONE.includes(error.reason) ? byDigest(reference, digest) : null;
}

/** Returns true if the server has no version with the requested digest, or does not support references by digest. */
export function nowhere(error) {
  return error.reason === Reason.VERSION_NOT_FOUND || error.reason === Reason.REFERENCE_INVALID;
}

/**
 * Remembers what references resolved to, since features of different versions are not comparable.
 *
 * A bare name is pinned to the version that it resolves to first. A number is pinned to that version's digest, so that a mapping
 * that was deleted and created again on another server is noticed; if the number is gone, the version is requested by its
 * digest. An alias is not pinned. Malformed references are sent to the server, whose errors explain them.
 */
export class Pins {
  // References of versions, by bare name and by name@number.
  #refs = new Map();

  /**
   * Returns the target of a call: what was `asked`, the `reference` to send, and the digest that its version must have, ''
   * if any will do. FailedPrecondition if the caller expects another digest than that of the pinned version.
   */
  resolve(asked, expectedDigest = '') {
    if (typeof asked !== 'string')
      throw new TypeError(`expected a reference such as "letters", "letters@3" or "letters@prod", got ${typeof asked}`);
    const pinned = this.#refs.get(asked);
    if (pinned === undefined) return { asked, reference: asked, expectedDigest };
    const reference = referenceTo(pinned);
    if (expectedDigest !== '' && expectedDigest !== pinned.digest) {
      throw new FailedPrecondition(
        `expectedDigest: "${asked}" is pinned to ${reference} of digest ${pinned.digest}, got ${expectedDigest}; unpin() forgets the pin`,
        {
          field: 'expectedDigest',
          reason: Reason.DIGEST_MISMATCH,
          metadata: { expected: expectedDigest, actual: pinned.digest },
        },
      );
    }
    return { asked, reference, expectedDigest: pinned.digest };
  }

  /** Records what `reference` resolved to. Returns false if another call pinned it to another version meanwhile. */
  observe(reference, ref) {
    if (REFERENCE.exec(reference)?.groups.alias !== undefined) return true;
    const pinned = this.#refs.get(reference);
    if (pinned !== undefined && pinned.digest !== ref.digest) return false;
    this.#refs.set(reference, ref);
    return true;
  }

  /** Forgets the pins of a mapping, or of the version "name@7" or "name@sha256:digest". */
  forget(reference) {
    const [name, version = ''] = reference.split('@');
    const digest = version.startsWith('sha256:') ? version.slice('sha256:'.length) : null;
    for (const [key, ref] of this.#refs) {
      const named =
        version === '' || version === String(ref.number) || (digest !== null && ref.digest.startsWith(digest));
      if (ref.name === name && named) this.#refs.delete(key);
    }
  }

  /** Returns the bare names and what they are pinned to. */
  pinned() {
    return new Map([...this.#refs].filter(([key]) => !key.includes('@')));
  }
}

/** Adds to an error about a pinned version, which is not what the caller asked for, why that version was requested. */
export function explained(error, { asked, reference }) {
  const missing = error instanceof NotFound || error.reason === Reason.HEAD_MISSING;
  if (missing && asked !== reference) {
    error.message +=
      `; "${asked}" is pinned to ${reference}, the version that it meant when this client first used it; ` +
      `unpin("${asked}") forgets that`;
  }
  return error;
}

export function pinnedMeanwhile(reference) {
  return new Aborted(
    `"${reference}" was pinned to another version by another call while these rows, which can be read only once, were ` +
      'being sent: call again',
  );
}
