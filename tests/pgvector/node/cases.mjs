// Loads the output of `phimap transform --output-format=copy` into PostgreSQL with pgvector (pglite,
// both compiled to WebAssembly) as docs/guides/pgvector.md does, and compares what comes back with
// the same features in an npy file, bit for bit.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { openAsBlob, readFileSync, writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";

const ROWS = 2000;
// Cells with the characters that COPY gives a meaning to, and texts that look like its NULL and its
// end of data.
const NAMES = ["a\ttab", "a \\ backslash", "\\N", "\\.", "", "größe, \"quoted\""];

let database;
let features; // features[i] is the Float32Array of row i

function phimap(...words) {
  execFileSync(process.env.PHIMAP, words, { stdio: ["ignore", "ignore", "inherit"] });
}

// The rows of an npy file of version 1.0 with float32.
function npyRows(path) {
  const bytes = readFileSync(path);
  const begin = 10 + bytes.readUInt16LE(8);
  const header = bytes.toString("latin1", 10, begin);
  assert.match(header, /'descr': '<f4'/);
  const [, rows, columns] = header.match(/\((\d+), (\d+)\)/).map(Number);
  const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset + begin, bytes.byteOffset + bytes.length));
  return Array.from({ length: rows }, (_, i) => values.subarray(i * columns, (i + 1) * columns));
}

const bits = (values) => Buffer.from(Float32Array.from(values).buffer).toString("hex");
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

before(async () => {
  const [header, ...rows] = readFileSync(process.env.LETTERS, "utf8").split("\n").slice(0, ROWS + 1);
  const cell = (i) => `"${NAMES[i % NAMES.length].replaceAll('"', '""')}"`;
  writeFileSync("rows.csv", [`id,name,${header}`, ...rows.map((row, i) => `${i + 1},${cell(i)},${row}`)].join("\n"));
  const input = ["--input=rows.csv", "--label=label", "--exclude=id", "--exclude=name"];
  phimap("build", "--local", "-o", "map.phimap", ...input, "--spec=f2(landmarks=100)", "--kernel=rbf(gamma=scale)",
         "--standardize");
  const keys = ["--input=rows.csv", "--passthrough=id", "--passthrough=name"];
  phimap("transform", "map.phimap", ...keys, "-o", "rows.copy");
  phimap("transform", "map.phimap", "--input=rows.csv", "-o", "rows.npy");
  features = npyRows("rows.npy");

  database = await PGlite.create({ extensions: { vector } });
  await database.exec(`CREATE EXTENSION vector;
    CREATE TABLE items (id bigint PRIMARY KEY, name text, embedding vector(${features[0].length}))`);
  await database.query("COPY items (id, name, embedding) FROM '/dev/blob'", [], { blob: await openAsBlob("rows.copy") });
});

test("vectors come back with their bits, beside their keys", async () => {
  const { rows } = await database.query("SELECT id::int, name, embedding::text AS embedding FROM items ORDER BY id");
  assert.equal(rows.length, ROWS);
  rows.forEach((row, i) => {
    assert.equal(row.id, i + 1);
    assert.equal(row.name, NAMES[i % NAMES.length]);
    assert.equal(bits(JSON.parse(row.embedding)), bits(features[i]));
  });
});

test("distance and inner product are those of the features", async () => {
  const { rows } = await database.query(`SELECT b.id::int, a.embedding <-> b.embedding AS distance,
    a.embedding <#> b.embedding AS product FROM items a, items b WHERE a.id = 1 ORDER BY b.id`);
  for (const { id, distance, product } of rows) {
    const [a, b] = [features[0], features[id - 1]];
    const difference = a.map((x, i) => x - b[i]);
    assert.ok(Math.abs(distance - Math.sqrt(dot(difference, difference))) < 1e-5);
    assert.ok(Math.abs(-product - dot(a, b)) < 1e-5);
  }
});

test("an index finds a row itself first", async () => {
  await database.exec(`CREATE INDEX ON items USING hnsw (embedding vector_l2_ops); SET enable_seqscan = off`);
  const query = "SELECT id::int FROM items ORDER BY embedding <-> $1 LIMIT 1";
  const { rows: plan } = await database.query(`EXPLAIN ${query.replace("$1", `'[${features[6]}]'`)}`);
  assert.match(JSON.stringify(plan), /Index Scan/);
  const { rows } = await database.query(query, [`[${features[6].join()}]`]);
  assert.equal(bits(features[rows[0].id - 1]), bits(features[6]));
});

test("a table with serial ids takes vectors alone, in their order", async () => {
  phimap("transform", "map.phimap", "--input=rows.csv", "-o", "vectors", "--output-format=copy");
  await database.exec(`CREATE TABLE numbered (id bigserial PRIMARY KEY, embedding vector(${features[0].length}))`);
  await database.query("COPY numbered (embedding) FROM '/dev/blob'", [], { blob: await openAsBlob("vectors") });
  const { rows } = await database.query(`SELECT count(*)::int AS equal FROM items
    JOIN numbered ON items.id = numbered.id AND items.embedding = numbered.embedding`);
  assert.equal(rows[0].equal, ROWS);
});

// The text of each number is the shortest, which is the hardest for whoever reads it.
test("the smallest, the largest and the negative zero keep their bits", async () => {
  writeFileSync("edges.csv", "a,b,c\n1e-45,3.4028235e38,-0\n1.17549435e-38,-1e-40,0.1\n");
  writeFileSync("unit.csv", "a,b,c\n1,0,0\n0,1,0\n0,0,1\n");
  phimap("build", "--local", "-o", "unit.phimap", "--input=unit.csv", "--spec=f1(landmarks=3)", "--kernel=linear()");
  phimap("transform", "unit.phimap", "--input=edges.csv", "-o", "edges.copy");
  phimap("transform", "unit.phimap", "--input=edges.csv", "-o", "edges.npy");
  await database.exec("CREATE TABLE edges (id bigserial, embedding vector(3))");
  await database.query("COPY edges (embedding) FROM '/dev/blob'", [], { blob: await openAsBlob("edges.copy") });
  const { rows } = await database.query("SELECT embedding::text AS embedding FROM edges ORDER BY id");
  npyRows("edges.npy").forEach((row, i) => assert.equal(bits(JSON.parse(rows[i].embedding)), bits(row)));
});
