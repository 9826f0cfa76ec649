// A real phimapd with an API over HTTP, and mappings of each kind for the page to show.

import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import readline from 'node:readline';
import { promisify } from 'node:util';

const run = promisify(execFile);
const source = process.env.PHIMAP_SOURCE;

// Texts that would be a script if they ever became HTML. They are names of columns and of classes,
// which people choose who may build.
export const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '"><script>alert(2)</script>',
  "javascript:alert(3)//'`${alert(4)}",
  '</title><style>*{display:none}</style>',
];

export class Server {
  // `folder` gets the store and files of rows. $PHIMAP_BUILD is the build folder.
  static async start(folder, flags = []) {
    const build = process.env.PHIMAP_BUILD;
    fs.mkdirSync(folder, { recursive: true });
    const server = new Server();
    server.phimap = path.join(build, 'client/cli/phimap');
    server.folder = folder;
    server.process = spawn(path.join(build, 'server/phimapd'),
      [`--data_dir=${path.join(folder, 'store')}`, '--listen=127.0.0.1:0', '--http=127.0.0.1:0',
        '--api_http=127.0.0.1:0', '--log_level=error', ...flags],
      { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await new Promise((resolve, reject) => {
      const lines = [];
      readline.createInterface({ input: server.process.stdout }).on('line', (text) => {
        lines.push(text);
        if (text.startsWith('phimapd ready')) resolve([text]);
      });
      server.process.on('exit', (code) => reject(new Error(`phimapd ended with ${code}: ${lines}`)));
    });
    server.grpc = line.match(/grpc=(\S+)/)[1];
    server.http = line.match(/api_http=(\S+)/)[1];
    server.origin = `http://${server.http}`;
    return server;
  }

  async stop() {
    if (this.process.exitCode !== null) return;
    const ended = new Promise((resolve) => this.process.on('exit', resolve));
    this.process.kill('SIGTERM');
    await ended;
  }

  // Runs the command line and returns what it printed.
  async cli(...words) {
    const { stdout } = await run(this.phimap, words, {
      cwd: source, env: { ...process.env, PHIMAP_SERVER: this.grpc, no_proxy: '127.0.0.1' }, maxBuffer: 1 << 26,
    });
    return stdout;
  }

  // Asks the API itself, and returns the JSON of the answer.
  async ask(method, target, body, token) {
    const headers = {};
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (token) headers.authorization = `Bearer ${token}`;
    const answer = await fetch(this.origin + target, { method, headers, body: body && JSON.stringify(body) });
    return answer.json();
  }

  file(name, text) {
    const at = path.join(this.folder, name);
    fs.writeFileSync(at, text);
    return at;
  }

  // Builds and trains what the page shows: classes with and without many names, numbers, text, names
  // that are hostile, an alias that moved and whose rows drift, and builds that run and that failed.
  async fill() {
    const data = (name) => path.join(source, 'lab/data', `${name}.csv`);
    const f2 = (landmarks) => [`--spec=f2(landmarks=${landmarks})`, '--kernel=rbf(gamma=scale)', '--standardize'];
    await this.cli('train', 'flowers', `--input=${data('iris')}`, '--label=label', ...f2(40));
    await this.cli('train', 'spam', `--input=${data('spam')}`, '--label=label', ...f2(100));
    await this.cli('build', 'letters', `--input=${data('letter')}`, '--label=label', ...f2(60));
    await this.cli('train', 'letters', `--input=${data('letter')}`, '--label=label', ...f2(200));
    await this.cli('alias', 'set', 'letters@prod', '1');
    await this.cli('alias', 'set', 'letters@prod', '2');
    await this.cli('alias', 'set', 'letters@canary', '2');

    const numbers = ['hours,heat,load,output'];
    const words = ['label,line'];
    const hostile = [[...HOSTILE.map((text) => `"${text.replaceAll('"', '""')}"`), 'kind'].join(',')];
    let state = 1;
    const random = () => { state = (state * 48271) % 2147483647; return state / 2147483647; };
    for (let i = 0; i < 900; ++i) {
      const row = [random(), random(), random(), random()].map((value) => Number(value.toFixed(4)));
      const target = Math.sin(6 * row[0]) + row[1] ** 2 - 0.5 * row[2] + 0.1 * (random() - 0.5);
      numbers.push([...row.slice(0, 3), target.toFixed(4)].join(','));
      const kind = row[0] > row[1] ? HOSTILE[1] : HOSTILE[0];
      hostile.push([...row, `"${kind.replaceAll('"', '""')}"`].join(','));
      words.push(i % 2 ? `a,the number ${i} is odd` : `b,${i} ist eine gerade Zahl`);
    }
    await this.cli('train', 'turbines', `--input=${this.file('numbers.csv', numbers.join('\n'))}`, '--label=output',
      ...f2(60), '--task=numbers');
    await this.cli('train', 'hostile', `--input=${this.file('hostile.csv', hostile.join('\n'))}`, '--label=kind', ...f2(30));
    await this.cli('build', 'lines', `--input=${this.file('words.csv', words.join('\n'))}`, '--text=line',
      '--spec=f2(landmarks=40)', '--kernel=normalize(spectrum(n=3))');
    await this.cli('build', 'waves', `--input=${this.file('numbers.csv', numbers.join('\n'))}`, '--label=output',
      '--spec=fourier(dimensions=64)', '--kernel=rbf(gamma=scale)');
  }

  // Has rows served by letters@prod that are unlike those of its build.
  async drift(seconds) {
    await this.cli('bench', 'letters@prod', `--seconds=${seconds}`, '--warmup=0.01', '--columns=16');
  }
}
