// message_view.js: how one message looks. Views follow their message: update() shows what is new.

import {CallView} from './call_view.js';
import {copyText, el, icon, iconButton} from './dom.js';
import {FencedText} from './fenced_text.js';

const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

const kFinishes = {
  length: 'cut at the token limit',
  content_filter: 'filtered',
  insufficient_system_resource: 'the server ran out of room',
  stopped: 'stopped',
  failed: 'broke off',
};

// "23 prompt tokens", "8 cached", ... what is known of an answer.
function factTexts({facts, finish}) {
  const texts = [];
  if (facts.promptTokens !== undefined) {
    const cached = facts.cachedTokens ? `, ${facts.cachedTokens} cached` : '';
    texts.push(`${facts.promptTokens} in${cached}`, `${facts.outputTokens} out`);
  }
  if (facts.tokensPerSecond) texts.push(`${facts.tokensPerSecond.toFixed(1)} tokens/s`);
  if (facts.ttftMs) texts.push(`first after ${seconds(facts.ttftMs)}`);
  if (facts.seed !== undefined) texts.push(`seed ${facts.seed}`);
  if (kFinishes[finish]) texts.push(kFinishes[finish]);
  return texts;
}

function copyButton(textOf) {
  const button = iconButton('copy', 'Copy', async () => {
    const copied = await copyText(textOf()).then(() => true, () => false);
    button.replaceChildren(icon(copied ? 'check' : 'close'));
    setTimeout(() => button.replaceChildren(icon('copy')), 1500);
  });
  return button;
}

// What the user wrote.
export class UserView {
  #edits = false;

  constructor(message) {
    this.message = message;
    this.element = el('article', {class: 'message user', 'aria-label': 'You'});
  }

  // edit(message, text): absent where the message cannot be changed now.
  allow({edit}) {
    this.edit = edit;
    if (!this.#edits) this.#show();
  }

  update() {}

  #show() {
    this.#edits = false;
    const under = el('div', {class: 'under'}, copyButton(() => this.message.content));
    if (this.edit) under.append(iconButton('edit', 'Edit and send again', () => this.#edit()));
    this.element.replaceChildren(el('div', {class: 'bubble'}, this.message.content), under);
  }

  #edit() {
    this.#edits = true;
    const area = el('textarea', {rows: '3', 'aria-label': 'Edited message'});
    area.value = this.message.content;
    const cancel = () => this.#show();
    const send = () => {
      if (area.value.trim() !== '') this.edit?.(this.message, area.value);
    };
    area.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') cancel();
      if (event.key === 'Enter' && !event.shiftKey) send();
      if (event.key === 'Escape' || (event.key === 'Enter' && !event.shiftKey))
        event.preventDefault();
      event.stopPropagation();
    });
    this.element.replaceChildren(
        el('div', {class: 'edit'}, area,
           el('div', {class: 'edit-row'},
              el('button', {class: 'button quiet', type: 'button', onclick: cancel}, 'Cancel'),
              el('button', {class: 'button primary', type: 'button', onclick: send}, 'Send'))));
    area.focus();
  }
}

// A piece of text that only grows.
class GrowingText {
  #shown = 0;
  constructor(host) {
    this.text = new FencedText(host);
  }
  follow(text) {
    if (text.length > this.#shown) this.text.push(text.slice(this.#shown));
    this.#shown = text.length;
  }
}

// What the model thought, said and called, and what it took.
export class AnswerView {
  #thinking = el('details', {class: 'thinking', hidden: true});
  #summary = el('summary');
  #thought = el('div', {class: 'text'});
  #text = el('div', {class: 'text answer'});
  #calls = el('div');
  #waiting = el(
      'div', {class: 'waiting', 'aria-label': 'Waiting for the model'}, el('i'), el('i'), el('i'));
  #under = el('div', {class: 'under'});
  #callViews = [];
  #reasoning = new GrowingText(this.#thought);
  #content = new GrowingText(this.#text);
  #opened = false;

  constructor(message, giveResult) {
    this.message = message;
    this.giveResult = giveResult;
    this.#thinking.append(this.#summary, this.#thought);
    this.element =
        el('article', {class: 'message answer-of-model', 'aria-label': 'Model'}, this.#thinking,
           this.#text, this.#calls, this.#waiting, this.#under);
  }

  // again(): absent where this is not the last answer. update() shows it.
  allow({again}) {
    this.again = again;
  }

  // `running`: more may come.
  update(running) {
    const {content, reasoning, calls, facts} = this.message;
    const thinks = running && content === '' && calls.length === 0;
    this.#waiting.hidden = !(thinks && reasoning === '');
    this.#showThinking(thinks, facts);
    this.#reasoning.follow(reasoning);
    this.#content.follow(content);
    calls.forEach((call, idx) => {
      if (!this.#callViews[idx]) {
        this.#callViews[idx] = new CallView(call, this.giveResult);
        this.#calls.append(this.#callViews[idx].element);
      }
      this.#callViews[idx].update(!running);
    });
    this.#callViews.splice(calls.length).forEach((view) => view.element.remove());  // half a call
    if (!running) this.#finish();
  }

  // Open while it grows; folds by itself once the answer begins.
  #showThinking(thinks, facts) {
    this.#thinking.hidden = this.message.reasoning === '';
    const took = facts.thinkingMs === undefined ? '' : ` for ${seconds(facts.thinkingMs)}`;
    this.#summary.textContent = thinks ? 'Thinking…' : `Thought${took}`;
    if (thinks && this.message.reasoning !== '' && !this.#opened) {
      this.#thinking.open = true;
      this.#opened = true;
    } else if (!thinks && this.#opened) {
      this.#thinking.open = false;
      this.#opened = false;
    }
  }

  #finish() {
    this.#reasoning.text.end();
    this.#content.text.end();
    const {content} = this.message;
    this.#under.replaceChildren();
    if (content !== '') this.#under.append(copyButton(() => content));
    if (this.again) this.#under.append(iconButton('again', 'Answer again', this.again));
    this.#under.append(el(
        'div', {class: 'facts'}, ...factTexts(this.message).map((text) => el('span', {}, text))));
  }
}
