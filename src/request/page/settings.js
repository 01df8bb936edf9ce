// settings.js: the dialog with all settings, and the two that stand under the message box.
//
// values: strings as typed ("" = the server's default), which the request is built from; only valid
// ones get in. exampleTools is a bool.

import {getJson} from './api.js';
import {byId, el} from './dom.js';
import {parseTools} from './tools.js';

const kDefaults = {
  model: '',
  system: '',
  temperature: '',
  topP: '',
  maxTokens: '',
  seed: '',
  tools: '',
  schema: '',
  thinking: '',
  exampleTools: false,
};

function checkNumber(text, {min, max, whole}) {
  const value = Number(text);
  const low = Number(min);
  const high = max === undefined ? Number.MAX_SAFE_INTEGER : Number(max);
  if (Number.isFinite(value) && value >= low && value <= high &&
      (whole === undefined || Number.isInteger(value))) {
    return '';
  }
  const kind = whole === undefined ? 'a number' : 'a whole number';
  return max === undefined ? `Expected ${kind} of at least ${min}.` :
                             `Expected ${kind} from ${min} to ${max}.`;
}

function checkSchema(text) {
  try {
    const schema = JSON.parse(text);
    return schema !== null && typeof schema === 'object' && !Array.isArray(schema) ?
        '' :
        'Expected a JSON object, such as {"type": "object"}.';
  } catch (error) {
    return `Not JSON: ${error.message}`;
  }
}

function checkTools(text) {
  try {
    parseTools(text);
    return '';
  } catch (error) {
    return `Not a list of functions: ${error.message}`;
  }
}

// What is wrong with a field; "" if nothing is.
function faultOf(field) {
  const text = field.value.trim();
  if (text === '') return '';
  if (field.dataset.min !== undefined) return checkNumber(text, field.dataset);
  if (field.dataset.json === 'tools') return checkTools(text);
  return field.dataset.json === 'schema' ? checkSchema(text) : '';
}

function showFault(field, fault) {
  field.setAttribute('aria-invalid', String(fault !== ''));
  const shown = field.parentElement.querySelector('.fault') ??
      field.insertAdjacentElement('afterend', el('span', {class: 'fault', role: 'alert'}));
  shown.textContent = fault;
}

export class Settings {
  #store;
  #dialog = byId('settings');
  #form = byId('settings-form');
  #keyBefore = '';

  // onKey(): the key has changed. onClear(): delete all chats.
  constructor(store, {onKey, onClear}) {
    this.#store = store;
    this.values = {...kDefaults, ...store.settings()};
    this.apiKey = store.apiKey();
    this.#form.addEventListener('input', (event) => this.#take(event.target));
    this.#dialog.addEventListener('close', () => this.#closed(onKey));
    this.#dialog.addEventListener('click', (event) => {
      if (event.target === this.#dialog) this.#dialog.close();  // beside the panel
    });
    byId('thinking')
        .addEventListener('change', (event) => this.#set('thinking', event.target.value));
    byId('example-tools')
        .addEventListener('change', (event) => this.#set('exampleTools', event.target.checked));
    byId('reset-settings').addEventListener('click', () => this.#reset());
    byId('clear-chats').addEventListener('click', () => {
      if (confirm('Delete all chats from this browser?')) onClear();
    });
    this.#show();
  }

  // `name`: the field that gets the focus.
  open(name) {
    this.#keyBefore = this.apiKey;
    this.#show();
    this.#dialog.showModal();
    if (name) this.#form.elements[name].focus();
    this.loadModels();
  }

  // Fills the list of models; returns the server's list, empty if there is no answer.
  async loadModels() {
    const {data} = await getJson('/v1/models', {key: this.apiKey}).catch(() => ({data: null}));
    if (!data) return [];
    const names = data.map(({id}) => id);
    const {model} = this.#form.elements;
    model.replaceChildren(
        el('option', {value: ''}, `Default (${names[0]})`),
        ...names.map((name) => el('option', {value: name}, name)));
    if (!names.includes(this.values.model)) this.#set('model', '');  // served no more
    model.value = this.values.model;
    return data;
  }

  #take(field) {
    if (field.name === 'apiKey') {
      this.apiKey = field.value.trim();
      this.#store.saveApiKey(this.apiKey);
      return;
    }
    const fault = faultOf(field);
    showFault(field, fault);
    if (fault === '')
      this.#set(field.name, field.name === 'system' ? field.value : field.value.trim());
  }

  #set(name, value) {
    this.values[name] = value;
    this.#store.saveSettings(this.values);
    this.#showActive();
  }

  #reset() {
    Object.assign(this.values, kDefaults);
    this.#store.saveSettings(this.values);
    this.#show();
  }

  #closed(onKey) {
    if (this.apiKey !== this.#keyBefore) onKey();
    byId('prompt').focus();
  }

  #show() {
    for (const field of this.#form.elements) {
      if (!(field.name in this.values)) continue;
      field.value = this.values[field.name];
      showFault(field, '');
    }
    this.#form.elements.apiKey.value = this.apiKey;
    byId('thinking').value = this.values.thinking;
    byId('example-tools').checked = this.values.exampleTools;
    this.#showActive();
  }

  // What differs from the defaults, so that nobody wonders about odd answers.
  #showActive() {
    const {system, tools, schema, temperature, topP, maxTokens, seed} = this.values;
    const names = [
      [system.trim(), 'system prompt'],
      [tools, 'own tools'],
      [schema, 'JSON schema'],
      [temperature, `temperature ${temperature}`],
      [topP, `top p ${topP}`],
      [maxTokens, `max ${maxTokens}`],
      [seed, `seed ${seed}`],
    ];
    byId('active').textContent = names.filter(([on]) => on).map(([, name]) => name).join(' · ');
    byId('active').title = byId('active').textContent;
  }
}
