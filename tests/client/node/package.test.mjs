// The package as it is installed: tests/interop/run_package has installed what `npm pack` makes into the folder CONSUMER.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import ts from 'typescript';
import * as phimap from 'phimap';
import { PHIMAP_SOURCE, phimapd } from './support.mjs';

const { CONSUMER } = process.env;
const INSTALLED = join(CONSUMER, 'node_modules/phimap');
const run = promisify(execFile);

test('a program uses the installed package', async (t) => {
  const { address } = await phimapd(t);
  const { stdout, stderr } = await run(process.execPath, ['consumer.mjs'], {
    cwd: CONSUMER,
    env: { ...process.env, PHIMAP_SERVER: address },
  });
  assert.equal(stdout, 'consumer@1 7 700 true true\n');
  assert.equal(stderr, '');
});

test('a program in TypeScript compiles with --strict, and its mistakes are found', async () => {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const typeRoots = join(tsc, '../../../@types');
  const { stdout } = await run(process.execPath, [tsc, '--project', CONSUMER, '--typeRoots', typeRoots]).catch(
    (error) => error,
  );
  assert.equal(stdout, '');
});

test('the types declare what the module exports, and each method of the client', () => {
  const file = join(INSTALLED, 'lib/index.d.ts');
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: [],
  });
  const checker = program.getTypeChecker();
  const declared = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
  const values = declared.filter((symbol) => symbol.flags & ts.SymbolFlags.Value);
  assert.deepEqual(values.map(({ name }) => name).sort(), Object.keys(phimap).sort());
  const methods = declared.find(({ name }) => name === 'Client').members;
  const names = [...methods.values()].map(({ name }) => name).filter((name) => name !== '__constructor');
  assert.deepEqual(
    names.sort(),
    Object.getOwnPropertyNames(phimap.Client.prototype)
      .filter((name) => name !== 'constructor')
      .sort(),
  );
  const reasons = checker.getTypeOfSymbol(declared.find(({ name }) => name === 'Reason')).getProperties();
  assert.deepEqual(reasons.map(({ name }) => name).sort(), Object.keys(phimap.Reason).sort());
});

test('the package has what it needs, and no more', () => {
  const files = readdirSync(INSTALLED).sort();
  assert.deepEqual(files, ['LICENSE', 'README.md', 'lib', 'package.json', 'proto']);
  assert.deepEqual(Object.keys(JSON.parse(readFileSync(join(INSTALLED, 'package.json'), 'utf8')).dependencies), [
    '@grpc/grpc-js',
    'protobufjs',
  ]);
  for (const proto of ['phimap/v1/mapping_service.proto', 'phimap/rpc/error_details.proto']) {
    assert.equal(
      readFileSync(join(INSTALLED, 'proto', proto), 'utf8'),
      readFileSync(join(PHIMAP_SOURCE, 'proto', proto), 'utf8'),
    );
  }
  assert.ok(!existsSync(join(INSTALLED, 'proto/phimap/v1/kernel_service.proto')));
});
