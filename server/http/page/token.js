// Asks for a token where the server wants one, and forgets it where the reader says so.

import { hasToken, setToken } from './api.js';
import { el, trouble } from './dom.js';

// A form that calls `then` when a token was given. It is never sent: its field has no name, and the
// page's headers forbid that a form goes anywhere.
export function askForToken(error, then) {
  const input = el('input', { type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false', autofocus: true, required: true });
  const form = el('form', {
    class: 'ask',
    submit: (event) => {
      event.preventDefault();
      setToken(input.value);
      input.value = '';
      then();
    },
  },
  el('label', { for: 'token' }, 'Token'), input,
  el('button', { class: 'main', type: 'submit' }, 'Use this token'),
  el('p', { class: 'quiet' }, 'A token of the role reader suffices. It is kept in the memory of this page alone, and is gone when the page is closed or loaded again.'));
  return [el('h1', {}, 'This server asks for a token'), hasToken() && trouble(error), form];
}

export function showWho(then) {
  document.getElementById('who').replaceChildren(location.host, ...(hasToken() ? [el('button', {
    type: 'button',
    click: () => {
      setToken('');
      then();
    },
  }, 'Forget the token')] : []));
}
