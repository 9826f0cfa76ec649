// Builds and trainings with their progress, of one mapping or of all. While one of them runs, the table
// is read again every two seconds.

import * as api from './api.js';
import { announce, el, link, section, table } from './dom.js';
import { count, number, percent, span, word } from './format.js';
import { hrefOf } from './marks.js';

const PAUSE_MS = 2000;
const RUNNING = ['receiving', 'queued', 'computing', 'publishing'];

const stateOf = (job) => word(job.state, 'STATE_');

function rowOf(job) {
  const state = stateOf(job);
  const running = RUNNING.includes(state);
  const fraction = number(job.fraction);
  const chip = el('span', { class: `chip ${state === 'done' ? 'good' : running ? '' : 'failed'}` }, state);
  const progress = running ? [
    el('progress', { max: 1, value: state === 'computing' || state === 'publishing' ? fraction : null, 'aria-label': `Progress of build ${job.build_id}` }),
    ` ${percent(fraction, 2)}${job.phase ? `, ${job.phase}` : ''}${job.seconds_left > 0 ? `, ${span(job.seconds_left)} left` : ''}`,
  ] : job.error_message ?? (job.version ? link(hrefOf(job.name, job.version.number), `${job.name}@${job.version.number}`) : '');
  return [el('code', {}, job.build_id), link(hrefOf(job.name), job.name), chip, progress, count(job.rows_received)];
}

// `name` is null for all mappings. The table ends to be read again when `signal` does.
export async function buildsSection(name, signal, onDone = () => {}) {
  const holder = el('div');
  let before = null;
  async function update() {
    const { builds = [] } = await api.listBuilds(name, signal);
    const text = JSON.stringify(builds);
    // A table that is the same stays, with the focus and the scroll that it has.
    if (text !== before) {
      holder.replaceChildren(builds.length === 0
        ? el('p', { class: 'quiet' }, 'This server has none in memory; those that ended before it started are not listed.')
        : table('Builds and trainings', ['build', 'mapping', 'state', { text: 'progress or result' }, { text: 'rows', number: true }], builds.map(rowOf)));
    }
    const running = builds.filter((job) => RUNNING.includes(stateOf(job))).length;
    const ranBefore = before === null ? 0 : JSON.parse(before).filter((job) => RUNNING.includes(stateOf(job))).length;
    before = text;
    if (running < ranBefore) {
      announce(running === 0 ? 'No build runs any more' : `${running} builds run`);
      onDone();
    }
    if (running > 0) again();
  }
  function again() {
    const timer = setTimeout(async () => {
      // Nobody looks at a tab that is hidden.
      if (document.hidden) return again();
      await update().catch(() => {});
    }, PAUSE_MS);
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  }
  await update();
  return section('Builds and trainings', holder);
}
