// What the server can build: families of mappings, kernels, landmark policies and learners.

import * as api from './api.js';
import { el, section, table } from './dom.js';

const parametersOf = (one) => (one.parameters ?? []).map((parameter) => el('li', {},
  el('code', {}, parameter.name), parameter.required ? ' (required)' : parameter.default_value ? ` = ${parameter.default_value}` : '',
  ': ', parameter.line ?? '', parameter.expected ? ` (${parameter.expected})` : ''));

function tableOf(title, list = []) {
  return section(title, table(title, ['name', 'what it is', 'parameters'], list.map((one) => [
    el('code', { class: 'nowrap' }, one.name),
    el('div', { class: 'long' }, el('div', {}, one.line ?? ''), one.formula && el('div', { class: 'quiet' }, one.formula), one.theorem && el('div', { class: 'quiet' }, one.theorem)),
    one.parameters?.length ? el('details', { class: 'long' },
      el('summary', {}, `${one.parameters.length} parameter${one.parameters.length === 1 ? '' : 's'}`, el('span', { class: 'unseen' }, ` of ${one.name}`)),
      el('ul', { class: 'plain' }, parametersOf(one))) : 'none',
  ])));
}

export async function offersScreen({ signal, title }) {
  title('What it can build');
  const can = await api.listCapabilities(signal);
  return [
    el('h1', {}, 'What this server can build'),
    el('p', {}, 'The words of a build, such as ', el('code', {}, "phimap build letters --spec='f2(landmarks=500)' --kernel='rbf(gamma=scale)'"), '.'),
    tableOf('Families', can.families), tableOf('Kernels', can.kernels), tableOf('Landmark policies', can.policies), tableOf('Learners', can.learners),
  ];
}
