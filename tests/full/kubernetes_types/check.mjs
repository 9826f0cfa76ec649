// Compiles Kubernetes objects as literals of Kubernetes' own types, in TypeScript.
//
//   node check.mjs objects.json
//
// Prints a line for each field that does not exist, is missing, has a value of another type, or is deprecated.
import fs from 'node:fs';

import ts from 'typescript';

// The packages that have the types of an API group; those of Kubernetes itself are in kubernetes-models.
const PACKAGES = [
  ['cert-manager.io/', '@kubernetes-models/cert-manager/'],
  ['monitoring.coreos.com/', '@kubernetes-models/prometheus-operator/'],
  ['', 'kubernetes-models/'],
];

function declaration(object, number) {
  const [, folder] = PACKAGES.find(([group]) => object.apiVersion.startsWith(group));
  return `import type { I${object.kind} as Type${number} } from ${JSON.stringify(folder + object.apiVersion)};\n` +
    `export const ${object.kind}${number}: Type${number} = ${JSON.stringify(object, null, 1)};\n`;
}

// The fields of a literal whose documentation says that they are deprecated.
function* deprecated(node, checker) {
  if (ts.isPropertyAssignment(node)) {
    const type = checker.getContextualType(node.parent);
    const field = type && checker.getNonNullableType(type).getProperty(node.name.text);
    const about = field === undefined ? '' : ts.displayPartsToString(field.getDocumentationComment(checker));
    if (/deprecated/i.test(about)) yield `${node.name.text}: ${about}`;
  }
  const children = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* deprecated(child, checker);
}

const file = 'objects.ts';
fs.writeFileSync(file, JSON.parse(fs.readFileSync(process.argv[2], 'utf8')).map(declaration).join('\n'));
const program = ts.createProgram([file], {
  strict: true, noEmit: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext,
});
const source = program.getSourceFile(file);
for (const fault of ts.getPreEmitDiagnostics(program)) {
  const line = fault.file === undefined ? '' : fault.file.text.split('\n')[fault.file.getLineAndCharacterOfPosition(fault.start).line];
  console.log(`${line.trim()} ${ts.flattenDiagnosticMessageText(fault.messageText, ' ')}`);
}
for (const fault of deprecated(source, program.getTypeChecker())) console.log(fault);
