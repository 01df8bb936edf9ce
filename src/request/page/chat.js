// chat.js: conversations, and what the user does with them. Several may be answered at once.

import {ApiError} from './api.js';
import {ChatView, showConversations} from './chat_view.js';
import {isEmpty, newConversation, openCalls, titleOf} from './conversation.js';
import {announce, byId, el} from './dom.js';
import {runTurn} from './turn.js';

const kExamples = [
  {title: 'Work out a sum', prompt: 'What is 347 + 586?'},
  {title: 'Explain a word', prompt: 'What is a river?'},
  {title: 'Ask what it can do', prompt: 'What can you do?'},
  {title: 'Tell a story', prompt: 'Tell me a short story about a small boat.'},
];

export class Chat {
  #store;
  #settings;           // settings.js
  #talks = new Map();  // id -> {conversation, stop: AbortController or null, error}
  #current = null;
  #view;

  constructor(store, settings) {
    this.#store = store;
    this.#settings = settings;
    this.#view = new ChatView({
      edit: (message, text) => this.#resend(message, text),
      result: (call, text) => this.#giveResult(call, text),
      again: () => this.#again(),
      retry: (error) => this.#retry(error),
    });
    for (const conversation of store.conversations()) this.#adopt(conversation);
    byId('storage-note').hidden = store.lasts;
    this.#listenToComposer();
    this.#showExamples();
    this.newChat();
  }

  get running() {
    return Boolean(this.#current.stop);
  }

  newChat() {
    this.open(this.#adopt(newConversation()).conversation.id);
    byId('prompt').focus();
  }

  open(id) {
    this.#forgetEmpty(id);
    this.#current = this.#talks.get(id);
    this.#view.show(this.#current);
    this.#refresh();
  }

  stop() {
    this.#current.stop?.abort();
  }

  // Puts the caret into the last message of the user.
  editLast() {
    [...document.querySelectorAll('.message.user [title^=\'Edit\']')].pop()?.click();
  }

  // After the key has changed: what failed for want of it is sent again.
  keyChanged() {
    if (this.#current.error?.kind === 'key') this.#run(this.#current);
  }

  clear() {
    for (const [id, talk] of this.#talks) {
      talk.stop?.abort();
      this.#store.removeConversation(id);
    }
    this.#talks.clear();
    this.newChat();
  }

  #adopt(conversation) {
    const {messages} = conversation;
    if (messages.length > 0 && isEmpty(messages.at(-1))) messages.pop();  // closed while it waited
    const talk = {conversation, stop: null, error: null};
    this.#talks.set(conversation.id, talk);
    return talk;
  }

  // A chat without a message is kept only while it is looked at.
  #forgetEmpty(exceptId) {
    for (const [id, talk] of this.#talks) {
      if (id !== exceptId && talk.conversation.messages.length === 0) this.#talks.delete(id);
    }
  }

  #remove(id) {
    this.#talks.get(id)?.stop?.abort();
    this.#talks.delete(id);
    this.#store.removeConversation(id);
    if (this.#current.conversation.id === id)
      this.newChat();
    else
      this.#refresh();
  }

  #send(text) {
    const talk = this.#current;
    if (text.trim() === '' || talk.stop) return;
    const {conversation} = talk;
    if (conversation.messages.length === 0) conversation.title = titleOf(text);
    conversation.messages.push({role: 'user', content: text});
    this.#run(talk);
  }

  #resend(message, text) {
    const {messages} = this.#current.conversation;
    messages.length = messages.indexOf(message);
    if (messages.length === 0) this.#current.conversation.title = titleOf(text);
    messages.push({role: 'user', content: text});
    this.#run(this.#current);
  }

  #again() {
    const {messages} = this.#current.conversation;
    messages.length = messages.findLastIndex(({role}) => role === 'user') + 1;
    this.#run(this.#current);
  }

  #giveResult(call, text) {
    call.result = text;
    const last = this.#current.conversation.messages.at(-1);
    if (openCalls(last).length === 0)
      this.#run(this.#current);
    else
      this.#view.show(this.#current);
  }

  #retry(error) {
    if (error.kind === 'key')
      this.#settings.open('apiKey');
    else
      this.#run(this.#current);
  }

  async #run(talk) {
    const {messages} = talk.conversation;
    if (talk.error && messages.at(-1).finish === 'failed') messages.pop();
    talk.error = null;
    talk.stop = new AbortController();
    this.#changed(talk);
    announce('The model answers.');
    try {
      await runTurn(talk.conversation, this.#settings.values, {
        key: this.#settings.apiKey,
        signal: talk.stop.signal,
        onAnswer: () => this.#changed(talk),
        onProgress: () => this.#view.follow(talk),
      });
      announce('The answer is complete.');
    } catch (error) {
      this.#failed(talk, error);
    }
    talk.stop = null;
    this.#changed(talk);
  }

  #failed(talk, error) {
    const {messages} = talk.conversation;
    const stopped = error.name === 'AbortError';
    const answer = messages.at(-1);
    if (answer.role === 'assistant') {
      // Half a call cannot be answered.
      answer.calls = answer.calls.filter((call) => call.result !== null);
      answer.finish = stopped ? 'stopped' : 'failed';
      if (isEmpty(answer)) messages.pop();
    }
    if (stopped) return announce('Stopped.');
    talk.error = error instanceof ApiError ? error : new ApiError('other', error.message);
    talk.error.since = Date.now();
  }

  // Something other than the text of an answer has changed.
  #changed(talk) {
    if (!this.#talks.has(talk.conversation.id)) return;  // deleted meanwhile
    talk.conversation.updated = Date.now();
    for (const id of this.#store.saveConversation(talk.conversation)) this.#talks.delete(id);
    if (talk === this.#current) this.#view.show(talk);
    this.#refresh();
  }

  #refresh() {
    const talks = [...this.#talks.values()]
                      .filter(({conversation}) => conversation.messages.length > 0)
                      .sort((a, b) => b.conversation.updated - a.conversation.updated);
    showConversations(
        talks.map((talk) => ({
                    id: talk.conversation.id,
                    title: talk.conversation.title,
                    current: talk === this.#current,
                    busy: Boolean(talk.stop),
                  })),
        {open: (id) => this.open(id), remove: (id) => this.#remove(id)});
    byId('send').hidden = this.running;
    byId('stop').hidden = !this.running;
    byId('send').disabled = byId('prompt').value.trim() === '';
  }

  #listenToComposer() {
    const prompt = byId('prompt');
    const fit = () => {
      prompt.style.height = 'auto';
      prompt.style.height = `${prompt.scrollHeight}px`;
      byId('send').disabled = prompt.value.trim() === '';
    };
    const send = () => {
      if (this.running) return;
      const text = prompt.value;
      prompt.value = '';
      fit();
      this.#send(text);
    };
    prompt.addEventListener('input', fit);
    prompt.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Enter' && !event.shiftKey) {
        event.preventDefault();
        send();
      } else if (event.key === 'ArrowUp' && prompt.value === '') {
        event.preventDefault();
        this.editLast();
      }
    });
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      send();
    });
    byId('stop').addEventListener('click', () => {
      this.stop();
      prompt.focus();
    });
  }

  #showExamples() {
    byId('examples')
        .append(...kExamples.map(
            ({title, prompt}) =>
                el('li', {},
                   el('button', {type: 'button', onclick: () => this.#send(prompt)},
                      el('b', {}, title), el('span', {class: 'muted'}, prompt)))));
  }
}
