// sse.js: server-sent events, out of the bytes of a body.

// Yields the data of each event. `body`: a ReadableStream of bytes. Lines end in \n, \r or \r\n;
// comments and other fields are skipped. An event that the end cuts off is dropped, as the standard
// says.
export async function* readEvents(body) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  let data = [];
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      rest += decoder.decode(value, {stream: true});
      // A \r at the end may be half of a \r\n: it waits for the next bytes.
      const end = rest.endsWith('\r') ? rest.length - 1 : rest.length;
      const lines = rest.slice(0, end).split(/\r\n|\n|\r/);
      rest = lines.pop() + rest.slice(end);
      for (const line of lines) {
        if (line !== '') {
          if (/^data(:|$)/.test(line)) data.push(line.slice(5).replace(/^ /, ''));
        } else if (data.length > 0) {
          yield data.join('\n');
          data = [];
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
