// keyboard.js: the keys that work everywhere on the page, and the help that lists them.

import {byId, el} from './dom.js';

const kHelp = [
  ['Enter', 'Send'],
  ['Shift+Enter', 'New line'],
  ['Esc', 'Stop the answer'],
  ['/', 'To the message box'],
  ['↑', 'Edit the last message (in an empty box)'],
  ['Ctrl+K', 'New chat'],
  ['Ctrl+,', 'Settings'],
  ['Alt+1', 'Chat'],
  ['Alt+2', 'Dashboard'],
  ['?', 'This help'],
];

// actions: {stop() -> whether there was something to stop, newChat(), settings(), view(name)}
export function listenToKeys(actions) {
  byId('keys').append(...kHelp.flatMap(
      ([keys, what]) =>
          [el('dt', {},
              ...keys.split(/(?<=.)\+/)
                  .flatMap((key, idx) => [idx ? ' + ' : '', el('kbd', {}, key)])),
           el('dd', {}, what),
  ]));
  const help = () => byId('help').showModal();
  byId('open-help').addEventListener('click', help);
  byId('help').addEventListener('click', (event) => {
    if (event.target === byId('help')) byId('help').close();
  });

  document.addEventListener('keydown', (event) => {
    if (event.isComposing || document.querySelector('dialog[open]')) return;
    const done = handle(event, {...actions, help});
    if (done) event.preventDefault();
  });
}

function handle(event, {stop, newChat, settings, view, help}) {
  const {key} = event;
  const command = event.ctrlKey || event.metaKey;
  if (key === 'Escape') return stop();
  if (command && key.toLowerCase() === 'k') return newChat(), true;
  if (command && key === ',') return settings(), true;
  if (event.altKey && key === '1') return view('chat'), true;
  if (event.altKey && key === '2') return view('dashboard'), true;
  if (command || event.altKey || event.target.closest('input, textarea, select')) return false;
  if (key === '/') return view('chat'), byId('prompt').focus(), true;
  if (key === '?') return help(), true;
  return false;
}
