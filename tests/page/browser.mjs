// Chromium, and a page of its own for each test. No name but 127.0.0.1 leads anywhere: what works
// here works offline.
import {existsSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

const kFlags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

export class Browser {
  static async launch() {
    const {chromium} = await import(pathToFileURL(process.env.DI_PLAYWRIGHT));
    const browser = new Browser();
    // Playwright gives it an empty profile and removes it afterwards.
    browser.chromium =
        await chromium.launch({executablePath: find(process.env.CHROMIUM), args: kFlags});
    return browser;
  }

  isAlive() {
    return this.chromium.isConnected();
  }

  close() {
    return this.chromium.close();
  }

  // run({page, server, force, allow}): `page` shows the chat. Afterwards fails if the page has
  // asked anybody but the server, broke its policy, or wrote an error to the console that no
  // pattern given to allow() explains.
  async withPage(server, run) {
    const context = await this.chromium.newContext({viewport: {width: 1280, height: 800}});
    context.setDefaultTimeout(15_000);
    const page = await context.newPage();
    const faults = [];
    const allowed = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`not caught: ${error.stack}`));
    page.on('request', (request) => {
      if (!request.url().startsWith(`${server.url}/`)) faults.push(`asked ${request.url()}`);
    });
    page.on('dialog', (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    await page.addInitScript(
        () => addEventListener(
            'securitypolicyviolation',
            (event) => console.error(
                `policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`)));
    if (process.env.DI_PAGE) await serveFrom(page, process.env.DI_PAGE);
    try {
      await page.goto(server.url);
      await page.waitForSelector('#server[data-state]');
      await run({
        page,
        server,
        force: (...texts) => force(page, server, ...texts),
        allow: (pattern) => allowed.push(pattern)
      });
      const left = faults.filter((fault) => !allowed.some((pattern) => pattern.test(fault)));
      if (left.length > 0) throw new Error(`the page: ${left.join('; ')}`);
    } catch (error) {
      const shown = await page.innerText('body').catch(() => 'nothing: it has gone');
      error.stack += [
        '', 'The page shows:', shown.replace(/\n+/g, '\n').slice(0, 2000), ...faults,
        'The server said:', server.output.slice(-2000)
      ].join('\n');
      throw error;
    } finally {
      await context.close();
    }
  }
}

function find(command) {
  if (command.includes('/')) return command;
  return process.env.PATH.split(':').map((folder) => join(folder, command)).find(existsSync);
}

// The next answers of the model are these texts, one a request, word for word (`--scripted`); the
// end of the answer is forced, too. Control tokens are written as they are: "</think>".
async function force(page, server, ...texts) {
  const scripts = [];
  for (const text of texts) scripts.push(await server.tokens(`${text}<｜end▁of▁sentence｜>`));
  await page.unroute('**/v1/chat/completions');
  await page.route('**/v1/chat/completions', (route) => {
    const body = route.request().postDataJSON();
    const ids = scripts.shift();
    if (ids) body.forced_token_ids = ids;
    return route.continue({postData: JSON.stringify(body)}).catch(() => {});  // the page has gone
  });
}

// The page's files from a folder, with the headers that the server gives them.
function serveFrom(page, folder) {
  return page.route(/:\d+\/(page\/[\w.]+)?(#.*)?$/, async (route) => {
    const path = new URL(route.request().url()).pathname;
    const name = path === '/' ? 'index.html' : path.slice('/page/'.length);
    const response = await route.fetch().catch(() => null);
    if (response === null) return route.abort().catch(() => {});  // the server or the page has gone
    return route.fulfill({response, body: readFileSync(join(folder, name))});
  });
}
