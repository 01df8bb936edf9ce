// call_view.js: a tool call as a card: what was asked, what came back, or a box to type that in.

import {el, icon} from './dom.js';

export class CallView {
  #arguments = el('pre', {class: 'arguments'});
  #name = el('span', {class: 'name'});
  #state = el('span', {class: 'state'});
  #last = null;  // below the arguments: {kind, element}

  // giveResult(call, text)
  constructor(call, giveResult) {
    this.call = call;
    this.giveResult = giveResult;
    this.element =
        el('section', {class: 'call', 'aria-label': 'Tool call'},
           el('div', {class: 'call-head'}, icon('tool'), this.#name, this.#state), this.#arguments);
  }

  // `open`: the user may answer it now.
  update(open) {
    const {name, result} = this.call;
    this.#name.textContent = name;
    this.#arguments.textContent = this.call.arguments;
    this.#state.textContent = result !== null ? 'answered' : open ? 'waits for its result' : '';
    if (result !== null)
      this.#follow('result', () => el('pre', {class: 'result', 'aria-label': 'Result'}, result));
    else if (open)
      this.#follow('form', () => this.#form());
  }

  #follow(kind, make) {
    if (this.#last?.kind === kind) return;
    this.#last?.element.remove();
    this.#last = {kind, element: make()};
    this.element.append(this.#last.element);
  }

  #form() {
    const area = el('textarea', {
      rows: '2',
      'aria-label': `Result of ${this.call.name}`,
      placeholder: 'What the call returns'
    });
    return el(
        'div', {class: 'call-answer'}, area,
        el('button', {
          class: 'button primary',
          type: 'button',
          onclick: () => this.giveResult(this.call, area.value)
        },
           'Return'));
  }
}
