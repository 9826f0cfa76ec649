// Export and import of artifacts: chunks with a checksum each, and a digest of the whole artifact.
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { CallOptions } from './connection.js';
import { crc32c } from './crc32c.js';
import { DataLoss, Internal } from './errors.js';
import { safeNumber } from './numbers.js';
import { METHODS } from './schema.js';

// The API's limit.
const CHUNK_BYTES = 1 << 20;

/**
 * Writes the artifact of `reference`, of the digest `digest`, to a path or a Writable. A file at a path appears only if it is
 * complete.
 */
export async function exportTo(connection, reference, digest, file, options) {
  const isPath = typeof file === 'string' || file instanceof URL;
  if (!isPath) return receive(connection, reference, digest, file, options);
  const part = `${file instanceof URL ? file.pathname : file}.${randomUUID()}.part`;
  const out = createWriteStream(part);
  let failure = null; // of the disk
  out.on('error', (error) => {
    failure ??= error;
  });
  try {
    await once(out, 'open');
    await receive(connection, reference, digest, out, options);
    out.end();
    await once(out, 'close');
    if (failure !== null) throw failure;
    await rename(part, file);
  } catch (error) {
    if (!out.destroyed)
      await new Promise((resolve) => {
        out.once('close', resolve).destroy();
      });
    await rm(part, { force: true });
    throw error;
  }
}

async function receive(connection, reference, digest, out, options) {
  const asked = new CallOptions(options);
  const hash = createHash('sha256');
  let size = 0;
  // Repeated only until the first chunk: one that was written cannot be taken back.
  await connection.repeated(
    METHODS.Export,
    asked,
    async (timeoutMs) => {
      const stream = connection.open(METHODS.Export, asked, timeoutMs);
      await stream.send({ reference });
      stream.end();
      try {
        for (let chunk; (chunk = await stream.next()) !== null;) {
          const { data } = chunk;
          const offset = safeNumber(chunk.offsetBytes, 'offsetBytes');
          if (offset !== size) throw new DataLoss(`expected the chunk at byte ${size}, got the one at byte ${offset}`);
          if (crc32c(data) !== chunk.crc32c)
            throw new DataLoss(
              `the chunk at ${offset} was damaged on its way: its CRC-32C is ${crc32c(data)}, expected ${chunk.crc32c}`,
            );
          hash.update(data);
          size += data.length;
          if (!out.write(data)) await once(out, 'drain');
        }
      } finally {
        if (!stream.over) stream.cancel();
      }
    },
    () => size === 0,
  );
  const received = hash.digest('hex');
  if (received !== digest)
    throw new DataLoss(
      `the artifact that was received, ${size} bytes, has the SHA-256 ${received}, expected ${digest}`,
    );
}

/** Sends an artifact, from a path, a Readable, another iterable of Buffers, or one Buffer. Returns the version, a message. */
export async function importFrom(connection, name, file, options) {
  const isPath = typeof file === 'string' || file instanceof URL;
  const pieces = isPath
    ? createReadStream(file, { highWaterMark: CHUNK_BYTES })
    : file instanceof Uint8Array
      ? [file]
      : file;
  const stream = connection.open(METHODS.Import, new CallOptions(options));
  let failure = null; // of the caller's file
  send(stream, name, pieces).catch((error) => {
    failure = error;
    stream.cancel();
  });
  try {
    const version = await stream.next();
    if (version === null) throw new Internal('the server ended the import without a version');
    await stream.next(); // the end, with the revision
    return version;
  } catch (error) {
    stream.cancel();
    throw failure ?? error;
  }
}

async function send(stream, name, pieces) {
  const hash = createHash('sha256');
  let offsetBytes = 0;
  await stream.send({ name });
  for await (const piece of pieces) {
    hash.update(piece);
    for (let at = 0; at < piece.length; at += CHUNK_BYTES) {
      const data = piece.subarray(at, at + CHUNK_BYTES);
      if (!(await stream.send({ chunk: { offsetBytes, data, crc32c: crc32c(data) } }))) return;
      offsetBytes += data.length;
    }
  }
  await stream.send({ digest: hash.digest('hex') });
  stream.end();
}
