// fenced_text.js: shows growing text, with ``` blocks set apart. Text nodes only.

import {el} from './dom.js';

const kFence = /^ {0,3}```/;
const kFenceEnd = /^ {0,3}```\s*$/;
const kMayBecomeFence = /^ {0,3}(`{0,2}|```.*)$/;

export class FencedText {
  #host;
  #fence = null;  // the open block
  #node = null;   // text node that grows
  #line = '';     // beginning of a line that may turn out to be a fence: not shown yet
  #atLineStart = true;

  constructor(host) {
    this.#host = host;
  }

  push(text) {
    let rest = this.#line + text;
    this.#line = '';
    while (rest !== '') {
      const newline = rest.indexOf('\n');
      const line = newline < 0 ? rest : rest.slice(0, newline);
      if (this.#atLineStart && newline < 0 && kMayBecomeFence.test(line)) {
        this.#line = rest;
        return;
      }
      const taken = newline < 0 ? rest : rest.slice(0, newline + 1);
      if (!this.#atLineStart || newline < 0 || !this.#turn(line)) this.#show(taken);
      this.#atLineStart = newline >= 0;
      rest = rest.slice(taken.length);
    }
  }

  // No more text: what was held back is shown.
  end() {
    if (this.#line !== '' && !this.#turn(this.#line)) this.#show(this.#line);
    this.#line = '';
  }

  // Whether the whole line opens or closes a block.
  #turn(line) {
    if (!(this.#fence ? kFenceEnd : kFence).test(line)) return false;
    if (this.#fence) {
      this.#fence = null;
    } else {
      // The block has a margin; blank lines would add to it.
      if (this.#node) this.#node.data = this.#node.data.trimEnd();
      this.#fence = el('pre', {class: 'fence', tabindex: '0', 'aria-label': 'Code'});
      this.#host.append(this.#fence);
    }
    this.#node = null;
    return true;
  }

  #show(text) {
    const afterFence = !this.#fence && !this.#node && this.#host.hasChildNodes();
    if (afterFence && text.trim() === '') return;
    if (this.#node) {
      this.#node.appendData(text);
    } else {
      this.#node = document.createTextNode(text);
      (this.#fence ?? this.#host).append(this.#node);
    }
  }
}
