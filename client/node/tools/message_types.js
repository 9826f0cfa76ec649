// The types of the objects that calls return, written from the .proto files by the rules of lib/results.js.
import { mayBeNull, resultName, wordOf } from '../lib/results.js';
import { loadRoot } from '../lib/schema.js';

// The answers of calls, by their messages, and the names that the types have.
const RESULTS = {
  AdviseResponse: 'Advice',
  Alias: 'Alias',
  AuditEntry: 'AuditEntry',
  BuildJob: 'BuildJob',
  Capability: 'Capability',
  EstimateBuildResponse: 'BuildEstimate',
  Evaluation: 'Evaluation',
  GetDriftResponse: 'Drift',
  ListCapabilitiesResponse: 'Capabilities',
  Mapping: 'Mapping',
  ParameterInfo: 'Parameter',
  Version: 'Version',
  VersionRef: 'VersionRef',
};

/** Returns the text of messages.d.ts. */
export function typesOfMessages() {
  const api = loadRoot({ alternateCommentMode: true }).lookup('phimap.v1');
  const written = new Map();
  for (const name of Object.keys(RESULTS)) write(api.lookupType(name), written);
  const reasons = Object.entries(api.lookupEnum('ErrorReason').values)
    .filter(([, number]) => number !== 0)
    .map(([name]) => {
      const reason = name.replace('ERROR_REASON_', '');
      return `${comment(api.lookupEnum('ErrorReason').comments[name], '  ')}  readonly ${reason}: '${reason}';\n`;
    });
  return [
    '// Written from the .proto files by tools/message_types.js.\n\n',
    '/** Numbers of rows, row by row. */\n',
    'export interface Matrix<Values extends Float32Array | Float64Array = Float32Array | Float64Array> {\n',
    '  rows: number;\n  columns: number;\n  values: Values;\n}\n',
    ...[...written.values()],
    `\n/** The reasons that errors may have. */\nexport declare const Reason: {\n${reasons.join('')}};\n`,
  ].join('');
}

// "Certificate.Error" is CertificateError.
function typeName(type) {
  const path = type.fullName.replace('.phimap.v1.', '').split('.');
  return [RESULTS[path[0]] ?? path[0], ...path.slice(1)].join('');
}

function write(type, written) {
  if (written.has(type)) return;
  written.set(type, '');
  const fields = type.fieldsArray.map(
    (field) => `${comment(field.comment, '  ')}  ${resultName(field)}: ${fieldType(field, written)};\n`,
  );
  written.set(type, `\n${comment(type.comment, '')}export interface ${typeName(type)} {\n${fields.join('')}}\n`);
}

function fieldType(field, written) {
  const type = valueType(field, written);
  if (field.repeated) return type.includes('|') ? `(${type})[]` : `${type}[]`;
  return mayBeNull(field) ? `${type} | null` : type;
}

function valueType(field, written) {
  const { resolvedType } = field;
  if (resolvedType?.values) {
    // A newer server may answer a word that these types do not have.
    return [
      ...Object.values(resolvedType.values).map((number) => `'${wordOf(resolvedType, number)}'`),
      '(string & {})',
    ].join(' | ');
  }
  switch (resolvedType?.fullName) {
    case undefined:
      break;
    case '.google.protobuf.Timestamp':
      return 'Date';
    case '.google.protobuf.Duration':
      return 'number';
    case '.phimap.v1.DenseRows':
      return 'Matrix';
    default:
      write(resolvedType, written);
      return typeName(resolvedType);
  }
  if (field.type === 'uint64') return 'bigint';
  return { string: 'string', bool: 'boolean', bytes: 'Uint8Array' }[field.type] ?? 'number';
}

function comment(text, indent) {
  if (!text) return '';
  const lines = text
    .trim()
    .split('\n')
    .map((line) => line.trim().replace(/\*\//g, '* /'));
  return lines.length === 1
    ? `${indent}/** ${lines[0]} */\n`
    : `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`;
}
