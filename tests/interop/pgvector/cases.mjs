// Loads the output of `phimap transform --output-format=copy` into PostgreSQL with pgvector (pglite,
// both compiled to WebAssembly), compares what comes back with the same features in an npy file, bit
// for bit, and runs the SQL of docs/guides/pgvector.md.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { openAsBlob, readFileSync, writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";

const SOURCE = process.env.PHIMAP_SOURCE;
const ROWS = 2000;
// Cells with the characters that COPY gives a meaning to, and texts that look like its NULL and its
// end of data.
const NAMES = ["a\ttab", "a \\ backslash", "\\N", "\\.", "", "größe, \"quoted\""];

let database;
let features; // features[i] is the Float32Array of row i

function phimap(...words) {
  execFileSync(process.env.PHIMAP, words, { stdio: ["ignore", "ignore", "inherit"] });
}

// COPY table FROM STDIN, whose input pglite takes from /dev/blob.
async function copy(table, path) {
  await database.query(`COPY ${table} FROM '/dev/blob'`, [], { blob: await openAsBlob(path) });
}

// The text of a file of SQL that the guide shows.
function statement(file) {
  return readFileSync(`${SOURCE}/docs/guides/pgvector.md`, "utf8").match(new RegExp(`<!-- file: ${file} -->\n\`\`\`sql\n(.*?)\`\`\``, "s"))[1];
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
  const [header, ...rows] = readFileSync(`${SOURCE}/lab/data/letter.csv`, "utf8").split("\n").slice(0, ROWS + 1);
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
  await copy("items (id, name, embedding)", "rows.copy");
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

test("the guide's table, query and index find a row itself first", async () => {
  await database.exec(statement("table.sql").replace(/vector\(\d+\)/, `vector(${features[0].length})`));
  phimap("transform", "map.phimap", "--input=rows.csv", "--passthrough=label", "-o", "letters.copy");
  await copy("letters (label, embedding)", "letters.copy");
  const query = statement("nearest.sql").replaceAll(":'row'", `'[${features[6].join()}]'`);
  const { rows } = await database.query(query);
  assert.deepEqual([rows[0].id, rows[0].distance], [7, "0.000"]);
  await database.exec(`${statement("index.sql")} SET enable_seqscan = off`);
  assert.match(JSON.stringify((await database.query(`EXPLAIN ${query}`)).rows), /Index Scan/);
  assert.equal((await database.query(query)).rows[0].id, 7);
});

test("the guide finds a text in spite of typing errors", async () => {
  const run = (line) => execFileSync("bash", ["-c", line], { cwd: SOURCE });
  const at = process.cwd();
  run(`ls {core,server,client}/*/*.h {core,server,client}/*/*/*.h > ${at}/paths`);
  run(`xargs head -qn 1 < ${at}/paths > ${at}/abouts.txt`);
  writeFileSync("text.txt", "a CVS file with a headr\n");
  phimap("build", "--local", "-o", "abouts.phimap", "--input=abouts.txt", "--spec=f2(landmarks=250)",
         "--kernel=normalize(spectrum(n=3))");
  phimap("transform", "abouts.phimap", "--input=abouts.txt", "-o", "vectors.copy");
  phimap("transform", "abouts.phimap", "--input=text.txt", "-o", "text.copy");
  execFileSync("bash", ["-c", "paste paths vectors.copy > abouts.copy"]);
  await database.exec(statement("abouts.sql"));
  await copy("headers (path, about)", "abouts.copy");
  const { rows } = await database.query(
    statement("same.sql").replaceAll(":'text'", `'${readFileSync("text.copy", "utf8").trim()}'`));
  assert.equal(rows[0].path, "client/files/csv_reader.h");
});

test("a table with serial ids takes vectors alone, in their order", async () => {
  phimap("transform", "map.phimap", "--input=rows.csv", "-o", "vectors", "--output-format=copy");
  await database.exec(`CREATE TABLE numbered (id bigserial PRIMARY KEY, embedding vector(${features[0].length}))`);
  await copy("numbered (embedding)", "vectors");
  const { rows } = await database.query(`SELECT count(*)::int AS equal FROM items
    JOIN numbered ON items.id = numbered.id AND items.embedding = numbered.embedding`);
  assert.equal(rows[0].equal, ROWS);
});

test("the smallest and the largest numbers keep their bits", async () => {
  writeFileSync("edges.csv", "a,b,c\n1e-45,3.4028235e38,16777216\n1.17549435e-38,-1e-40,0.1\n");
  writeFileSync("unit.csv", "a,b,c\n1,0,0\n0,1,0\n0,0,1\n");
  phimap("build", "--local", "-o", "unit.phimap", "--input=unit.csv", "--spec=f1(landmarks=3)", "--kernel=linear()");
  phimap("transform", "unit.phimap", "--input=edges.csv", "-o", "edges.copy");
  phimap("transform", "unit.phimap", "--input=edges.csv", "-o", "edges.npy");
  await database.exec("CREATE TABLE edges (id bigserial, embedding vector(3))");
  await copy("edges (embedding)", "edges.copy");
  const { rows } = await database.query("SELECT embedding::text AS embedding FROM edges ORDER BY id");
  const expected = npyRows("edges.npy");
  assert.equal(Math.max(...expected[0]), 2 ** 128 - 2 ** 104); // with this kernel and these landmarks they are the inputs
  expected.forEach((row, i) => assert.equal(bits(JSON.parse(rows[i].embedding)), bits(row)));
});
