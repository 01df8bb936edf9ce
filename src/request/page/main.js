// main.js: puts the parts of the page together.

import {Chat} from './chat.js';
import {Dashboard} from './dashboard.js';
import {byId} from './dom.js';
import {listenToKeys} from './keyboard.js';
import {Settings} from './settings.js';
import {StatsPoller} from './stats.js';
import {Store} from './store.js';

const store = new Store();
const settings = new Settings(store, {onKey, onClear: () => chat.clear()});
const chat = new Chat(store, settings);
const dashboard = new Dashboard();
const poller = new StatsPoller(() => settings.apiKey, (rows, error) => {
  showServer(rows, error);
  dashboard.update(rows, error);
});

function onKey() {
  chat.keyChanged();
  greet();
}

// Which model is there, at the first sight.
async function greet() {
  const [model] = await settings.loadModels();
  if (!model) return;
  const length =
      model.max_model_len ? `, up to ${model.max_model_len.toLocaleString('en')} tokens` : '';
  byId('welcome-model').textContent = `${model.id}${length}`;
}

// data-state: "ready", "loading", "draining", "stalled" as /stats says, or the kind of ApiError.
function showServer(rows, error) {
  const {state, model} = rows.at(-1)?.stats ?? {};
  const texts =
      {away: 'no answer', key: 'API key needed', busy: 'busy', other: 'error', ready: model};
  const shown = error?.kind ?? state;
  byId('server').dataset.state = shown;
  const text = texts[shown] ?? shown;
  if (byId('server-text').textContent !== text) byId('server-text').textContent = text;
}

function showView() {
  const name = location.hash === '#dashboard' ? 'dashboard' : 'chat';
  for (const view of ['chat', 'dashboard']) {
    byId(`${view}-view`).hidden = view !== name;
    if (view === name)
      byId(`tab-${view}`).setAttribute('aria-current', 'page');
    else
      byId(`tab-${view}`).removeAttribute('aria-current');
  }
  byId('menu').hidden = name !== 'chat';
  document.title = name === 'chat' ? 'DeepInfer' : 'DeepInfer: dashboard';
  poller.often = name === 'dashboard';
  openSidebar(false);
}

// Only on narrow screens is the list of conversations ever closed.
function openSidebar(open) {
  byId('sidebar').toggleAttribute('data-open', open);
  byId('shade').hidden = !open;
  byId('menu').setAttribute('aria-expanded', String(open));
  if (open) byId('new-chat').focus();
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' :
                                    matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  store.saveTheme(root.dataset.theme);
}

function newChat() {
  location.hash = '#chat';
  chat.newChat();
  openSidebar(false);
}

addEventListener('hashchange', showView);
byId('theme').addEventListener('click', switchTheme);
byId('open-settings').addEventListener('click', () => settings.open());
byId('new-chat').addEventListener('click', newChat);
byId('menu').addEventListener('click', () => openSidebar(byId('shade').hidden));
byId('shade').addEventListener('click', () => openSidebar(false));
byId('conversations').addEventListener('click', (event) => {
  if (event.target.closest('.open')) openSidebar(false);
});
listenToKeys({
  stop: () => {
    const open = !byId('shade').hidden;
    openSidebar(false);
    const {running} = chat;
    chat.stop();
    return running || open;
  },
  newChat,
  settings: () => settings.open(),
  view: (name) => {
    location.hash = `#${name}`;
  },
});
showView();
greet();
