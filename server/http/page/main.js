// Shows the screen that the address names behind its #. The server sees none of that part, and a link
// can only name a screen: nothing is sent but what the screen reads, until its reader presses a button.
//
//   #/                     the mappings, and the builds that run
//   #/offers               what the server can build
//   #/m/NAME               a mapping: versions, aliases, builds, drift
//   #/m/NAME/WHICH         a version, by number, alias or digest: certificate and report
//   #/m/NAME/WHICH/try     rows in, features or answers out
//   #/m/NAME/WHICH/use     snippets to copy

import * as api from './api.js';
import { announce, el, trouble } from './dom.js';
import { mappingScreen } from './mapping.js';
import { mappingsScreen } from './mappings.js';
import { offersScreen } from './offers.js';
import { askForToken, showWho } from './token.js';
import { versionScreen } from './version.js';

const main = document.getElementById('main');
let leaving = new AbortController();

// Returns the function that makes the screen.
function screenOf(hash) {
  let parts;
  try {
    parts = hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  } catch {
    parts = ['?'];
  }
  if (parts[0] === '') return mappingsScreen;
  if (parts[0] === 'offers' && parts.length === 1) return offersScreen;
  if (parts[0] === 'm' && parts[1] && parts.length === 2) return (screen) => mappingScreen(screen, parts[1]);
  if (parts[0] === 'm' && parts[1] && parts[2] && parts.length <= 4 && ['', 'try', 'use'].includes(parts[3] ?? '')) {
    return (screen) => versionScreen(screen, parts[1], parts[2], parts[3] ?? '');
  }
  return () => {
    throw new Error('There is no such screen here.');
  };
}

// Shows the screen of the address. `quietly` is for the first one, whose focus the browser has set.
async function show(quietly) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  // What a screen gets: the signal that ends when it is left, and the title of the window.
  const screen = { signal, title: (text) => { document.title = `${text} – phimap`; } };
  const slow = setTimeout(() => announce('Loading'), 500);
  let nodes;
  try {
    nodes = await screenOf(location.hash)(screen);
  } catch (error) {
    if (signal.aborted) return;
    screen.title(error.status === 401 ? 'Token' : 'Problem');
    nodes = error.status === 401 ? [askForToken(error, () => show(false))]
      : [el('h1', {}, 'This cannot be shown'), trouble(error), el('p', {}, el('a', { href: '#/' }, 'All mappings'))];
  } finally {
    clearTimeout(slow);
  }
  if (signal.aborted) return;
  main.replaceChildren(...nodes.flat(Infinity).filter(Boolean));
  showWho(() => show(false));
  for (const item of document.querySelectorAll('header nav a')) {
    const here = item.hash === '#/' ? !location.hash.startsWith('#/offers') : location.hash.startsWith(item.hash);
    if (here) item.setAttribute('aria-current', 'true');
    else item.removeAttribute('aria-current');
  }
  if (quietly) return;
  scrollTo(0, 0);
  const first = main.querySelector('input[autofocus]') ?? main.querySelector('h1');
  if (first?.tagName === 'H1') first.tabIndex = -1;
  first?.focus();
  announce(document.title);
}

addEventListener('hashchange', () => show(false));
// The link that skips to the content names no screen.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
// The token is asked for in its field even on the first screen.
show(true).then(() => main.querySelector('input[autofocus]')?.focus());
