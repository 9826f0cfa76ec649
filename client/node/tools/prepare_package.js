// Puts into the package what the repository has elsewhere: the .proto files, the licence, and the types of messages. npm runs
// it before and, with --remove, after packing.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('..', import.meta.url));
const repository = fileURLToPath(new URL('../../..', import.meta.url));
const made = ['proto', 'LICENSE', 'lib/messages.d.ts'].map((name) => `${folder}${name}`);

made.forEach((path) => rmSync(path, { recursive: true, force: true }));
if (!process.argv.includes('--remove')) {
  // The version of the whole project.
  const [, version] = /^project\(phimap VERSION ([0-9.]+) /m.exec(readFileSync(`${repository}CMakeLists.txt`, 'utf8'));
  const stated = JSON.parse(readFileSync(`${folder}package.json`, 'utf8')).version;
  if (stated !== version)
    throw new Error(`package.json: expected the version ${version} of CMakeLists.txt, got ${stated}`);

  const { FILES } = await import('../lib/schema.js');
  const { typesOfMessages } = await import('./message_types.js');
  for (const file of FILES) {
    mkdirSync(dirname(`${folder}proto/${file}`), { recursive: true });
    cpSync(`${repository}proto/${file}`, `${folder}proto/${file}`);
  }
  cpSync(`${repository}LICENSE`, `${folder}LICENSE`);
  writeFileSync(`${folder}lib/messages.d.ts`, typesOfMessages());
}
