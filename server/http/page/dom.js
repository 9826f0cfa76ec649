// Makes elements. Whatever comes from the server becomes text here, and never HTML: names of columns,
// classes and versions are chosen by people, and some of them may be hostile.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

// An attribute whose value is a function listens to the event of its name. Children are nodes and
// texts; null and false are left out.
export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export const link = (href, ...children) => el('a', { href }, children);

// Facts of one thing: a word, and what it is as text or nodes. A word without anything is left out.
export function facts(pairs) {
  const known = pairs.filter(([, value]) => Boolean(value));
  return el('dl', { class: 'facts' }, known.map(([word, ...values]) => el('div', {}, el('dt', {}, word), el('dd', {}, values))));
}

// A table that scrolls sideways by itself where it is too wide, by keys too. Each column is a text,
// or an object of `text` and `number`, if its cells are numbers. The first cell heads its row.
export function table(caption, columns, rows, { hideCaption = true } = {}) {
  const isNumber = columns.map((column) => column.number === true);
  const cell = (value, i) => el(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, class: isNumber[i] ? 'number' : null }, value);
  return el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    el('table', {},
      el('caption', { class: hideCaption ? 'unseen' : null }, caption),
      el('thead', {}, el('tr', {}, columns.map((column, i) =>
        el('th', { scope: 'col', class: isNumber[i] ? 'number' : null }, column.text ?? column)))),
      el('tbody', {}, rows.map((row) => el('tr', {}, row.map(cell))))));
}

export const section = (title, ...children) => el('section', {}, el('h2', {}, title), children);

// A box that says that something went wrong.
export const trouble = (error) => el('p', { class: 'trouble', role: 'alert' }, error.message ?? String(error));

// Tells readers who cannot see what has changed.
export function announce(text) {
  document.getElementById('news').textContent = text;
}

// A text to copy.
export function copyable(title, text) {
  const button = el('button', { type: 'button', click: copy, 'aria-label': `Copy ${title}` }, 'Copy');
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
      announce(`${title} copied`);
    } catch {
      // A page that came without TLS from another machine has no clipboard.
      getSelection().selectAllChildren(code);
      button.textContent = 'Selected';
      announce(`${title} selected`);
    }
  }
  const code = el('code', {}, text);
  return el('div', { class: 'snippet' },
    el('div', { class: 'caption' }, el('h3', {}, title), button),
    el('pre', { tabindex: 0, role: 'region', 'aria-label': title }, code));
}
