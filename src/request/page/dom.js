// dom.js: elements, made and found. Text goes in as text nodes and in no other way; the page's
// policy (trusted types) refuses everything else.

export const byId = (id) => document.getElementById(id);

// el("button", {class: "icon-button", title: "Copy", onclick: f}, "text", element...)
// Keys that begin with "on" are listeners; true means an attribute without value; null and false
// are left out.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) {
      element.addEventListener(key.slice(2), value);
    } else if (value !== null && value !== false && value !== undefined) {
      element.setAttribute(key, value === true ? '' : value);
    }
  }
  element.append(...children);
  return element;
}

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// One of the symbols at the end of index.html.
export const icon = (name) =>
    svg('svg', {class: 'icon', 'aria-hidden': 'true'}, svg('use', {href: `#icon-${name}`}));

export const iconButton = (name, label, onclick) =>
    el('button',
       {class: 'icon-button small', type: 'button', 'aria-label': label, title: label, onclick},
       icon(name));

// What a screen reader says, once, without moving the focus.
export function announce(text) {
  byId('announce').textContent = text;
}

// Clipboards need https or localhost; elsewhere a selection does.
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = el('textarea', {class: 'hidden-label', readonly: true});
  area.value = text;
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  focused?.focus();
  if (!copied) throw new Error('the browser refused to copy');
}
