// Text is text; nothing leaves this server. (browser.mjs checks the latter after every test.)
import {ask} from './chat_page.mjs';
import {expect, expectEqual, test} from './suite.mjs';

const kEvil =
    '<script>window.hacked = 1</script> <img src=x onerror="window.hacked = 2"> <b>bold</b> &amp;';

test('markup in an answer shows as text', '--scripted', async ({page, force}) => {
  await page.selectOption('#thinking', 'high');
  await force(`${kEvil}</think>${kEvil}\n\`\`\`html\n${kEvil}\n\`\`\``);
  const text = await ask(page, kEvil);
  expectEqual(text.split('\n')[0], kEvil, 'the answer');
  expect((await page.locator('.fence').innerText()).startsWith(kEvil), 'the fenced block');
  expectEqual(await page.locator('.bubble').innerText(), kEvil, 'the question');
  await page.click('.thinking summary');
  expectEqual(await page.locator('.thinking .text').innerText(), kEvil, 'the thoughts');
  expectEqual(
      await page.locator('.conversation .open').innerText(), kEvil.slice(0, 59) + '…', 'the title');
  expectEqual(
      await page.locator('#chat-view :is(script, img:not(.welcome img), b:not(.welcome b))')
          .count(),
      0, 'elements out of text');
  expectEqual(await page.evaluate(() => window.hacked), undefined);
  await page.reload();
  await page.locator('.conversation .open').click();
  expectEqual((await page.locator('.answer').innerText()).split('\n')[0], kEvil, 'the kept answer');
  expectEqual(await page.evaluate(() => window.hacked), undefined);
});

test(
    'the policy refuses markup, inline script and other origins', '--scripted',
    async ({page, allow}) => {
      allow(/policy: |Content Security Policy|requires 'Trusted|example\.org/);
      const refused = await page.evaluate(async () => {
        const attempts = {
          markup: () => {
            document.body.innerHTML = '<b>x</b>';
          },
          // The debugger that runs this function may; a timer's may not.
          code: () => new Promise((done, fail) => setTimeout(() => {
                                    try {
                                      done((0, eval)('1'));
                                    } catch (error) {
                                      fail(error);
                                    }
                                  })),
          fetch: () => fetch('https://example.org/'),
        };
        const script = document.createElement('script');
        script.append('window.inline = 1');
        let scriptRefused = false;
        try {
          document.body.append(script);
          scriptRefused = window.inline === undefined;
        } catch {
          scriptRefused = true;
        }
        const names = scriptRefused ? ['inline'] : [];
        for (const [name, attempt] of Object.entries(attempts))
          await Promise.resolve().then(attempt).catch(() => names.push(name));
        return names.sort();
      });
      expectEqual(refused, ['code', 'fetch', 'inline', 'markup']);
    });

test('the page works where the browser denies storage', '--scripted', async ({page}) => {
  await page.addInitScript(() => {
    for (const name of ['localStorage', 'sessionStorage']) {
      Object.defineProperty(window, name, {
        get() {
          throw new DOMException('denied', 'SecurityError');
        }
      });
    }
  });
  await page.reload();
  await page.locator('#storage-note').waitFor();
  expect(await ask(page, 'Hello') !== '', 'an answer');
  await page.click('#theme');
  await page.click('#new-chat');
  await page.locator('.conversation .open').click();
  expectEqual(await page.locator('.bubble').innerText(), 'Hello');
});
