// Reads what was pasted or dropped into rows: JSON, or lines of cells as in CSV. Names of columns in the
// first line find the version's columns; other columns, such as a label or an id, stay beside the rows.

// Splits a text into lines of cells. A cell in quotation marks may hold the delimiter and line breaks.
export function cellsOf(text, delimiter) {
  const lines = [];
  let line = [];
  let cell = '';
  let quoted = false;
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') cell += text[++i];
      else quoted = false;
    } else if (c === '"' && cell.trim() === '') {
      quoted = true;
      cell = '';
    } else if (c === delimiter || c === '\n') {
      line.push(cell);
      cell = '';
      if (c === '\n') {
        lines.push(line);
        line = [];
      }
    } else if (c !== '\r') {
      cell += c;
    }
  }
  line.push(cell);
  lines.push(line);
  return lines.filter((one) => one.length > 1 || one[0].trim() !== '').map((one) => one.map((value) => value.trim()));
}

// The delimiter that is most frequent in the first line; spaces if there is none.
function linesOf(text) {
  const first = text.trimStart().split('\n', 1)[0].replace(/"[^"]*"/g, '');
  const [delimiter, times] = [',', '\t', ';'].map((one) => [one, first.split(one).length - 1]).sort((a, b) => b[1] - a[1])[0];
  if (times > 0) return cellsOf(text, delimiter);
  return text.split('\n').map((line) => line.trim()).filter((line) => line !== '').map((line) => cellsOf(line.replace(/\s+/g, ' '), ' ')[0]);
}

const isNumber = (cell) => cell !== '' && Number.isFinite(Number(cell));
const quote = (text) => `“${text.length > 60 ? `${text.slice(0, 60)}…` : text}”`;

// Returns for each input column its place in a line.
function placesOf(header, names, columns, width) {
  if (header === null || names.length === 0) {
    if (width === columns) return Array.from({ length: columns }, (_, i) => i);
    throw new Error(`expected ${columns} columns, got ${width}${names.length > 0 ? '; a first line with the names of the columns may bring others too' : ''}`);
  }
  const missing = names.filter((name) => !header.includes(name));
  if (missing.length > 0) throw new Error(`the first line lacks ${missing.length === 1 ? 'the column' : `${missing.length} columns, such as`} ${quote(missing[0])}`);
  return names.map((name) => header.indexOf(name));
}

// Returns `rows`, arrays of numbers, and `beside`, columns of texts with their names.
function readNumbers(text, columns, names) {
  if (text.trimStart().startsWith('[')) {
    const rows = JSON.parse(text);
    return { rows: Array.isArray(rows[0]) ? rows : [rows], beside: [] };
  }
  const lines = linesOf(text);
  const isHeader = lines[0].some((cell) => names.includes(cell)) || lines[0].every((cell) => !isNumber(cell));
  const header = isHeader ? lines.shift() : null;
  if (lines.length === 0) throw new Error('there is no row below the names of the columns');
  const places = placesOf(header, names, columns, lines[0].length);
  const width = header?.length ?? lines[0].length;
  const rows = lines.map((line, i) => {
    if (line.length !== width) throw new Error(`row ${i}: expected ${width} cells, got ${line.length}`);
    return places.map((place, column) => {
      if (!isNumber(line[place])) throw new Error(`row ${i}, column ${names[column] ?? column}: expected a number, got ${line[place] === '' ? 'nothing' : quote(line[place])}`);
      return Number(line[place]);
    });
  });
  const others = (header ?? []).map((name, place) => ({ name, place })).filter(({ place }) => !places.includes(place));
  return { rows, beside: others.map(({ name, place }) => ({ name, values: lines.map((line) => line[place]) })) };
}

// Each line is a text, unless `column` names the column of a CSV file in which the texts are.
function readTexts(text, column) {
  if (column === '') return { rows: text.split(/\r?\n/).filter((line) => line !== ''), beside: [] };
  const [header, ...lines] = linesOf(text);
  const place = header.indexOf(column);
  if (place < 0) throw new Error(`the first line has no column ${quote(column)}; it has ${header.map(quote).join(', ')}`);
  return {
    rows: lines.map((line) => line[place] ?? ''),
    beside: header.map((name, i) => ({ name, values: lines.map((line) => line[i] ?? '') })).filter((_, i) => i !== place),
  };
}

// Reads at most `limit` rows of numbers, or of texts where the version has no columns. `total` is how
// many there were. Throws an Error that says what is wrong where.
export function readRows(text, version, column, limit) {
  if (text.trim() === '') throw new Error('there are no rows yet: paste some, or drop a file');
  const read = version.input_columns ? readNumbers(text, version.input_columns, version.column_names ?? []) : readTexts(text, column);
  return {
    total: read.rows.length, rows: read.rows.slice(0, limit),
    beside: read.beside.map(({ name, values }) => ({ name, values: values.slice(0, limit) })),
  };
}

const inCsv = (text) => (/[",\n;\t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// Rows of the version's self-check as CSV: they are made up from the means and deviations of the
// build's columns. Null if it has none.
export function exampleRows(version) {
  const rows = version.certificate?.self_check?.rows;
  if (!rows?.float32_le) return null;
  const bytes = Uint8Array.from(atob(rows.float32_le), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const lines = (version.column_names ?? []).length > 0 ? [version.column_names.map(inCsv).join(',')] : [];
  for (let row = 0; row < rows.rows; ++row) {
    lines.push(Array.from({ length: rows.columns }, (_, i) => Number(view.getFloat32(4 * (row * rows.columns + i), true).toPrecision(4))).join(','));
  }
  return lines.join('\n');
}
