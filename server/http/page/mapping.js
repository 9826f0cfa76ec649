// A mapping: its aliases, versions, builds, and the drift of what its aliases serve.

import * as api from './api.js';
import { buildsSection } from './builds.js';
import { verdictChip } from './certificate.js';
import { el, link, section, table } from './dom.js';
import { driftChip, driftView } from './drift.js';
import { bytes, count, number } from './format.js';
import { answersOf, crumbs, hrefOf, when } from './marks.js';

const NUMBER = (text) => ({ text, number: true });

function aliasesSection(mapping, drifts) {
  const aliases = mapping.aliases ?? [];
  return section('Aliases', aliases.length === 0 ? el('p', { class: 'quiet' }, 'None. An alias is a name that can be moved from version to version.')
    : table('Aliases', ['alias', NUMBER('version'), NUMBER('before'), 'moved', 'drift', 'digest'], aliases.map((alias) => [
      link(hrefOf(mapping.name, alias.name), alias.name), link(hrefOf(mapping.name, alias.version), alias.version),
      number(alias.previous_version) || '–', when(alias.move_time), driftChip(drifts.find((drift) => drift.alias === alias.name)),
      el('code', {}, (alias.digest ?? '').slice(0, 12)),
    ])));
}

function versionsSection(mapping, listed, signal) {
  const holder = el('div');
  const rows = [];
  async function add({ versions = [], next_page_token: next }) {
    const later = versions.map((version) => {
      const verdict = el('span', {}, '…');
      const answers = el('span');
      const { number: which } = version.ref;
      rows.push([
        link(hrefOf(mapping.name, which), which), verdict, answers, `${version.input_columns || 'text'} → ${count(version.output_columns)}`,
        bytes(version.artifact_size_bytes), when(version.create_time),
        (mapping.aliases ?? []).filter((alias) => alias.version === which).map((alias) => el('span', { class: 'chip' }, alias.name)),
        el('span', { class: 'code' }, version.spec_text), el('span', { class: 'code' }, version.kernel_text),
      ]);
      return { which, verdict, answers };
    });
    holder.replaceChildren(
      table('Versions', [NUMBER('version'), 'verdict', 'answers', 'columns', NUMBER('size'), 'created', 'aliases', 'spec', 'kernel'], rows),
      ...(next ? [el('button', { type: 'button', click: async () => add(await api.listVersions(mapping.name, next, signal)) }, 'Show more')] : []));
    for (const { which, verdict, answers } of later) {
      const version = await api.getVersion(mapping.name, which, signal).catch(() => null);
      if (signal.aborted) return;
      verdict.replaceChildren(version === null ? '–' : verdictChip(version.certificate?.verdict));
      answers.replaceChildren(version === null ? '–' : answersOf(version.head));
    }
  }
  add(listed);
  return section('Versions', holder);
}

export async function mappingScreen({ signal, title }, name) {
  title(name);
  const [mapping, listed, drift] = await Promise.all([
    api.getMapping(name, signal), api.listVersions(name, '', signal), api.getDrift(name, signal),
  ]);
  const drifts = drift.aliases ?? [];
  return [
    crumbs([mapping.name]), el('h1', {}, mapping.name),
    versionsSection(mapping, listed, signal), aliasesSection(mapping, drifts), await buildsSection(name, signal),
    drifts.length > 0 && section('Drift', el('p', { class: 'quiet' }, 'Of the rows that this very server served.'),
      drifts.map((one) => driftView(mapping.name, one))),
  ];
}
