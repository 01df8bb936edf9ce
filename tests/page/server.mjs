// A real `deepinfer serve` on a free port of this machine, with the bundled model.
import {spawn} from 'node:child_process';
import {createServer} from 'node:net';

import {eventually} from './suite.mjs';

function freePort() {
  return new Promise((done, fail) => {
    const probe = createServer().once('error', fail).listen(0, '127.0.0.1', () => {
      const {port} = probe.address();
      probe.close(() => done(port));
    });
  });
}

export class Server {
  // Errors: the program ends, or is not ready within a minute.
  static async start(flags, port) {
    const server = new Server();
    server.flags = flags;
    server.port = port ?? await freePort();
    server.url = `http://127.0.0.1:${server.port}`;
    server.output = '';
    server.running = true;
    const words = ['serve', '--port', String(server.port), ...flags.split(' ').filter(Boolean)];
    server.process = spawn(process.env.DI_DEEPINFER, words, {stdio: ['ignore', 'pipe', 'pipe']});
    for (const stream of [server.process.stdout, server.process.stderr]) {
      stream.on('data', (data) => {
        server.output = (server.output + data).slice(-20_000);
      });
    }
    server.ended = new Promise((done) => {
                     server.process.once('error', (error) => {
                       server.output += error.message;
                       done();
                     });
                     server.process.once('exit', done);
                   }).then(() => {
      server.running = false;
    });
    await eventually(async () => {
      if (!server.running) throw new Error(`deepinfer ${words.join(' ')} ended:\n${server.output}`);
      return fetch(`${server.url}/ready`).then((answer) => answer.ok, () => false);
    }, `deepinfer ${words.join(' ')} to be ready`, 60_000);
    return server;
  }

  async stop(signal = 'SIGTERM') {
    this.process.kill(signal);
    const kill = setTimeout(() => this.process.kill('SIGKILL'), 10_000);
    await this.ended;
    clearTimeout(kill);
  }

  async json(path, body, headers = {}) {
    const answer = await fetch(this.url + path, body === undefined ? {headers} : {
      method: 'POST',
      headers: {'content-type': 'application/json', ...headers},
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  stats() {
    return this.json('/stats');
  }

  // Ids of a text; control tokens in it (such as </think>) become their own.
  async tokens(text) {
    return (await this.json('/tokenize', {prompt: text, add_special_tokens: false})).tokens;
  }
}
