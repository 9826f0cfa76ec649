// Programs to copy, which ask for this version under this address. A token is never among them: where
// this page has one, they read it from the environment, as all clients do.

import { hasToken } from './api.js';
import { copyable, el, section } from './dom.js';

// A row is written out if it has no more numbers than this.
const MOST_NUMBERS = 64;

// Returns the snippets as pairs of a title and a text. `grpc` is null if gRPC has no port.
export function snippetsOf({ version, reference, grpc, origin, token }) {
  const isText = !version.input_columns;
  const columns = version.input_columns ?? 0;
  const written = columns <= MOST_NUMBERS;
  const row = isText ? '["a text"]' : written ? `[[${Array(columns).fill(0).join(', ')}]]` : null;
  const numpy = isText ? row : `numpy.zeros((1, ${columns}))`;
  const call = version.head ? 'predict' : 'transform';
  const isClasses = version.head?.task === 'HEAD_TASK_CLASSES';
  const probable = version.head?.has_probabilities === true;
  const address = grpc ?? 'HOST:PORT';
  const isTls = origin.startsWith('https:');
  const python = [
    ...(isText ? [] : ['import numpy']), 'import phimap', '',
    ...(isTls ? ['# PHIMAP_TLS_CA names the file of the authorities that signed the certificate of the server.'] : []),
    ...(token ? ['# PHIMAP_TOKEN has the token.'] : []),
    `with phimap.Client("${address}") as client:`,
    ...(version.head
      ? [`    answer = client.predict("${reference}", ${numpy}${probable ? ', probabilities=True' : ''})`,
        `    print(answer.${isClasses ? 'labels' : 'values'}${probable ? ', answer.probabilities' : ''})`]
      : [`    features = client.transform("${reference}", ${numpy})`, '    print(features.shape)']),
  ];
  const body = `{"rows": ${row ?? '…'}${version.head && probable ? ', "probabilities": true, "label_names": true' : ''}}`;
  const curl = [
    ...(row === null ? [`# rows.json has {"rows": [[…]]} with ${columns} numbers a row.`] : []),
    `curl -sS '${origin}/v1/mappings/${reference}:${call}' \\`, ...(token ? ['  -H "authorization: Bearer $PHIMAP_TOKEN" \\'] : []),
    "  -H 'content-type: application/json' \\", row === null ? '  --data-binary @rows.json' : `  -d '${body}'`,
  ];
  const rows = isText ? "['a text']" : written ? row : `[new Float64Array(${columns})]`;
  const node = [
    "import { Client } from 'phimap';", '', `const client = new Client('${address}');`,
    ...(version.head
      ? [`const answer = await client.predict('${reference}', ${rows}${probable ? ', { probabilities: true }' : ''});`,
        `console.log(answer.${isClasses ? 'labels' : 'values'});`]
      : [`const { features, columns } = await client.transform('${reference}', ${rows});`, 'console.log(features, columns);']),
    'client.close();',
  ];
  const shell = [
    `export PHIMAP_SERVER=${address}`, `phimap show ${reference}`,
    `phimap ${call} ${reference} --input=rows.${isText ? 'txt' : 'csv'} --output=${version.head ? 'answers.csv' : 'features.npy'}`,
  ];
  return [['Python', python], ['curl', curl], ['Node.js', node], ['Command line', shell]].map(([title, lines]) => [title, lines.join('\n')]);
}

export function snippetsView(version, reference, grpc) {
  const which = reference.slice(reference.indexOf('@') + 1);
  const isNumber = /^\d+$/.test(which);
  return section('Use it from a program',
    el('p', {}, isNumber ? 'A number means this very version for ever. An alias can be moved to a better one without a change in any program.'
      : which.startsWith('sha256:') ? 'A digest means these very features on any server.'
        : 'An alias means whatever version it points to at each call. Pin a number where a model depends on these very features.'),
    grpc === null && el('p', { class: 'warning' }, 'This server speaks gRPC on a Unix socket only; put its path for HOST:PORT.'),
    snippetsOf({ version, reference, grpc, origin: location.origin, token: hasToken() }).map(([title, text]) => copyable(title, text)));
}
