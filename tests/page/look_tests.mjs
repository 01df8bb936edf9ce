// Keyboard, colours, widths and names for screen readers.
import {ask, set} from './chat_page.mjs';
import {expect, expectEqual, test} from './suite.mjs';

const focused = (page) => page.evaluate(() => document.activeElement.id);

test('the keyboard does everything', '--scripted', async ({page, force}) => {
  expectEqual(await focused(page), 'prompt', 'focus at the start');
  await page.keyboard.type('one');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('two');
  expectEqual(await page.inputValue('#prompt'), 'one\ntwo');
  await force('Yes.');
  await page.keyboard.press('Enter');
  await page.getByText('Yes.', {exact: true}).waitFor();
  expectEqual(await page.locator('.bubble').innerText(), 'one\ntwo');
  await page.locator('#theme').focus();
  await page.keyboard.press('?');
  await page.locator('#help').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#theme').focus();
  await page.keyboard.press('/');
  expectEqual(await focused(page), 'prompt', 'focus after /');
  expectEqual(await page.inputValue('#prompt'), '', 'text after /');
  await page.keyboard.press('Control+,');
  await page.locator('#settings').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Alt+2');
  await page.locator('#dashboard-view').waitFor();
  await page.keyboard.press('Alt+1');
  await page.locator('#chat-view').waitFor();
  await page.keyboard.press('Control+k');
  await page.locator('#welcome').waitFor();
});

test('dark follows the system until the switch is used', '--scripted', async ({page}) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({colorScheme: 'light'});
  const light = await ground();
  await page.emulateMedia({colorScheme: 'dark'});
  const dark = await ground();
  expect(light !== dark, 'two colours');
  await page.click('#theme');
  expectEqual(await ground(), light, 'colour after the switch');
  await page.reload();
  expectEqual(await ground(), light, 'colour after a reload');
});

// Contrast as the WCAG defines it, of colours as the browser computes them.
test('text contrasts 4.5 to 1 or more, dark and light', '--scripted', async ({page}) => {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({colorScheme});
    const low = await page.evaluate(() => {
      const probe = document.createElement('i');
      document.body.append(probe);
      const luminance = (name) => {
        probe.style.color = name.startsWith('#') ? name : `var(--${name})`;
        const channels =
            getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map((c) => c / 255);
        const [r, g, b] =
            channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const pairs = [];
      for (const ground of ['ground', 'surface', 'sunken', 'accent-soft']) {
        for (const text of ['text', 'muted', 'accent']) pairs.push([text, ground]);
      }
      pairs.push(['danger', 'danger-soft'], ['danger', 'surface'], ['#ffffff', 'accent-fill']);
      return pairs
          .map(([text, ground]) => {
            const [a, b] = [luminance(text), luminance(ground)].sort((x, y) => y - x);
            return [`${text} on ${ground}`, (a + 0.05) / (b + 0.05)];
          })
          .filter(([, ratio]) => ratio < 4.5);
    });
    expectEqual(low, [], `too faint when ${colorScheme}`);
  }
});

test(
    'on a phone nothing sticks out, and the list of chats slides in', '--scripted',
    async ({page}) => {
      await page.setViewportSize({width: 360, height: 740});
      const sticksOut = () => page.evaluate(
          () => Math.max(...['html', '#scroll', '#dashboard-view', '#settings']
                             .map((name) => document.querySelector(name))
                             .map((part) => part.scrollWidth - part.clientWidth)));
      expect(await sticksOut() <= 0, 'no sideways scrolling of the welcome');
      await set(page, {maxTokens: '12'});
      await ask(page, `${'word'.repeat(60)} What is 2 + 3?`);
      expect(await sticksOut() <= 0, 'no sideways scrolling of a chat');
      await page.locator('#sidebar').waitFor({state: 'hidden'});
      await page.click('#menu');
      await page.locator('.conversation .open').click();
      await page.locator('#sidebar').waitFor({state: 'hidden'});
      await page.click('#tab-dashboard');
      expect(await sticksOut() <= 0, 'no sideways scrolling of the dashboard');
      await page.click('#open-settings');
      expect(await sticksOut() <= 0, 'no sideways scrolling of the settings');
    });

test('every control has a name, every icon a drawing', '--scripted', async ({page, force}) => {
  await force('Yes.');
  await ask(page, 'Hello');
  await page.press('#prompt', 'ArrowUp');
  const nameless = await page.evaluate(() => {
    const nameOf = (control) => control.getAttribute('aria-label') || control.textContent.trim() ||
        [...control.labels ?? []].map((label) => label.textContent.trim()).join('');
    return [...document.querySelectorAll('a, button, input, select, textarea')]
        .filter((control) => !nameOf(control))
        .map((control) => control.outerHTML);
  });
  expectEqual(nameless, []);
  const undrawn = await page.evaluate(
      () => [...document.querySelectorAll('use')]
                .map((use) => use.getAttribute('href'))
                .filter((href) => !document.querySelector(href)));
  expectEqual(undrawn, [], 'icons that are not drawn');
});
