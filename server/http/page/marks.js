// Small things that several screens show: where a name leads, how old something is, what a head answers.

import { el, link } from './dom.js';
import { ago, count } from './format.js';

export const hrefOf = (name, ...more) => `#/m/${[name, ...more].map(encodeURIComponent).join('/')}`;

export const when = (time) => (time ? el('time', { datetime: time, title: time, class: 'nowrap' }, ago(time)) : '–');

export const answersOf = (head) => (!head ? 'features'
  : head.task === 'HEAD_TASK_NUMBERS' ? 'numbers' : `${count(head.class_names?.length)} classes`);

// The way from the first screen to this one; the last step leads nowhere.
export const crumbs = (...steps) => el('nav', { class: 'crumbs', 'aria-label': 'Where this is' },
  el('ol', {}, [['Mappings', '#/'], ...steps].map(([words, href]) => el('li', {}, href ? link(href, words) : words))));
