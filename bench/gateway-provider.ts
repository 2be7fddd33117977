// A provider in a process of its own: it answers each request with a stream of 52 events. It prints its address.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const events = 52;
/** Time between two events, in milliseconds. */
const pace = 5;

function eventOf(index: number): string {
  if (index === 0)
    return 'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":20000,"output_tokens":1}}}\n\n';
  if (index === events - 1)
    return 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":52}}\n\n';
  const text = `piece ${index} of the text `.repeat(4);
  return `event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"${text}"}}\n\n`;
}

const server = createServer((request, response) => {
  request.resume().once("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    let index = 0;
    response.write(eventOf(index++));
    const timer = setInterval(() => {
      response.write(eventOf(index++));
      if (index < events) return;
      clearInterval(timer);
      response.end();
    }, pace);
  });
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
