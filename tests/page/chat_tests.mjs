// Chat with the bundled model.
import {ask, send, set, watchRequests} from './chat_page.mjs';
import {eventually, expect, expectEqual, kPaced, sleep, test} from './suite.mjs';

test('an answer streams, and says what it took', kPaced, async ({page}) => {
  await page.evaluate(() => {
    window.lengths = new Set();
    new MutationObserver(() => {
      window.lengths.add(document.querySelector('.answer')?.textContent.length ?? 0);
    }).observe(document.getElementById('messages'), {
      subtree: true,
      childList: true,
      characterData: true
    });
  });
  await set(page, {maxTokens: '60', seed: '7'});
  const text = await ask(page, 'Tell me a short story about a small boat.');
  expect(text.length > 20, `a story, found "${text}"`);
  const steps = await page.evaluate(() => window.lengths.size);
  expect(steps >= 4, `text to grow in at least 4 steps, found ${steps}`);
  const facts = await page.locator('.facts').innerText();
  expect(/\d+ in/.test(facts) && /\d+ out/.test(facts), `token counts in "${facts}"`);
  expect(/tokens\/s/.test(facts) && /first after/.test(facts), `speed and time in "${facts}"`);
  expect(/seed 7\b/.test(facts), `the seed in "${facts}"`);
  expectEqual(await page.locator('.conversation').count(), 1, 'conversations');
});

test('the model knows its sums', '--scripted', async ({page}) => {
  expect(/\b85\b/.test(await ask(page, 'What is 27 + 58?')), '85');
});

test('the second question hits the cache, and says so', '--scripted', async ({page}) => {
  const long = 'The boat sails over the water and the sea is calm today. '.repeat(12);
  await set(page, {maxTokens: '8'});
  await ask(page, long);
  await ask(page, 'And then?');
  const facts = await page.locator('.facts').last().innerText();
  expect(/in, \d\d+ cached/.test(facts), `cached tokens in "${facts}"`);
});

async function stops({page, server, force}, stop) {
  await force('and on '.repeat(1500));
  const before = await server.stats();
  await send(page, 'Go on and on.');
  await page.waitForFunction(() => document.querySelector('.answer')?.textContent.length > 10);
  expectEqual((await server.stats()).running, 1, 'running requests');
  await stop();
  await eventually(async () => (await server.stats()).running === 0, 'no running request', 2000);
  const cancelled = async () => (await server.stats()).requests.cancelled;
  await eventually(
      async () => await cancelled() > before.requests.cancelled, 'a cancelled request', 2000);
  await page.waitForSelector('#send', {state: 'visible'});
  const text = await page.locator('.answer').innerText();
  await sleep(150);
  expectEqual(await page.locator('.answer').innerText(), text, 'text after the stop');
  expect(/stopped/.test(await page.locator('.facts').innerText()), '"stopped" under the answer');
}

test(
    'the stop button ends the request on the server', kPaced,
    (t) => stops(t, () => t.page.click('#stop')));

test(
    'Esc ends the request on the server', kPaced,
    (t) => stops(t, () => t.page.keyboard.press('Escape')));

test(
    'thinking shows while it grows and folds when the answer begins', kPaced,
    async ({page, force}) => {
      await page.selectOption('#thinking', 'high');
      await force(`${'I look at it from all sides. '.repeat(12)}</think>Here it is.`);
      await page.evaluate(() => {
        window.seen = [];
        new MutationObserver(() => {
          const details = document.querySelector('.thinking');
          if (details && !details.hidden) {
            window.seen.push(
                `${details.open} ${document.querySelector('.answer').textContent !== ''}`);
          }
        })
            .observe(
                document.getElementById('messages'),
                {subtree: true, childList: true, characterData: true, attributes: true});
      });
      expectEqual(await ask(page, 'Think!'), 'Here it is.');
      const seen = await page.evaluate(() => window.seen);
      expect(seen.includes('true false'), 'thinking to be open before the answer');
      expectEqual(seen.at(-1), 'false true', 'thinking at the end');
      const summary = await page.locator('.thinking summary').innerText();
      expect(/^Thought for /.test(summary), `how long it thought, found "${summary}"`);
      await page.click('.thinking summary');
      expect(
          (await page.locator('.thinking .text').innerText()).startsWith('I look at it'),
          'the thoughts');
    });

