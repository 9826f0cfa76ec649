// The calls that the page makes, and no others: it reads, transforms and predicts. The token that a
// reader typed lives in this module, until the page is left: in no storage, no cookie and no address.

let token = '';
const versions = new Map();
let server;

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.message || `the server answered with status ${status}`);
    this.status = status;
    this.reason = (body?.details ?? []).find((detail) => detail.reason)?.reason;
  }
}

export function setToken(text) {
  token = text.trim();
  versions.clear();
}

export const hasToken = () => token !== '';

async function call(path, options = {}) {
  const headers = { accept: 'application/json', ...options.headers };
  if (token !== '') headers.authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, {
      ...options, headers, mode: 'same-origin', redirect: 'error', cache: 'no-store', referrerPolicy: 'no-referrer',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, { message: 'The server cannot be reached. Is it still running?' });
  }
  const text = await answer.text();
  let body = null;
  try {
    body = JSON.parse(text);
  } catch { /* An answer of something in between, such as a proxy. */ }
  if (!answer.ok || body === null) throw new ApiError(answer.status, body);
  return { body, text };
}

const read = async (path, signal) => (await call(path, { signal })).body;
const at = (name) => `/v1/mappings/${encodeURIComponent(name)}`;
const page = (path, pageToken) => path + (pageToken ? `?page_token=${encodeURIComponent(pageToken)}` : '');

export const listMappings = (pageToken, signal) => read(page('/v1/mappings', pageToken), signal);
export const getMapping = (name, signal) => read(at(name), signal);
export const listVersions = (name, pageToken, signal) => read(page(`${at(name)}/versions`, pageToken), signal);
export const listBuilds = (name, signal) => read(name === null ? '/v1/builds' : `${at(name)}/builds`, signal);
export const getDrift = (name, signal) => read(`${at(name)}/drift`, signal);
export const listCapabilities = (signal) => read('/v1/capabilities', signal);

// `which` is a number, an alias or a digest. A version never changes, so one that is asked for by its
// number is asked for once; the time at which it expires is the exception.
export async function getVersion(name, which, signal) {
  const path = `${at(name)}/versions/${encodeURIComponent(which)}`;
  if (versions.has(path)) return versions.get(path);
  const version = await read(path, signal);
  if (/^\d+$/.test(which) && !version.ttl) versions.set(path, version);
  return version;
}

// Both return the answer as `body`, and as the `text` that came.
const post = (reference, action, body, signal) => call(`/v1/mappings/${encodeURIComponent(reference)}:${action}`,
  { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal });
export const transform = (reference, body, signal) => post(reference, 'transform', body, signal);
export const predict = (reference, body, signal) => post(reference, 'predict', body, signal);

// Where the server speaks gRPC, as HOST:PORT with the name by which this page was reached; null if it
// does so only on a Unix socket.
export async function grpcAddress(signal) {
  server ??= await read('/page/server.json', signal);
  return server.grpc_port ? `${location.hostname}:${server.grpc_port}` : null;
}
