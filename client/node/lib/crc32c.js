// CRC-32C (Castagnoli), which Node.js does not have, by a table for each of eight bytes.
const POLYNOMIAL = 0x82f63b78; // reflected

const TABLES = Array.from({ length: 8 }, () => new Int32Array(256));
for (let byte = 0; byte < 256; byte += 1) {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  TABLES[0][byte] = crc;
}
for (let table = 1; table < 8; table += 1) {
  for (let byte = 0; byte < 256; byte += 1) {
    const before = TABLES[table - 1][byte];
    TABLES[table][byte] = (before >>> 8) ^ TABLES[0][before & 0xff];
  }
}
const [T0, T1, T2, T3, T4, T5, T6, T7] = TABLES;

/** Returns the CRC-32C of bytes, as in RFC 3720. For "123456789" it is 0xe3069283. */
export function crc32c(bytes) {
  let crc = -1;
  let at = 0;
  for (; at + 8 <= bytes.length; at += 8) {
    crc ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
    crc =
      T7[crc & 0xff] ^
      T6[(crc >>> 8) & 0xff] ^
      T5[(crc >>> 16) & 0xff] ^
      T4[crc >>> 24] ^
      T3[bytes[at + 4]] ^
      T2[bytes[at + 5]] ^
      T1[bytes[at + 6]] ^
      T0[bytes[at + 7]];
  }
  for (; at < bytes.length; at += 1) crc = (crc >>> 8) ^ T0[(crc ^ bytes[at]) & 0xff];
  return ~crc >>> 0;
}