test('the system prompt reaches the model', '--scripted', async ({page}) => {
  const bodies = watchRequests(page);
  await set(page, {maxTokens: '4'});
  const promptTokens = async () =>
      Number((await page.locator('.facts').last().innerText()).match(/(\d+) in/)[1]);
  await ask(page, 'Hello');
  const without = await promptTokens();
  await set(page, {system: 'You are a small boat on a quiet lake.'});
  await page.click('#new-chat');
  await ask(page, 'Hello');
  expectEqual(
      bodies.at(-1).messages[0],
      {role: 'system', content: 'You are a small boat on a quiet lake.'});
  expect(await promptTokens() > without + 5, 'a longer prompt');
  expect(/system prompt/.test(await page.locator('#active').innerText()), 'a note below the box');
});

test('settings go into the request and survive a reload', '--scripted', async ({page}) => {
  const bodies = watchRequests(page);
  await set(
      page, {temperature: '0.5', topP: '0.9', maxTokens: '5', seed: '42', system: 'Be brief.'});
  await page.selectOption('#thinking', 'low');
  await page.reload();
  await ask(page, 'Hello');
  const {temperature, top_p, max_tokens, seed, thinking, reasoning_effort, messages} =
      bodies.at(-1);
  expectEqual(
      [temperature, top_p, max_tokens, seed, thinking, reasoning_effort, messages[0].content],
      [0.5, 0.9, 5, 42, {type: 'enabled'}, 'low', 'Be brief.']);
  await page.click('#open-settings');
  expectEqual(await page.inputValue('[name=temperature]'), '0.5');
  await page.click('#reset-settings');
  await page.keyboard.press('Escape');
  await ask(page, 'Hello again');
  expectEqual(Object.keys(bodies.at(-1)).sort(), ['messages', 'stream', 'stream_options']);
});

test('a wrong setting is named and not used', '--scripted', async ({page}) => {
  const bodies = watchRequests(page);
  await set(page, {maxTokens: '4'});
  await page.click('#open-settings');
  for (const [name, value, fault] of [
           ['temperature', '3', 'Expected a number from 0 to 2.'],
           ['maxTokens', '1.5', 'Expected a whole number of at least 1.'],
           ['schema', '[1]', 'Expected a JSON object'],
           ['tools', '[{"nome": "f"}]', 'function 1 of the list has no "name"'],
  ]) {
    await page.fill(`#settings [name=${name}]`, value);
    const said = await page.locator(`label:has([name=${name}]) .fault`).innerText();
    expect(said.includes(fault), `"${fault}", found "${said}"`);
  }
  await page.keyboard.press('Escape');
  await ask(page, 'Hello');
  const {temperature, max_tokens, response_format, tools} = bodies.at(-1);
  expectEqual(
      [temperature, max_tokens, response_format, tools], [undefined, 4, undefined, undefined]);
});

test(
    'an answer can be asked for again, and the last message be edited', '--scripted',
    async ({page}) => {
      const bodies = watchRequests(page);
      await set(page, {maxTokens: '5'});
      await ask(page, 'First');
      await ask(page, 'Second');
      await page.getByRole('button', {name: 'Answer again'}).click();
      await eventually(() => bodies.length === 3, 'a third request');
      expectEqual(bodies[2].messages, bodies[1].messages, 'messages of the repeated request');
      await page.waitForSelector('#send', {state: 'visible'});
      await page.press('#prompt', 'ArrowUp');
      await page.locator('.edit textarea').fill('Third');
      await page.keyboard.press('Enter');
      await eventually(() => bodies.length === 4, 'a fourth request');
      expectEqual(bodies[3].messages.map(({role}) => role), ['user', 'assistant', 'user']);
      expectEqual(bodies[3].messages[2].content, 'Third');
      await page.waitForSelector('#send', {state: 'visible'});
      expectEqual(await page.locator('.bubble').allInnerTexts(), ['First', 'Third']);
    });

