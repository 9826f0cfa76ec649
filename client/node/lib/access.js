// The servers of a client, its token, and its TLS settings.
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import grpc from '@grpc/grpc-js';

export const DEFAULT_SERVER = '127.0.0.1:7450';
// Prefixes of targets for several servers, in gRPC's syntax: a list of addresses, or a name of DNS.
const LISTS = ['ipv4:', 'ipv6:'];
const DNS = 'dns:///';
// Characters that a header may carry (RFC 6750, section 2.1).
const TOKEN = /^[A-Za-z0-9._~+/=-]+$/;
// How long a token that was read from a file is used before the file is read again.
const TOKEN_FILE_MS = 1000;

/** Returns the target for the argument `server`; without it, PHIMAP_SERVER of the environment or the server on this machine. */
export function targetOf(server) {
  const target = Array.isArray(server) ? listOf(server) : server || process.env.PHIMAP_SERVER || DEFAULT_SERVER;
  if (typeof target !== 'string' || !addressesIn(target).every(hasPort)) {
    throw new TypeError(
      'server: expected HOST:PORT, unix:PATH, or for several servers a list of ADDRESS:PORT or dns:///HOST:PORT, ' +
        `got ${JSON.stringify(server ?? target)}`,
    );
  }
  return target;
}

function listOf(addresses) {
  const families = new Set(addresses.map((address) => isIP(hostOf(String(address)))));
  const [family] = families;
  if (families.size !== 1 || family === 0) {
    throw new TypeError(
      `server: expected a list of IPv4 addresses, or of IPv6 addresses, each with its port, got ${JSON.stringify(addresses)}; ` +
        'dns:///HOST:PORT names several servers by one name',
    );
  }
  return `ipv${family}:${addresses.join(',')}`;
}

export function namesSeveralServers(target) {
  return [...LISTS, DNS].some((prefix) => target.startsWith(prefix));
}

// A path has no address; an empty path gives one that is invalid.
function addressesIn(target) {
  if (target.startsWith('unix:')) return target === 'unix:' ? [''] : [];
  const list = LISTS.find((prefix) => target.startsWith(prefix));
  if (list !== undefined) return target.slice(list.length).split(',');
  return [target.startsWith(DNS) ? target.slice(DNS.length) : target];
}

function hasPort(address) {
  const found = /^(?!https?:)[^,]+:(\d{1,5})$/.exec(address);
  return found !== null && Number(found[1]) > 0 && Number(found[1]) < 65536;
}

function hostOf(address) {
  return address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '');
}

function staysOnThisMachine(target) {
  return addressesIn(target)
    .map(hostOf)
    .every((host) => host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.')));
}

/**
 * Returns the credentials of a channel, further options of it, and a function that gives the token, '' for none. What is not
 * given is read from the environment. TypeError if an argument is malformed, or if the token would be sent unencrypted to
 * another machine.
 */
export function accessOf(target, { tls = tlsOfEnvironment(), token, tokenFile }) {
  if (token !== undefined && tokenFile !== undefined) throw new TypeError('token: give token or tokenFile, not both');
  const giveToken =
    tokenFile !== undefined ? tokenReader(tokenFile) : fixedToken(token ?? process.env.PHIMAP_TOKEN ?? '');
  if (giveToken() !== '' && !tls && !staysOnThisMachine(target)) {
    throw new TypeError(
      `token: it would be sent to ${target} unencrypted, so that others could read and use it; connect with TLS`,
    );
  }
  if (!tls) return { credentials: grpc.credentials.createInsecure(), options: {}, giveToken };
  const options = tls.serverName
    ? { 'grpc.ssl_target_name_override': tls.serverName, 'grpc.default_authority': tls.serverName }
    : {};
  return { credentials: credentialsOf(tls), options, giveToken };
}

function tlsOfEnvironment() {
  const {
    PHIMAP_TLS_CA: caFile,
    PHIMAP_TLS_CERTIFICATE: certFile,
    PHIMAP_TLS_KEY: keyFile,
    PHIMAP_TLS_SERVER_NAME: serverName,
  } = process.env;
  return caFile ? { caFile, certFile, keyFile, serverName } : undefined;
}

function credentialsOf(tls) {
  const pem = (name) => {
    const file = tls[`${name}File`];
    if (file) return readFileSync(file);
    return tls[name] === undefined ? null : Buffer.from(tls[name]);
  };
  const [ca, cert, key] = ['ca', 'cert', 'key'].map(pem);
  if ((cert === null) !== (key === null))
    throw new TypeError("tls: a client's TLS certificate and its key must be given together");
  return grpc.credentials.createSsl(ca, key, cert);
}

function fixedToken(token) {
  const checked = checkedToken(token, 'token');
  return () => checked;
}

// A file is read again after a second, so that a token may be replaced while the client runs.
function tokenReader(path) {
  let token = '';
  let readAt = -Infinity;
  return () => {
    if (performance.now() - readAt > TOKEN_FILE_MS) {
      token = checkedToken(readFileSync(path, 'utf8').trim(), `tokenFile ${path}`);
      readAt = performance.now();
    }
    return token;
  };
}

function checkedToken(token, name) {
  if (token !== '' && !TOKEN.test(token)) throw new TypeError(`${name}: expected letters, digits and -._~+/= only`);
  return token;
}
