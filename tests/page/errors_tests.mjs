// What goes wrong is one line that says what to do.
import {send} from './chat_page.mjs';
import {Server} from './server.mjs';
import {eventually, expect, expectEqual, kPaced, sleep, test} from './suite.mjs';

const kStatus =
    /status of \d+|ERR_CONNECTION|ERR_FAILED|ERR_INCOMPLETE|ERR_EMPTY/;  // the browser's own
                                                                         // remarks

test('a conversation that is too long says so', '--scripted', async ({page, allow}) => {
  allow(kStatus);
  await send(page, 'one two three '.repeat(6000));
  const line = await page.locator('#messages .line.error').innerText();
  expect(/too long for the model: begin a new chat/.test(line), `what to do, found "${line}"`);
});

test(
    'a server that goes away is told, and found again', `${kPaced} --served-model-name gone`,
    async ({page, server, allow, force}) => {
      allow(kStatus);
      await force('and on '.repeat(1500));
      await send(page, 'Go on.');
      await page.waitForFunction(() => document.querySelector('.answer')?.textContent.length > 10);
      await server.stop('SIGKILL');
      await page.waitForSelector('#messages .line.error');
      expect(
          /See that the server runs, then try again/.test(
              await page.locator('#messages .line.error').innerText()),
          'what to do');
      await page.waitForSelector('#server[data-state="away"]');
      await page.click('#tab-dashboard');
      expect(
          /does not answer/.test(await page.locator('#away').innerText()),
          'a line on the dashboard');
      const again = await Server.start(server.flags, server.port);
      try {
        await page.locator('#away').waitFor({state: 'hidden'});
        await page.click('#tab-chat');
        await force('Here I am.');
        await page.getByRole('button', {name: 'Try again'}).click();
        await page.getByText('Here I am.', {exact: true}).waitFor();
        expectEqual(await page.locator('#messages .line.error').count(), 0, 'error lines');
        expectEqual(await page.locator('.message').count(), 2, 'messages');
      } finally {
        await again.stop();
      }
    });

const kGuarded = `${kPaced} --api-key sesame --max-concurrent-per-key 1`;

test('a missing key is asked for, and the message sent again', kGuarded, async ({page, allow}) => {
  allow(kStatus);
  await page.waitForSelector('#server[data-state="key"]');
  await send(page, 'What is 2 + 3?');
  await page.getByRole('button', {name: 'Enter the key'}).click();
  expect(
      await page.locator('[name=apiKey]').evaluate((field) => field === document.activeElement),
      'focus on the key');
  await page.keyboard.type('sesame');
  await page.keyboard.press('Enter');
  await eventually(async () => await page.locator('.facts').count() === 1, 'an answer');
  expectEqual(await page.locator('#messages .line.error').count(), 0, 'error lines');
  await page.reload();
  await page.waitForSelector('#server[data-state="ready"]');
  const kept = await page.evaluate(() => JSON.stringify({...localStorage}));
  expect(!kept.includes('sesame'), 'the key not to be kept for good');
});

test('a busy server says when to try again', kGuarded, async ({page, server, allow, force}) => {
  allow(kStatus);
  await page.evaluate(() => sessionStorage.setItem('deepinfer.key', 'sesame'));
  await page.reload();
  const headers = {authorization: 'Bearer sesame', 'content-type': 'application/json'};
  const hold = new AbortController();
  const held = fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    signal: hold.signal,
    body: JSON.stringify({
      messages: [{role: 'user', content: 'Hi'}],
      max_tokens: 4000,
      ignore_eos: true,
      stream: true
    }),
  });
  await (await held).body.getReader().read();
  await send(page, 'Hello');
  const line = page.locator('#messages .line.error');
  await line.waitFor();
  expect(
      /Too many requests at once\. Try again in \d+ s/.test(await line.innerText()),
      'when to try again');
  expect(await line.locator('button').isDisabled(), 'a button that waits');
  hold.abort();
  await sleep(100);
  await line.locator('button:not(:disabled)').click();
  await page.waitForSelector('.facts');
  expectEqual(await line.count(), 0, 'error lines');
});
