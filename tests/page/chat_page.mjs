// What a user does on the page.

export async function send(page, text) {
  await page.fill('#prompt', text);
  await page.press('#prompt', 'Enter');
}

// Sends a message and waits for the end of the answer, which is returned.
export async function ask(page, text) {
  await send(page, text);  // hides #send until the answer is complete
  await page.waitForSelector('#send', {state: 'visible', timeout: 30_000});
  return page.locator('.answer').last().innerText();
}

// The bodies of chat requests that the page sends from now on.
export function watchRequests(page) {
  const bodies = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/v1/chat/completions')) bodies.push(request.postDataJSON());
  });
  return bodies;
}

// Fills fields of the settings.
export const set = async (page, fields) => {
  await page.click('#open-settings');
  for (const [name, value] of Object.entries(fields))
    await page.fill(`#settings [name=${name}]`, value);
  await page.keyboard.press('Escape');
};
