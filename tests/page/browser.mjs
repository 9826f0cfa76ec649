// Headless Chromium, and pages of it that note whatever they should not do.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import puppeteer from 'puppeteer-core';

const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function launch() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM, headless: true,
    userDataDir: fs.mkdtempSync(path.join(process.env.WORK ?? os.tmpdir(), 'profile-')),
    // Chromium does not sandbox itself for root, who runs these tests in containers.
    args: ['--disable-gpu', '--disable-dev-shm-usage', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
  });
}

// A page and what happened on it: `faults`, messages of errors; `requests`, all that it sent.
export class Screen {
  static async open(browser, origin, hash = '', { width = 1200, scheme = 'light' } = {}) {
    const screen = new Screen();
    screen.faults = [];
    screen.requests = [];
    screen.origin = origin;
    // A context of its own, with empty storage.
    screen.context = await browser.createBrowserContext();
    const page = screen.page = await screen.context.newPage();
    page.on('console', (message) => {
      if (['error', 'warn', 'assert'].includes(message.type())) screen.faults.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => screen.faults.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => {
      screen.faults.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on('request', (request) => screen.requests.push({ method: request.method(), url: request.url(), headers: request.headers() }));
    await page.evaluateOnNewDocument(() => {
      window.violations = [];
      document.addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    await page.setViewport({ width, height: 900 });
    await page.goto(`${origin}/${hash}`, { waitUntil: 'networkidle0' });
    await page.waitForSelector('h1');
    return screen;
  }

  close() {
    return this.context.close();
  }

  text(selector) {
    return this.page.$eval(selector, (node) => node.textContent);
  }

  async heading(expected) {
    await this.page.waitForFunction((text) => document.querySelector('h1')?.textContent.startsWith(text), { timeout: 20000 }, expected);
  }

  // Clicks the first element of this kind with this text.
  async click(selector, words) {
    const handle = await this.page.waitForFunction((kind, text) => [...document.querySelectorAll(kind)].find((node) => node.textContent.includes(text)), {}, selector, words);
    await handle.click();
  }

  // Puts rows in, computes, and returns the answer's JSON.
  async compute(rows, { wanted } = {}) {
    await this.page.$eval('#rows', (area, text) => { area.value = text; }, rows);
    if (wanted) await this.page.select('#wanted', wanted);
    return this.press();
  }

  async press() {
    await this.page.evaluate(() => document.querySelector('form > div:last-child').replaceChildren());
    await this.click('button', 'Compute');
    await this.page.waitForSelector('pre.answer, form [role=alert]');
    const alert = await this.page.$('form [role=alert]');
    if (alert !== null) throw new Error(await alert.evaluate((node) => node.textContent));
    return JSON.parse(await this.text('pre.answer'));
  }

  // What axe finds, a line each.
  async violations() {
    await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    return violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
  }

  // All faults so far, those of the policy among them.
  async allFaults() {
    return [...this.faults, ...(await this.page.evaluate(() => window.violations)).map((one) => `policy: ${one}`)];
  }

  // Requests that are not what the page may send: reads of this server, and :transform and :predict.
  foreignRequests() {
    return this.requests.filter(({ method, url }) => {
      const { origin, pathname } = new URL(url);
      if (origin !== this.origin) return true;
      return !(method === 'GET' || (method === 'POST' && /^\/v1\/mappings\/[^/]+:(transform|predict)$/.test(pathname)));
    }).map(({ method, url }) => `${method} ${url}`);
  }
}
