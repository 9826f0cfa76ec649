// A version: what it is, its certificate and its report; beside them, to try it and to use it.

import * as api from './api.js';
import { certificateView, verdictChip } from './certificate.js';
import { el, facts, section } from './dom.js';
import { bytes, count, number, word } from './format.js';
import { answersOf, crumbs, hrefOf, when } from './marks.js';
import { reportView } from './report.js';
import { snippetsView } from './snippets.js';
import { tryView } from './tryit.js';

function factsOf(version) {
  const names = version.column_names ?? [];
  return [
    el('p', {}, verdictChip(version.certificate?.verdict), version.imported && el('span', { class: 'chip none' }, 'imported'),
      'answers ', answersOf(version.head)),
    facts([
      ['Spec', el('span', { class: 'code' }, version.spec_text)],
      ['Kernel', el('span', { class: 'code' }, version.kernel_text)],
      ['Learner', version.head && el('span', { class: 'code' }, version.head.learner)],
      ['Columns in', version.input_columns ? count(version.input_columns) : 'text'],
      ['Features out', `${count(version.output_columns)}, ${word(version.serving_type, 'SERVING_TYPE_')}`],
      ['Standardized', version.standardize ? 'yes' : 'no'],
      ['Size', bytes(version.artifact_size_bytes)],
      ['Created', when(version.create_time)],
      ['Expires', version.expire_time],
      ['Digest', el('code', {}, version.ref.digest)],
    ]),
    names.length > 0 && el('details', {}, el('summary', {}, `Names of the ${count(names.length)} columns`),
      el('ol', { class: 'plain' }, names.map((name) => el('li', {}, name)))),
    version.head?.class_names?.length > 0 && el('details', {}, el('summary', {}, `Names of the ${count(version.head.class_names.length)} classes`),
      el('ol', { class: 'plain' }, version.head.class_names.map((name) => el('li', {}, name)))),
  ];
}

export async function versionScreen({ signal, title }, name, which, tab) {
  const version = await api.getVersion(name, which, signal);
  const reference = `${version.ref.name}@${which}`;
  title(`${reference}${tab === '' ? '' : tab === 'try' ? ', try it' : ', use it'}`);
  const isAlias = which !== String(number(version.ref.number));
  const tabs = [['Certificate and report', ''], ['Try it', 'try'], ['Use it', 'use']].map(([words, to]) => el('a', {
    href: hrefOf(name, which, ...(to ? [to] : [])), 'aria-current': to === tab ? 'page' : null,
  }, words));
  return [
    crumbs([version.ref.name, hrefOf(version.ref.name)], [which]),
    el('h1', {}, reference, isAlias && el('span', { class: 'quiet' }, ` is version ${version.ref.number}`)),
    el('nav', { class: 'tabs', 'aria-label': 'Views of this version' }, tabs),
    tab === '' ? [section('What it is', factsOf(version)), certificateView(version.certificate), reportView(version.head)]
      : tab === 'try' ? tryView(version, reference, signal) : snippetsView(version, reference, await api.grpcAddress(signal)),
  ];
}
