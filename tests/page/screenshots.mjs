// Makes the two pictures of the README: a chat, and the dashboard under load. Look at them before
// they are committed.
import {mkdirSync, statSync} from 'node:fs';

import {Browser} from './browser.mjs';
import {ask, set} from './chat_page.mjs';
import {load} from './load.mjs';
import {Server} from './server.mjs';
import {sleep} from './suite.mjs';

const kLoadMs = 57_000;  // fills the first minute of the plots

const folder = new URL('../../docs/images/', import.meta.url).pathname;
mkdirSync(folder, {recursive: true});

async function shoot(page, name) {
  await page.mouse.move(0, 0);
  const path = `${folder}${name}.png`;
  await page.screenshot({path});
  console.log(`${path}: ${(statSync(path).size / 1000).toFixed(0)} kB`);
}

const browser = await Browser.launch();
const server = await Server.start('--max-num-seqs 8 --kv-cache-bytes 2500000');
try {
  await browser.withPage(server, async ({page}) => {
    await set(page, {seed: '1', temperature: '0'});
    await ask(page, 'Tell me a short story about a small boat.');
    await page.click('#new-chat');
    await ask(page, 'What can you do?');
    await page.click('#new-chat');
    await page.selectOption('#thinking', 'high');
    await ask(page, 'What is 347 + 586?');
    await page.selectOption('#thinking', '');
    await ask(page, 'What is a river?');
    await shoot(page, 'chat');
  });
  await browser.withPage(server, async ({page}) => {
    await page.setViewportSize({width: 1360, height: 980});
    await page.emulateMedia({colorScheme: 'dark'});
    await page.click('#tab-dashboard');
    const stop = load(server, 8, 200);
    await sleep(kLoadMs);
    await shoot(page, 'dashboard');
    await stop();
  });
} finally {
  await server.stop();
  await browser.close();
}
