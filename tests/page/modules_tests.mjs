// Modules of the page that need no model: imported by the browser as they are served.
import {expect, expectEqual, test} from './suite.mjs';

test(
    'server-sent events are the same however their bytes are cut', '--scripted', async ({page}) => {
      const found = await page.evaluate(async () => {
        const {readEvents} = await import('/page/sse.js');
        const text = ': hello\r\ndata: één\r\n\r\nevent: x\ndata:two\r\ndata: lines 🌊\n\n' +
            'id: 3\r\rdata\r\rdata: [DONE]\n\ndata: cut';
        const bytes = new TextEncoder().encode(text);
        const results = new Set();
        const read = async (pieces) => {
          const stream = new ReadableStream({
            start(controller) {
              for (const piece of pieces) controller.enqueue(piece);
              controller.close();
            },
          });
          const events = [];
          for await (const event of readEvents(stream)) events.push(event);
          results.add(JSON.stringify(events));
        };
        for (let at = 0; at <= bytes.length; ++at)
          await read([bytes.slice(0, at), bytes.slice(at)]);
        await read([...bytes].map((byte) => new Uint8Array([byte])));
        return [...results];
      });
      expectEqual(found, ['["één","two\\nlines 🌊","","[DONE]"]']);
    });

test('fenced blocks are the same however text is cut', '--scripted', async ({page}) => {
  const found = await page.evaluate(async () => {
    const {FencedText} = await import('/page/fenced_text.js');
    const text =
        'One `two`\n\n```js\nif (a < b) ``c``\n\n```\n\nthree\n  ```\n<b>\n````\n```\nfour';
    const results = new Set();
    const show = (pieces) => {
      const host = document.createElement('div');
      const shown = new FencedText(host);
      for (const piece of pieces) shown.push(piece);
      shown.end();
      results.add(
          JSON.stringify([...host.childNodes].map((node) => [node.nodeName, node.textContent])));
    };
    for (let at = 0; at <= text.length; ++at) show([text.slice(0, at), text.slice(at)]);
    show([...text]);
    return [...results];
  });
  expectEqual(found.map((text) => JSON.parse(text)), [[
                ['#text', 'One `two`'],
                ['PRE', 'if (a < b) ``c``\n\n'],
                ['#text', 'three'],
                ['PRE', '<b>\n````\n'],
                ['#text', 'four'],
              ]]);
});

test('the calculator knows arithmetic and says what is wrong', '--scripted', async ({page}) => {
  const cases = {
    '2 + 3 * 4': 14,
    '(2 + 3) * 4': 20,
    '-2 ^ 2': -4,
    '2 ^ 3 ^ 2': 512,
    '2**-1': 0.5,
    '7 % 4 - 10 / 4': 0.5,
    '1.5e3 × 2 ÷ 3 − .5': 999.5,
    'sqrt(16) + abs(-3) + ln(e)': 8,
    '2 +': 'expected a number, found "the end"',
    '2 3': 'expected an operator, found "3"',
    '(2': 'expected ")", found "the end"',
    'alert(1)': 'expected a number, found "alert"',
    'constructor': 'expected a number, found "constructor"',
    '2 $ 3': '" $ 3" is not arithmetic',
    [`${'('.repeat(5000)}1${')'.repeat(5000)}`]: 'nested too deeply',
  };
  const found = await page.evaluate(async (texts) => {
    const {calculate} = await import('/page/calculator.js');
    return texts.map((text) => {
      try {
        return calculate(text);
      } catch (error) {
        return error.message;
      }
    });
  }, Object.keys(cases));
  Object.entries(cases).forEach(
      ([text, wanted], idx) => expectEqual(found[idx], wanted, text.slice(0, 40)));
});

test('old conversations make room for new ones', '--scripted', async ({page}) => {
  const {count, newest, oldest, chars} = await page.evaluate(async () => {
    const {Store, kMaxConversations, kMaxChars} = await import('/page/store.js');
    const store = new Store();
    const keep = (id, chars) => store.saveConversation({
      id: String(id),
      title: '',
      updated: id,
      messages: [{role: 'user', content: 'x'.repeat(chars)}]
    });
    for (let id = 1; id <= kMaxConversations + 5; ++id) keep(id, 10);
    const kept = store.conversations();
    keep(1000, kMaxChars / 2);
    keep(1001, kMaxChars / 2);
    keep(1002, kMaxChars / 2);
    return {
      count: kept.length - kMaxConversations,
      newest: kept[0].id,
      oldest: kept.at(-1).id,
      chars: JSON.stringify(store.conversations()).length / kMaxChars,
    };
  });
  expectEqual([count, newest, oldest], [0, '105', '6']);
  expect(chars > 0.4 && chars < 1.01, `storage to stay within its bound, found ${chars} of it`);
});

test('a full browser storage drops the oldest conversations', '--scripted', async ({page}) => {
  const found = await page.evaluate(async () => {
    const {Store} = await import('/page/store.js');
    const setItem = Storage.prototype.setItem;
    Storage.prototype.setItem = function limited(key, value) {
      const used =
          Object.keys(this).filter((k) => k !== key).reduce((sum, k) => sum + this[k].length, 0);
      if (used + value.length > 1000) throw new DOMException('full', 'QuotaExceededError');
      setItem.call(this, key, value);
    };
    localStorage.clear();
    const store = new Store();
    const dropped = [1, 2, 3].map((id) => store.saveConversation({
      id: String(id),
      title: '',
      updated: id,
      messages: [{role: 'user', content: 'x'.repeat(350)}]
    }));
    return {dropped, kept: store.conversations().map(({id}) => id)};
  });
  expectEqual(found, {dropped: [[], [], ['1']], kept: ['3', '2']});
});

test('the scale of a plot ends at a short number', '--scripted', async ({page}) => {
  const found = await page.evaluate(async () => {
    const {niceCeil} = await import('/page/plot.js');
    return [0.03, 1, 1.2, 4.1, 10, 11, 399, 401, 1e6].map(niceCeil);
  });
  expectEqual(
      found.map((value) => Number(value.toPrecision(6))), [0.04, 1, 2, 6, 10, 20, 400, 600, 1e6]);
});
