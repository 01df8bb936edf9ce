// The dashboard.
import {load} from './load.mjs';
import {eventually, expect, expectEqual, kPaced, sleep, test} from './suite.mjs';

const card = (page, title) => page.locator(`.card[aria-label="${title}"]`);
const value = async (page, title) =>
    parseFloat(await card(page, title).locator('.value').innerText());

test('plots and numbers move under load', kPaced, async ({page, server}) => {
  await page.click('#tab-dashboard');
  await page.waitForSelector('.card .trace', {state: 'attached'});
  const stop = load(server, 4, 40);
  try {
    await eventually(
        async () => await value(page, 'Requests in the engine') >= 2, 'running requests');
    await eventually(
        async () => await value(page, 'Tokens per second') > 5, 'output tokens per second');
    await eventually(
        async () => await value(page, 'Time to first token') > 0, 'a time to first token');
    await eventually(
        async () => await value(page, 'Requests that ended, per second') >= 1, 'answered requests');
    const path = () => card(page, 'Tokens per second').locator('.trace.series-1').getAttribute('d');
    const before = await path();
    await sleep(2200);
    const after = await path();
    expect(after !== before && after.split('L').length > 3, 'a line that grows');
    const pages = await card(page, 'Pages of the KV cache').locator('.headline').innerText();
    expect(/\d+\s*of \S+ in use/.test(pages), `pages, found "${pages}"`);
    const model = await page.locator('.facts-list dd').first().innerText();
    expectEqual(model, (await server.stats()).model);
  } finally {
    await stop();
  }
  await eventually(
      async () => await value(page, 'Requests in the engine') === 0, 'no running request');
});

test('nothing is asked while the page is hidden', '--scripted', async ({page}) => {
  let asked = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/stats')) ++asked;
  });
  await page.click('#tab-dashboard');
  await eventually(() => asked >= 2, 'a question each second');
  const hide = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', {value, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await hide(true);
  await sleep(200);
  const before = asked;
  await sleep(2500);
  expectEqual(asked, before, 'questions while hidden');
  await hide(false);
  await eventually(() => asked > before, 'a question after that', 2000);
});

test('the mouse reads values of the past', '--scripted', async ({page}) => {
  await page.click('#tab-dashboard');
  const plot = card(page, 'Requests in the engine').locator('.plot');
  await eventually(
      async () =>
          /L/.test(await plot.locator('.trace').first().getAttribute('d').catch(() => '') ?? ''),
      'two values');
  await plot.hover();
  expect(
      /\d+:\d\d:\d\d/.test(await card(page, 'Requests in the engine').locator('.when').innerText()),
      'a time');
  expectEqual(await plot.locator('.cursor').count(), 1, 'cursors');
});
