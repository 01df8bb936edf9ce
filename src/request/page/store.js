// store.js: what the page keeps in the browser: conversations and settings, each under a key of its
// own, so that two tabs do not overwrite each other's conversations.
//
// Bounded: at most kMaxConversations, and kMaxChars in all; the oldest go first. Where the browser
// denies storage, all of it lasts until the page is closed.

export const kMaxConversations = 100;
export const kMaxChars = 2_000_000;  // browsers allow about 5 M

const kConversation = 'deepinfer.conversation.';
const kSettings = 'deepinfer.settings';
const kKey = 'deepinfer.key';

// The part of Storage that is used here, in memory.
class MemoryStorage {
  #items = new Map();
  getItem(key) {
    return this.#items.get(key) ?? null;
  }
  setItem(key, value) {
    this.#items.set(key, value);
  }
  removeItem(key) {
    this.#items.delete(key);
  }
  keys() {
    return [...this.#items.keys()];
  }
}

// `name`: "localStorage" or "sessionStorage". Even to look at it may throw.
function open(name) {
  try {
    const storage = window[name];
    storage.setItem('deepinfer.probe', '');
    storage.removeItem('deepinfer.probe');
    return storage;
  } catch {
    return new MemoryStorage();
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export class Store {
  #lasting = open('localStorage');
  #tab = open('sessionStorage');

  get lasts() {
    return !(this.#lasting instanceof MemoryStorage);
  }

  #keys() {
    return (this.lasts ? Object.keys(this.#lasting) : this.#lasting.keys())
        .filter((key) => key.startsWith(kConversation));
  }

  // Newest first.
  conversations() {
    return this.#keys()
        .map((key) => parse(this.#lasting.getItem(key)))
        .filter((kept) => Array.isArray(kept?.messages))
        .sort((a, b) => b.updated - a.updated);
  }

  // Returns the ids of conversations that had to go to make room.
  saveConversation(conversation) {
    const text = JSON.stringify(conversation);
    const others = this.conversations().filter((other) => other.id !== conversation.id);
    const dropped = [];
    let chars = text.length;
    others.forEach((other, idx) => {
      chars += JSON.stringify(other).length;
      if (idx + 1 >= kMaxConversations || chars > kMaxChars) dropped.push(other.id);
    });
    dropped.forEach((id) => this.removeConversation(id));
    const left = others.filter((other) => !dropped.includes(other.id));
    for (;;) {
      try {
        this.#lasting.setItem(kConversation + conversation.id, text);
        return dropped;
      } catch {  // the browser's own limit
        const oldest = left.pop();
        if (!oldest) return dropped;
        this.removeConversation(oldest.id);
        dropped.push(oldest.id);
      }
    }
  }

  removeConversation(id) {
    this.#lasting.removeItem(kConversation + id);
  }

  settings() {
    return parse(this.#lasting.getItem(kSettings)) ?? {};
  }
  saveSettings(settings) {
    this.#write(this.#lasting, kSettings, JSON.stringify(settings));
  }

  // Secret, so it goes with the tab.
  apiKey() {
    return this.#tab.getItem(kKey) ?? '';
  }
  saveApiKey(key) {
    this.#write(this.#tab, kKey, key);
  }

  theme() {
    return this.#lasting.getItem('deepinfer.theme');
  }
  saveTheme(theme) {
    this.#write(this.#lasting, 'deepinfer.theme', theme);
  }

  #write(storage, key, value) {
    try {
      storage.setItem(key, value);
    } catch {
      // Full: the value holds until the page is closed.
    }
  }
}
