// Tool calls: the model's words are forced, so that it does not matter what the model can do.
import {send, set, watchRequests} from './chat_page.mjs';
import {expect, expectEqual, test} from './suite.mjs';

const kMark = '｜DSML｜';

const callOf = (name, parameters) => ['',
                                      '',
                                      `<${kMark} calls>`,
                                      `<${kMark} invoke name="${name}">`,
                                      ...parameters.map(
                                          ([key, value]) => `<${kMark} parameter name="${
                                              key}" string="true">${value}</${kMark} parameter>`),
                                      `</${kMark} invoke>`,
                                      `</${kMark} calls>`,
].join('\n');

test(
    'a call of the calculator is answered by the page, and the model goes on', '--scripted',
    async ({page, force}) => {
      const bodies = watchRequests(page);
      await page.check('#example-tools');
      await force(
          `I work it out.${callOf('calculator', [['expression', '12 * (3 + 4)']])}`, 'It is 84.');
      await send(page, 'What is 12 * (3 + 4)?');
      await page.getByText('It is 84.', {exact: true}).waitFor();
      expectEqual(await page.locator('.call .name').innerText(), 'calculator');
      expectEqual(
          JSON.parse(await page.locator('.call .arguments').innerText()),
          {expression: '12 * (3 + 4)'});
      expectEqual(await page.locator('.call .result').innerText(), '{"value":84}');
      expectEqual(await page.locator('.call textarea').count(), 0, 'boxes for a result');
      const [question, answer, result] = bodies[1].messages;
      expectEqual(
          [question.role, answer.role, answer.content, result.role],
          ['user', 'assistant', 'I work it out.', 'tool']);
      expectEqual(result.tool_call_id, answer.tool_calls[0].id, 'id of the answered call');
      expectEqual(result.content, '{"value":84}');
    });

test('a function of the user waits for its result', '--scripted', async ({page, force}) => {
  const bodies = watchRequests(page);
  const weather = {
    name: 'weather',
    description: 'The weather in a city',
    parameters: {type: 'object', properties: {city: {type: 'string'}}, required: ['city']},
  };
  await set(page, {tools: JSON.stringify([weather])});
  await force(callOf('weather', [['city', 'Turku']]), 'Rain, it seems.');
  await send(page, 'How is the weather in Turku?');
  await page.locator('.call textarea').fill('rain, 4 degrees');
  expectEqual(bodies.length, 1, 'requests before the result');
  expectEqual(bodies[0].tools.map((tool) => tool.function.name), ['weather']);
  await page.getByRole('button', {name: 'Return'}).click();
  await page.getByText('Rain, it seems.', {exact: true}).waitFor();
  expectEqual(bodies[1].messages.at(-1).content, 'rain, 4 degrees');
  await page.reload();
  await page.locator('.conversation .open').click();
  expectEqual(await page.locator('.call .result').innerText(), 'rain, 4 degrees');
});

test(
    'a faulty call gets an error as its result, and the model goes on', '--scripted',
    async ({page, force}) => {
      await page.check('#example-tools');
      await force(callOf('calculator', [['expression', 'twelve']]), 'I could not.');
      await send(page, 'What is twelve?');
      await page.getByText('I could not.', {exact: true}).waitFor();
      expect(
          (await page.locator('.call .result').innerText()).includes('error'),
          'an error as the result');
    });
