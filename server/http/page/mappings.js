// The first screen: all mappings with their newest version, and the builds that this server knows.

import * as api from './api.js';
import { buildsSection } from './builds.js';
import { verdictChip } from './certificate.js';
import { announce, el, link, table } from './dom.js';
import { bytes, count } from './format.js';
import { answersOf, hrefOf, when } from './marks.js';

// Requests for versions that are under way at once.
const AT_ONCE = 4;

const aliasChip = (name, alias) => el('a', { class: 'chip', href: hrefOf(name, alias.name) }, `${alias.name} → ${alias.version}`);

function rowOf(mapping) {
  const later = { verdict: el('span', {}, '…'), answers: el('span'), size: el('span') };
  const cells = [
    link(hrefOf(mapping.name), mapping.name), link(hrefOf(mapping.name, mapping.newest_version), mapping.newest_version),
    later.verdict, later.answers, later.size, when(mapping.create_time), count(mapping.version_count), (mapping.aliases ?? []).map((alias) => aliasChip(mapping.name, alias)),
  ];
  return { mapping, later, cells };
}

// Fills in what only the version itself says.
async function fillIn(rows, signal) {
  const waiting = rows.filter((row) => row.mapping.newest_version !== undefined);
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      const version = await api.getVersion(row.mapping.name, row.mapping.newest_version, signal).catch(() => null);
      row.later.verdict.replaceChildren(version === null ? '–' : verdictChip(version.certificate?.verdict));
      row.later.answers.replaceChildren(version === null ? '–' : answersOf(version.head));
      row.later.size.replaceChildren(version === null ? '–' : bytes(version.artifact_size_bytes));
    }
  }));
}

export async function mappingsScreen({ signal, title }) {
  title('Mappings');
  const first = await api.listMappings('', signal);
  const holder = el('div');
  const rows = [];
  function add(listed) {
    const added = (listed.mappings ?? []).map(rowOf);
    rows.push(...added);
    fillIn(added, signal);
    const next = listed.next_page_token;
    const number = (text) => ({ text, number: true });
    holder.replaceChildren(
      rows.length === 0 ? el('p', {}, 'There is no mapping here yet. ', el('code', {}, 'phimap build'), ' makes one from rows.')
        : table('Mappings', ['name', number('newest'), 'verdict', 'answers', number('size'), 'created', number('versions'), 'aliases'],
          rows.map((row) => row.cells)),
      ...(next ? [el('button', {
        type: 'button',
        click: async () => {
          add(await api.listMappings(next, signal));
          announce(`${rows.length} mappings`);
        },
      }, 'Show more')] : []));
  }
  add(first);
  return [el('h1', {}, 'Mappings'), holder, await buildsSection(null, signal)];
}
