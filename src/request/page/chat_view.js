// chat_view.js: the column of messages and the list of conversations.

import {byId, el, iconButton} from './dom.js';
import {AnswerView, UserView} from './message_view.js';

const kNearEndPx = 80;

// What to offer beside an error.
const kOffers = {
  away: 'Try again',
  key: 'Enter the key',
  busy: 'Try again',
  other: 'Try again'
};

export class ChatView {
  #views = [];
  #scroll = byId('scroll');
  #list = byId('messages');
  #atEnd = true;
  #frame = 0;
  #countdown = 0;

  // actions: {edit, result, again, retry(error)}: see message_view.js
  constructor(actions) {
    this.actions = actions;
    this.#scroll.addEventListener('scroll', () => this.#noteScroll(), {passive: true});
    byId('to-end').addEventListener('click', () => this.toEnd());
  }

  // Shows a talk as it is now. talk: {conversation, stop, error}. Views of messages that were there
  // before stay, and with them what the reader has folded, selected or scrolled to.
  show(talk) {
    const same = talk === this.talk;
    const {messages} = talk.conversation;
    this.talk = talk;
    clearInterval(this.#countdown);
    byId('welcome').hidden = messages.length > 0;
    const before = new Map(same ? this.#views.map((view) => [view.message, view]) : []);
    this.#views = messages.map((message) => before.get(message) ?? this.#viewOf(message));
    this.#views.forEach((view) => view.allow(this.#allowed(view.message)));
    this.#replaceElements(talk.error ? [this.#errorLine(talk.error)] : []);
    this.#update();
    if (!same || this.#atEnd || messages.at(-1)?.role === 'user') this.toEnd();
  }

  // The answer that grows. Several changes within a frame are shown at once.
  follow(talk) {
    if (talk !== this.talk || this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#views.at(-1)?.update(Boolean(this.talk.stop));
      if (this.#atEnd) this.#scroll.scrollTop = this.#scroll.scrollHeight;
    });
  }

  toEnd() {
    this.#atEnd = true;
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
    byId('to-end').hidden = true;
  }

  #viewOf(message) {
    return message.role === 'user' ? new UserView(message) :
                                     new AnswerView(message, this.actions.result);
  }

  // What can be done with a message now: the last question can be edited, the last answer repeated.
  #allowed(message) {
    const {messages} = this.talk.conversation;
    const last = message === messages.findLast(({role}) => role === message.role);
    if (this.talk.stop || !last) return {};
    if (message.role === 'user') return {edit: this.actions.edit};
    return message === messages.at(-1) ? {again: this.actions.again} : {};
  }

  // Elements that stay are not touched: to move them would lose focus and place.
  #replaceElements(after) {
    const wanted = [...this.#views.map((view) => view.element), ...after];
    for (const element of [...this.#list.children]) {
      if (!wanted.includes(element)) element.remove();
    }
    this.#list.append(...wanted.filter((element) => !element.isConnected));
  }

  #update() {
    const running = Boolean(this.talk.stop);
    this.#views.forEach((view, idx) => view.update(running && idx === this.#views.length - 1));
  }

  #noteScroll() {
    const {scrollTop, scrollHeight, clientHeight} = this.#scroll;
    this.#atEnd = scrollHeight - clientHeight - scrollTop < kNearEndPx;
    byId('to-end').hidden = this.#atEnd;
  }

  #errorLine(error) {
    const text = el('span', {}, error.message);
    const line = el('p', {class: 'line error', role: 'alert'}, text);
    if (!kOffers[error.kind]) return line;
    const button =
        el('button', {class: 'button', type: 'button', onclick: () => this.actions.retry(error)},
           kOffers[error.kind]);
    line.append(button);
    if (error.kind === 'busy') this.#count(error, text, button);
    return line;
  }

  // "Try again in 3 s", then a button that works.
  #count(error, text, button) {
    const until = error.since + error.retryAfter * 1000;
    const tick = () => {
      const left = Math.ceil((until - Date.now()) / 1000);
      button.disabled = left > 0;
      text.textContent = left > 0 ? `${error.message} Try again in ${left} s.` : error.message;
      if (left <= 0) clearInterval(this.#countdown);
    };
    this.#countdown = setInterval(tick, 250);
    tick();
  }
}

// Fills the list at the left. items: [{id, title, current, busy}]
export function showConversations(items, {open, remove}) {
  byId('conversations').replaceChildren(...items.map(({id, title, current, busy}) => {
    const name = title || 'New chat';
    const row =
        el('li', {class: 'conversation', 'data-current': current},
           el('button', {
             class: 'open',
             type: 'button',
             title: name,
             'aria-current': current && 'true',
             onclick: () => open(id)
           },
              name));
    row.append(
        busy ? el('span', {class: 'busy', role: 'img', 'aria-label': 'being answered'}) :
               iconButton('trash', `Delete ${name}`, () => remove(id)));
    return row;
  }));
}
