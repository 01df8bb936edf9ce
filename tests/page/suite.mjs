// What tests are made of.

// [{name, flags, run}]: filled by test().
export const tests = [];

// flags: of `deepinfer serve`, in one text; tests beside each other with the same flags share a
// server. run({page, server, force}): see browser.mjs.
export function test(name, flags, run) {
  tests.push({name, flags, run});
}

// For what is looked at while an answer grows: 10 ms a token, however fast the machine is.
export const kPaced = '--scripted --scripted-pass-ms 10';

export function expect(holds, what) {
  if (!holds) throw new Error(`expected ${what}`);
}

export function expectEqual(found, wanted, what = 'value') {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: expected ${b}, found ${a}`);
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Asks again until `get()` gives something true, and returns it.
export async function eventually(get, what, timeoutMs = 10_000) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = await get();
    if (value) return value;
    if (Date.now() > end) throw new Error(`expected within ${timeoutMs} ms: ${what}`);
    await sleep(30);
  }
}
