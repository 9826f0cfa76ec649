// Runs the JavaScript of client/node/README.md, from the first block to the last, and compares what it prints with its comments.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { PHIMAP_SOURCE, phimapd } from './support.mjs';

test('the blocks of the page run, and print what their comments say', async (t) => {
  const page = readFileSync(`${PHIMAP_SOURCE}/client/node/README.md`, 'utf8');
  const blocks = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) => block);
  assert.equal(blocks.length, 3);
  const program = fileURLToPath(new URL('readme.run.mjs', import.meta.url));
  t.after(() => rmSync(program, { force: true }));
  writeFileSync(program, blocks.join('\n'));
  const expected = [...blocks.join('').matchAll(/console\.log\(.*\); +\/\/ (.*)$/gm)].flatMap(([, said]) => {
    const [, line, times] = /^(.*?)(?:, (four) times)?$/.exec(said);
    return Array(times ? 4 : 1).fill(line);
  });
  const { address } = await phimapd(t);
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
    env: { ...process.env, PHIMAP_SERVER: address },
  });
  assert.deepEqual(stdout.trim().split('\n'), expected);
});