test('conversations are kept, opened and deleted', '--scripted', async ({page}) => {
  await set(page, {maxTokens: '5'});
  await ask(page, 'About boats');
  await page.keyboard.press('Control+k');
  await ask(page, 'About rivers');
  const titles = () => page.locator('.conversation .open').allInnerTexts();
  await page.reload();
  expectEqual(await titles(), ['About rivers', 'About boats']);
  await page.getByRole('button', {name: 'About boats', exact: true}).click();
  expectEqual(await page.locator('.bubble').allInnerTexts(), ['About boats']);
  expect(await page.locator('.answer').innerText() !== '', 'the kept answer');
  await page.getByRole('button', {name: 'Delete About boats'}).click();
  await page.reload();
  expectEqual(await titles(), ['About rivers']);
});

test('two conversations are answered at once', kPaced, async ({page, server, force}) => {
  await force('left and left '.repeat(700), 'right and right '.repeat(700));
  for (const text of ['One', 'Two']) {
    await page.click('#new-chat');
    await send(page, text);
    await page.waitForFunction(() => document.querySelector('.answer')?.textContent.length > 20);
  }
  expectEqual((await server.stats()).running, 2, 'running requests');
  expect((await page.locator('.answer').innerText()).startsWith('right'), 'the second answer');
  await page.keyboard.press('Escape');
  await page.getByRole('button', {name: 'One', exact: true}).click();
  expect((await page.locator('.answer').innerText()).startsWith('left'), 'the first answer');
  await page.keyboard.press('Escape');
  await eventually(async () => (await server.stats()).running === 0, 'no running request', 2000);
});

test('an answer follows a JSON schema', '--scripted', async ({page}) => {
  const schema = {
    type: 'object',
    properties: {
      name: {type: 'string', maxLength: 12},
      age: {type: 'integer', minimum: 0, maximum: 99},
    },
    required: ['name', 'age'],
    additionalProperties: false,
  };
  await set(page, {schema: JSON.stringify(schema)});
  const answer =
      JSON.parse(await ask(page, 'Anna is 34 years old. Answer in JSON with name and age.'));
  expectEqual(Object.keys(answer), ['name', 'age']);
  expect(Number.isInteger(answer.age), `a whole number, found ${answer.age}`);
});

test(
    'who scrolls up is left there, and finds the way back', kPaced, async ({page, force}) => {
      const line = 'one more line\n\n';
      await force(line.repeat(40), line.repeat(300));
      await ask(page, 'Some lines, please.');
      await send(page, 'Many lines, please.');
      const place = () => page.evaluate(() => {
        const {scrollTop, scrollHeight, clientHeight} = document.getElementById('scroll');
        return {top: scrollTop, below: scrollHeight - clientHeight - scrollTop};
      });
      await page.waitForFunction(
          () => [...document.querySelectorAll('.answer')].at(-1).textContent.length > 200);
      expect((await place()).below < 60, 'the view to follow the answer');
      await page.mouse.move(700, 300);
      await page.mouse.wheel(0, -500);
      await page.locator('#to-end').waitFor();
      const {top} = await place();
      await page.evaluate(
          () => document.querySelector('.answer-of-model button').focus({preventScroll: true}));
      await sleep(500);
      expectEqual((await place()).top, top, 'place while the answer grows');
      const focus = await page.evaluate(() => document.activeElement.title);
      expectEqual(focus, 'Copy', 'focus on a button of the first answer');
      await page.keyboard.press('Escape');
      await page.waitForSelector('#send', {state: 'visible'});
      expectEqual((await place()).top, top, 'place after the end');
      await page.click('#to-end');
      expect((await place()).below < 2, 'the end');
    });
