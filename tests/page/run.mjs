// Runs all tests of the page one after the other. See run.sh.
import {readdirSync} from 'node:fs';

import {Browser} from './browser.mjs';
import {Server} from './server.mjs';
import {tests} from './suite.mjs';

const here = new URL('.', import.meta.url);
for (const file of readdirSync(here).filter((name) => name.endsWith('_tests.mjs')).sort()) {
  await import(new URL(file, here));
}

const wanted = process.argv.slice(2);
const chosen =
    tests.filter(({name}) => wanted.length === 0 || wanted.some((w) => name.includes(w)));
const why = process.env.DI_SKIP;
const counts = {
  passed: 0,
  failed: 0,
  skipped: 0
};

// What fails where nobody waits for it belongs to the test that is running.
let failTest = (error) => console.log(`between tests: ${error.stack ?? error}`);
process.on('unhandledRejection', (error) => failTest(error));

// One server for all tests that want the same flags, one browser as long as it lives; in the order
// of the files.
async function runAll() {
  let browser = null;
  let server = null;
  const runOnce = async ({flags, run}) => {
    if (!browser?.isAlive()) browser = await Browser.launch();
    if (server === null || server.flags !== flags || !server.running) {
      await server?.stop();
      server = await Server.start(flags);
    }
    const elsewhere = new Promise((_, fail) => {
      failTest = fail;
    });
    await Promise.race([browser.withPage(server, run), elsewhere]);
  };
  for (const test of chosen) {
    const start = Date.now();
    try {
      // What went wrong once and then right is printed in full, and counts as right.
      await runOnce(test).catch((error) => {
        console.log(`AGAIN   ${test.name}: ${error.stack ?? error}`);
        return runOnce(test);
      });
      ++counts.passed;
      console.log(`ok      ${test.name} (${Date.now() - start} ms)`);
    } catch (error) {
      ++counts.failed;
      console.log(`FAILED  ${test.name}: ${error.stack ?? error}`);
    }
  }
  await server?.stop();
  await browser?.close();
}

if (why) {
  for (const {name} of chosen) console.log(`SKIPPED ${name}: ${why}`);
  counts.skipped = chosen.length;
} else {
  await runAll();
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed > 0 ? 1 : 0);
